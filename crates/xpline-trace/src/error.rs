//! What can be wrong with a trace, and where.

use std::fmt;

/// A trace, or a request for one, that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The file.
    pub path: String,
    /// Where in it, if the fault has a place.
    pub place: Option<Place>,
    /// What is wrong, and what to do.
    pub what: String,
}

/// A place in a file; compressed files count as their content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes before it.
    pub byte: u64,
    /// The line it is on, from 1, where the file is text.
    pub line: Option<u64>,
}

impl TraceError {
    pub fn new(path: &str, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            place: None,
            what: what.into(),
        }
    }

    pub fn at_byte(path: &str, byte: u64, what: impl Into<String>) -> Self {
        Self {
            place: Some(Place { byte, line: None }),
            ..Self::new(path, what)
        }
    }

    pub fn at_line(path: &str, line: u64, byte: u64, what: impl Into<String>) -> Self {
        Self {
            place: Some(Place { byte, line: Some(line) }),
            ..Self::new(path, what)
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, place, what } = self;
        match place {
            None => write!(f, "{path}: {what}"),
            Some(Place { byte, line: None }) => write!(f, "{path}: byte {byte}: {what}"),
            Some(Place { byte, line: Some(line) }) => write!(f, "{path}: line {line}, byte {byte}: {what}"),
        }
    }
}

impl std::error::Error for TraceError {}
