//! Latency: one access at a time, between two readings of the clock.

use xpline_model::{Op, OpKind, Time};

use super::walk::Walk;
use super::{LINE, fence, line};
use crate::point;
use crate::samples::Samples;

/// Bytes of the single accesses whose latency is measured.
const WORD: u32 = 8;

/// Accesses along a walk, each fenced and timed.
///
/// The latencies include the clock readings and the fence, as those of a real run do.
#[derive(Clone, Debug)]
pub struct Timed<W> {
    walk: W,
    op: point::Op,
    size: u64,
    /// Bytes that one op moves.
    grain: u32,
    fence: OpKind,
    /// Whether lines that will be written are brought into the cache before.
    preload: bool,
    /// Whether lines that were loaded are thrown out of the caches.
    evict: bool,
    step: Step,
    started: Option<Time>,
    samples: Samples,
}

/// What comes next, with the bytes of it that are done.
#[derive(Clone, Copy, Debug)]
enum Step {
    Preload(u64),
    PreloadFence,
    Start,
    Access(u64),
    Loaded(u64),
    Flush(u64),
    Fence,
    Stop,
}

impl<W: Walk> Timed<W> {
    /// Single accesses of 8 bytes, each followed by an mfence; writes on lines that are in the cache.
    pub fn single(walk: W, op: point::Op) -> Self {
        let preload = op != point::Op::Load;
        Self::new(walk, op, LINE, WORD, OpKind::Mfence, preload, false)
    }

    /// Writes of `size` bytes on lines that are in the cache, each followed by an sfence.
    pub fn persist(walk: W, op: point::Op, size: u64) -> Self {
        Self::new(walk, op, size, LINE as u32, OpKind::Sfence, true, false)
    }

    /// Writes of `size` bytes, wherever the lines are, each followed by an sfence.
    pub fn rewrite(walk: W, op: point::Op, size: u64) -> Self {
        Self::new(walk, op, size, LINE as u32, OpKind::Sfence, false, false)
    }

    /// Loads of a line that wait for each other, as those of a pointer chase do. Unless lines stay in the caches, each is
    /// flushed once it is there, and before the next is loaded.
    pub fn chase(walk: W, cached: bool) -> Self {
        let load = point::Op::Load;
        Self::new(walk, load, LINE, LINE as u32, OpKind::Mfence, false, !cached)
    }

    fn new(walk: W, op: point::Op, size: u64, grain: u32, fence: OpKind, preload: bool, evict: bool) -> Self {
        let mut timed = Self {
            preload,
            evict,
            walk,
            op,
            size,
            grain,
            fence,
            step: Step::Start,
            started: None,
            samples: Samples::each(),
        };
        timed.begin();
        timed
    }

    /// The same, with a histogram in place of each latency.
    pub fn in_histogram(self) -> Self {
        Self {
            samples: Samples::histogram(),
            ..self
        }
    }

    /// Latencies measured so far.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    pub fn samples_mut(&mut self) -> &mut Samples {
        &mut self.samples
    }

    /// Begin with a new access: while caches are warmed nobody reads the clock, and an access may be half done.
    pub fn restart(&mut self) {
        self.started = None;
        self.begin();
    }

    pub fn stamp(&mut self, now: Time) {
        match self.started.take() {
            None => self.started = Some(now),
            Some(started) => self.samples.push(now - started),
        }
    }

    pub fn next(&mut self) -> Op {
        match self.step {
            Step::Preload(done) => {
                self.step = if done + LINE == self.size {
                    Step::PreloadFence
                } else {
                    Step::Preload(done + LINE)
                };
                line(OpKind::Load, self.walk.address(done))
            }
            Step::PreloadFence => {
                self.step = Step::Start;
                fence(OpKind::Mfence)
            }
            Step::Start => {
                self.step = Step::Access(0);
                fence(OpKind::Stamp)
            }
            Step::Access(done) => {
                let address = self.walk.address(done);
                let (kind, flush) = match self.op {
                    point::Op::Load if self.evict => {
                        self.step = Step::Loaded(done);
                        return Op::new(OpKind::Load, address, self.grain);
                    }
                    point::Op::Load => (OpKind::Load, false),
                    point::Op::NtStore => (OpKind::NtStore, false),
                    point::Op::Store => (OpKind::Store, false),
                    point::Op::StoreClwb => (OpKind::Store, true),
                };
                self.step = if flush { Step::Flush(done) } else { self.after(done) };
                Op::new(kind, address, self.grain)
            }
            Step::Loaded(done) => {
                self.step = Step::Flush(done);
                fence(OpKind::Mfence)
            }
            Step::Flush(done) => {
                self.step = self.after(done);
                let kind = if self.evict { OpKind::ClflushOpt } else { OpKind::Clwb };
                line(kind, self.walk.address(done))
            }
            Step::Fence => {
                self.step = Step::Stop;
                fence(self.fence)
            }
            Step::Stop => {
                self.begin();
                fence(OpKind::Stamp)
            }
        }
    }

    /// Go to the next place.
    fn begin(&mut self) {
        self.walk.advance();
        self.step = if self.preload { Step::Preload(0) } else { Step::Start };
    }

    /// The step after the line at `done`.
    fn after(&self, done: u64) -> Step {
        if done + LINE == self.size {
            Step::Fence
        } else {
            Step::Access(done + LINE)
        }
    }
}
