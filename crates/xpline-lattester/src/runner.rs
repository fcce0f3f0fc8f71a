//! How long a point runs, and points side by side.
//!
//! A point is measured by the method of batch means:
//!
//! 1. Warm-up. Where the experiment leaves dirty lines in the caches, as many lines as fill them one and a half times
//!    pass through them untimed. Then [`WARM_UP`] requests run, timed and discarded.
//! 2. Eight windows of [`WINDOW`] requests each. If the half-width of the 95 % confidence interval of the mean over the
//!    windows is at most 1 % of the mean, the point has settled, and these windows are its result. The mean is that of
//!    the latency, the write amplification (of the half-line rounds), the share of misses (of replacement probes) or the bandwidth (of all others).
//! 3. Otherwise what has run so far is warm-up too, and eight windows of twice the length follow, until the point has
//!    settled or would exceed its `max_requests`, [`MAX_REQUESTS`] by default. The last eight windows are then the
//!    result, marked as not settled.
//!
//! A window holds at least one whole timed access, one whole round of stores and their write-back or of probes, and a few moves of wear
//! levelling, however long: a part of it would be stable, and say nothing about the whole. The percentiles of hot spots
//! come from [`TAIL`] writes. Nothing depends on the time of day or on the host.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use xpline_model::platform::{Memory, Pages, Sockets};
use xpline_model::{Counters, Machine, NANOSECOND, Platform, Program, Time, Traced};

use crate::parts::Marks;
use crate::point::{Experiment, Op, Point};
use crate::row::{Row, Timings, moved};
use crate::samples::{Mark, Samples};
use crate::stats::{self, WINDOWS};
use crate::stream::{Found, LINE, Probes, Stream, line_bytes, streams};

/// Requests that run before the first window.
pub const WARM_UP: u64 = 32 << 10;

/// Requests of a window, at first.
pub const WINDOW: u64 = 8 << 10;

/// Requests that a point may take, unless it says otherwise.
pub const MAX_REQUESTS: u64 = 1 << 20;

/// Writes round a hot spot that its percentiles are taken from.
pub const TAIL: u64 = 20_000_000;

/// Pages that move in a window.
const MOVES: u64 = 3;

/// Requests between two looks at whether to stop.
const ATTENTION: u64 = 64 << 10;

/// The longest that a machine may go without a request: nothing in it takes a second.
const STUCK: Time = 1_000_000_000 * NANOSECOND;

/// Measure a point that [`Point::check`] lets pass. `None` if `stop` was set meanwhile.
pub fn run_point(platform: &Platform, point: &Point, stop: &AtomicBool) -> Option<Row> {
    let streams = streams(platform, point);
    if !point.timeline {
        return run_streams(platform, point, streams, stop).map(|(row, _)| row);
    }
    let traced = streams.into_iter().map(Traced::new).collect();
    let (row, traced) = run_streams(platform, point, traced, stop)?;
    let timeline = traced.iter().map(|thread| thread.events().to_vec()).collect();
    Some(Row { timeline, ..row })
}

/// The same with the threads of the point, which come back with what they kept.
fn run_streams<P: Thread>(
    platform: &Platform,
    point: &Point,
    streams: Vec<P>,
    stop: &AtomicBool,
) -> Option<(Row, Vec<P>)> {
    let mut run = Run {
        machine: machine(platform, &point.experiment),
        streams,
        stop,
    };
    if !point.experiment.is_latency() {
        run.machine.presume_read();
    }
    if leaves_dirty_lines(&point.experiment) {
        run.warm_caches(platform);
    }
    let round = requests_of_round(platform, &point.experiment);
    let filling = filling(platform, &point.experiment);
    let mut limit = point
        .max_requests
        .unwrap_or(MAX_REQUESTS.max(2 * WINDOWS as u64 * round).max(2 * filling));
    let mut deadline = None;
    if let Experiment::Workload(workload) = &point.experiment {
        limit = limit.min(workload.requests()).max(1);
        deadline = workload.run_time();
    }
    let warm_up = WARM_UP.min(limit / 4).max(filling.min(limit / 2));
    let mut window = WINDOW.max(round).min((limit - warm_up) / WINDOWS as u64).max(1);
    run.advance(warm_up, deadline.map_or(Time::MAX, |end| end / 4))?;
    loop {
        run.streams
            .iter_mut()
            .for_each(|stream| stream.as_mut().forget_samples());
        let (before, found_before) = (run.machine.counters(), run.found());
        let marks = Marks::new(run.all());
        let mut values = [None; WINDOWS];
        // Windows of requests, or, where they would end after the deadline, of equal parts of what is left.
        let start = run.machine.now();
        let end = deadline.filter(|end| start + run.time_of(window * WINDOWS as u64) > *end);
        for (turn, value) in (1..).zip(&mut values) {
            let (before, timed_before, found_before) = (run.machine.counters(), run.timed(), run.found());
            match end {
                Some(end) => run.advance(u64::MAX, start + (end - start) * turn / WINDOWS as u64)?,
                None => run.advance(window, Time::MAX)?,
            }
            *value = match &point.experiment {
                Experiment::Replacement(_) => run.miss_ratio_since(found_before),
                experiment => run.value(experiment, &before, timed_before),
            };
        }
        let settled = stats::is_stable(&values);
        let counters = run.machine.counters();
        window *= 2;
        let over = deadline.is_some_and(|end| run.machine.now() >= end);
        if settled || over || requests(&counters) + window * WINDOWS as u64 > limit {
            let counted = counters.since(&before);
            let samples = run.first().samples();
            let (parts, sampled) = match &point.experiment {
                Experiment::Workload(workload) => marks.parts(workload, run.all(), counted.time),
                _ => (Vec::new(), None),
            };
            let timings = Timings {
                latencies: samples.and_then(Samples::latencies).or(sampled),
                parts,
                stalls: samples
                    .filter(|_| shows_stalls(&point.experiment))
                    .and_then(Samples::stalls),
                miss_ratio: run.miss_ratio_since(found_before),
            };
            let row = Row::new(platform, point, &counted, &timings, settled);
            return Some((row, run.streams));
        }
    }
}

