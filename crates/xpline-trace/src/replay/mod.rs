//! Replay: a trace on a platform, and what came of it.

mod cores;
mod latencies;
mod memory;
mod threads;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use xpline_model::{CacheCounters, Counters, NANOSECOND, Platform, Time};

use crate::ahead::Ahead;
use crate::error::TraceError;
use crate::input::Progress;
use crate::record::{LINE, Level};
use crate::trace::{ReadOptions, Trace};
use latencies::Summary;
use threads::Dealer;

pub use threads::ThreadsMap;

/// Bytes that the model's memory has addresses for; higher ones start over from 0.
pub const ADDRESSES: u64 = 128 << 30;

/// Requests in flight at each DIMM, below the caches, unless told otherwise: as many as the queues of a channel hold in
/// other simulators.
pub const IN_FLIGHT: u32 = 32;

/// The most requests in flight, for the sake of the host's memory.
const MOST_IN_FLIGHT: u32 = 1 << 20;

/// How to replay a trace.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    pub read: ReadOptions,
    /// Where the records enter; `None` is where the trace was taken.
    pub level: Option<Level>,
    pub threads: ThreadsMap,
    /// Requests in flight below the caches, all together; `None` is [`IN_FLIGHT`] a DIMM.
    pub in_flight: Option<u32>,
    /// Whether requests wait for the times of the trace.
    pub paced: bool,
    /// Femtoseconds of a tick of the trace's times, where it does not say.
    pub tick_fs: Option<u64>,
}

/// What a replay needs to know besides the trace.
struct Setting {
    dealer: Dealer,
    in_flight: u32,
    /// Where requests are paced.
    tick_fs: Option<u64>,
}

/// What was found, before it is made a row.
#[derive(Default)]
struct Outcome {
    records: u64,
    reads: u64,
    writes: u64,
    bytes: u64,
    skipped: u64,
    wrapped: u64,
    time: Time,
    counters: Counters,
    read_latencies: Option<Summary>,
    write_latencies: Option<Summary>,
    unwritten_bytes: Option<u64>,
}

impl Outcome {
    /// An address of the model's memory for one of the trace.
    #[inline]
    fn place(&mut self, address: u64) -> u64 {
        self.wrapped += u64::from(address >= ADDRESSES);
        address % ADDRESSES
    }
}

/// The result of a replay. A field is `None` where there was nothing to measure, or this level does not measure it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayRow {
    pub platform: String,
    pub trace: String,
    pub format: &'static str,
    pub level: &'static str,
    /// Cores that the records were dealt to.
    pub threads: u32,
    /// Requests that may be in flight, below the caches.
    pub in_flight: Option<u32>,
    pub paced: bool,
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
}

/// Replay the trace `path`. `None` if `stop` was set meanwhile.
pub fn replay(
    platform: &Platform,
    path: &str,
    options: &ReplayOptions,
    progress: &Arc<Progress>,
    stop: &AtomicBool,
) -> Result<Option<ReplayRow>, TraceError> {
    match Ahead::open(path, &options.read, progress, stop)? {
        Some(trace) => replay_ahead(platform, trace, options, stop),
        None => Ok(None),
    }
}

/// Replay an open trace. `None` if `stop` was set meanwhile.
pub fn replay_trace(
    platform: &Platform,
    trace: Trace,
    options: &ReplayOptions,
    stop: &AtomicBool,
) -> Result<Option<ReplayRow>, TraceError> {
    match Ahead::of(trace, stop)? {
        Some(trace) => replay_ahead(platform, trace, options, stop),
        None => Ok(None),
    }
}

fn replay_ahead(
    platform: &Platform,
    mut trace: Ahead,
    options: &ReplayOptions,
    stop: &AtomicBool,
) -> Result<Option<ReplayRow>, TraceError> {
    let level = options.level.unwrap_or(trace.header().level);
    let refuse = |what: &str| Err(TraceError::new(trace.path(), what));
    let tick_fs = match options.tick_fs.unwrap_or(trace.header().tick_fs) {
        _ if !options.paced => None,
        _ if level == Level::Core => {
            return refuse("--paced: cores run as fast as they can; times are kept at --level memory");
        }
        0 => {
            return refuse(
                "--paced: the trace does not say how long a tick of its times is; add --clock, such as 1.2GHz",
            );
        }
        tick_fs => Some(tick_fs),
    };
    if level == Level::Core && options.in_flight.is_some() {
        return refuse(
            "--in-flight: what a core has in flight is up to the platform; the option is for --level memory",
        );
    }
    if let Some(in_flight) = options.in_flight
        && !(1..=MOST_IN_FLIGHT).contains(&in_flight)
    {
        return refuse(&format!("--in-flight {in_flight}: must be 1 to {MOST_IN_FLIGHT}"));
    }
    let dealer = Dealer::new(options.threads, platform.core.count)
        .map_err(|what| TraceError::new(trace.path(), format!("--threads-map: {what}")))?;
    let mut setting = Setting {
        dealer,
        in_flight: options.in_flight.unwrap_or(IN_FLIGHT * platform.interleave.dimms),
        tick_fs,
    };
    let (name, format) = (trace.path().to_owned(), trace.format().name());
    let in_flight = (level == Level::Memory).then_some(setting.in_flight);
    let outcome = match level {
        Level::Memory => memory::replay(platform, &mut trace, &mut setting, stop)?
            .map(|outcome| (outcome, setting.dealer.cores_in_use())),
        Level::Core => cores::replay(platform, trace, setting.dealer, stop)?,
    };
    let Some((outcome, threads)) = outcome else {
        return Ok(None);
    };
    if outcome.reads + outcome.writes == 0 {
        return Err(TraceError::new(
            &name,
            "reads and writes nothing: there is nothing to replay",
        ));
    }
    Ok(Some(ReplayRow {
        platform: platform.name.clone(),
        trace: name,
        format,
        level: level.name(),
        threads,
        in_flight,
        paced: options.paced,
        ..ReplayRow::measured(&outcome)
    }))
}

impl ReplayRow {
    /// What was measured, without what set it.
    fn measured(outcome: &Outcome) -> Self {
        let dimms = outcome.counters.dimm_total();
        let line = outcome.counters.media_line_bytes;
        let time_ns = outcome.time as f64 / NANOSECOND as f64;
        let bandwidth = outcome.bytes as f64 / (1 << 20) as f64 / (time_ns * 1e-9);
        let (reads, writes) = (&outcome.read_latencies, &outcome.write_latencies);
        let of = |summary: &Option<Summary>, field: fn(&Summary) -> f64| summary.as_ref().map(field);
        Self {
            platform: String::new(),
            trace: String::new(),
            format: "",
            level: "",
            threads: 0,
            in_flight: None,
            paced: false,
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
