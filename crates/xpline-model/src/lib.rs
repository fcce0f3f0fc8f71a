//! A model of persistent and far memory: cores, caches, memory controllers and DIMMs.

pub mod counters;
pub mod op;
pub mod platform;
pub mod program;
pub mod time;

pub use op::{Op, OpKind};
pub use platform::{Platform, PlatformError};
pub use program::Program;
pub use time::Time;
