//! What a thread asks of memory: one op at a time.

use crate::time::Time;

/// A kind of memory operation, named after the x86 instruction it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Read `size` bytes at `addr` (independent of earlier loads).
    Load,
    /// Write `size` bytes at `addr` through the caches (write-back, write-allocate).
    Store,
    /// Write `size` bytes at `addr` past the caches, through a write-combining buffer.
    NtStore,
    /// Write the line back to memory if dirty, and keep it.
    Clwb,
    /// Write the line back if dirty, and drop it; ordered only by fences.
    ClflushOpt,
    /// Write the line back if dirty, and drop it; ordered against other writes to the line.
    Clflush,
    /// Wait until earlier stores, ntstores and flushes are globally visible; for memory: persistent under ADR.
    Sfence,
    /// Wait as `Sfence` does, and for earlier loads too.
    Mfence,
    /// Wait for earlier loads alone: what comes next needs their data.
    Lfence,
    /// A locked read-modify-write of one line (implies a full fence).
    LockedRmw,
    /// `size` instructions that touch no memory and keep the core's window busy. They take as long as
    /// the core needs for so many, or the `addr` picoseconds of [`Op::compute_for`] where that is not 0.
    Compute,
    /// Read the clock: the machine calls [`crate::Program::stamp`] once every earlier op has retired.
    Stamp,
    /// Bring the line at `addr` into the caches, if a fill buffer is free; wait for nothing.
    Prefetch,
    /// The core went on wrongly at a branch: it starts again once earlier loads have their data.
    Mispredict,
}

impl OpKind {
    /// Every kind, in the order of their declaration.
    pub const ALL: [Self; 14] = [
        Self::Load,
        Self::Store,
        Self::NtStore,
        Self::Clwb,
        Self::ClflushOpt,
        Self::Clflush,
        Self::Sfence,
        Self::Mfence,
        Self::Lfence,
        Self::LockedRmw,
        Self::Compute,
        Self::Stamp,
        Self::Prefetch,
        Self::Mispredict,
    ];
}

/// One operation of a thread.
///
/// `addr` is a byte address in the platform's memory, `size` is in bytes (see [`OpKind::Compute`] for what both are there; unused for fences).
/// An op never crosses a 64 B line: a longer access is several ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub kind: OpKind,
    pub addr: u64,
    pub size: u32,
}

impl Op {
    pub const fn new(kind: OpKind, addr: u64, size: u32) -> Self {
        Self { kind, addr, size }
    }

    /// Instructions that touch no memory and take so long together, such as a chain of divisions.
    pub const fn compute_for(instructions: u32, time: Time) -> Self {
        Self::new(OpKind::Compute, time, instructions)
    }
}
