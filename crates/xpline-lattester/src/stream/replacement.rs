//! Replacement probes: which of the lines that were read are still buffered when they are read again.

use xpline_model::platform::Optane;
use xpline_model::{Op, OpKind, Time};

use super::{REGION, fence, line};
use crate::point::{Buffer, Order, Replacement};
use crate::rng::Rng;
use crate::samples::Samples;

/// Lines of the reference page that are timed at the start of each round, one of them twice.
const REFERENCE: usize = 3;

/// Rounds of timed loads past the caches: so many lines, never read before, then the same again.
///
/// A probe cannot see a hit, only how long a load took. So each round begins with loads whose fate is known: a line of a
/// page not seen before, another line of the page, and that one again. The first misses the table's cache and the buffer, the second the
/// buffer, the third nothing; half way between two of them lies what tells a miss from a hit. Loads of some pages follow at random, so
/// that a set of the table is found in any state, as other traffic leaves it.
#[derive(Clone, Debug)]
pub struct Probes {
    buffer: Buffer,
    order: Order,
    lines: u64,
    geometry: Geometry,
    rng: Rng,
    rounds: u64,
    /// Addresses of the present round, in order, and how many of them come before those that are read again.
    round: Vec<u64>,
    probed_from: usize,
    at: usize,
    step: Step,
    started: Option<Time>,
    reference: [Time; REFERENCE],
    found: Found,
    samples: Samples,
}

/// Bytes of a line and of a page, sets of the table's cache (pages from one to the next of the same), and ways of each.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    line: u64,
    page: u64,
    sets: u64,
    ways: u64,
}

/// What the probes of all rounds came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub probed: u64,
    pub missed: u64,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Load,
    Fence,
    Stop,
    Flush,
}

impl Probes {
    pub fn new(optane: &Optane, run: &Replacement, rng: Rng) -> Self {
        let geometry = Geometry {
            line: optane.xpbuffer.line,
            page: optane.ait.page,
            sets: optane.ait.cache / optane.ait.page / u64::from(optane.ait.ways),
            ways: optane.ait.ways.into(),
        };
        let mut probes = Self {
            buffer: run.buffer,
            order: run.order,
            lines: run.lines,
            geometry,
            rng,
            rounds: 0,
            round: Vec::new(),
            probed_from: 0,
            at: 0,
            step: Step::Start,
            started: None,
            reference: [0; REFERENCE],
            found: Found::default(),
            samples: Samples::each(),
        };
        probes.begin_round();
        probes
    }

    /// Loads of a round, but for those at random.
    pub const fn loads(lines: u64) -> u64 {
        REFERENCE as u64 + 2 * lines
    }

    /// Latencies of the lines read again, in ps, in order.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    pub fn samples_mut(&mut self) -> &mut Samples {
        &mut self.samples
    }

    pub fn found(&self) -> Found {
        self.found
    }

    pub fn next(&mut self) -> Op {
        let address = self.round[self.at];
        match self.step {
            Step::Start => {
                self.step = Step::Load;
                fence(OpKind::Stamp)
            }
            Step::Load => {
                self.step = Step::Fence;
                line(OpKind::Load, address)
            }
            Step::Fence => {
                self.step = Step::Stop;
                fence(OpKind::Mfence)
            }
            Step::Stop => {
                self.step = Step::Flush;
                fence(OpKind::Stamp)
            }
            Step::Flush => {
                self.at += 1;
                if self.at == self.round.len() {
                    self.begin_round();
                }
                self.step = Step::Start;
                line(OpKind::ClflushOpt, address)
            }
        }
    }

    pub fn stamp(&mut self, now: Time) {
        let Some(started) = self.started.take() else {
            self.started = Some(now);
            return;
        };
        let latency = now - started;
        if self.at < REFERENCE {
            self.reference[self.at] = latency;
        } else if self.at >= self.probed_from {
            self.found.probed += 1;
            self.found.missed += u64::from(latency > self.threshold());
            self.samples.push(latency);
        }
    }

    /// The latency half way between a hit and a miss of the buffer under test.
    fn threshold(&self) -> Time {
        let [unseen_page, unseen_line, again] = self.reference;
        match self.buffer {
            Buffer::XpBuffer => (unseen_line + again) / 2,
            Buffer::Ait => (unseen_page + unseen_line) / 2,
        }
    }

    fn begin_round(&mut self) {
        self.at = 0;
        self.round.clear();
        let Geometry { line, sets, ways, page } = self.geometry;
        // The upper half of the region is for lines that are not probed; the reference page is in a set that the probes leave alone.
        let set = self.rng.below(sets);
        let unseen = REGION / 2 + self.nth_page(self.rounds, (set + sets / 2) % sets);
        self.round.extend([unseen, unseen + line, unseen + line]);
        if self.buffer == Buffer::Ait {
            for _ in 0..self.rng.below(4 * ways) {
                let (nth, offset) = (self.rng.below(2 * ways), self.rng.below(page / line) * line);
                self.round.push(REGION / 2 + self.nth_page(nth, set) + offset);
            }
        }
        let first = self.rounds * self.lines;
        self.rounds += 1;
        let mut places: Vec<u64> = (first..first + self.lines)
            .map(|nth| match self.buffer {
                Buffer::XpBuffer => nth % (REGION / 2 / line) * line,
                Buffer::Ait => self.nth_page(nth, set),
            })
            .collect();
        self.round.extend(&places);
        self.probed_from = self.round.len();
        match self.order {
            Order::Same => {}
            Order::Reverse => places.reverse(),
            Order::Random => self.shuffle(&mut places),
        }
        // Of a page another line is read again: the first is still in the XPBuffer.
        let again = match self.buffer {
            Buffer::XpBuffer => 0,
            Buffer::Ait => line,
        };
        self.round.extend(places.iter().map(|place| place + again));
    }

    /// The first byte of the nth page of a set, from the start again at the end of half the region.
    fn nth_page(&self, nth: u64, set: u64) -> u64 {
        let Geometry { page, sets, .. } = self.geometry;
        let pages = (REGION / 2 / page / sets).max(1);
        (nth % pages * sets + set) * page
    }

    /// Fisher and Yates.
    fn shuffle(&mut self, places: &mut [u64]) {
        for last in (1..places.len()).rev() {
            places.swap(last, self.rng.below(last as u64 + 1) as usize);
        }
    }
}
