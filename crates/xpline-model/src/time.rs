//! One clock for the whole machine, in picoseconds.

/// A moment or a duration in picoseconds.
pub type Time = u64;

pub const NANOSECOND: Time = 1_000;
pub const MICROSECOND: Time = 1_000_000;
