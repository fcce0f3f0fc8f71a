//! Replay above the caches: cores of the machine run the records, each its own in their order.
//!
//! The trace is read as the cores ask for it. A core that asks for a record far ahead of what others have run waits: so
//! cores stay about as close as they were when the trace was taken, and memory stays bounded.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use xpline_latency::Histogram;
use xpline_model::{Event, MICROSECOND, Machine, Op, OpKind, Platform, Program, Time, Traced};

use super::threads::Dealer;
use super::{ADDRESSES, Outcome, histogram};
use crate::ahead::Ahead;
use crate::error::TraceError;
use crate::record::{LINE, Record, has_address};

/// Records by which one core may be ahead of another.
const WINDOW: usize = 64 << 10;

/// Simulated time between two looks at whether to stop, and whether a thread has appeared that was not among the first records.
const SLICE: Time = 10 * MICROSECOND;

/// Instructions that a waiting core spends until it asks again: from the first number, doubled up to the second.
const WAIT: (u32, u32) = (64, 4096);

/// Replay a trace; returns how many cores took part as well. `None` if `stop` was set meanwhile.
pub fn replay(
    platform: &Platform,
    trace: Ahead,
    dealer: Dealer,
    timeline: bool,
    stop: &AtomicBool,
) -> Result<Option<(Outcome, u32)>, TraceError> {
    if !timeline {
        let replayed = replay_as(platform, trace, dealer, |core| core, stop)?;
        return Ok(replayed.map(|(outcome, threads, _)| (outcome, threads)));
    }
    let Some((mut outcome, threads, cores)) = replay_as(platform, trace, dealer, Traced::new, stop)? else {
        return Ok(None);
    };
    outcome.timeline = cores;
    Ok(Some((outcome, threads)))
}

/// A core as the machine runs it, alone or with something around it.
trait Core<'a>: Program + AsRef<CoreStream<'a>> {
    fn events(&self) -> Vec<Event> {
        Vec::new()
    }
}

impl<'a> Core<'a> for CoreStream<'a> {}

impl<'a> Core<'a> for Traced<CoreStream<'a>> {
    fn events(&self) -> Vec<Event> {
        Traced::events(self).to_vec()
    }
}

impl AsRef<Self> for CoreStream<'_> {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The outcome, how many cores took part, and what each of them kept.
type Replayed = (Outcome, u32, Vec<Vec<Event>>);

fn replay_as<'a, P: Core<'a>>(
    platform: &Platform,
    trace: Ahead,
    dealer: Dealer,
    wrap: impl Fn(CoreStream<'a>) -> P,
    stop: &'a AtomicBool,
) -> Result<Option<Replayed>, TraceError> {
    let mut machine = Machine::new(platform);
    let feed = Rc::new(RefCell::new(Feed {
        trace,
        stop,
        dealer,
        batch: Vec::new(),
        next: 0,
        queues: Vec::new(),
        queued: 0,
        ended: false,
        error: None,
        outcome: Outcome::default(),
    }));
    feed.borrow_mut().begin();
    let mut cores: Vec<P> = Vec::new();
    let mut running = true;
    while running && !stop.load(Ordering::Relaxed) {
        let in_use = feed.borrow().dealer.cores_in_use() as usize;
        feed.borrow_mut().queues.resize(in_use, VecDeque::new());
        cores.extend((cores.len()..in_use).map(|core| wrap(CoreStream::new(core, &feed))));
        let until = machine.now() + SLICE;
        running = machine.advance(&mut cores, until) || feed.borrow().dealer.cores_in_use() as usize > cores.len();
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let mut latencies = histogram();
    let streams = || cores.iter().map(AsRef::as_ref);
    streams().for_each(|core| latencies.add(&core.latencies));
    let ended = streams().map(|core| core.ended_at).max().unwrap_or(0);
    let bytes = streams().map(|core| core.bytes).sum();
    let events = cores.iter().map(Core::events).collect();
    drop(cores);
    let feed = Rc::into_inner(feed)
        .expect("the cores that shared it are gone")
        .into_inner();
    if let Some(error) = feed.error {
        return Err(error);
    }
    let counters = machine.counters();
    let threads = feed.dealer.cores_in_use();
    let outcome = Outcome {
        reads: counters.core.loads,
        writes: counters.core.stores + counters.core.nt_stores,
        bytes,
        time: ended,
        read_latencies: latencies.latencies(),
        unwritten_bytes: Some(machine.unwritten_pieces() * LINE),
        counters,
        ..feed.outcome
    };
    Ok(Some((outcome, threads, events)))
}

/// A record on its way to its core.
#[derive(Clone, Copy, Debug)]
struct Access {
    kind: OpKind,
    address: u64,
    size: u32,
}

/// What a core gets when it asks for its next record.
enum Next {
    Access(Access),
    /// Others must catch up first.
    Wait,
    End,
}

/// The trace, dealt out to cores.
struct Feed<'a> {
    trace: Ahead,
    stop: &'a AtomicBool,
    dealer: Dealer,
    batch: Vec<Record>,
    next: usize,
    queues: Vec<VecDeque<Access>>,
    queued: usize,
    ended: bool,
    error: Option<TraceError>,
    outcome: Outcome,
}

impl Feed<'_> {
    #[inline]
    fn next(&mut self, core: usize) -> Next {
        if let Some(access) = self.queues[core].pop_front() {
            self.queued -= 1;
            return Next::Access(access);
        }
        loop {
            if self.next == self.batch.len() && !self.read() {
                return Next::End;
            }
            if self.queued >= WINDOW {
                return Next::Wait;
            }
            let record = self.batch[self.next];
            self.next += 1;
            self.outcome.records += 1;
            let dealt = match self.dealer.deal(&record) {
                Ok(dealt) => dealt as usize,
                Err(what) => {
                    let what = format!("record {}: {what}", self.outcome.records);
                    self.fail(TraceError::new(self.trace.path(), what));
                    return Next::End;
                }
            };
            let access = Access {
                kind: record.kind,
                address: if has_address(record.kind) {
                    self.outcome.place(record.address)
                } else {
                    0
                },
                size: record.size,
            };
            if dealt == core {
                return Next::Access(access);
            }
            if dealt >= self.queues.len() {
                self.queues.resize(dealt + 1, VecDeque::new());
            }
            self.queues[dealt].push_back(access);
            self.queued += 1;
        }
    }

    /// Read the first records, so that their threads begin together.
    fn begin(&mut self) {
        let mut first = Vec::new();
        while first.len() < WINDOW && self.read() {
            first.append(&mut self.batch);
        }
        if self.error.is_some() {
            return;
        }
        for (number, record) in (1..).zip(&first) {
            if let Err(what) = self.dealer.meet(record) {
                let what = format!("record {number}: {what}");
                return self.fail(TraceError::new(self.trace.path(), what));
            }
        }
        self.batch = first;
    }

    /// Read the next batch; false if there is none.
    fn read(&mut self) -> bool {
        if self.ended {
            return false;
        }
        self.next = 0;
        match self.trace.read(&mut self.batch, self.stop) {
            Ok(more) => self.ended = !more,
            Err(error) => self.fail(error),
        }
        !self.ended
    }

    /// End the replay: no core gets anything more.
    fn fail(&mut self, error: TraceError) {
        self.error = Some(error);
        self.ended = true;
        self.batch.clear();
        self.next = 0;
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.queued = 0;
    }
}

