//! From one format to another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use xpline_model::OpKind;

use crate::ahead::Ahead;
use crate::error::TraceError;
use crate::format::{Format, Refusal, writer};
use crate::input::{Progress, reason};
use crate::record::{Header, LINE, Record, has_address, kind_name};
use crate::trace::ReadOptions;

/// What to write, and how.
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    pub read: ReadOptions,
    pub to: Format,
    /// Whether to leave out what the format cannot hold; otherwise that is an error.
    pub lossy: bool,
    /// Femtoseconds of a tick of the source, where it does not say.
    pub tick_fs: Option<u64>,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Converted {
    pub from: &'static str,
    pub to: &'static str,
    /// Records of the source.
    pub records: u64,
    /// Records written.
    pub written: u64,
    /// Records that the format could not hold at all.
    pub dropped: u64,
    /// Records that it holds in part, such as without their size.
    pub changed: u64,
    /// Bytes of the file written.
    pub bytes: u64,
}

/// Write the trace `source` to the file `target`: whole, or not at all. A name that ends in `.zst` is compressed.
/// `None` if `stop` was set meanwhile.
pub fn convert(
    source: &str,
    target: &str,
    options: &ConvertOptions,
    progress: &Arc<Progress>,
    stop: &AtomicBool,
) -> Result<Option<Converted>, TraceError> {
    let Some(mut trace) = Ahead::open(source, &options.read, progress, stop)? else {
        return Ok(None);
    };
    let header = Header {
        tick_fs: options.tick_fs.unwrap_or(trace.header().tick_fs),
        ..trace.header()
    };
    let mut file = NewFile::create(target)?;
    let cannot = |error: io::Error| TraceError::new(target, format!("cannot be written: {}", reason(&error)));
    let mut converted = Converted {
        from: trace.format().name(),
        to: options.to.name(),
        ..Converted::default()
    };
    let plain = BufWriter::with_capacity(256 << 10, file.take());
    let mut out: Box<dyn Finish> = if target.ends_with(".zst") {
        let mut encoder = zstd::Encoder::new(plain, 0).map_err(cannot)?;
        encoder.include_checksum(true).map_err(cannot)?;
        Box::new(encoder)
    } else {
        Box::new(plain)
    };
    let mut writer = writer(options.to, header, target, options.lossy)?;
    let mut batch = Vec::new();
    let mut fitting = Vec::new();
    while trace.read(&mut batch, stop)? {
        for record in &batch {
            converted.records += 1;
            fitting.clear();
            if options.lossy {
                fit(record, options.to, &mut fitting);
                converted.dropped += u64::from(fitting.is_empty());
                converted.changed += u64::from(!fitting.is_empty() && fitting != [*record]);
            } else {
                fitting.push(*record);
            }
            for record in &fitting {
                let written = writer.write(&mut *out, record);
                written.map_err(|refusal| refused(refusal, source, target, converted.records, Some(record)))?;
            }
            converted.written += fitting.len() as u64;
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let finished = writer.finish(&mut *out);
    finished.map_err(|refusal| refused(refusal, source, target, converted.records, None))?;
    out.finish().map_err(cannot)?;
    converted.bytes = file.put_in_place().map_err(cannot)?;
    Ok(Some(converted))
}

/// Records as the bytes of a trace.
pub fn encode<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    format: Format,
    header: Header,
) -> Result<Vec<u8>, TraceError> {
    let mut out = Vec::new();
    let mut writer = writer(format, header, "trace", false)?;
    let mut number = 0;
    for record in records {
        number += 1;
        let written = writer.write(&mut out, record);
        written.map_err(|refusal| refused(refusal, "trace", "trace", number, Some(record)))?;
    }
    let finished = writer.finish(&mut out);
    finished.map_err(|refusal| refused(refusal, "trace", "trace", number, None))?;
    Ok(out)
}

fn refused(refusal: Refusal, source: &str, target: &str, number: u64, record: Option<&Record>) -> TraceError {
    match refusal {
        Refusal::Io(error) => TraceError::new(target, format!("cannot be written: {}", reason(&error))),
        Refusal::Format(what) => {
            let subject = match record {
                Some(record) if has_address(record.kind) => {
                    format!(
                        "record {number}, a {} at {:#x},",
                        kind_name(record.kind),
                        record.address
                    )
                }
                Some(record) => format!("record {number}, a {},", kind_name(record.kind)),
                None => format!("record {number}, the last,"),
            };
            TraceError::new(source, format!("{subject} {what}; --lossy leaves such things out"))
        }
    }
}

/// The records that stand for one in a format that may hold less.
fn fit(record: &Record, format: Format, fitting: &mut Vec<Record>) {
    if format == Format::Xpline {
        return fitting.push(*record);
    }
    let kept = Record {
        thread: 0,
        time: record.time.filter(|_| format == Format::Dramsim3),
        ..*record
    };
    let kinds: &[OpKind] = match record.kind {
        OpKind::Load => &[OpKind::Load],
        OpKind::Store | OpKind::NtStore => &[OpKind::Store],
        OpKind::LockedRmw => &[OpKind::Load, OpKind::Store],
        OpKind::Compute if matches!(format, Format::Lackey | Format::Ramulator2O3) => &[OpKind::Compute],
        _ => &[],
    };
    for &kind in kinds {
        if kind == OpKind::Compute || format == Format::Lackey {
            fitting.push(Record { kind, ..kept });
        } else {
            fitting.extend(kept.lines().map(|address| Record {
                kind,
                address,
                size: LINE as u32,
                ..kept
            }));
        }
    }
}

/// A writer that may have to write an end.
trait Finish: Write {
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Finish for BufWriter<File> {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()
    }
}

impl Finish for zstd::Encoder<'_, BufWriter<File>> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        (*self).finish()?.flush()
    }
}

/// A file under a temporary name, until it is whole.
struct NewFile {
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
}

impl NewFile {
    fn create(target: &str) -> Result<Self, TraceError> {
        let path = Path::new(target);
        let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(TraceError::new(target, "is a folder; give the name of a file to write"));
        };
        let hidden = format!(".{}.{}", name.to_string_lossy(), std::process::id());
        let temporary = path.with_file_name(hidden);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .map_err(|error| TraceError::new(target, format!("cannot be written: {}", reason(&error))))?;
        Ok(Self {
            file: Some(file),
            temporary,
            target: path.to_owned(),
        })
    }

    fn take(&mut self) -> File {
        self.file.take().expect("taken once")
    }

    /// Give the file its name; returns its length.
    fn put_in_place(self) -> io::Result<u64> {
        let length = fs::metadata(&self.temporary)?.len();
        fs::rename(&self.temporary, &self.target)?;
        Ok(length)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Not there any more where the file was put in place.
        _ = fs::remove_file(&self.temporary);
    }
}
