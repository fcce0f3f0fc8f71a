//! A stream of chunks on a machine, from beginning to end.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;
use xpline_model::{Counters, Event, MICROSECOND, Machine, Platform, Program, Time, Traced, Traffic};

use crate::access::LINE;
use crate::core::{CoreStream, Rates};
use crate::facts::{CAUSES, Facts};
use crate::feed::{Feed, Source};
use crate::ledger::{DimmFacts, Ledger};
use crate::timeline::{Bin, Timeline};

/// Simulated time between two looks at what the media wrote, and who writes to which DIMM: a core fills its buffers anew in less.
const SLICE: Time = 4 * MICROSECOND;

/// What came of a run on one platform.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub platform: String,
    /// From the first op to the end of the last thread.
    pub time_ps: Time,
    /// Core time by cause, all threads together, and the time that cores had nothing to do.
    pub time_by_cause_ps: [u64; CAUSES.len()],
    pub idle_ps: Time,
    pub accesses: u64,
    pub cores: u32,
    pub counters: CounterTotals,
    pub dimms: Vec<DimmOutcome>,
    pub timeline: Vec<Bin>,
    /// Picoseconds of a bin.
    pub bin_ps: Time,
    /// Pages of 2 MiB of which lines were made persistent.
    pub persisted_pages: Vec<u64>,
    /// By site, in the order of their numbers.
    pub sites: Vec<Facts>,
}

/// Counters of the whole machine, in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct CounterTotals {
    pub bytes_loaded: u64,
    pub bytes_stored: u64,
    #[serde(flatten)]
    pub traffic: Traffic,
    pub media_line_bytes: u64,
    /// Written and not on the media at the end: in caches and in buffers.
    pub unwritten_bytes: u64,
}

/// One DIMM.
#[derive(Clone, Debug, Serialize)]
pub struct DimmOutcome {
    pub imc_read_bytes: u64,
    pub imc_written_bytes: u64,
    pub media_read_bytes: u64,
    pub media_written_bytes: u64,
    #[serde(flatten)]
    pub facts: DimmFacts,
}

/// Run what a source has on a platform, on at most so many cores. `None` where the source has nothing.
///
/// When `stop` is set, what was taken from the source by then is the run. `done` counts accesses as they are taken.
pub fn run<S: Source>(
    platform: &Platform,
    source: S,
    most_cores: Option<u32>,
    stop: &AtomicBool,
    done: &AtomicU64,
) -> Option<Outcome> {
    let all = drive(platform, source, most_cores, stop, done, |stream| stream, |_| ());
    all.map(|(outcome, ())| outcome)
}

/// The same on all cores of the platform, with a sample of the requests of each.
pub fn run_sampled<S: Source>(
    platform: &Platform,
    source: S,
    stop: &AtomicBool,
    done: &AtomicU64,
) -> Option<(Outcome, Vec<Vec<Event>>)> {
    drive(platform, source, None, stop, done, Traced::new, |streams| {
        streams.iter().map(|stream| stream.events().to_vec()).collect()
    })
}

/// Drive a machine with cores in the wrapping of whoever looks on, who takes what has been seen in the end.
fn drive<S: Source, P: Program + AsRef<CoreStream<S>>, T>(
    platform: &Platform,
    source: S,
    most_cores: Option<u32>,
    stop: &AtomicBool,
    done: &AtomicU64,
    wrap: impl Fn(CoreStream<S>) -> P,
    seen: impl FnOnce(&[P]) -> T,
) -> Option<(Outcome, T)> {
    let cores = most_cores.unwrap_or(u32::MAX).clamp(1, platform.core.count);
    let rates = Rates {
        instruction: (1e3 / (platform.core.clock * platform.core.ipc)) as Time,
        op: platform.core.op_interval,
        fill_buffers: platform.core.fill_buffers,
    };
    let mut feed = Feed::new(source, cores);
    if !feed.begin() {
        return None;
    }
    let feed = Rc::new(RefCell::new(feed));
    let ledger = Rc::new(RefCell::new(Ledger::new(platform)));
    let mut machine = Machine::new(platform);
    machine.watch_media();
    let mut streams: Vec<P> = Vec::new();
    let mut timeline = Timeline::new(machine.counters());
    let mut running = true;
    let mut written = Vec::new();
    while running {
        let in_use = feed.borrow().cores_in_use();
        streams.extend((streams.len()..in_use).map(|core| wrap(CoreStream::new(core, &feed, &ledger, rates))));
        running = machine.advance(&mut streams, machine.now() + SLICE) || feed.borrow().cores_in_use() > streams.len();
        {
            let mut ledger = ledger.borrow_mut();
            machine.take_media_writes(|write| {
                ledger.expect(write.address);
                written.push(write);
            });
            written.drain(..).for_each(|write| ledger.media_wrote(write));
            ledger.end_slice();
        }
        if timeline.is_due(machine.now()) {
            timeline.add(machine.counters());
            done.store(
                streams.iter().map(|stream| stream.as_ref().accesses).sum(),
                Ordering::Relaxed,
            );
        }
        if stop.load(Ordering::Relaxed) {
            feed.borrow_mut().end();
        }
    }
    let counters = machine.counters();
    timeline.add(counters.clone());
    ledger.borrow_mut().close();
    let time_ps = streams.iter().map(|stream| stream.as_ref().ended_at).max().unwrap_or(0);
    let accesses = streams.iter().map(|stream| stream.as_ref().accesses).sum();
    done.store(accesses, Ordering::Relaxed);
    let idle_ps = streams.iter().map(|stream| stream.as_ref().idle).sum();
    let unwritten = machine.unwritten_pieces() * LINE;
    let cores = streams.len() as u32;
    let seen = seen(&streams);
    drop(streams);
    let ledger = Rc::into_inner(ledger)
        .expect("the cores that shared it are gone")
        .into_inner();
    let (timeline, bin_ps) = timeline.finish();
    let outcome = Outcome {
        platform: platform.name.clone(),
        time_ps,
        time_by_cause_ps: ledger.time_ps,
        idle_ps,
        accesses,
        cores,
        dimms: dimms(&counters, &ledger.dimms),
        counters: totals(&counters, unwritten),
        timeline,
        bin_ps,
        persisted_pages: ledger.persisted.into_iter().collect(),
        sites: ledger.sites,
    };
    Some((outcome, seen))
}

fn totals(counters: &Counters, unwritten_bytes: u64) -> CounterTotals {
    CounterTotals {
        bytes_loaded: counters.core.bytes_loaded,
        bytes_stored: counters.core.bytes_stored,
        traffic: counters.traffic(),
        media_line_bytes: counters.media_line_bytes,
        unwritten_bytes,
    }
}

fn dimms(counters: &Counters, facts: &[DimmFacts]) -> Vec<DimmOutcome> {
    let dimms = counters.dimms.iter().zip(facts.iter().cloned());
    dimms
        .map(|(dimm, facts)| DimmOutcome {
            imc_read_bytes: dimm.reads * LINE,
            imc_written_bytes: dimm.writes * LINE,
            media_read_bytes: dimm.media_reads * counters.media_line_bytes,
            media_written_bytes: dimm.media_writes * counters.media_line_bytes,
            facts,
        })
        .collect()
}
