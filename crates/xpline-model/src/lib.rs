//! A model of persistent and far memory: the platform's description, and a machine that runs op streams on it.
//!
//! Pure: no I/O, no clock, no threads. The public interface is [`Platform`], [`Machine`], [`Program`], [`Op`] and [`Counters`].

#![forbid(unsafe_code)]

mod counters;
mod dimm;
mod machine;
mod memory;
mod modulus;
mod op;
pub mod platform;
mod program;
mod tags;
mod time;
mod timeline;
mod way;

pub use counters::{CacheCounters, CoreCounters, Counters, DimmCounters, Traffic, hit_ratio};
pub use machine::Machine;
pub use memory::{Completion, MediaWrite, MemorySystem, Request, RequestKind, SubmitError, VOLATILE};
pub use modulus::Modulus;
pub use op::{Op, OpKind};
pub use platform::{Platform, PlatformError};
pub use program::{Fetch, FetchedFrom, Program, Wait, Write};
pub use time::{MICROSECOND, NANOSECOND, Time};
pub use timeline::{Event, Sample, Span, Traced};
pub use way::Part;

/// The examples of the document are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/embed.md")]
struct Embedding;
