//! What was counted at every boundary, from cores to media.

use crate::time::Time;

/// Traffic of the cores: what the programs asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    pub loads: u64,
    pub stores: u64,
    pub nt_stores: u64,
    pub flushes: u64,
    pub fences: u64,
    pub bytes_loaded: u64,
    /// Bytes of stores and ntstores.
    pub bytes_stored: u64,
}

/// Look-ups of one cache level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    pub hits: u64,
    pub misses: u64,
    /// Dirty lines pushed out to the next level by replacement.
    pub dirty_evictions: u64,
}

/// Traffic of one memory channel, its queues and its DIMM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DimmCounters {
    /// 64 B reads that the memory controller issued.
    pub reads: u64,
    /// 64 B writes that the memory controller issued.
    pub writes: u64,
    /// Requests that found their line in the XPBuffer (Optane) or their row open (DRAM).
    pub buffer_hits: u64,
    pub buffer_misses: u64,
    pub ait_hits: u64,
    pub ait_misses: u64,
    /// Lines of the medium (256 B on Optane, 64 B on DRAM) read and written.
    pub media_reads: u64,
    pub media_writes: u64,
    /// Integral of the write pending queue's occupancy, entries x ps.
    pub wpq_occupancy_ps: u64,
    /// Integral of the read pending queue's occupancy, entries x ps.
    pub rpq_occupancy_ps: u64,
    /// Wear-levelling moves.
    pub wear_moves: u64,
}

/// A reading of every counter at one moment; the difference of two readings describes the span between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub time: Time,
    pub core: CoreCounters,
    pub l1d: CacheCounters,
    pub l2: CacheCounters,
    pub l3: CacheCounters,
    /// One entry a DIMM.
    pub dimms: Vec<DimmCounters>,
    /// Bytes a line of the medium holds (256 on Optane, 64 on DRAM).
    pub media_line_bytes: u64,
}
