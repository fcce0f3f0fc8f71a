//! What can go wrong, said to people: what it was, and what to do.

use std::io;
use std::path::PathBuf;

use xpline_lattester::PointError;

use crate::kernel::MissingInstruction;

/// Why the memory of the host cannot be measured as asked.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error(transparent)]
    Point(#[from] PointError),

    #[error(transparent)]
    Instruction(#[from] MissingInstruction),

    /// A target or an option that cannot be.
    #[error("{what}: {problem}")]
    Option { what: String, problem: String },

    #[error("{} of {kind} needed, {} free: {advice}", bytes(*.needed), bytes(*.available))]
    Room {
        kind: String,
        needed: u64,
        available: u64,
        advice: String,
    },

    #[error("{path}: {problem}")]
    File { path: PathBuf, problem: String },

    #[error("{0}: the file was truncated, or its device failed, while it was mapped; the points so far are complete")]
    Truncated(PathBuf),

    #[error("{what} failed: {error}")]
    System { what: String, error: io::Error },
}

impl HostError {
    pub fn option(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Option {
            what: what.into(),
            problem: problem.into(),
        }
    }

    pub fn file(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::File {
            path: path.into(),
            problem: problem.into(),
        }
    }

    /// The error that the system has just given.
    pub fn last(what: impl Into<String>) -> Self {
        Self::System {
            what: what.into(),
            error: io::Error::last_os_error(),
        }
    }
}

/// Bytes for people, such as `1.5 GiB`.
pub fn bytes(count: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in units {
        if count >= 1 << shift {
            let value = count as f64 / (1u64 << shift) as f64;
            return if value.fract() == 0.0 {
                format!("{value} {unit}")
            } else {
                format!("{value:.1} {unit}")
            };
        }
    }
    format!("{count} B")
}
