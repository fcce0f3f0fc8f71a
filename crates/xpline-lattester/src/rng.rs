//! Random numbers that are the same on every machine and in every version.

use rand_core::RngCore;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a few instructions a number, and any seed will do.
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// Between two states: 2^64 over the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// The generator of one thread: the threads of a run draw from unrelated sequences.
    pub fn new(seed: u64, thread: u32) -> Self {
        let run = Self(seed).next();
        Self(Self(run.wrapping_add(thread.into())).next())
    }

    /// A number from 0 to below 1.
    #[inline]
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The generator that goes on from a state.
    pub fn from_state(state: u64) -> Self {
        Self(state)
    }

    /// What the next number is made from.
    pub fn state(&self) -> u64 {
        self.0
    }

    /// The same generator, so many numbers later: as little work as one number.
    #[inline]
    pub fn later(&self, numbers: u64) -> Self {
        Self(self.0.wrapping_add(STEP.wrapping_mul(numbers)))
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, by multiplication instead of division; its bias is below `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Distributions draw from it.
impl RngCore for Rng {
    fn next_u32(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.next()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        rand_core::impls::fill_bytes_via_next(self, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first values of the reference implementation for seed 1234567.
    #[test]
    fn matches_the_reference() {
        let mut rng = Rng(1234567);
        let values = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!(values, std::array::from_fn(|_| rng.next()));
    }

    #[test]
    fn later_numbers_are_those_that_come() {
        let mut rng = Rng::new(3, 4);
        for numbers in [0, 1, 7] {
            let later = rng.later(numbers).next();
            (0..numbers).for_each(|_| _ = rng.next());
            assert_eq!(rng.next(), later);
        }
    }

    #[test]
    fn threads_and_seeds_differ() {
        let first = |seed, thread| Rng::new(seed, thread).next();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(0, 1), first(1, 0));
    }

    #[test]
    fn below_reaches_every_value() {
        let mut rng = Rng::new(1, 0);
        let mut seen = [0; 6];
        (0..6000).for_each(|_| seen[rng.below(6) as usize] += 1);
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }
}
