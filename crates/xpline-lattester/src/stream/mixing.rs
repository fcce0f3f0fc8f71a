//! Reads and writes in a ratio, from buffers of their own, with a pause after each access or none.

use xpline_model::{Op, OpKind, Time};

use super::walk::Walk;
use super::{LINE, line};
use crate::point::{self, Pattern, Ratio};
use crate::rng::Rng;

/// What each thread of a mix does.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Lines that memory reads and writes.
    pub ratio: Ratio,
    /// What a write is.
    pub op: point::Op,
    pub pattern: Pattern,
    /// Bytes of an access.
    pub size: u64,
    /// Bytes of the buffer for reads, and of that for writes.
    pub region: u64,
    /// How long a thread waits after each line, on average.
    pub pause: Time,
}

/// The traffic of one thread: so many loads of lines, then so many writes, over and over.
///
/// A write that goes through the caches reads its line, too, and takes the place of a load; as the caches fill up, it is
/// written back later.
#[derive(Clone, Debug)]
pub struct Mixing<W> {
    reads: W,
    writes: W,
    op: point::Op,
    size: u64,
    /// Loads and writes of a round.
    loads: u32,
    stores: u32,
    /// The access of the round that is under way, and its bytes that are done.
    access: u32,
    done: u64,
    /// The line at `done` is stored, and its clwb is due.
    stored: bool,
    /// How long a thread waits after each line, on average: from nothing to twice that, so that threads do not keep in step.
    pause: Time,
    paused: bool,
    rng: Rng,
}

impl<W: Walk> Mixing<W> {
    /// Accesses in the ratio of what memory reads and writes.
    pub fn new(reads: W, writes: W, traffic: &Traffic, rng: Rng) -> Self {
        let &Traffic {
            ratio, op, size, pause, ..
        } = traffic;
        let (loads, stores) = (ratio.loads(op), ratio.writes);
        Self {
            reads,
            writes,
            op,
            size,
            loads,
            stores,
            access: loads + stores - 1,
            done: size,
            stored: false,
            pause,
            paused: true,
            rng,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Op {
        if self.stored {
            self.stored = false;
            self.done += LINE;
            return line(OpKind::Clwb, self.writes.address(self.done - LINE));
        }
        if self.pause > 0 && !self.paused {
            self.paused = true;
            return Op::compute_for(1, 1 + self.rng.below(2 * self.pause));
        }
        if self.done == self.size {
            self.access = (self.access + 1) % (self.loads + self.stores);
            self.done = 0;
            if self.access < self.loads {
                self.reads.advance();
            } else {
                self.writes.advance();
            }
        }
        self.paused = false;
        if self.access < self.loads {
            self.done += LINE;
            return line(OpKind::Load, self.reads.address(self.done - LINE));
        }
        let address = self.writes.address(self.done);
        match self.op {
            point::Op::StoreClwb => {
                self.stored = true;
                line(OpKind::Store, address)
            }
            point::Op::NtStore => {
                self.done += LINE;
                line(OpKind::NtStore, address)
            }
            point::Op::Store | point::Op::Load => {
                self.done += LINE;
                line(OpKind::Store, address)
            }
        }
    }
}
