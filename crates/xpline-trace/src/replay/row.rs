//! What came of a replay, as a table holds it.

use serde::Serialize;
use xpline_model::{CacheCounters, Event, NANOSECOND};

use super::Outcome;
use super::latencies::Summary;
use crate::record::LINE;

/// What set a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplaySettings {
    pub platform: String,
    pub trace: String,
    pub format: &'static str,
    pub level: &'static str,
    /// Cores that the records were dealt to.
    pub threads: u32,
    /// Requests that may be in flight, below the caches.
    pub in_flight: Option<u32>,
    pub paced: bool,
}

/// The result of a replay. A field is `None` where there was nothing to measure, or this level does not measure it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayRow {
    #[serde(flatten)]
    pub settings: ReplaySettings,
    pub bandwidth_mib_s: Option<f64>,
    /// Bytes that the trace reads and writes.
    pub bytes: u64,
    /// Simulated time until the last request was done.
    pub time_ns: f64,
    pub latency_mean_ns: Option<f64>,
    pub latency_std_ns: Option<f64>,
    pub latency_p50_ns: Option<f64>,
    pub latency_p90_ns: Option<f64>,
    pub latency_p99_ns: Option<f64>,
    pub latency_p999_ns: Option<f64>,
    pub latency_max_ns: Option<f64>,
    pub write_latency_mean_ns: Option<f64>,
    pub write_latency_std_ns: Option<f64>,
    pub write_latency_p50_ns: Option<f64>,
    pub write_latency_p90_ns: Option<f64>,
    pub write_latency_p99_ns: Option<f64>,
    pub write_latency_p999_ns: Option<f64>,
    pub write_latency_max_ns: Option<f64>,
    pub ewr: Option<f64>,
    pub err: Option<f64>,
    pub media_read_bytes: u64,
    pub media_written_bytes: u64,
    pub imc_read_bytes: u64,
    pub imc_written_bytes: u64,
    pub buffer_hit_ratio: Option<f64>,
    pub ait_hit_ratio: Option<f64>,
    pub l1d_hit_ratio: Option<f64>,
    pub l2_hit_ratio: Option<f64>,
    pub l3_hit_ratio: Option<f64>,
    /// Bytes written that are still in caches and buffers at the end.
    pub unwritten_bytes: Option<u64>,
    pub records: u64,
    /// Requests: accesses cut at the ends of lines.
    pub requests: u64,
    pub reads: u64,
    pub writes: u64,
    /// Records that mean nothing at this level.
    pub skipped: u64,
    /// Addresses beyond the model's memory, which started over from 0.
    pub wrapped: u64,
    pub source: &'static str,
    /// A sample of the requests of each core, or of the memory, where it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Vec<Event>>,
}

impl ReplayRow {
    pub(super) fn new(settings: ReplaySettings, outcome: &Outcome) -> Self {
        let dimms = outcome.counters.dimm_total();
        let line = outcome.counters.media_line_bytes;
        let time_ns = outcome.time as f64 / NANOSECOND as f64;
        let bandwidth = outcome.bytes as f64 / (1 << 20) as f64 / (time_ns * 1e-9);
        let (reads, writes) = (&outcome.read_latencies, &outcome.write_latencies);
        let of = |summary: &Option<Summary>, field: fn(&Summary) -> f64| summary.as_ref().map(field);
        Self {
            settings,
            bandwidth_mib_s: (time_ns > 0.0).then_some(bandwidth),
            bytes: outcome.bytes,
            time_ns,
            latency_mean_ns: of(reads, |summary| summary.mean),
            latency_std_ns: of(reads, |summary| summary.std),
            latency_p50_ns: of(reads, |summary| summary.p50),
            latency_p90_ns: of(reads, |summary| summary.p90),
            latency_p99_ns: of(reads, |summary| summary.p99),
            latency_p999_ns: of(reads, |summary| summary.p999),
            latency_max_ns: of(reads, |summary| summary.max),
            write_latency_mean_ns: of(writes, |summary| summary.mean),
            write_latency_std_ns: of(writes, |summary| summary.std),
            write_latency_p50_ns: of(writes, |summary| summary.p50),
            write_latency_p90_ns: of(writes, |summary| summary.p90),
            write_latency_p99_ns: of(writes, |summary| summary.p99),
            write_latency_p999_ns: of(writes, |summary| summary.p999),
            write_latency_max_ns: of(writes, |summary| summary.max),
            ewr: outcome.counters.ewr().filter(|_| dimms.writes > 0),
            err: outcome.counters.err().filter(|_| dimms.reads > 0),
            media_read_bytes: dimms.media_reads * line,
            media_written_bytes: dimms.media_writes * line,
            imc_read_bytes: dimms.reads * LINE,
            imc_written_bytes: dimms.writes * LINE,
            buffer_hit_ratio: share(dimms.buffer_hits, dimms.buffer_misses),
            ait_hit_ratio: share(dimms.ait_hits, dimms.ait_misses),
            l1d_hit_ratio: hits(&outcome.counters.l1d),
            l2_hit_ratio: hits(&outcome.counters.l2),
            l3_hit_ratio: hits(&outcome.counters.l3),
            unwritten_bytes: outcome.unwritten_bytes,
            records: outcome.records,
            requests: outcome.reads + outcome.writes,
            reads: outcome.reads,
            writes: outcome.writes,
            skipped: outcome.skipped,
            wrapped: outcome.wrapped,
            source: "model",
            timeline: outcome.timeline.clone(),
        }
    }
}

fn hits(cache: &CacheCounters) -> Option<f64> {
    share(cache.hits, cache.misses)
}

/// Hits over look-ups; `None` without a look-up.
fn share(hits: u64, misses: u64) -> Option<f64> {
    (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
}
