//! Plain stores, flushed and fenced at intervals.

use xpline_model::platform::Core;
use xpline_model::{Op, OpKind};

use super::walk::Walk;
use super::{LINE, address_generation, fence, line};
use crate::point::Flush;

/// Accesses along a walk: stores, a clwb over them after each `clwb` bytes, an sfence after each `fence` bytes.
#[derive(Clone, Debug)]
pub struct Flushing<W> {
    walk: W,
    size: u64,
    clwb: u64,
    fence: u64,
    /// Bytes of the present access that are stored, flushed and fenced.
    stored: u64,
    flushed: u64,
    fenced: u64,
    /// Instructions before each access.
    overhead: u32,
}

impl<W: Walk> Flushing<W> {
    pub fn new(walk: W, flush: &Flush, core: &Core) -> Self {
        let Flush { size, clwb, fence, .. } = *flush;
        Self {
            walk,
            size,
            clwb,
            fence,
            stored: size,
            flushed: size,
            fenced: size,
            overhead: W::overhead(core),
        }
    }

    #[inline]
    pub fn next(&mut self) -> Op {
        if self.flushed < self.stored && self.stored.is_multiple_of(self.clwb) {
            self.flushed += LINE;
            return line(OpKind::Clwb, self.walk.address(self.flushed - LINE));
        }
        if self.fenced < self.flushed && self.flushed.is_multiple_of(self.fence) {
            self.fenced = self.flushed;
            return fence(OpKind::Sfence);
        }
        if self.stored == self.size {
            self.walk.advance();
            (self.stored, self.flushed, self.fenced) = (0, 0, 0);
            return address_generation(self.overhead);
        }
        self.stored += LINE;
        line(OpKind::Store, self.walk.address(self.stored - LINE))
    }
}
