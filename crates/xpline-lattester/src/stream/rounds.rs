//! Half-line rounds: how many lines the on-DIMM buffer can combine writes in.

use xpline_model::{Op, OpKind};

use super::{LINE, line};

/// Rounds of ntstores over a region: the first half of each of its lines, then the second half of each.
#[derive(Clone, Debug)]
pub struct Rounds {
    lines: u64,
    line_bytes: u64,
    /// 0 for the first halves, 1 for the second.
    half: u64,
    /// The present line, and the bytes of its half that are written.
    at: u64,
    done: u64,
}

impl Rounds {
    pub fn new(lines: u64, line_bytes: u64) -> Self {
        Self {
            lines,
            line_bytes,
            half: 0,
            at: 0,
            done: 0,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Op {
        let half_bytes = self.line_bytes / 2;
        let address = self.at * self.line_bytes + self.half * half_bytes + self.done;
        self.done += LINE;
        if self.done == half_bytes {
            self.done = 0;
            self.at += 1;
            if self.at == self.lines {
                self.at = 0;
                self.half = 1 - self.half;
            }
        }
        line(OpKind::NtStore, address)
    }
}
