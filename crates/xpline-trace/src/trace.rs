//! A trace being read, whatever its format.

use std::sync::Arc;

use crate::error::TraceError;
use crate::format::compact::{Decoder, MAGIC};
use crate::format::{AnyLines, Format, Geometry, format_of, lines_of, unknown};
use crate::input::{Input, Progress};
use crate::record::{Header, Level, Record};
use crate::text::{read_lines, trimmed};

/// Records that are read at once.
const BATCH: usize = 4096;

/// Bytes of a text in which its first line must be.
const FIRST: usize = 64 << 10;

/// What a reader must be told that the file does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; `None` finds it out.
    pub format: Option<Format>,
    /// The memory that address vectors speak of.
    pub geometry: Option<Geometry>,
}

/// A trace, read batch by batch in memory of bounded size.
pub struct Trace {
    input: Input,
    format: Format,
    header: Header,
    body: Body,
}

enum Body {
    Blocks(Decoder),
    Lines { lines: AnyLines, number: u64 },
}

impl Trace {
    /// Open a file, and find out its format if need be.
    pub fn open(path: &str, options: &ReadOptions, progress: &Arc<Progress>) -> Result<Self, TraceError> {
        Self::new(Input::open(path, progress)?, options)
    }

    pub fn new(mut input: Input, options: &ReadOptions) -> Result<Self, TraceError> {
        let format = match options.format {
            Some(Format::Ramulator2) => which_ramulator2(&mut input)?,
            Some(format) => format,
            None => detect(&mut input)?,
        };
        let (header, body) = if format == Format::Xpline {
            let decoder = Decoder::new(&mut input)?;
            (decoder.header(), Body::Blocks(decoder))
        } else {
            let header = Header {
                level: format.level(),
                tick_fs: 0,
            };
            let lines = lines_of(format, options.geometry.as_ref());
            (header, Body::Lines { lines, number: 0 })
        };
        Ok(Self {
            input,
            format,
            header,
            body,
        })
    }

    pub fn path(&self) -> &str {
        self.input.path()
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the file is compressed.
    pub fn compressed(&self) -> bool {
        self.input.compressed()
    }

    pub fn header(&self) -> Header {
        self.header
    }

    pub fn level(&self) -> Level {
        self.header.level
    }

    /// Put the next records in place of those given; false when none are left.
    pub fn read(&mut self, records: &mut Vec<Record>) -> Result<bool, TraceError> {
        records.clear();
        let input = &mut self.input;
        match &mut self.body {
            Body::Blocks(decoder) => while records.is_empty() && decoder.read_block(input, records)? {},
            Body::Lines { lines, number } => {
                let format = self.format;
                let hint = |line: &[u8]| hint(format, line);
                match lines {
                    AnyLines::LoadStore(lines) => read_lines(input, lines, number, records, BATCH, hint),
                    AnyLines::AddressVectors(lines) => read_lines(input, lines, number, records, BATCH, hint),
                    AnyLines::SimpleO3(lines) => read_lines(input, lines, number, records, BATCH, hint),
                    AnyLines::Dramsim3(lines) => read_lines(input, lines, number, records, BATCH, hint),
                    AnyLines::Vans(lines) => read_lines(input, lines, number, records, BATCH, hint),
                    AnyLines::Lackey(lines) => read_lines(input, lines, number, records, BATCH, hint),
                }?;
            }
        }
        Ok(!records.is_empty())
    }
}

/// What else a line that is not of the trace's format may be.
fn hint(format: Format, line: &[u8]) -> String {
    match format_of(line).filter(|&other| other != format) {
        Some(other) => format!(
            " (this is a line of a {} trace, and those before are {}: two traces mixed up)",
            other.name(),
            format.name()
        ),
        None => String::new(),
    }
}

/// The format of a trace, by its first bytes or its first line.
fn detect(input: &mut Input) -> Result<Format, TraceError> {
    input.fill_to(MAGIC.len())?;
    // The first byte tells it from text; the decoder says what is wrong with the others.
    if input.buffered().first() == Some(&MAGIC[0]) {
        return Ok(Format::Xpline);
    }
    let (number, place, line) = first_line(input)?;
    let line = trimmed(&line).to_vec();
    format_of(&line).ok_or_else(|| {
        let what = if line.is_ascii() {
            unknown(&line).what
        } else {
            "neither text nor an xpline trace; if it is one, it is damaged at its start".to_owned()
        };
        TraceError::at_line(input.path(), number, place, what)
    })
}

/// Which of the formats of Ramulator 2 a trace is; where its first line is of none, it will be refused as load-store.
fn which_ramulator2(input: &mut Input) -> Result<Format, TraceError> {
    let (_, _, line) = first_line(input)?;
    let format = format_of(trimmed(&line));
    Ok(match format {
        Some(format @ (Format::Ramulator2Rw | Format::Ramulator2O3)) => format,
        _ => Format::Ramulator2,
    })
}

/// The first line that is not blank, with its number and place.
fn first_line(input: &mut Input) -> Result<(u64, u64, Vec<u8>), TraceError> {
    while input.buffered().len() < FIRST && input.fill()? {}
    let mut place = 0;
    for (index, line) in input.buffered().split(|&byte| byte == b'\n').enumerate() {
        if !trimmed(line).is_empty() {
            return Ok((index as u64 + 1, place, line.to_vec()));
        }
        place += line.len() as u64 + 1;
    }
    Err(TraceError::new(input.path(), "holds nothing: an empty trace"))
}
