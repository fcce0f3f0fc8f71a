//! How long a core has stored to line after line in order, and what that does to the sets of the L3.
//!
//! Law (no mechanism known): the sets that take the four lines of 256 B stay in step, so that neighbours which came together also
//! leave together: the more surely the longer the stores of their core have gone on in order, and only while the write pending queue
//! is short. The sweep shows it in the EWR of plain stores to six DIMMs: 0.28 where blocks of 256 B are written in random order,
//! 0.38 at 128 KiB, 0.48 at 2 MiB, 0.55 where all is one sequence; and 0.26 to 0.33, whatever the order, where the DIMMs are
//! busy. Accesses that overlap count as disorder, 0.25 to 0.33, but for those of 512 B and more that advance by one line: 0.42 to 0.51.

use crate::platform::SharedCache;

/// The order of a core's stores: runs of new lines, each behind the one before or one stride further that skips no more lines than it
/// takes.
pub struct Order {
    last: u64,
    stride: u64,
    /// Lines since the last jump, and where it led.
    block: u64,
    began: u64,
    /// The lines that the run may come back to.
    first: u64,
    end: u64,
    /// New lines of the run so far.
    lines: u64,
    /// Doublings of the lengths of runs, averaged.
    average: Doublings,
}

/// Doublings of a number of lines, in sixteenths.
type Doublings = u32;

const DOUBLING: Doublings = 16;

/// 1 GiB. A program counts as one run until it shows otherwise.
const LONGEST: Doublings = 24 * DOUBLING;

/// Accesses of so many lines and more are one run where each begins one line behind the beginning of the one before.
const CREEPING: u64 = 8;

/// Runs over which their lengths are averaged.
const AVERAGED: u32 = 16;

impl Order {
    pub fn new() -> Self {
        Self {
            last: 0,
            stride: 0,
            block: 0,
            began: 0,
            first: 0,
            end: 0,
            lines: 0,
            average: LONGEST,
        }
    }

    /// The core stores to `line`.
    #[inline]
    pub fn goes_on(&mut self, line: u64) {
        let step = line.wrapping_sub(self.last);
        if step == 0 {
            return;
        }
        self.last = line;
        if step > 1 {
            self.jumps(line, step);
        }
        self.block += 1;
        if line >= self.end {
            self.end = line + 1;
            self.lines += 1;
        }
    }

    fn jumps(&mut self, line: u64, step: u64) {
        let back = step > u64::MAX / 2;
        let skips_more = step - 1 > self.block;
        let one_further = (line == self.began + 1) & (self.block >= CREEPING);
        // All are looked at, as is either end of the run: of random lines no branch can be foretold.
        if !one_further & (back | skips_more | (step != self.stride)) {
            self.average = (self.average * (AVERAGED - 1) + self.length()) / AVERAGED;
            self.lines = 0;
            let comes_back = (line >= self.first) & (line < self.end);
            self.end = if comes_back { self.end } else { line };
            self.first = line;
        }
        self.stride = step;
        self.block = 0;
        self.began = line;
    }

    #[inline]
    fn length(&self) -> Doublings {
        (self.lines.max(1).ilog2() * DOUBLING).min(LONGEST)
    }
}

/// How surely neighbours leave the L3 together.
pub struct InStep {
    /// Chance (in 2^-32) that a line goes where its neighbour went, by the length of runs.
    chances: Vec<u32>,
    queue: u32,
}

impl InStep {
    pub fn new(l3: &SharedCache) -> Self {
        // Two lines leave together if they both came and go as neighbours: the square of the chance is what the platform says.
        let chance = |length: u32| {
            let together = l3.in_step * f64::from(length) / f64::from(DOUBLING);
            together.min(l3.in_step_most).sqrt()
        };
        Self {
            chances: (0..=LONGEST)
                .map(|length| (chance(length) * f64::from(u32::MAX)) as u32)
                .collect(),
            queue: l3.in_step_queue,
        }
    }

    /// The chance while `queued` writes wait at the DIMM that lines go to.
    #[inline]
    pub fn chance(&self, order: &Order, queued: u32) -> u32 {
        if queued > self.queue {
            return 0;
        }
        self.chances[order.length().max(order.average) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    fn runs_of(lines: impl IntoIterator<Item = u64>) -> f64 {
        let mut order = Order::new();
        lines.into_iter().for_each(|line| order.goes_on(line));
        f64::from(order.length().max(order.average)) / f64::from(DOUBLING)
    }

    #[test]
    fn sequences_and_strides_are_one_run() {
        assert_eq!(runs_of(0..100_000), 24.0);
        let of_sixteen = |taken: u64| (0..10_000).flat_map(move |access| access * 16..access * 16 + taken);
        assert!(runs_of(of_sixteen(8)) > 22.0);
        assert!((runs_of(of_sixteen(4)) - 2.0).abs() < 0.1);
    }

    #[test]
    fn blocks_in_disorder_are_runs_of_their_length() {
        let block = |number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) * 64;
        let blocks = (0..1000).flat_map(|number| block(number)..block(number) + 64);
        assert!((runs_of(blocks) - 6.0).abs() < 0.1);
    }

    #[test]
    fn accesses_that_overlap_are_runs_of_what_is_new() {
        let accesses = (0..10_000).flat_map(|access| access * 4..access * 4 + 32);
        assert!((runs_of(accesses) - 2.0).abs() < 0.1);
        // The last line of an access and the first of the next may be the same: that is no way back.
        assert!(runs_of((0..10_000).flat_map(|access| access * 3..access * 3 + 4)) > 22.0);
    }

    #[test]
    fn accesses_of_512_b_that_advance_by_a_line_are_one_run() {
        let creeping = |lines: u64| runs_of((0..10_000).flat_map(|access| access..access + lines));
        assert!(creeping(8) > 22.0 && creeping(64) > 22.0);
        assert!(creeping(4) < 1.0);
        // Two lines further each is no run.
        assert!(runs_of((0..10_000).flat_map(|access| access * 2..access * 2 + 8)) < 2.0);
    }

    #[test]
    fn a_long_queue_puts_the_sets_out_of_step() {
        let platform = Platform::builtin("optane").unwrap();
        let (in_step, order) = (InStep::new(&platform.l3), Order::new());
        assert!(in_step.chance(&order, platform.l3.in_step_queue) > 0);
        assert_eq!(in_step.chance(&order, platform.l3.in_step_queue + 1), 0);
    }
}
