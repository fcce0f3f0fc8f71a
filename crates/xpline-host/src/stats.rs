//! What repeats say together: the median, how well it is known, and what stands out.

/// Repeats behind every median: of fewer than nine, the interval would rest on the extremes.
pub const LEAST_REPEATS: usize = 9;

/// What each side of a 95 % interval leaves out.
const LEFT_OUT: f64 = 0.025;

/// From the median absolute deviation to the standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.482_6;

/// The median of repeats, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// Repeats further than three standard deviations, by the median absolute deviation, from the median.
    pub outliers: usize,
}

impl Median {
    /// The median of repeats, with an interval that assumes nothing about how they are distributed: the order
    /// statistics that the binomial distribution puts around it (Hahn and Meeker, "Statistical Intervals", section 5.2).
    /// Of fewer than six repeats no two are 95 % apart, and the interval is from the least to the greatest.
    ///
    /// # Panics
    ///
    /// Without any repeats.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let value = middle(&sorted);
        let low = rank(sorted.len());
        let high = sorted.len() - 1 - low;
        let mut off: Vec<f64> = sorted.iter().map(|one| (one - value).abs()).collect();
        off.sort_by(f64::total_cmp);
        // Repeats that agree but for rounding have no outliers.
        let usual = (3.0 * MAD_TO_SIGMA * middle(&off)).max(1e-9 * value.abs());
        Self {
            value,
            low: sorted[low],
            high: sorted[high],
            outliers: off.iter().filter(|&&off| off > usual).count(),
        }
    }

    /// Half-width of the interval, as a share of the median.
    pub fn precision(&self) -> f64 {
        if self.value == 0.0 {
            return f64::INFINITY;
        }
        (self.high - self.low) / 2.0 / self.value.abs()
    }
}

/// Place, from 0, of the greatest order statistic that is above the median of the distribution with at most 2.5 %.
fn rank(count: usize) -> usize {
    let n = count as f64;
    let mut ln_share = n * 0.5f64.ln();
    let mut below = ln_share.exp();
    let mut rank = 0;
    while below <= LEFT_OUT && rank < count / 2 {
        rank += 1;
        ln_share += ((n - rank as f64 + 1.0) / rank as f64).ln();
        below += ln_share.exp();
    }
    rank.saturating_sub(1)
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        (sorted[half - 1] + sorted[half]) / 2.0
    }
}

/// Counts of samples, exact: a table of the short ones, and the long ones one by one.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    short: Vec<u64>,
    long: Vec<u32>,
    count: u64,
    sum: f64,
    sum_of_squares: f64,
}

/// Samples below this are counted in a table.
const SHORT: usize = 1 << 16;

impl Samples {
    pub fn add(&mut self, sample: u32) {
        if self.short.is_empty() {
            self.short = vec![0; SHORT];
        }
        match self.short.get_mut(sample as usize) {
            Some(count) => *count += 1,
            None => self.long.push(sample),
        }
        self.count += 1;
        self.sum += f64::from(sample);
        self.sum_of_squares += f64::from(sample).powi(2);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    pub fn std(&self) -> f64 {
        (self.sum_of_squares / self.count as f64 - self.mean().powi(2))
            .max(0.0)
            .sqrt()
    }

    /// The smallest sample that covers a share of all. `None` without samples.
    pub fn quantiles(&self) -> Option<impl Fn(f64) -> u32> {
        if self.count == 0 {
            return None;
        }
        let mut long = self.long.clone();
        long.sort_unstable();
        let below = self.count - long.len() as u64;
        Some(move |share: f64| {
            let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count);
            if rank > below {
                return long[(rank - below - 1) as usize];
            }
            let mut covered = 0;
            let covers = |&count: &u64| {
                covered += count;
                covered >= rank
            };
            self.short
                .iter()
                .position(covers)
                .expect("ranks up to `below` are short") as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_interval_of_nine_repeats_is_that_of_the_binomial() {
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        let median = Median::of(&values);
        assert_eq!((median.value, median.low, median.high), (5.0, 2.0, 8.0)); // 96.1 %, by the tables
        assert_eq!((rank(5), rank(6), rank(20), rank(50)), (0, 0, 5, 17));
    }

    #[test]
    fn an_outlier_is_kept_and_counted() {
        let values = [10.0, 10.1, 9.9, 10.05, 9.95, 10.0, 10.1, 9.9, 30.0];
        let median = Median::of(&values);
        assert_eq!((median.value, median.outliers), (10.0, 1));
        assert_eq!(Median::of(&[5.0; 9]).outliers, 0);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median(values in prop::collection::vec(-1e6..1e6f64, 1..100)) {
            let median = Median::of(&values);
            prop_assert!(median.low <= median.value && median.value <= median.high);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_samples(mut values in prop::collection::vec(0u32..200_000, 1..200)) {
            let mut samples = Samples::default();
            values.iter().for_each(|&value| samples.add(value));
            values.sort_unstable();
            let rank = |share: f64| values[((share * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
            prop_assert_eq!([0.5, 0.9, 1.0].map(samples.quantiles().unwrap()), [0.5, 0.9, 1.0].map(rank));
        }
    }
}
