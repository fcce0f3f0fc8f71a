//! Latencies of any number of requests, in bounded memory.

use hdrhistogram::Histogram;
use xpline_model::{NANOSECOND, Time};

/// The longest latency told apart from longer ones: 10 s.
const LONGEST: Time = 10_000_000_000 * NANOSECOND;

/// Digits to which percentiles are exact.
const DIGITS: u8 = 3;

/// A histogram of latencies. Mean, deviation and maximum are exact, percentiles to a thousandth.
pub struct Latencies {
    histogram: Histogram<u64>,
    sum: u128,
    squares: f64,
    max: Time,
}

impl Latencies {
    pub fn new() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("bounds that a histogram takes"),
            sum: 0,
            squares: 0.0,
            max: 0,
        }
    }

    #[inline]
    pub fn record(&mut self, latency: Time) {
        self.histogram.saturating_record(latency);
        self.sum += u128::from(latency);
        self.squares += (latency as f64).powi(2);
        self.max = self.max.max(latency);
    }

    pub fn add(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .expect("histograms of the same bounds");
        self.sum += other.sum;
        self.squares += other.squares;
        self.max = self.max.max(other.max);
    }

    /// In ns; `None` of no latencies at all.
    pub fn summary(&self) -> Option<Summary> {
        let count = self.histogram.len();
        if count == 0 {
            return None;
        }
        let ns = |ps: f64| ps / NANOSECOND as f64;
        let mean = self.sum as f64 / count as f64;
        let variance = (self.squares / count as f64 - mean * mean).max(0.0);
        // The histogram names the end of a value's bucket; no latency was longer than the longest.
        let quantile = |share: f64| ns(self.histogram.value_at_quantile(share).min(self.max) as f64);
        Some(Summary {
            mean: ns(mean),
            std: ns(variance.sqrt()),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: ns(self.max as f64),
        })
    }
}

/// Latencies in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub mean: f64,
    pub std: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_thousandth() {
        let mut latencies = Latencies::new();
        let mut others = Latencies::new();
        for ns in 1..=1000 {
            let half = if ns % 2 == 0 { &mut latencies } else { &mut others };
            half.record(ns * NANOSECOND);
        }
        latencies.add(&others);
        let summary = latencies.summary().unwrap();
        for (value, exact) in [
            (summary.p50, 500.0),
            (summary.p90, 900.0),
            (summary.p99, 990.0),
            (summary.p999, 999.0),
        ] {
            assert!((value / exact - 1.0).abs() <= 1e-3, "{value} {exact}");
        }
        assert_eq!((summary.mean, summary.max), (500.5, 1000.0));
        assert!((summary.std - 288.67).abs() < 0.01);
    }

    #[test]
    fn nothing_has_no_latency() {
        assert_eq!(Latencies::new().summary(), None);
    }
}
