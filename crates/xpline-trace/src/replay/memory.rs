//! Replay below the caches: requests straight to the memory controllers, a bounded number at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

use xpline_latency::Histogram;
use xpline_model::{Counters, MemorySystem, OpKind, Platform, Request, RequestKind, Sample, Time};

use super::{Outcome, Setting, histogram};
use crate::ahead::Ahead;
use crate::error::TraceError;
use crate::record::{LINE, Record};

/// Femtoseconds of a picosecond.
const FEMTOSECONDS: u128 = 1000;

/// Requests between two looks at whether to stop.
const ATTENTION: u64 = 1 << 16;

/// The memory, and the requests under way in it.
struct Run {
    memory: MemorySystem,
    limit: usize,
    now: Time,
    /// When the requests under way complete, and some that have; at most `limit`.
    completions: BinaryHeap<Reverse<Time>>,
    reads: Histogram,
    writes: Histogram,
    last: Time,
    sample: Option<Sample>,
}

impl Run {
    /// Send a request as soon as there is room, and not before `earliest`.
    #[inline]
    fn send(&mut self, kind: RequestKind, address: u64, source: u32, earliest: Time) {
        self.now = self.now.max(earliest);
        let full = self.completions.len() == self.limit;
        if full && let Some(&Reverse(first)) = self.completions.peek() {
            self.now = self.now.max(first);
        }
        let request = Request {
            kind,
            address,
            at: self.now,
            source,
        };
        let served = match &mut self.sample {
            None => self.memory.serve(request),
            Some(sample) => self.memory.serve_sampled(request, sample),
        };
        let done = served.expect("requests in order, from cores that there are");
        if full {
            // In place of the one that made room.
            *self.completions.peek_mut().expect("a limit of at least 1") = Reverse(done);
        } else {
            self.completions.push(Reverse(done));
        }
        let latencies = match kind {
            RequestKind::Read => &mut self.reads,
            RequestKind::Write => &mut self.writes,
        };
        latencies.record(done - self.now);
        self.last = self.last.max(done);
    }
}

/// Replay a trace. `None` if `stop` was set meanwhile.
pub fn replay(
    platform: &Platform,
    trace: &mut Ahead,
    setting: &mut Setting,
    stop: &AtomicBool,
) -> Result<Option<Outcome>, TraceError> {
    let mut run = Run {
        memory: MemorySystem::new(platform),
        limit: setting.in_flight as usize,
        now: 0,
        completions: BinaryHeap::new(),
        reads: histogram(),
        writes: histogram(),
        last: 0,
        sample: setting.timeline.then(Sample::default),
    };
    let mut outcome = Outcome::default();
    let mut pace = setting.tick_fs.map(|tick_fs| Pace { tick_fs, first: None });
    let mut batch = Vec::new();
    while trace.read(&mut batch, stop)? {
        for record in &batch {
            let number = outcome.records + 1;
            let fault = |what: String| TraceError::new(trace.path(), format!("record {number}: {what}"));
            let source = setting.dealer.deal(record).map_err(fault)?;
            let earliest = match &mut pace {
                Some(pace) => pace.at(record).map_err(fault)?,
                None => 0,
            };
            outcome.records = number;
            let (reads, writes) = match record.kind {
                OpKind::Load => (true, false),
                OpKind::Store | OpKind::NtStore => (false, true),
                OpKind::LockedRmw => (true, true),
                _ => {
                    outcome.skipped += 1;
                    continue;
                }
            };
            for line in record.lines() {
                let address = outcome.place(line);
                if reads {
                    run.send(RequestKind::Read, address, source, earliest);
                    outcome.reads += 1;
                }
                if writes {
                    run.send(RequestKind::Write, address, source, earliest);
                    outcome.writes += 1;
                }
                // One record may be millions of requests.
                if (outcome.reads + outcome.writes) % ATTENTION == 0 && stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
            }
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    outcome.bytes = (outcome.reads + outcome.writes) * LINE;
    outcome.time = run.last;
    outcome.read_latencies = run.reads.latencies();
    outcome.write_latencies = run.writes.latencies();
    outcome.timeline = run.sample.iter().map(|sample| sample.events().to_vec()).collect();
    outcome.counters = Counters {
        time: run.last,
        dimms: run.memory.counters(),
        media_line_bytes: platform.media_line_bytes(),
        ..Counters::default()
    };
    Ok(Some(outcome))
}

/// When requests come, by the times of the trace.
struct Pace {
    tick_fs: u64,
    /// The time of the first record: the replay starts there.
    first: Option<u64>,
}

impl Pace {
    fn at(&mut self, record: &Record) -> Result<Time, String> {
        let time = record.time.ok_or("has no time to keep pace with; leave out --paced")?;
        let first = *self.first.get_or_insert(time);
        let since = u128::from(time.saturating_sub(first)) * u128::from(self.tick_fs) / FEMTOSECONDS;
        // Half of what the clock can hold leaves room for what follows.
        Time::try_from(since)
            .ok()
            .filter(|&since| since < Time::MAX / 2)
            .ok_or_else(|| format!("its time, {time} ticks, is beyond 100 days"))
    }
}
