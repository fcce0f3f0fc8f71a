//! What the windows of a point add up to.

use xpline_latency::Latencies;
use xpline_lattester::Part;

use crate::clock::Clock;
use crate::native::net_ns;
use crate::plan::Judge;
use crate::row::Stalls;
use crate::stats::{Median, Samples};
use crate::team::{Disturbance, Work};
use crate::workload::Groups;

pub const MIB: f64 = (1 << 20) as f64;

/// Accesses behind the percentiles of an experiment that looks for stalls.
const STALLS_FROM: u64 = 1 << 20;

/// How much longer than the median a stalled access takes.
const STALL: u32 = 10;

/// The windows of a point so far.
pub struct Tally {
    judge: Judge,
    /// Bytes and requests that an access of each thread is credited with.
    credits: Vec<(u64, u64)>,
    /// Cycles that reading the clock costs.
    timer: u32,
    values: Vec<f64>,
    /// MiB/s of each window.
    bandwidths: Vec<f64>,
    bytes: u64,
    requests: u64,
    cycles: u64,
    samples: Samples,
    stalled: Vec<u32>,
    gaps: Vec<u64>,
    disturbance: Disturbance,
    cache_misses: Option<u64>,
    /// Of a workload.
    groups: Option<Groups>,
}

impl Tally {
    pub fn new(judge: Judge, credits: Vec<(u64, u64)>, timer: u32) -> Self {
        Self {
            judge,
            credits,
            timer,
            values: vec![],
            bandwidths: vec![],
            bytes: 0,
            requests: 0,
            cycles: 0,
            samples: Samples::default(),
            stalled: vec![],
            gaps: vec![],
            disturbance: Disturbance::default(),
            cache_misses: Some(0),
            groups: None,
        }
    }

    /// The same, with an account of each group of a workload.
    pub fn of_groups(self, groups: Groups) -> Self {
        Self {
            groups: Some(groups),
            ..self
        }
    }

    /// Add what the threads did in a window.
    pub fn add(&mut self, work: Vec<Work>) {
        let clock = Clock::get();
        let rates = work.iter().zip(&self.credits);
        let rates = rates.map(|(work, (bytes, _))| (work.accesses * bytes) as f64 / clock.ns(work.cycles));
        let bandwidth = rates.sum::<f64>() * 1e9 / MIB;
        self.bandwidths.push(bandwidth);
        self.values.push(match self.judge {
            Judge::Bandwidth | Judge::Operations => bandwidth,
            Judge::Chain => clock.ns(work[0].cycles) / work[0].accesses as f64,
            Judge::Latency | Judge::Stalls | Judge::Loaded => {
                let cycles: f64 = work[0].samples.iter().map(|&sample| f64::from(sample)).sum();
                net_ns(cycles / work[0].samples.len() as f64, self.timer)
            }
        });
        if let Some(groups) = &mut self.groups {
            groups.add(&work, &self.credits, |cycles| clock.ns(cycles) / 1e9);
        }
        self.cycles += work.iter().map(|work| work.cycles).max().unwrap_or(0);
        for (one, (bytes, requests)) in work.into_iter().zip(&self.credits) {
            self.bytes += one.accesses * bytes;
            self.requests += one.accesses * requests;
            self.disturbance.add(one.disturbance);
            self.cache_misses = self.cache_misses.zip(one.cache_misses).map(|(sum, more)| sum + more);
            one.samples.iter().for_each(|&sample| self.samples.add(sample));
            if self.judge == Judge::Stalls {
                find_stalls(&one.samples, self.timer, &mut self.stalled, &mut self.gaps);
            }
        }
    }

    pub fn judge(&self) -> Judge {
        self.judge
    }

    pub fn repeats(&self) -> usize {
        self.values.len()
    }

    /// Whether there are enough accesses for what the experiment looks for.
    pub fn samples_suffice(&self) -> bool {
        self.judge != Judge::Stalls || self.samples.count() >= STALLS_FROM
    }

    /// Whether a workload has made as many operations as it was to.
    pub fn is_done(&self) -> bool {
        self.groups.as_ref().is_some_and(Groups::are_done)
    }

    /// What each group of a workload did.
    pub fn parts(&self) -> Vec<Part> {
        self.groups.as_ref().map_or(vec![], |groups| groups.parts(self.timer))
    }

    pub fn median(&self) -> Median {
        Median::of(&self.values)
    }

