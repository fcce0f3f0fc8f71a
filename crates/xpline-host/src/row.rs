//! Rows: what came out of a point, with how sure it is and what it was measured on.

use std::sync::Arc;

use serde::Serialize;
use xpline_latency::Latencies;
use xpline_lattester::{Part, Settings};

use crate::counters::Counted;
use crate::team::Disturbance;

/// The result of a point on the host: the columns of every row, and those that only a measurement has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub settings: Settings,
    /// The median of the repeats.
    pub bandwidth_mib_s: Option<f64>,
    pub bytes: u64,
    pub time_ns: f64,
    /// Iterations of a workload's threads a second, in the median of the repeats.
    pub operations_s: Option<f64>,
    /// Of single accesses, over all repeats; the mean is the median of those of the repeats.
    #[serde(flatten)]
    pub latencies: Option<Latencies>,
    /// The same where only the mean is known.
    #[serde(flatten)]
    pub mean: Option<Mean>,
    #[serde(flatten)]
    pub stalls: Stalls,
    pub requests: u64,
    /// Whether the median is known to the precision that was asked for.
    pub settled: bool,
    #[serde(flatten)]
    pub counted: Counted,
    /// 95 % confidence interval of what the point is judged by, in its unit.
    pub ci_low: f64,
    pub ci_high: f64,
    /// Half-width of the interval, as a share of the median.
    pub precision: f64,
    pub repeats: u64,
    /// Repeats that stand out; they are in the median.
    pub outliers: u64,
    pub isa: &'static str,
    pub flush_by: Option<&'static str>,
    /// The pages that were asked for, and the share of memory on pages of 2 MiB or more.
    pub pages: Option<&'static str>,
    pub huge_share: Option<f64>,
    pub mapping: &'static str,
    pub cpus: String,
    pub page_faults: u64,
    pub context_switches: u64,
    pub migrations: u64,
    /// What reading the clock costs, which is not in the latencies.
    pub timer_ns: Option<f64>,
    /// What disturbed the measurement; `None` where nothing did.
    pub noise: Option<String>,
    /// The machine, as JSON.
    pub environment: Arc<str>,
    pub source: &'static str,
    /// What each group of a workload did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A mean of accesses that were timed together, in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mean {
    pub latency_mean_ns: f64,
}

/// Accesses that took over ten times the median of their repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stalls {
    pub stall_share: Option<f64>,
    pub stall_ns: Option<f64>,
    pub stall_interval: Option<u64>,
}

/// What disturbed a measurement, in words; `None` where nothing did.
pub fn noise(disturbance: Disturbance, unmet: Option<f64>, stolen: f64, clock: &[&str]) -> Option<String> {
    let counted = [
        (disturbance.context_switches, "context switch", "context switches"),
        (disturbance.page_faults, "page fault", "page faults"),
        (disturbance.migrations, "migration", "migrations"),
    ];
    let mut found: Vec<String> = unmet
        .map(|precision| format!("known to {:.1} % only", precision * 100.0))
        .into_iter()
        .collect();
    found.extend(
        counted
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|&(count, one, many)| match count {
                1 => format!("1 {one}"),
                _ => format!("{count} {many}"),
            }),
    );
    if stolen >= 0.01 {
        found.push(format!(
            "{:.0} % of the CPU time went to other machines",
            stolen * 100.0
        ));
    }
    found.extend(clock.iter().map(ToString::to_string));
    (!found.is_empty()).then(|| found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calm_host_makes_no_noise() {
        assert_eq!(noise(Disturbance::default(), None, 0.0, &[]), None);
    }

    #[test]
    fn noise_is_told_in_words() {
        let disturbance = Disturbance {
            page_faults: 1,
            context_switches: 12,
            migrations: 0,
        };
        let told = noise(disturbance, Some(0.034), 0.02, &[]).unwrap();
        assert_eq!(
            told,
            "known to 3.4 % only, 12 context switches, 1 page fault, 2 % of the CPU time went to other machines"
        );
    }
}
