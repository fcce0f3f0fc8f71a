//! Latencies as they come: each kept, or, where there are too many, a histogram of them and those that stand out.

use xpline_latency::{Histogram, Latencies};
use xpline_model::{NANOSECOND, Time};

use crate::row::Stalls;
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
            Kept::Each(samples) => Latencies::of(samples),
            Kept::Histogram(tail) => tail.histogram.latencies(),
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

/// Latencies by which the usual one is known, for the list of what stands out from it.
const FIRST: u64 = 1024;

/// A histogram, and the latencies that may turn out to be stalls, with their numbers.
#[derive(Clone, Debug)]
struct Tail {
    histogram: Histogram,
    slow: Vec<(u64, Time)>,
    /// Latencies above this may be stalls; 0 until the usual one is known.
    suspect: Time,
    first: Vec<Time>,
}

impl Tail {
    fn new() -> Self {
        Self {
            histogram: Histogram::up_to(LONGEST),
            slow: Vec::new(),
            suspect: 0,
            first: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.histogram.clear();
        self.slow.clear();
        self.suspect = 0;
        self.first.clear();
    }

    #[inline]
    fn push(&mut self, latency: Time) {
        let number = self.histogram.count();
        self.histogram.record(latency);
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
        self.histogram.percentile(0.5)
    }

    fn stalls(&self) -> Option<Stalls> {
        if self.histogram.count() <= FIRST {
            return stats::stalls(&self.first);
        }
        let least = STALL * self.median();
        let stalled: Vec<(u64, Time)> = self
            .slow
            .iter()
            .copied()
            .filter(|&(_, latency)| latency > least)
            .collect();
        Some(stats::stalls_of(&stalled, self.histogram.count()))
    }
}

#[cfg(test)]
mod tests {
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
}