    /// The median bandwidth of the windows in MiB/s; `None` where single accesses alone are timed.
    pub fn bandwidth(&self) -> Option<f64> {
        let moves = matches!(self.judge, Judge::Bandwidth | Judge::Loaded | Judge::Operations);
        moves.then(|| Median::of(&self.bandwidths).value)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The time of all windows, one after the other.
    pub fn time_ns(&self) -> f64 {
        Clock::get().ns(self.cycles)
    }

    pub fn disturbance(&self) -> Disturbance {
        self.disturbance
    }

    pub fn cache_misses(&self) -> Option<u64> {
        self.cache_misses
    }

    /// What reading the clock costs, where single accesses are timed.
    pub fn timer_ns(&self) -> Option<f64> {
        (self.samples.count() > 0).then(|| Clock::get().ns(self.timer.into()))
    }

    /// Of single accesses; their mean is that of the repeats, in the median. `None` where none were timed.
    pub fn latencies(&self) -> Option<Latencies> {
        let found = latencies(&self.samples, self.timer)?;
        Some(match self.judge {
            Judge::Operations => found,
            _ => Latencies {
                mean: self.median().value,
                ..found
            },
        })
    }

    pub fn stalls(&self) -> Stalls {
        if self.judge != Judge::Stalls {
            return Stalls::default();
        }
        let mut stalled = self.stalled.clone();
        let mut gaps = self.gaps.clone();
        stalled.sort_unstable();
        gaps.sort_unstable();
        let middle = |length: usize| length.checked_sub(1).map(|last| last / 2);
        Stalls {
            stall_share: Some(stalled.len() as f64 / self.samples.count().max(1) as f64),
            stall_ns: middle(stalled.len()).map(|at| net_ns(stalled[at].into(), self.timer)),
            stall_interval: middle(gaps.len()).map(|at| gaps[at]),
        }
    }
}

/// Mean, deviation and percentiles in ns; of each, `timer` cycles are the clock's.
pub fn latencies(samples: &Samples, timer: u32) -> Option<Latencies> {
    let quantile = samples.quantiles()?;
    let percentile = |share| net_ns(quantile(share).into(), timer);
    Some(Latencies::by_percentile(
        net_ns(samples.mean(), timer),
        samples.std() / Clock::get().cycles_per_ns,
        percentile,
        percentile(1.0),
    ))
}

/// Add the accesses that took over ten times the median, and the accesses between them.
fn find_stalls(samples: &[u32], timer: u32, stalled: &mut Vec<u32>, gaps: &mut Vec<u64>) {
    let mut sorted = samples.to_vec();
    let Some(middle) = sorted.len().checked_sub(1).map(|last| last / 2) else {
        return;
    };
    let median = *sorted.select_nth_unstable(middle).1;
    let bound = median.saturating_sub(timer).saturating_mul(STALL);
    let mut last = None;
    for (place, &sample) in samples.iter().enumerate() {
        if sample.saturating_sub(timer) > bound {
            stalled.push(sample);
            gaps.extend(last.map(|last| (place - last) as u64));
            last = Some(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_that_of_all_threads_together() {
        let clock = Clock::get();
        let mut tally = Tally::new(Judge::Bandwidth, vec![(64, 1); 2], 0);
        let work = || Work {
            accesses: 1 << 14,
            cycles: clock.cycles(0.001),
            ..Work::default()
        };
        tally.add(vec![work(), work()]);
        // 1 MiB a millisecond, by each of two threads.
        assert!(
            (tally.median().value / 2000.0 - 1.0).abs() < 1e-3,
            "{}",
            tally.median().value
        );
        assert_eq!((tally.bytes(), tally.requests()), (2 << 20, 1 << 15));
    }

    #[test]
    fn stalls_stand_out_from_the_median_and_the_timer_is_not_in_them() {
        let mut samples = vec![150; 60];
        for at in [10, 20, 50] {
            samples[at] = 50 + 2000;
        }
        samples[30] = 50 + 1000; // exactly ten times the median
        let mut tally = Tally::new(Judge::Stalls, vec![(64, 1)], 50);
        tally.add(vec![Work {
            accesses: 60,
            cycles: 1,
            samples,
            ..Work::default()
        }]);
        let stalls = tally.stalls();
        assert_eq!(
            (stalls.stall_share, stalls.stall_interval),
            (Some(3.0 / 60.0), Some(10))
        );
        let ns = stalls.stall_ns.unwrap() * Clock::get().cycles_per_ns;
        assert!((ns - 2000.0).abs() < 1e-6);
        assert!((tally.latencies().unwrap().p50 * Clock::get().cycles_per_ns - 100.0).abs() < 1e-6);
    }
}