/// How far a core is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Fenced,
    Stamped,
}

/// The records of one core as ops, a line at a time; at their end, a fence and a reading of the clock.
struct CoreStream<'a> {
    core: usize,
    feed: Rc<RefCell<Feed<'a>>>,
    /// What is left of an access that touches several lines.
    rest: Option<Access>,
    wait: u32,
    stage: Stage,
    ended_at: Time,
    latencies: Histogram,
    bytes: u64,
}

impl<'a> CoreStream<'a> {
    fn new(core: usize, feed: &Rc<RefCell<Feed<'a>>>) -> Self {
        Self {
            core,
            feed: Rc::clone(feed),
            rest: None,
            wait: WAIT.0,
            stage: Stage::Running,
            ended_at: 0,
            latencies: histogram(),
            bytes: 0,
        }
    }

    /// The op of an access that its first line takes; the rest is kept.
    #[inline]
    fn first_line(&mut self, access: Access) -> Op {
        let Access { kind, address, size } = access;
        if !has_address(kind) {
            return Op::new(kind, 0, size);
        }
        let here = size.clamp(1, (LINE - address % LINE) as u32);
        if size > here {
            self.rest = Some(Access {
                kind,
                address: (address + u64::from(here)) % ADDRESSES,
                size: size - here,
            });
        }
        self.bytes += match kind {
            OpKind::Load | OpKind::Store | OpKind::NtStore => u64::from(here),
            OpKind::LockedRmw => 2 * u64::from(here),
            _ => 0,
        };
        Op::new(kind, address, here)
    }
}

impl Program for CoreStream<'_> {
    #[inline]
    fn next_op(&mut self) -> Option<Op> {
        if let Some(rest) = self.rest.take() {
            return Some(self.first_line(rest));
        }
        match self.stage {
            Stage::Running => {}
            Stage::Fenced => {
                self.stage = Stage::Stamped;
                return Some(Op::new(OpKind::Stamp, 0, 0));
            }
            Stage::Stamped => return None,
        }
        let next = self.feed.borrow_mut().next(self.core);
        Some(match next {
            Next::Access(access) => {
                self.wait = WAIT.0;
                self.first_line(access)
            }
            Next::Wait => {
                let wait = self.wait;
                self.wait = (2 * wait).min(WAIT.1);
                Op::new(OpKind::Compute, 0, wait)
            }
            Next::End => {
                self.stage = Stage::Fenced;
                Op::new(OpKind::Mfence, 0, 0)
            }
        })
    }

    fn stamp(&mut self, now: Time) {
        self.ended_at = now;
    }

    #[inline]
    fn loaded(&mut self, latency: Time) {
        self.latencies.record(latency);
    }
}
