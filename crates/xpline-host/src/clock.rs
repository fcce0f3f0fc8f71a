//! The time stamp counter: its rate, and whether it can be trusted.

use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long the counter is compared with the system's clock.
const SPAN: Duration = Duration::from_millis(20);

/// Rates of two comparisons may differ by so much.
const AGREEMENT: f64 = 1e-3;

/// The time stamp counter of this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Cycles of the counter in a nanosecond.
    pub cycles_per_ns: f64,
    /// Whether the CPU promises that the counter never stops and never changes its rate.
    pub invariant: bool,
    /// Whether comparisons with the system's clock agree.
    pub steady: bool,
}

impl Clock {
    /// The clock, calibrated once for the process.
    pub fn get() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(Self::calibrate)
    }

    fn calibrate() -> Self {
        let mut rates: Vec<f64> = (0..3).map(|_| rate()).collect();
        rates.sort_by(f64::total_cmp);
        let cycles_per_ns = rates[1];
        Self {
            cycles_per_ns,
            invariant: __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0,
            steady: (rates[2] - rates[0]) / cycles_per_ns <= AGREEMENT,
        }
    }

    pub fn ns(self, cycles: u64) -> f64 {
        cycles as f64 / self.cycles_per_ns
    }

    pub fn cycles(self, seconds: f64) -> u64 {
        (seconds * 1e9 * self.cycles_per_ns) as u64
    }
}

/// Cycles in a nanosecond, over a short while. Each end is the tightest of several readings.
fn rate() -> f64 {
    let (start, first) = reading();
    std::thread::sleep(SPAN);
    let (end, last) = reading();
    (last - first) as f64 / (end - start).as_nanos() as f64
}

/// The system's clock and the counter at the same moment, as nearly as they can be read.
fn reading() -> (Instant, u64) {
    let closest = (0..16).map(|_| {
        let before = now();
        let instant = Instant::now();
        let after = now();
        (after - before, instant, before + (after - before) / 2)
    });
    let (_, instant, cycles) = closest.min_by_key(|&(gap, ..)| gap).expect("there are readings");
    (instant, cycles)
}

/// The counter, once everything before it is done.
#[inline]
pub fn now() -> u64 {
    // SAFETY: every x86-64 CPU has both instructions, and neither touches memory.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_agrees_with_the_system() {
        let clock = Clock::get();
        let (start, first) = reading();
        std::thread::sleep(Duration::from_millis(50));
        let (end, last) = reading();
        let by_counter = clock.ns(last - first);
        let by_system = (end - start).as_nanos() as f64;
        assert!((by_counter / by_system - 1.0).abs() < 0.01, "{by_counter} {by_system}");
    }
}
