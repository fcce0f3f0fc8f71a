//! Half-line rounds: how many lines the on-DIMM buffer can combine writes in.

use xpline_model::{Op, OpKind};

use super::{LINE, line};

/// Instructions between two rounds: some 10 us, in which the counters are read and the DIMM writes back what is whole.
const PAUSE: u32 = 50_000;

/// Rounds of ntstores over a region: the first half of each of its lines, then the second half of each, then a pause.
#[derive(Clone, Debug)]
pub struct Rounds {
    lines: u64,
    line_bytes: u64,
    /// 0 for the first halves, 1 for the second.
    half: u64,
    /// The present line, and the bytes of its half that are written.
    at: u64,
    done: u64,
    pausing: bool,
}

impl Rounds {
    pub fn new(lines: u64, line_bytes: u64) -> Self {
        Self {
            lines,
            line_bytes,
            half: 0,
            at: 0,
            done: 0,
            pausing: false,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Op {
        if std::mem::take(&mut self.pausing) {
            return Op::new(OpKind::Compute, 0, PAUSE);
        }
        let half_bytes = self.line_bytes / 2;
        let address = self.at * self.line_bytes + self.half * half_bytes + self.done;
        self.done += LINE;
        if self.done == half_bytes {
            self.done = 0;
            self.at += 1;
            if self.at == self.lines {
                self.at = 0;
                self.half = 1 - self.half;
                self.pausing = self.half == 0;
            }
        }
        line(OpKind::NtStore, address)
    }
}