/// Measure points that [`Point::check`] lets pass, `jobs` side by side; their rows in the same order, whatever
/// `jobs` is.
///
/// `on_done` is called with the index and the row of each point as it completes, on the thread that ran it. Once `stop`
/// is set the rest is left undone, and the result is `None`.
pub fn run_points(
    platform: &Platform,
    points: &[Point],
    jobs: usize,
    stop: &AtomicBool,
    on_done: impl Fn(usize, &Row) + Sync,
) -> Option<Vec<Row>> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .expect("the host can start threads");
    let next = points.par_iter().enumerate().with_max_len(1);
    let measure = |(index, point)| {
        let row = (!stop.load(Ordering::Relaxed))
            .then(|| run_point(platform, point, stop))
            .flatten()?;
        on_done(index, &row);
        Some(row)
    };
    pool.install(|| next.map(measure).collect())
}

/// A stream as the machine runs it, alone or with something around it.
trait Thread: Program + AsRef<Stream> + AsMut<Stream> {}

impl<P: Program + AsRef<Stream> + AsMut<Stream>> Thread for P {}

/// A machine with the streams of a point.
struct Run<'a, P> {
    machine: Machine,
    streams: Vec<P>,
    stop: &'a AtomicBool,
}

impl<P: Thread> Run<'_, P> {
    /// The stream of the first thread: what single threads find out is in it.
    fn first(&self) -> &Stream {
        self.streams[0].as_ref()
    }

    fn all(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().map(AsRef::as_ref)
    }

    /// Pass one and a half times the lines that the caches hold through them.
    fn warm_caches(&mut self, platform: &Platform) {
        let threads = self.streams.len() as u64;
        // Threads on both sockets take turns, and fill the L3 of each.
        let l3s = if platform.nodes.cpu == Sockets::Both {
            threads.min(2)
        } else {
            1
        };
        let lines = |bytes: u64| bytes / LINE * 3 / 2;
        let (l3, l2) = (lines(l3s * platform.l3.size / threads), lines(platform.l2.size));
        self.set_warming(true);
        self.machine.warm_l3(&mut self.streams, l3);
        self.machine.warm_caches(&mut self.streams, l2);
        self.set_warming(false);
    }

    fn set_warming(&mut self, warming: bool) {
        self.streams
            .iter_mut()
            .for_each(|stream| stream.as_mut().set_warming(warming));
    }

    /// Run until the cores have made `more` requests, or the clock reaches `until`. `None` if the run was stopped.
    fn advance(&mut self, more: u64, until: Time) -> Option<()> {
        let mut made = requests(&self.machine.counters());
        let target = made.saturating_add(more);
        let mut patience = NANOSECOND;
        while made < target && self.machine.now() < until {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            let now = self.machine.now();
            let pace = now.checked_div(made).unwrap_or(NANOSECOND);
            let span = (target - made).min(ATTENTION) * pace;
            self.machine
                .advance(&mut self.streams, (now + span.max(patience)).min(until));
            let before = std::mem::replace(&mut made, requests(&self.machine.counters()));
            patience = if made > before { 10 * NANOSECOND } else { 2 * patience };
            assert!(patience < STUCK, "the machine makes no progress after {made} requests");
        }
        Some(())
    }

    /// How long so many requests take at the pace so far.
    fn time_of(&self, more: u64) -> Time {
        let made = requests(&self.machine.counters()).max(1);
        (more as f64 * self.machine.now() as f64 / made as f64) as Time
    }

    /// What the experiment is judged by, since an earlier reading.
    fn value(&self, experiment: &Experiment, before: &Counters, timed_before: Mark) -> Option<f64> {
        let counted = self.machine.counters().since(before);
        if let Some(samples) = self.first().samples() {
            return samples.mean_since(timed_before);
        }
        if let Experiment::XpBuffer(_) = experiment {
            let total = counted.dimm_total();
            return (total.writes > 0).then(|| total.media_writes as f64 / total.writes as f64);
        }
        Some(moved(experiment, &counted.core) as f64 / counted.time as f64)
    }

    /// Accesses timed so far. Only single threads time their accesses.
    fn timed(&self) -> Mark {
        self.first().samples().map(Samples::mark).unwrap_or_default()
    }

    /// What replacement probes have found so far.
    fn found(&self) -> Found {
        self.first().found().unwrap_or_default()
    }

    /// Share of the lines probed since an earlier reading that were gone; `None` where none was.
    fn miss_ratio_since(&self, earlier: Found) -> Option<f64> {
        let now = self.found();
        let probed = now.probed - earlier.probed;
        (probed > 0).then(|| (now.missed - earlier.missed) as f64 / probed as f64)
    }
}

