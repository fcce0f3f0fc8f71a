//! Latencies as they come: each kept, or, where there are too many, a histogram of them and those that stand out.

use hdrhistogram::Histogram;
use xpline_model::{NANOSECOND, Time};

use crate::row::{Latencies, Stalls};
use crate::stats::{self, STALL};

/// Latencies of accesses, in ps.
#[derive(Clone, Debug)]
pub struct Samples {
    /// How many there were since the start, and their sum.
    mark: Mark,
    kept: Kept,
}

/// A moment of a run: what came before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    pub count: usize,
    sum: Time,
}

#[derive(Clone, Debug)]
enum Kept {
    Each(Vec<Time>),
    Histogram(Box<Tail>),
}

impl Samples {
    /// Every latency is kept: statistics are exact.
    pub fn each() -> Self {
        Self {
            mark: Mark::default(),
            kept: Kept::Each(Vec::new()),
        }
    }

    /// A histogram: any number of latencies, percentiles to a thousandth.
    pub fn histogram() -> Self {
        Self {
            mark: Mark::default(),
            kept: Kept::Histogram(Box::new(Tail::new())),
        }
    }

    #[inline]
    pub fn push(&mut self, latency: Time) {
        self.mark.count += 1;
        self.mark.sum += latency;
        match &mut self.kept {
            Kept::Each(samples) => samples.push(latency),
            Kept::Histogram(tail) => tail.push(latency),
        }
    }

    /// What there was up to now.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// The mean since an earlier moment, in ps; `None` if nothing came since.
    pub fn mean_since(&self, earlier: Mark) -> Option<f64> {
        let count = self.mark.count - earlier.count;
        (count > 0).then(|| (self.mark.sum - earlier.sum) as f64 / count as f64)
    }

    /// Statistics begin anew; the marks stay.
    pub fn forget(&mut self) {
        match &mut self.kept {
            Kept::Each(samples) => samples.clear(),
            Kept::Histogram(tail) => tail.clear(),
        }
    }

    /// Mean, deviation and percentiles; `None` of no latencies.
    pub fn latencies(&self) -> Option<Latencies> {
        match &self.kept {
            Kept::Each(samples) => stats::latencies(samples),
            Kept::Histogram(tail) => tail.latencies(),
        }
    }

    /// Those that took much longer than most; `None` of no latencies.
    pub fn stalls(&self) -> Option<Stalls> {
        match &self.kept {
            Kept::Each(samples) => stats::stalls(samples),
            Kept::Histogram(tail) => tail.stalls(),
        }
    }
}

/// The longest latency that the histogram tells apart from longer ones: 10 ms.
const LONGEST: Time = 10_000_000 * NANOSECOND;

/// Digits to which percentiles are exact.
const DIGITS: u8 = 3;

/// Latencies by which the usual one is known, for the list of what stands out from it.
const FIRST: u64 = 1024;

/// A histogram, and the latencies that may turn out to be stalls, with their numbers.
#[derive(Clone, Debug)]
struct Tail {
    histogram: Histogram<u64>,
    sum: Time,
    squares: f64,
    max: Time,
    slow: Vec<(u64, Time)>,
    /// Latencies above this may be stalls; 0 until the usual one is known.
    suspect: Time,
    first: Vec<Time>,
}

