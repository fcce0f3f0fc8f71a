//! Replay: a trace on a platform, and what came of it.

mod cores;
mod memory;
mod row;
mod threads;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use xpline_latency::{Histogram, Latencies};
use xpline_model::{Counters, Event, NANOSECOND, Platform, Time};

use crate::ahead::Ahead;
use crate::error::TraceError;
use crate::input::Progress;
use crate::record::Level;
use crate::trace::{ReadOptions, Trace};
use threads::Dealer;

pub use row::{ReplayRow, ReplaySettings};
pub use threads::ThreadsMap;

/// Bytes that the model's memory has addresses for; higher ones start over from 0.
pub const ADDRESSES: u64 = 128 << 30;

/// The longest latency told apart from longer ones: 10 s.
const LONGEST: Time = 10_000_000_000 * NANOSECOND;

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
    /// Whether the row holds a sample of the requests, with their way through the machine.
    pub timeline: bool,
    /// Femtoseconds of a tick of the trace's times, where it does not say.
    pub tick_fs: Option<u64>,
}

/// What a replay needs to know besides the trace.
struct Setting {
    dealer: Dealer,
    in_flight: u32,
    /// Where requests are paced.
    tick_fs: Option<u64>,
    timeline: bool,
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
    read_latencies: Option<Latencies>,
    write_latencies: Option<Latencies>,
    unwritten_bytes: Option<u64>,
    timeline: Vec<Vec<Event>>,
}

impl Outcome {
    /// An address of the model's memory for one of the trace.
    #[inline]
    fn place(&mut self, address: u64) -> u64 {
        self.wrapped += u64::from(address >= ADDRESSES);
        address % ADDRESSES
    }
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
        timeline: options.timeline,
    };
    let (name, format) = (trace.path().to_owned(), trace.format().name());
    let in_flight = (level == Level::Memory).then_some(setting.in_flight);
    let outcome = match level {
        Level::Memory => memory::replay(platform, &mut trace, &mut setting, stop)?
            .map(|outcome| (outcome, setting.dealer.cores_in_use())),
        Level::Core => cores::replay(platform, trace, setting.dealer, options.timeline, stop)?,
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
    let settings = ReplaySettings {
        platform: platform.name.clone(),
        trace: name,
        format,
        level: level.name(),
        threads,
        in_flight,
        paced: options.paced,
    };
    Ok(Some(ReplayRow::new(settings, &outcome)))
}

/// Latencies of any number of requests.
fn histogram() -> Histogram {
    Histogram::up_to(LONGEST)
}
