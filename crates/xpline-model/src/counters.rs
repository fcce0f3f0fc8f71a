//! What was counted at every boundary, from cores to media.

use serde::Serialize;

use crate::time::Time;

/// Bytes of a request to memory.
const LINE: u64 = 64;

/// The share of hits in all look-ups; `None` without a look-up.
pub fn hit_ratio(hits: u64, misses: u64) -> Option<f64> {
    (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
}

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
    /// Requests that found their line in the near memory, and those that did not, in Memory Mode.
    pub near_hits: u64,
    pub near_misses: u64,
    /// Lines of the near memory that went back to Optane.
    pub near_write_backs: u64,
    /// Pages that wear levelling moved.
    pub page_moves: u64,
    /// Integral of the write pending queue's occupancy, entries x ps.
    pub wpq_occupancy_ps: u64,
    /// Integral of the read pending queue's occupancy, entries x ps.
    pub rpq_occupancy_ps: u64,
}

/// What passed between the caches and the media, as tables hold it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// Bytes that the memory controllers wrote over bytes that the media wrote.
    pub ewr: Option<f64>,
    /// Bytes that the memory controllers read over bytes that the media read.
    pub err: Option<f64>,
    pub media_read_bytes: u64,
    pub media_written_bytes: u64,
    pub imc_read_bytes: u64,
    pub imc_written_bytes: u64,
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
    /// One entry a DIMM of the volatile memory beside; empty where the machine has none.
    pub volatile: Vec<DimmCounters>,
    /// Bytes a line of the medium holds (256 on Optane, 64 on DRAM).
    pub media_line_bytes: u64,
}

macro_rules! difference {
    ($type:ty { $($field:ident),* }) => {
        impl $type {
            fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field - earlier.$field),* }
            }
        }
    };
}

difference!(CoreCounters {
    loads,
    stores,
    nt_stores,
    flushes,
    fences,
    bytes_loaded,
    bytes_stored
});
difference!(CacheCounters {
    hits,
    misses,
    dirty_evictions
});
difference!(DimmCounters {
    reads,
    writes,
    buffer_hits,
    buffer_misses,
    ait_hits,
    ait_misses,
    media_reads,
    media_writes,
    near_hits,
    near_misses,
    near_write_backs,
    page_moves,
    wpq_occupancy_ps,
    rpq_occupancy_ps
});

fn since(now: &[DimmCounters], then: &[DimmCounters]) -> Vec<DimmCounters> {
    now.iter().zip(then).map(|(now, then)| now.since(then)).collect()
}

impl Counters {
    /// What was counted between an earlier reading of the same machine and this one; `time` becomes the span.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            time: self.time - earlier.time,
            core: self.core.since(&earlier.core),
            l1d: self.l1d.since(&earlier.l1d),
            l2: self.l2.since(&earlier.l2),
            l3: self.l3.since(&earlier.l3),
            dimms: since(&self.dimms, &earlier.dimms),
            volatile: since(&self.volatile, &earlier.volatile),
            media_line_bytes: self.media_line_bytes,
        }
    }

    /// All DIMMs together, those of the volatile memory beside left out.
    pub fn dimm_total(&self) -> DimmCounters {
        let mut total = DimmCounters::default();
        for dimm in &self.dimms {
            total.reads += dimm.reads;
            total.writes += dimm.writes;
            total.buffer_hits += dimm.buffer_hits;
            total.buffer_misses += dimm.buffer_misses;
            total.ait_hits += dimm.ait_hits;
            total.ait_misses += dimm.ait_misses;
            total.media_reads += dimm.media_reads;
            total.media_writes += dimm.media_writes;
            total.near_hits += dimm.near_hits;
            total.near_misses += dimm.near_misses;
            total.near_write_backs += dimm.near_write_backs;
            total.page_moves += dimm.page_moves;
            total.wpq_occupancy_ps += dimm.wpq_occupancy_ps;
            total.rpq_occupancy_ps += dimm.rpq_occupancy_ps;
        }
        total
    }

    /// Effective write ratio: bytes the memory controllers wrote over bytes written to the media. `None` if the media took none.
    pub fn ewr(&self) -> Option<f64> {
        let total = self.dimm_total();
        self.ratio(total.writes, total.media_writes)
    }

    /// Effective read ratio: bytes the memory controllers read over bytes read from the media. `None` if the media gave none.
    pub fn err(&self) -> Option<f64> {
        let total = self.dimm_total();
        self.ratio(total.reads, total.media_reads)
    }

    /// All DIMMs together. There is no ratio where the memory controllers asked for nothing.
    pub fn traffic(&self) -> Traffic {
        let total = self.dimm_total();
        Traffic {
            ewr: self.ewr().filter(|_| total.writes > 0),
            err: self.err().filter(|_| total.reads > 0),
            media_read_bytes: total.media_reads * self.media_line_bytes,
            media_written_bytes: total.media_writes * self.media_line_bytes,
            imc_read_bytes: total.reads * LINE,
            imc_written_bytes: total.writes * LINE,
        }
    }

    fn ratio(&self, requests: u64, media_lines: u64) -> Option<f64> {
        (media_lines > 0).then(|| (requests * LINE) as f64 / (media_lines * self.media_line_bytes) as f64)
    }
}
