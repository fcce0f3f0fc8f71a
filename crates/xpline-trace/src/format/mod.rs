//! The formats: what each is called, what it can hold, and how one is told from another.

pub mod compact;
mod dramsim3;
mod lackey;
mod ramulator2;
mod vans;

use std::io::Write;

use xpline_model::OpKind;

use crate::error::TraceError;
use crate::record::{Header, Level, Record};
use crate::text::{Fault, Lines};

pub use dramsim3::Dramsim3;
pub use lackey::Lackey;
pub use ramulator2::{AddressVectors, Geometry, LoadStore, SimpleO3};
pub use vans::Vans;

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// xpline's own: compact, with checksums.
    Xpline,
    /// Ramulator 2's `LoadStoreTrace`: `LD 0x1000`.
    Ramulator2,
    /// Ramulator 2's `ReadWriteTrace`: `R 0,0,1,3,17,4`.
    Ramulator2Rw,
    /// Ramulator 2's `SimpleO3`: `3 20734016 20734080`.
    Ramulator2O3,
    /// DRAMsim3: `0x1000 READ 12`.
    Dramsim3,
    /// VANS and Ramulator 1: `0x1000 R`.
    Vans,
    /// Valgrind's `--tool=lackey --trace-mem=yes`: ` L 1ffeffe7e8,8`.
    Lackey,
}

impl Format {
    pub const ALL: [Self; 7] = [
        Self::Xpline,
        Self::Ramulator2,
        Self::Ramulator2Rw,
        Self::Ramulator2O3,
        Self::Dramsim3,
        Self::Vans,
        Self::Lackey,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Xpline => "xpline",
            Self::Ramulator2 => "ramulator2",
            Self::Ramulator2Rw => "ramulator2-rw",
            Self::Ramulator2O3 => "ramulator2-o3",
            Self::Dramsim3 => "dramsim3",
            Self::Vans => "vans",
            Self::Lackey => "lackey",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The names of all formats, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Where traces of the text formats are taken; the header of an xpline trace says.
    pub fn level(self) -> Level {
        match self {
            Self::Ramulator2 | Self::Ramulator2Rw | Self::Dramsim3 | Self::Vans => Level::Memory,
            Self::Xpline | Self::Ramulator2O3 | Self::Lackey => Level::Core,
        }
    }

    /// What a line looks like.
    fn example(self) -> &'static str {
        match self {
            Self::Xpline => "a binary file",
            Self::Ramulator2 => "LD 0x1000",
            Self::Ramulator2Rw => "R 0,0,1,3,17,4",
            Self::Ramulator2O3 => "3 4096",
            Self::Dramsim3 => "0x1000 READ 12",
            Self::Vans => "0x1000 R",
            Self::Lackey => "L 1000,8",
        }
    }
}

/// The reader of the lines of a text format; `geometry` is needed for address vectors alone.
///
/// # Panics
/// For [`Format::Xpline`], which has no lines.
pub(crate) fn lines_of(format: Format, geometry: Option<&Geometry>) -> AnyLines {
    match format {
        Format::Xpline => panic!("not a text format"),
        Format::Ramulator2 => AnyLines::LoadStore(LoadStore),
        Format::Ramulator2Rw => AnyLines::AddressVectors(AddressVectors::new(geometry.cloned())),
        Format::Ramulator2O3 => AnyLines::SimpleO3(SimpleO3),
        Format::Dramsim3 => AnyLines::Dramsim3(Dramsim3),
        Format::Vans => AnyLines::Vans(Vans),
        Format::Lackey => AnyLines::Lackey(Lackey::default()),
    }
}

/// A reader of any text format.
pub(crate) enum AnyLines {
    LoadStore(LoadStore),
    AddressVectors(AddressVectors),
    SimpleO3(SimpleO3),
    Dramsim3(Dramsim3),
    Vans(Vans),
    Lackey(Lackey),
}

/// The text format of a line. No line is of two formats.
pub(crate) fn format_of(line: &[u8]) -> Option<Format> {
    let text = Format::ALL.into_iter().filter(|&format| format != Format::Xpline);
    let mut scratch = Vec::new();
    let mut accepted = text.filter(|&format| match lines_of(format, None) {
        AnyLines::LoadStore(mut lines) => lines.line(line, &mut scratch).is_ok(),
        AnyLines::AddressVectors(lines) => lines.is_vector(line),
        AnyLines::SimpleO3(mut lines) => lines.line(line, &mut scratch).is_ok(),
        AnyLines::Dramsim3(mut lines) => lines.line(line, &mut scratch).is_ok(),
        AnyLines::Vans(mut lines) => lines.line(line, &mut scratch).is_ok(),
        AnyLines::Lackey(mut lines) => lines.line(line, &mut scratch).is_ok(),
    });
    accepted.next()
}

/// Why no format was found for a line.
pub(crate) fn unknown(line: &[u8]) -> Fault {
    let examples: Vec<String> = Format::ALL[1..]
        .iter()
        .map(|format| format!("{} (`{}`)", format.name(), format.example()))
        .collect();
    Fault::new(
        0,
        format!(
            "`{}` is a line of no known format; known are {}",
            crate::text::shown(line),
            examples.join(", ")
        ),
    )
}

/// A writer of a format.
pub(crate) trait Writer {
    /// Write a record. What the format cannot hold is refused, in words that end a sentence about the record.
    fn write(&mut self, out: &mut dyn Write, record: &Record) -> Result<(), Refusal>;

    /// Write what was held back, and what belongs at the end.
    fn finish(&mut self, out: &mut dyn Write) -> Result<(), Refusal>;
}

/// Why a record was not written.
pub(crate) enum Refusal {
    Io(std::io::Error),
    /// The format has no way to say it; the text goes on from "record N (kind at address) ...".
    Format(String),
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// The writer of a format; `path` is what messages call the file. A lossy one merges what the format cannot keep apart.
pub(crate) fn writer(format: Format, header: Header, path: &str, lossy: bool) -> Result<Box<dyn Writer>, TraceError> {
    Ok(match format {
        Format::Xpline => Box::new(compact::Encoder::new(header)),
        Format::Ramulator2 => Box::new(LoadStore),
        Format::Ramulator2Rw => {
            let what =
                "ramulator2-rw is read only: an address vector depends on the mapping of one memory; use ramulator2";
            return Err(TraceError::new(path, what));
        }
        Format::Ramulator2O3 => Box::new(ramulator2::O3Writer::new(lossy)),
        Format::Dramsim3 => Box::new(dramsim3::Dramsim3Writer::default()),
        Format::Vans => Box::new(Vans),
        Format::Lackey => Box::new(lackey::LackeyWriter::new(lossy)),
    })
}

/// Whether a record is a read (true) or a write of one whole line by the trace's only thread, as formats of 64 B
/// requests hold it; else, what they cannot hold.
fn request(record: &Record, format: &str, has_time: bool) -> Result<bool, Refusal> {
    let refuse = |what: String| {
        Err(Refusal::Format(format!(
            "cannot be written as {format}, which has no {what}"
        )))
    };
    let read = match record.kind {
        OpKind::Load => true,
        OpKind::Store => false,
        other => return refuse(format!("{} ops", crate::record::kind_name(other))),
    };
    if record.size != 64 {
        return refuse(format!("sizes other than 64 B (this one is {})", record.size));
    }
    if record.thread != 0 {
        return refuse(format!("threads (this one is of thread {})", record.thread));
    }
    if record.time.is_some() && !has_time {
        return refuse("times".to_owned());
    }
    Ok(read)
}
