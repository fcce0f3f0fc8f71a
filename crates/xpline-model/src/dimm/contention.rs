//! How often a DIMM gives up a line between the pieces of one access, because of what else waits for it.
//!
//! Laws, for no mechanism is known. A line that is read or written in four pieces is fetched or written back 1 + extra times, and each
//! of the three later pieces takes a third of the extra:
//!
//! - reads: slope * log2(requests in flight / threshold), fitted to the sweep's ERR;
//! - writes: in proportion to the time that they wait beyond what is spared them, read off the sweep's EWR. Over power budgets, threads
//!   and strides the extra follows the time between the pieces of a thread's line, and that is what waiting makes of it.

use crate::platform::XpBuffer;
use crate::time::Time;

/// Reads and writes over which a chance is averaged: a passing crowd displaces little.
const AVERAGED_READS: u64 = 1024;
const AVERAGED_WRITES: u64 = 64;

/// Pieces of a line that may find it gone: all but the first.
const LATER_PIECES: f64 = 3.0;

/// A chance of 1.
const ALWAYS: f64 = u32::MAX as f64;

pub struct Contention {
    /// Chance that a later piece finds its line gone, by number of requests in flight.
    by_requests: Vec<u32>,
    /// The same for each picosecond that a write waits.
    by_wait: f64,
    /// Waiting that costs nothing.
    spared: Time,
    reads: Average,
    writes: Average,
    random: u64,
}

impl Contention {
    pub fn new(buffer: &XpBuffer) -> Self {
        let extra_reads = |requests: u32| {
            let doublings = (f64::from(requests) / buffer.contention_reads).log2();
            buffer.contention_slope * doublings.max(0.0)
        };
        Self {
            by_requests: (0..1024).map(|requests| chance(extra_reads(requests))).collect(),
            by_wait: ALWAYS / LATER_PIECES / buffer.contention_wait as f64,
            spared: buffer.contention_spared,
            reads: Average::over(AVERAGED_READS),
            writes: Average::over(AVERAGED_WRITES),
            random: 0x2545_f491_4f6c_dd1d,
        }
    }

    /// Whether a piece that is read while so many requests are in flight finds its line gone.
    #[inline]
    pub fn displaces_read(&mut self, in_flight: u32) -> bool {
        let chance = self.by_requests[(in_flight as usize).min(self.by_requests.len() - 1)];
        let chance = self.reads.with(chance);
        self.draw(chance)
    }

    /// Whether a piece whose write has waited so long finds its line gone.
    #[inline]
    pub fn displaces_write(&mut self, waited: Time) -> bool {
        let chance = (waited.saturating_sub(self.spared) as f64 * self.by_wait).min(ALWAYS) as u32;
        let chance = self.writes.with(chance);
        self.draw(chance)
    }

    #[inline]
    fn draw(&mut self, chance: u32) -> bool {
        if chance == 0 {
            return false;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) < u64::from(chance)
    }
}

/// The chance, in 2^-32, of each later piece that makes up so many extra accesses of a line.
fn chance(extra: f64) -> u32 {
    ((extra / LATER_PIECES).min(1.0) * ALWAYS) as u32
}

/// A chance averaged over the last so many requests.
struct Average {
    over: u64,
    /// The average times their number.
    sum: u64,
}

impl Average {
    fn over(requests: u64) -> Self {
        Self { over: requests, sum: 0 }
    }

    #[inline]
    fn with(&mut self, chance: u32) -> u32 {
        self.sum = self.sum + u64::from(chance) - self.sum / self.over;
        (self.sum / self.over) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimm::of_tests::optane;
    use crate::time::MICROSECOND as US;

    fn contention(overrides: &[&str]) -> Contention {
        Contention::new(&optane(overrides).xpbuffer)
    }

    fn share(count: u32, mut displaced: impl FnMut() -> bool) -> f64 {
        // The first thousands fill the averages.
        (0..10_000).for_each(|_| {
            displaced();
        });
        (0..count).map(|_| f64::from(u8::from(displaced()))).sum::<f64>() / f64::from(count)
    }

    #[test]
    fn each_later_piece_takes_a_third_of_the_extra_writes() {
        let mut writes = contention(&[
            "optane.xpbuffer.contention_spared=1us",
            "optane.xpbuffer.contention_wait=10us",
        ]);
        for (waited, extra) in [(US, 0.0), (6 * US, 0.5), (16 * US, 1.5), (60 * US, 3.0)] {
            let share = share(30_000, || writes.displaces_write(waited));
            assert!((share - extra / 3.0).abs() < 0.01, "{waited} ps: {share}");
        }
    }

    #[test]
    fn reads_are_displaced_once_more_requests_are_in_flight_than_the_threshold() {
        let mut reads = contention(&[
            "optane.xpbuffer.contention_reads=50",
            "optane.xpbuffer.contention_slope=0.6",
        ]);
        for (in_flight, extra) in [(50, 0.0), (100, 0.6), (200, 1.2)] {
            let share = share(30_000, || reads.displaces_read(in_flight));
            assert!((share - extra / 3.0).abs() < 0.01, "{in_flight} requests: {share}");
        }
    }

    #[test]
    fn a_passing_crowd_displaces_little() {
        let mut writes = contention(&["optane.xpbuffer.contention_wait=10us"]);
        assert!(writes.writes.with(u32::MAX) <= u32::MAX / AVERAGED_WRITES as u32);
    }
}
