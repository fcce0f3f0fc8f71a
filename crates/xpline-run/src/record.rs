//! Recorded streams: a file of chunks that can be run again on any platform.
//!
//! A line that names the format, then one zstd stream of blocks: thread, flags, number of accesses, and the
//! two times, then 24 B each. The
//! last block has the names of the sites and what is known of the program, as JSON.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use xpline_model::OpKind;

use crate::access::{Access, Chunk};
use crate::sites::Named;

const MAGIC: &[u8; 16] = b"xpline recorded\n";
const VERSION: u8 = 1;
const BYTES: usize = 24;
/// The thread number of the last block.
const END: u32 = u32::MAX;

/// The most accesses of a chunk, and bytes of the last block: more is damage.
const MOST_ACCESSES: u32 = 1 << 24;
const MOST_JSON: u32 = 1 << 30;

#[derive(Debug, Error)]
pub enum RecordError {
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error("{path}: is no recorded run of this version of xpline: record it with xpline run --trace FILE")]
    NotARecord { path: String },
    #[error("{path}: {what}")]
    Damaged { path: String, what: String },
}

/// What a recorded run is of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct About {
    pub command: Vec<String>,
    pub sites: Vec<Named>,
    #[serde(default)]
    pub calls: Vec<Named>,
    /// What the translator counted, as JSON.
    pub totals: serde_json::Value,
    /// Whether only the beginning was recorded.
    pub cut: bool,
}

/// Writes to a temporary name; [`Recorder::finish`] puts the file in place.
pub struct Recorder {
    path: PathBuf,
    temporary: PathBuf,
    out: Option<zstd::Encoder<'static, BufWriter<File>>>,
}

impl Recorder {
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let made = File::create(&temporary).and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(&[VERSION])?;
            zstd::Encoder::new(BufWriter::new(file), 1)
        });
        let out = made.map_err(|error| failed(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            out: Some(out),
        })
    }

    pub fn write(&mut self, chunk: &Chunk) -> Result<(), RecordError> {
        let Some(out) = &mut self.out else { return Ok(()) };
        let mut block = Vec::with_capacity(28 + BYTES * chunk.accesses.len());
        let flags = u32::from(chunk.last) | u32::from(chunk.first) << 1;
        for word in [chunk.thread, flags, chunk.accesses.len() as u32] {
            block.extend(word.to_le_bytes());
        }
        for time in [chunk.begin, chunk.end] {
            block.extend(time.to_le_bytes());
        }
        for access in &chunk.accesses {
            block.extend(access.address.to_le_bytes());
            for word in [access.size, access.instructions, access.site, access.kind as u32] {
                block.extend(word.to_le_bytes());
            }
        }
        out.write_all(&block).map_err(|error| failed(&self.path, error))
    }

    pub fn finish(mut self, about: &About) -> Result<(), RecordError> {
        let Some(mut out) = self.out.take() else { return Ok(()) };
        let json = serde_json::to_vec(about).expect("plain data");
        let written = (|| {
            for word in [END, 0, json.len() as u32] {
                out.write_all(&word.to_le_bytes())?;
            }
            out.write_all(&json)?;
            out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
            fs::rename(&self.temporary, &self.path)
        })();
        written.map_err(|error| failed(&self.path, error))
    }
}

impl Drop for Recorder {
    /// What was not finished is gone.
    fn drop(&mut self) {
        self.out = None;
        _ = fs::remove_file(&self.temporary);
    }
}

fn failed(path: &Path, error: io::Error) -> RecordError {
    RecordError::File {
        path: path.display().to_string(),
        error,
    }
}

/// Reads a recorded run.
pub struct Recording {
    path: String,
    input: zstd::Decoder<'static, BufReader<File>>,
    ended: bool,
    pub error: Option<RecordError>,
}

impl Recording {
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let mut file = File::open(path).map_err(|error| failed(path, error))?;
        let mut start = [0; 17];
        let read = file.read_exact(&mut start);
        let name = path.display().to_string();
        if read.is_err() || start[..16] != *MAGIC || start[16] != VERSION {
            return Err(RecordError::NotARecord { path: name });
        }
        let input = zstd::Decoder::new(file).map_err(|error| failed(path, error))?;
        Ok(Self {
            path: name,
            input,
            ended: false,
            error: None,
        })
    }

    /// The last block of a file.
    pub fn about(path: &Path) -> Result<About, RecordError> {
        let mut recording = Self::open(path)?;
        loop {
            if let Some(about) = recording.block()?.err() {
                return Ok(about);
            }
        }
    }

    /// The next block: a chunk, or what the run was of.
    fn block(&mut self) -> Result<Result<Chunk, About>, RecordError> {
        let [thread, flags, count] = self.words()?;
        if thread == END {
            if count > MOST_JSON {
                return Err(self.damaged("its last block is too long"));
            }
            let mut json = vec![0; count as usize];
            self.fill(&mut json)?;
            let about = serde_json::from_slice(&json).map_err(|error| self.damaged(&error.to_string()))?;
            return Ok(Err(about));
        }
        if count > MOST_ACCESSES || flags > 3 {
            return Err(self.damaged("a block makes no sense"));
        }
        let mut times = [0; 16];
        self.fill(&mut times)?;
        let [begin, end] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| times[at + byte])));
        let mut bytes = vec![0; count as usize * BYTES];
        self.fill(&mut bytes)?;
        let (records, _) = bytes.as_chunks::<BYTES>();
        let accesses: Option<Vec<Access>> = records.iter().map(access).collect();
        let accesses = accesses.ok_or_else(|| self.damaged("an access is of no known kind"))?;
        Ok(Ok(Chunk {
            thread,
            accesses,
            begin,
            end,
            first: flags & 2 != 0,
            last: flags & 1 != 0,
        }))
    }

    fn words(&mut self) -> Result<[u32; 3], RecordError> {
        let mut bytes = [0; 12];
        self.fill(&mut bytes)?;
        Ok([0, 4, 8].map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RecordError> {
        self.input
            .read_exact(bytes)
            .map_err(|error| self.damaged(&format!("breaks off, or is damaged ({error})")))
    }

    fn damaged(&self, what: &str) -> RecordError {
        RecordError::Damaged {
            path: self.path.clone(),
            what: what.to_owned(),
        }
    }
}

fn access(bytes: &[u8; BYTES]) -> Option<Access> {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let kind = *OpKind::ALL.get(word(20) as usize)?;
    (kind != OpKind::Stamp).then(|| Access {
        kind,
        address: u64::from(word(0)) | u64::from(word(4)) << 32,
        size: word(8),
        instructions: word(12),
        site: word(16),
    })
}

/// A recording that cannot be read on ends, and keeps the error.
impl Iterator for Recording {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        if self.ended {
            return None;
        }
        match self.block() {
            Ok(Ok(chunk)) => return Some(chunk),
            Ok(Err(_)) => {}
            Err(error) => self.error = Some(error),
        }
        self.ended = true;
        None
    }
}
