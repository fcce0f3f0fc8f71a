//! Latencies: mean, deviation and percentiles, as tables hold them.
//!
//! Whoever measures latencies, a model or a clock, says what they are like with [`Latencies`]. They come from all of them
//! ([`Latencies::of`]), or from a [`Histogram`], which holds any number in bounded memory.
//!
//! ```
//! use xpline_latency::{Histogram, Latencies};
//!
//! let all: Vec<u64> = (1..=1000).map(|ns| ns * 1000).collect();
//! let mut histogram = Histogram::up_to(1_000_000_000);
//! all.iter().for_each(|&latency| histogram.record(latency));
//! let exact = Latencies::of(&all).unwrap();
//! assert_eq!((exact.mean, exact.p90, exact.max), (500.5, 900.0, 1000.0));
//! assert!((histogram.latencies().unwrap().p90 / exact.p90 - 1.0).abs() < 1e-3);
//! ```

#![forbid(unsafe_code)]

mod histogram;

pub use histogram::Histogram;
use serde::Serialize;

/// Picoseconds of a nanosecond.
const NANOSECOND: f64 = 1e3;

/// What latencies are like, in ns. A percentile is the shortest latency that covers its share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latencies {
    #[serde(rename = "latency_mean_ns")]
    pub mean: f64,
    #[serde(rename = "latency_std_ns")]
    pub std: f64,
    #[serde(rename = "latency_p50_ns")]
    pub p50: f64,
    #[serde(rename = "latency_p90_ns")]
    pub p90: f64,
    #[serde(rename = "latency_p99_ns")]
    pub p99: f64,
    #[serde(rename = "latency_p999_ns")]
    pub p999: f64,
    #[serde(rename = "latency_p9999_ns")]
    pub p9999: f64,
    #[serde(rename = "latency_p99999_ns")]
    pub p99999: f64,
    #[serde(rename = "latency_max_ns")]
    pub max: f64,
}

impl Latencies {
    /// Of latencies in ps; `None` without any.
    pub fn of(latencies: &[u64]) -> Option<Self> {
        let mut sorted: Vec<f64> = latencies.iter().map(|&latency| latency as f64 / NANOSECOND).collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let max = *sorted.last()?;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted.iter().map(|latency| (latency - mean).powi(2)).sum::<f64>() / count;
        let percentile = |share: f64| sorted[((share * count).ceil() as usize).clamp(1, sorted.len()) - 1];
        Some(Self::by_percentile(mean, variance.sqrt(), percentile, max))
    }

    /// Of what is known of them, in ns: the latency that covers a share of all, among others.
    pub fn by_percentile(mean: f64, std: f64, mut percentile: impl FnMut(f64) -> f64, max: f64) -> Self {
        Self {
            mean,
            std,
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
            p999: percentile(0.999),
            p9999: percentile(0.999_9),
            p99999: percentile(0.999_99),
            max,
        }
    }
}

/// Columns for latencies that may be none at all: a table names them all the same.
///
/// For `#[serde(flatten, serialize_with = "xpline_latency::columns")]`.
pub fn columns<S: serde::Serializer>(latencies: &Option<Latencies>, serializer: S) -> Result<S::Ok, S::Error> {
    prefixed("", latencies, serializer)
}

/// The same for the latencies of writes, beside those of reads.
pub fn columns_of_writes<S: serde::Serializer>(
    latencies: &Option<Latencies>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    prefixed("write_", latencies, serializer)
}

fn prefixed<S: serde::Serializer>(
    prefix: &str,
    latencies: &Option<Latencies>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    type Field = fn(&Latencies) -> f64;
    let fields: [(&str, Field); 9] = [
        ("mean", |latencies| latencies.mean),
        ("std", |latencies| latencies.std),
        ("p50", |latencies| latencies.p50),
        ("p90", |latencies| latencies.p90),
        ("p99", |latencies| latencies.p99),
        ("p999", |latencies| latencies.p999),
        ("p9999", |latencies| latencies.p9999),
        ("p99999", |latencies| latencies.p99999),
        ("max", |latencies| latencies.max),
    ];
    let column = |(name, field): (&str, Field)| (format!("{prefix}latency_{name}_ns"), latencies.as_ref().map(field));
    serializer.collect_map(fields.map(column))
}
