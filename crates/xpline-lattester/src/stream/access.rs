//! Bandwidth: accesses one after the other, 64 B at a time in ascending order, with or without fences.

use xpline_model::platform::Core;
use xpline_model::{Op, OpKind, Time};

use super::walk::Walk;
use super::{LINE, SPACE, address_generation, fence, line};
use crate::point;

/// Accesses along a walk.
#[derive(Clone, Debug)]
pub struct Accesses<W> {
    walk: W,
    op: point::Op,
    size: u64,
    /// Bytes of the present access that are done.
    done: u64,
    /// The line at `done` is stored, and its clwb is due.
    stored: bool,
    /// Bytes of an access that the one before did not touch.
    fresh: u64,
    /// Bytes of each access for now: `size`, or `fresh` while the caches are warmed.
    span: u64,
    /// Bytes from one fence to the next, which divide `size`; 0 for no fences.
    fence: u64,
    fence_kind: OpKind,
    /// Bytes of the present access that are fenced.
    fenced: u64,
    /// What a thread does before each access.
    making: Op,
    /// Whether an access is so long that the core foresees the end of its loop wrongly.
    long: bool,
    /// Of the ops at the end of such an access, so many are still to come.
    leaving: u8,
    /// Places in [`AHEAD`] lines.
    places_ahead: u64,
}

/// How far ahead lines are foretold: the host fetches in that time what the model knows of them.
const AHEAD: u64 = 8;

/// Lines that LATTester's loop over an access takes in a turn.
const TURN: u64 = 4;

impl<W: Walk> Accesses<W> {
    pub fn new(walk: W, op: point::Op, size: u64, core: &Core) -> Self {
        let lines = size / LINE;
        let long = lines >= W::long_loop(core);
        let instructions = W::overhead(core);
        let looping = lines * W::short_loop(core);
        let making = if op == point::Op::Store && lines > TURN && !long && looping > 0 {
            let time = f64::from(instructions) * 1e3 / (core.clock * core.ipc);
            Op::compute_for(instructions, time as Time + looping)
        } else {
            address_generation(instructions)
        };
        Self {
            fresh: walk.fresh(size),
            walk,
            op,
            size,
            span: size,
            done: size,
            stored: false,
            fence: 0,
            fence_kind: OpKind::Sfence,
            fenced: size,
            making,
            long,
            leaving: 0,
            places_ahead: AHEAD.div_ceil(lines),
        }
    }

    /// The same accesses with a fence after each `bytes` of them, for loads one that waits for loads; 0 for none.
    pub fn fenced_each(self, bytes: u64) -> Self {
        let fence_kind = match self.op {
            point::Op::Load => OpKind::Mfence,
            _ => OpKind::Sfence,
        };
        Self {
            fence: bytes,
            fence_kind,
            ..self
        }
    }

    /// The same accesses, whose addresses take this long to make.
    pub fn made_in(self, time: Time) -> Self {
        Self {
            making: Op::compute_for(self.making.size, time),
            ..self
        }
    }

    /// The same accesses with an mfence after each.
    pub fn one_at_a_time(self) -> Self {
        Self {
            fence: self.size,
            fence_kind: OpKind::Mfence,
            ..self
        }
    }

    /// Begin, or cease, to leave out what the access before has touched: the same lines in the same order, each once.
    pub fn set_warming(&mut self, warming: bool) {
        self.span = if warming { self.fresh } else { self.size };
        (self.done, self.fenced, self.leaving) = (self.span, self.span, 0);
    }

    /// At the end of a long loop the core has begun to load the line behind it when it finds out that it went wrong.
    fn leave(&self) -> Op {
        if self.leaving == 1 {
            line(OpKind::Prefetch, self.walk.address(self.size).min(SPACE - LINE))
        } else {
            fence(OpKind::Mispredict)
        }
    }

    /// Name the line that is asked for [`AHEAD`] lines after the present one, or more. Caches have nothing of what is ntstored.
    #[inline]
    pub fn foretell(&self, mut name: impl FnMut(u64)) {
        if self.done > 0
            && self.op != point::Op::NtStore
            && let Some(address) = self.walk.foreseen(self.places_ahead, self.done - LINE)
        {
            name(address);
        }
    }

    #[inline]
    pub fn next(&mut self) -> Op {
        if self.fence > 0 && self.fenced < self.done && self.done.is_multiple_of(self.fence) {
            self.fenced = self.done;
            return fence(self.fence_kind);
        }
        if self.done == self.span {
            if self.leaving > 0 {
                self.leaving -= 1;
                return self.leave();
            }
            self.leaving = match self.op {
                _ if !self.long => 0,
                point::Op::Load => 2,
                _ => 1,
            };
            self.walk.advance();
            (self.done, self.fenced) = (0, 0);
            return self.making;
        }
        let address = self.walk.address(self.done);
        let kind = match self.op {
            point::Op::Load => OpKind::Load,
            point::Op::NtStore => OpKind::NtStore,
            point::Op::Store => OpKind::Store,
            point::Op::StoreClwb => {
                self.stored = !self.stored;
                if self.stored {
                    return line(OpKind::Store, address);
                }
                OpKind::Clwb
            }
        };
        self.done += LINE;
        line(kind, address)
    }
}
