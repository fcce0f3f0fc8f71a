//! Platforms as data: what a memory system is made of, read from a TOML file whose every number names its source.
//!
//! A file may extend another and override single values:
//!
//! ```
//! use xpline_model::Platform;
//!
//! let text = r#"
//!     name = "big-buffer"
//!     description = "One Optane DIMM with twice the XPBuffer"
//!     extends = "optane-ni"
//!     [optane.xpbuffer]
//!     lines = 128 # what if
//! "#;
//! let platform = Platform::load("big-buffer.toml", &[], &|_| Ok(text.into()))?;
//! assert_eq!(platform.interleave.dimms, 1);
//!
//! let lines = platform.describe().iter().find(|entry| entry.key == "optane.xpbuffer.lines").unwrap();
//! assert_eq!(lines.source.as_deref(), Some("what if"));
//! assert_eq!(lines.origin.to_string(), "big-buffer.toml:6");
//! # Ok::<(), xpline_model::PlatformError>(())
//! ```

mod builtin;
mod check;
mod error;
mod key;
mod load;
mod schema;
mod source;
mod unit;

use std::io;

pub use error::{BadValue, Origin, PlatformError};
pub use key::{Entry, Key, Provenance};
pub use load::ReadFile;
pub use schema::{
    Ait, BufferReplacement, Core, Ddrt, Dram, Hybrid, Imc, Interleave, Link, Media, Memory, MemoryKind, MemoryMode,
    Mesh, Near, Nodes, Optane, Pages, Platform, PowerBudget, Prefetch, PrivateCache, Replacement, SharedCache,
    Volatile, Wear, XpBuffer,
};
pub use unit::Sockets;

impl Platform {
    /// Load a platform by name, or from a file, with overrides such as `optane.xpbuffer.lines=128` on top.
    ///
    /// `read` returns the text of the file at a path; it is asked only for what is not built in.
    pub fn load(name_or_path: &str, overrides: &[String], read: ReadFile) -> Result<Self, PlatformError> {
        load::load(name_or_path, overrides, read)
    }

    /// Load a built-in platform.
    ///
    /// ```
    /// let platform = xpline_model::Platform::builtin("optane").unwrap();
    /// assert_eq!(platform.l1d.size, 32 * 1024);
    /// ```
    pub fn builtin(name: &str) -> Result<Self, PlatformError> {
        load::load(name, &[], &|_| Err(io::ErrorKind::NotFound.into()))
    }

    /// Bytes that the medium reads or writes at once: an XPLine, or a DRAM burst.
    pub fn media_line_bytes(&self) -> u64 {
        match &self.memory {
            Memory::Optane(optane) => optane.xpbuffer.line,
            Memory::Dram(_) => 64,
            Memory::Hybrid(hybrid, _) => hybrid.page,
            Memory::MemoryMode(mode) => mode.far.xpbuffer.line,
        }
    }

    /// Names of the built-in platforms.
    pub fn builtin_names() -> Vec<String> {
        load::names()
    }

    /// Every key that a platform file may hold, with what it means and what is allowed, in the order of the schema.
    pub fn keys() -> Vec<Key> {
        load::keys()
    }

    /// Every value of this platform as it was written, with its source and the line that set it.
    pub fn describe(&self) -> &[Entry] {
        &self.provenance.0
    }
}
