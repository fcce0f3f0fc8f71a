//! Replay below the caches: requests straight to the memory controllers, a bounded number at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use xpline_model::{Completion, Counters, MemorySystem, OpKind, Platform, Request, RequestKind, Time};

use super::latencies::Latencies;
use super::{Outcome, Setting};
use crate::error::TraceError;
use crate::record::Record;
use crate::trace::Trace;

/// Femtoseconds of a picosecond.
const FEMTOSECONDS: u128 = 1000;

/// Requests under way and those that completed.
struct Run {
    memory: MemorySystem,
    limit: usize,
    now: Time,
    under_way: usize,
    /// When each request was submitted that completed no earlier than the oldest under way, and whether it is a read.
    submitted: VecDeque<(Time, bool, bool)>,
    /// The ticket of the first of `submitted`.
    oldest: u64,
    reads: Latencies,
    writes: Latencies,
    last: Time,
}

impl Run {
    /// Send a request as soon as there is room, and not before `earliest`.
    #[inline]
    fn send(&mut self, kind: RequestKind, address: u64, source: u32, earliest: Time) {
        let mut at = self.now.max(earliest);
        while let Some(completion) = self.memory.poll(at) {
            self.complete(completion);
        }
        while self.under_way >= self.limit {
            let completion = self.memory.poll(Time::MAX).expect("what is under way completes");
            at = at.max(completion.at);
            self.complete(completion);
        }
        let request = Request {
            kind,
            address,
            at,
            source,
        };
        self.memory
            .submit(request)
            .expect("requests in order, from cores that there are");
        self.submitted.push_back((at, kind == RequestKind::Read, false));
        self.under_way += 1;
        self.now = at;
    }

    #[inline]
    fn complete(&mut self, completion: Completion) {
        let entry = &mut self.submitted[(completion.ticket - self.oldest) as usize];
        entry.2 = true;
        let (at, is_read, _) = *entry;
        let latencies = if is_read { &mut self.reads } else { &mut self.writes };
        latencies.record(completion.at - at);
        self.last = self.last.max(completion.at);
        self.under_way -= 1;
        while self.submitted.front().is_some_and(|&(_, _, done)| done) {
            self.submitted.pop_front();
            self.oldest += 1;
        }
    }
}

/// Replay a trace. `None` if `stop` was set meanwhile.
pub fn replay(
    platform: &Platform,
    trace: &mut Trace,
    setting: &mut Setting,
    stop: &AtomicBool,
) -> Result<Option<Outcome>, TraceError> {
    let mut run = Run {
        memory: MemorySystem::new(platform),
        limit: setting.in_flight as usize,
        now: 0,
        under_way: 0,
        submitted: VecDeque::new(),
        oldest: 0,
        reads: Latencies::new(),
        writes: Latencies::new(),
        last: 0,
    };
    let mut outcome = Outcome::default();
    let mut pace = setting.tick_fs.map(|tick_fs| Pace { tick_fs, first: None });
    let mut batch = Vec::new();
    while trace.read(&mut batch)? {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
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
            }
        }
    }
    while let Some(completion) = run.memory.poll(Time::MAX) {
        run.complete(completion);
    }
    outcome.bytes = (outcome.reads + outcome.writes) * crate::record::LINE;
    outcome.time = run.last;
    outcome.read_latencies = run.reads.summary();
    outcome.write_latencies = run.writes.summary();
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
