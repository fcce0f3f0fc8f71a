//! What a trace is made of.

use xpline_model::OpKind;

/// Bytes of a cache line, the unit of what memory is asked for.
pub const LINE: u64 = 64;

/// Where a trace was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Above the caches: what a program asked its core for.
    Core,
    /// Below the caches: what the memory controllers were asked for.
    Memory,
}

impl Level {
    pub const NAMES: [(&'static str, Self); 2] = [("core", Self::Core), ("memory", Self::Memory)];

    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Memory => "memory",
        }
    }
}

/// What is known of a trace as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub level: Level,
    /// Femtoseconds of a tick, the unit of the records' times; 0 where the trace does not say.
    pub tick_fs: u64,
}

/// One op of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Every kind but [`OpKind::Stamp`]. At [`Level::Memory`] a read is a load and a write a store.
    pub kind: OpKind,
    pub thread: u32,
    /// Byte address; 0 where the kind has none.
    pub address: u64,
    /// Bytes, at least 1 and across as many lines as it takes; instructions of [`OpKind::Compute`]; 0 for fences.
    pub size: u32,
    /// Ticks since the start, where the trace says.
    pub time: Option<u64>,
}

impl Record {
    /// An access of thread 0, without a time.
    pub const fn new(kind: OpKind, address: u64, size: u32) -> Self {
        Self {
            kind,
            thread: 0,
            address,
            size,
            time: None,
        }
    }

    /// The addresses of the lines that the access touches, in order; the last one where it would pass the highest address.
    pub fn lines(&self) -> impl Iterator<Item = u64> + use<> {
        let last = self.address.saturating_add(u64::from(self.size.max(1)) - 1) / LINE;
        (self.address / LINE..=last).map(|line| line * LINE)
    }
}

/// Whether ops of a kind have an address.
pub fn has_address(kind: OpKind) -> bool {
    !matches!(
        kind,
        OpKind::Sfence | OpKind::Mfence | OpKind::Lfence | OpKind::Compute | OpKind::Mispredict | OpKind::Stamp
    )
}

/// The name of a kind in messages and counts.
pub fn kind_name(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Load => "load",
        OpKind::Prefetch => "prefetch",
        OpKind::Store => "store",
        OpKind::NtStore => "ntstore",
        OpKind::Clwb => "clwb",
        OpKind::ClflushOpt => "clflushopt",
        OpKind::Clflush => "clflush",
        OpKind::Sfence => "sfence",
        OpKind::Mfence => "mfence",
        OpKind::Lfence => "lfence",
        OpKind::LockedRmw => "locked",
        OpKind::Compute => "compute",
        OpKind::Mispredict => "mispredict",
        OpKind::Stamp => "stamp",
    }
}
