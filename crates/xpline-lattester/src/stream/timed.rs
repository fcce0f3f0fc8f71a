//! Latency: one access at a time, between two readings of the clock.

use xpline_model::{Op, OpKind, Time};

use super::walk::Walk;
use super::{LINE, fence, line};
use crate::point;

/// Bytes of the single accesses whose latency is measured.
const WORD: u32 = 8;

/// Accesses along a walk, each fenced and timed. Lines that will be written are brought into the cache before.
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
    step: Step,
    started: Option<Time>,
    samples: Vec<Time>,
}

/// What comes next, with the bytes of it that are done.
#[derive(Clone, Copy, Debug)]
enum Step {
    Preload(u64),
    PreloadFence,
    Start,
    Access(u64),
    Flush(u64),
    Fence,
    Stop,
}

impl<W: Walk> Timed<W> {
    /// Single accesses of 8 bytes, each followed by an mfence.
    pub fn single(walk: W, op: point::Op) -> Self {
        Self::new(walk, op, LINE, WORD, OpKind::Mfence)
    }

    /// Writes of `size` bytes, each followed by an sfence.
    pub fn persist(walk: W, op: point::Op, size: u64) -> Self {
        Self::new(walk, op, size, LINE as u32, OpKind::Sfence)
    }

    fn new(walk: W, op: point::Op, size: u64, grain: u32, fence: OpKind) -> Self {
        let mut timed = Self {
            walk,
            op,
            size,
            grain,
            fence,
            step: Step::Start,
            started: None,
            samples: Vec::new(),
        };
        timed.begin();
        timed
    }

    /// Latencies measured so far, in ps, in order.
    pub fn samples(&self) -> &[Time] {
        &self.samples
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
                    point::Op::Load => (OpKind::Load, false),
                    point::Op::NtStore => (OpKind::NtStore, false),
                    point::Op::Store => (OpKind::Store, false),
                    point::Op::StoreClwb => (OpKind::Store, true),
                };
                self.step = if flush { Step::Flush(done) } else { self.after(done) };
                Op::new(kind, address, self.grain)
            }
            Step::Flush(done) => {
                self.step = self.after(done);
                line(OpKind::Clwb, self.walk.address(done))
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
        self.step = if self.op == point::Op::Load {
            Step::Start
        } else {
            Step::Preload(0)
        };
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