/// The machine of an experiment: only workloads use the volatile memory beside the platform's own.
fn machine(platform: &Platform, experiment: &Experiment) -> Machine {
    match experiment {
        Experiment::Workload(_) => Machine::with_volatile(platform),
        _ => Machine::new(platform),
    }
}

/// Writes of a line after which a page moves; 0 where none does.
fn writes_of_move(platform: &Platform) -> u64 {
    platform.memory.optane().map_or(0, |optane| optane.wear.interval.into())
}

fn requests(counters: &Counters) -> u64 {
    counters.core.loads + counters.core.stores + counters.core.nt_stores
}

/// Whether the experiment looks for the few accesses that take much longer than the others.
fn shows_stalls(experiment: &Experiment) -> bool {
    matches!(experiment, Experiment::Wear(_) | Experiment::Tail(_))
}

/// Whether lines stay dirty in the caches until others push them out: the bandwidth is then that of full caches.
fn leaves_dirty_lines(experiment: &Experiment) -> bool {
    match experiment {
        Experiment::Random(random) => random.op == Op::Store,
        Experiment::Stride(stride) => stride.op == Op::Store && stride.stride > 0,
        Experiment::Align(align) => align.op == Op::Store,
        Experiment::Workload(workload) => workload.leaves_dirty_lines(),
        Experiment::Mix(mix) => mix.op == Op::Store,
        Experiment::Loaded(loaded) => loaded.op == Op::Store,
        _ => false,
    }
}

/// Requests after which caches hold what they can of what stays in them: of a chase's region, by random loads, 95 %.
fn filling(platform: &Platform, experiment: &Experiment) -> u64 {
    match experiment {
        Experiment::Chase(chase) if chase.cached => 3 * chase.region.min(platform.l3.size) / LINE,
        experiment => 2 * near_pass(platform, experiment).unwrap_or(0),
    }
}

/// The longest pass through near memory that is waited for: where it is longer, each line is where it was first put.
const LONGEST_PASS: u64 = 1 << 20;

/// In Memory Mode, requests in which the threads pass once through buffers whose pages meet in the frames of the near memory: after that
/// each frame holds what came by last. `None` where none meet, or a pass is too long.
fn near_pass(platform: &Platform, experiment: &Experiment) -> Option<u64> {
    let Memory::MemoryMode(mode) = &platform.memory else {
        return None;
    };
    let (mix, op, region, threads) = match experiment {
        Experiment::Mix(run) => (run.mix, run.op, run.region, run.threads),
        Experiment::Loaded(run) => (run.mix, run.op, run.region, run.threads),
        _ => return None,
    };
    let parts = [mix.loads(op), mix.writes]
        .map(u64::from)
        .into_iter()
        .filter(|&part| part > 0);
    let buffers = parts.clone().count() as u64;
    let lines = u64::from(threads) * region / LINE;
    let frames = mode.near.size * u64::from(platform.interleave.dimms);
    if mode.near.pages == Pages::Contiguous && buffers * lines * LINE <= frames {
        return None;
    }
    let pass = lines * parts.clone().sum::<u64>() / parts.min()?;
    (pass <= LONGEST_PASS).then_some(pass)
}

/// Requests after which an experiment has done all that it does: a timed access, with those that bring its lines
/// into the cache; the stores of all threads from one write-back to the next; the writes in which a few pages move; a round of
/// probes; 1 where every request is like the others.
fn requests_of_round(platform: &Platform, experiment: &Experiment) -> u64 {
    match experiment {
        Experiment::Flush(flush) => flush.clwb / LINE * u64::from(flush.threads),
        Experiment::PersistLatency(persist) => 2 * persist.size / LINE,
        Experiment::Replacement(probes) => Probes::loads(probes.lines),
        Experiment::Tail(_) => TAIL / WINDOWS as u64,
        Experiment::Workload(workload) => workload.requests_of_round(),
        Experiment::Wear(wear) => MOVES * writes_of_move(platform) * wear.size.max(line_bytes(platform)) / LINE,
        experiment => near_pass(platform, experiment).unwrap_or(1),
    }
}