impl Tail {
    fn new() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("bounds that a histogram takes"),
            sum: 0,
            squares: 0.0,
            max: 0,
            slow: Vec::new(),
            suspect: 0,
            first: Vec::new(),
        }
    }

    fn clear(&mut self) {
        *self = Self {
            histogram: std::mem::replace(&mut self.histogram, Histogram::new(1).expect("one digit")),
            ..Self::new()
        };
        self.histogram.reset();
    }

    #[inline]
    fn push(&mut self, latency: Time) {
        let number = self.histogram.len();
        self.histogram.saturating_record(latency);
        self.sum += latency;
        self.squares += (latency as f64).powi(2);
        self.max = self.max.max(latency);
        if number < FIRST {
            self.begin(number, latency);
        } else if latency > self.suspect {
            self.slow.push((number, latency));
        }
    }

    /// Among the first latencies each is looked at again, once the usual one is known.
    #[cold]
    fn begin(&mut self, number: u64, latency: Time) {
        self.first.push(latency);
        if number + 1 == FIRST {
            self.suspect = STALL / 2 * self.median();
            let first = (0..).zip(std::mem::take(&mut self.first));
            self.slow = first.filter(|&(_, latency)| latency > self.suspect).collect();
        }
    }

    fn median(&self) -> Time {
        self.histogram.value_at_quantile(0.5).min(self.max)
    }

    fn latencies(&self) -> Option<Latencies> {
        let count = self.histogram.len();
        if count == 0 {
            return None;
        }
        let ns = |ps: f64| ps / NANOSECOND as f64;
        let mean = self.sum as f64 / count as f64;
        let variance = (self.squares / count as f64 - mean * mean).max(0.0);
        // The histogram names the end of a value's bucket; no latency was longer than the longest.
        let quantile = |share: f64| ns(self.histogram.value_at_quantile(share).min(self.max) as f64);
        Some(Latencies {
            mean: ns(mean),
            std: ns(variance.sqrt()),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            p9999: quantile(0.999_9),
            p99999: quantile(0.999_99),
            max: ns(self.max as f64),
        })
    }

    fn stalls(&self) -> Option<Stalls> {
        if self.histogram.len() <= FIRST {
            return stats::stalls(&self.first);
        }
        let least = STALL * self.median();
        let stalled: Vec<(u64, Time)> = self
            .slow
            .iter()
            .copied()
            .filter(|&(_, latency)| latency > least)
            .collect();
        Some(stats::stalls_of(&stalled, self.histogram.len()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn both(latencies: &[Time]) -> [Samples; 2] {
        let mut both = [Samples::each(), Samples::histogram()];
        for samples in &mut both {
            latencies.iter().for_each(|&latency| samples.push(latency));
        }
        both
    }

    #[test]
    fn a_histogram_finds_the_stalls_among_millions() {
        let mut latencies = vec![219 * NANOSECOND; 100_000];
        for at in [700, 20_000, 60_000] {
            latencies[at] = 46_000 * NANOSECOND;
        }
        let [each, histogram] = both(&latencies);
        assert_eq!(each.stalls(), histogram.stalls());
        let stalls = histogram.stalls().unwrap();
        assert_eq!((stalls.share, stalls.median), (3e-5, Some(46_000.0)));
        assert_eq!(histogram.latencies().unwrap().max, 46_000.0);
    }

    #[test]
    fn what_is_forgotten_no_longer_counts() {
        for mut samples in both(&[50_000; 5000]) {
            let mark = samples.mark();
            samples.forget();
            assert!(samples.latencies().is_none() && samples.stalls().is_none());
            samples.push(7000);
            assert_eq!(samples.mean_since(mark), Some(7000.0));
            assert_eq!(samples.latencies().unwrap().mean, 7.0);
            assert_eq!(samples.stalls().unwrap().share, 0.0);
        }
    }

    proptest! {
        /// Percentiles to a thousandth, mean and maximum exactly.
        #[test]
        fn a_histogram_agrees_with_every_latency(latencies in prop::collection::vec(1_000..1_000_000_000u64, 1..3000)) {
            let [each, histogram] = both(&latencies);
            let (exact, binned) = (each.latencies().unwrap(), histogram.latencies().unwrap());
            prop_assert_eq!(exact.max, binned.max);
            for (exact, binned) in [
                (exact.mean, binned.mean), (exact.p50, binned.p50), (exact.p999, binned.p999),
                (exact.p99999, binned.p99999),
            ] {
                prop_assert!((exact / binned - 1.0).abs() < 0.002, "{} and {}", exact, binned);
            }
        }
    }
}
