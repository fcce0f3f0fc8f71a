//! Latencies of any number of requests, in bounded memory.

use hdrhistogram::Histogram as Counts;

use crate::{Latencies, NANOSECOND};

/// Digits to which percentiles are exact.
const DIGITS: u8 = 3;

/// Counts of latencies in ps. Mean, deviation and maximum are exact, percentiles to a thousandth.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Counts<u64>,
    sum: u128,
    squares: f64,
    max: u64,
}

impl Histogram {
    /// Latencies above `longest`, in ps, are not told apart by percentiles.
    ///
    /// # Panics
    /// If `longest` is below 2.
    pub fn up_to(longest: u64) -> Self {
        Self {
            counts: Counts::new_with_bounds(1, longest, DIGITS).expect("bounds that a histogram takes"),
            sum: 0,
            squares: 0.0,
            max: 0,
        }
    }

    #[inline]
    pub fn record(&mut self, latency: u64) {
        self.counts.saturating_record(latency);
        self.sum += u128::from(latency);
        self.squares += (latency as f64).powi(2);
        self.max = self.max.max(latency);
    }

    /// Count what another of the same bounds has counted.
    ///
    /// # Panics
    /// If it has latencies that are too long for this one.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts).expect("histograms of the same bounds");
        self.sum += other.sum;
        self.squares += other.squares;
        self.max = self.max.max(other.max);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Begin anew.
    pub fn clear(&mut self) {
        self.counts.reset();
        (self.sum, self.squares, self.max) = (0, 0.0, 0);
    }

    /// The shortest latency that covers a share of all, in ps; 0 without any.
    pub fn percentile(&self, share: f64) -> u64 {
        // Counts name the end of a value's bucket; no latency was longer than the longest.
        self.counts.value_at_quantile(share).min(self.max)
    }

    /// `None` without any.
    pub fn latencies(&self) -> Option<Latencies> {
        if self.count() == 0 {
            return None;
        }
        let count = self.count() as f64;
        let mean = self.sum as f64 / count;
        let variance = (self.squares / count - mean * mean).max(0.0);
        let ns = |ps: f64| ps / NANOSECOND;
        Some(Latencies::by_percentile(
            ns(mean),
            ns(variance.sqrt()),
            |share| ns(self.percentile(share) as f64),
            ns(self.max as f64),
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(latencies: &[u64]) -> Histogram {
        let mut histogram = Histogram::up_to(10_000_000_000);
        latencies.iter().for_each(|&latency| histogram.record(latency));
        histogram
    }

    #[test]
    fn nothing_has_no_latency() {
        let mut histogram = of(&[7000]);
        histogram.clear();
        assert_eq!((histogram.count(), histogram.latencies()), (0, None));
        assert_eq!(Latencies::of(&[]), None);
    }

    #[test]
    fn percentiles_are_the_shortest_latencies_that_cover_their_share() {
        let latencies: Vec<u64> = (1..=1000).map(|ns| ns * 1000).collect();
        let exact = Latencies::of(&latencies).unwrap();
        assert_eq!(
            (exact.p50, exact.p99, exact.p999, exact.p9999),
            (500.0, 990.0, 999.0, 1000.0)
        );
        assert!((exact.std - 288.675).abs() < 0.001);
    }

    proptest! {
        /// Percentiles to a thousandth, mean and maximum exactly; in one histogram, or in two together.
        #[test]
        fn a_histogram_agrees_with_every_latency(
            latencies in prop::collection::vec(1_000..1_000_000_000u64, 1..3000), at in 0..3000usize,
        ) {
            let (first, second) = latencies.split_at(at.min(latencies.len()));
            let mut both = of(first);
            both.add(&of(second));
            let exact = Latencies::of(&latencies).unwrap();
            for binned in [of(&latencies), both] {
                let binned = binned.latencies().unwrap();
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
}
