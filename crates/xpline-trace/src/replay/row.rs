//! What came of a replay, as a table holds it.

use serde::Serialize;
use xpline_latency::Latencies;
use xpline_model::{CacheCounters, Event, NANOSECOND, Traffic, hit_ratio};

use super::Outcome;

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
    /// Of reads, and of writes, with the columns `write_latency_...`.
    #[serde(flatten, serialize_with = "xpline_latency::columns")]
    pub latencies: Option<Latencies>,
    #[serde(flatten, serialize_with = "xpline_latency::columns_of_writes")]
    pub write_latencies: Option<Latencies>,
    #[serde(flatten)]
    pub traffic: Traffic,
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
        let time_ns = outcome.time as f64 / NANOSECOND as f64;
        let bandwidth = outcome.bytes as f64 / (1 << 20) as f64 / (time_ns * 1e-9);
        Self {
            settings,
            bandwidth_mib_s: (time_ns > 0.0).then_some(bandwidth),
            bytes: outcome.bytes,
            time_ns,
            latencies: outcome.read_latencies.clone(),
            write_latencies: outcome.write_latencies.clone(),
            traffic: outcome.counters.traffic(),
            buffer_hit_ratio: hit_ratio(dimms.buffer_hits, dimms.buffer_misses),
            ait_hit_ratio: hit_ratio(dimms.ait_hits, dimms.ait_misses),
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
    hit_ratio(cache.hits, cache.misses)
}
