//! Means, how far they can be trusted, and stalls.

use xpline_model::{NANOSECOND, Time};

use crate::row::Stalls;

/// Windows that a mean is judged by.
pub const WINDOWS: usize = 8;

/// Student's t for 95 % and `WINDOWS - 1` degrees of freedom.
const STUDENT_T: f64 = 2.365;

/// Half-width of the 95 % confidence interval, over the mean, that a mean may have.
const TOLERANCE: f64 = 0.01;

/// Whether the mean of the windows' values is known to 1 %: by the method of batch means, the half-width of its
/// 95 % confidence interval is at most that. Without a value there is nothing to know.
pub fn is_stable(windows: &[Option<f64>; WINDOWS]) -> bool {
    let values: Vec<f64> = windows.iter().flatten().copied().collect();
    if values.len() < WINDOWS {
        return values.is_empty();
    }
    let mean = mean(&values);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (WINDOWS - 1) as f64;
    STUDENT_T * (variance / WINDOWS as f64).sqrt() <= TOLERANCE * mean.abs()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How much longer than the median a stalled access takes.
pub const STALL: Time = 10;

/// Accesses, of latencies in ps and in order, that took over ten times the median; `None` without any accesses.
pub fn stalls(samples: &[Time]) -> Option<Stalls> {
    let typical = median(&mut samples.to_vec())?;
    let numbered = (0..).zip(samples.iter().copied());
    let stalled: Vec<(u64, Time)> = numbered.filter(|&(_, sample)| sample > STALL * typical).collect();
    Some(stalls_of(&stalled, samples.len() as u64))
}

/// Stalls by their numbers and latencies, among `count` accesses.
pub fn stalls_of(stalled: &[(u64, Time)], count: u64) -> Stalls {
    let mut latencies: Vec<Time> = stalled.iter().map(|&(_, latency)| latency).collect();
    let mut gaps: Vec<u64> = stalled.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    Stalls {
        share: stalled.len() as f64 / count as f64,
        median: median(&mut latencies).map(|latency| latency as f64 / NANOSECOND as f64),
        interval: median(&mut gaps),
    }
}

fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    (!values.is_empty()).then(|| values[(values.len() - 1) / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_windows_are_stable_and_a_trend_is_not() {
        assert!(is_stable(&std::array::from_fn(|i| Some(100.0 + (i % 2) as f64))));
        assert!(!is_stable(&std::array::from_fn(|i| Some(100.0 + i as f64))));
        assert!(is_stable(&[Some(0.0); WINDOWS]));
    }

    #[test]
    fn a_value_that_comes_and_goes_is_not_stable() {
        let mut windows = [None; WINDOWS];
        assert!(is_stable(&windows));
        windows[3] = Some(1.0);
        assert!(!is_stable(&windows));
    }

    #[test]
    fn no_samples_have_no_stalls() {
        assert!(stalls(&[]).is_none());
    }

    /// Stalls of 2, 3 and 4 us after 10, 20 and 50 accesses of 100 ns.
    #[test]
    fn stalls_stand_out_from_the_median() {
        let mut samples = vec![100 * NANOSECOND; 60];
        for (at, latency) in [(10, 2), (20, 3), (50, 4)] {
            samples[at] = latency * 1000 * NANOSECOND;
        }
        let stalls = stalls(&samples).unwrap();
        assert_eq!(
            (stalls.share, stalls.median, stalls.interval),
            (3.0 / 60.0, Some(3000.0), Some(10))
        );
    }

    #[test]
    fn ten_times_the_median_is_no_stall() {
        let mut samples = vec![100 * NANOSECOND; 60];
        samples[7] *= 10;
        let stalls = stalls(&samples).unwrap();
        assert_eq!((stalls.share, stalls.median, stalls.interval), (0.0, None, None));
    }
}
