//! Division by a number that is known early, and often a power of two.

/// A number that others are divided by, at less than the cost of a division.
///
/// ```
/// use xpline_model::Modulus;
///
/// let dimms = Modulus::new(6);
/// assert_eq!((dimms.of(20), dimms.divide(20)), (2, (3, 2)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Modulus {
    modulus: u64,
    /// `modulus - 1` where that is a mask, else 0.
    mask: u64,
    /// 2^64 / `modulus`, rounded up, for values of 32 bits: the error of their product is then too small to reach the quotient.
    reciprocal: u64,
}

impl Modulus {
    /// `modulus` is not 0.
    pub fn new(modulus: u64) -> Self {
        let mask = if modulus.is_power_of_two() { modulus - 1 } else { 0 };
        let small = (2..=u64::from(u32::MAX)).contains(&modulus);
        Self {
            modulus,
            mask,
            reciprocal: if small { u64::MAX / modulus + 1 } else { 0 },
        }
    }

    /// The number itself.
    #[inline]
    pub fn get(self) -> u64 {
        self.modulus
    }

    /// `value % modulus`
    #[inline]
    pub fn of(self, value: u64) -> u64 {
        if self.mask != 0 {
            value & self.mask
        } else {
            self.divide(value).1
        }
    }

    /// `(value / modulus, value % modulus)`
    #[inline(always)]
    pub fn divide(self, value: u64) -> (u64, u64) {
        if self.reciprocal == 0 || value > u64::from(u32::MAX) {
            return (value / self.modulus, value % self.modulus);
        }
        let quotient = ((u128::from(value) * u128::from(self.reciprocal)) >> 64) as u64;
        (quotient, value - quotient * self.modulus)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_are_divided_by_each_other() {
        for modulus in 1..70 {
            let by = Modulus::new(modulus);
            for value in (0..200).chain([u64::MAX - 1, u64::MAX]) {
                assert_eq!(by.of(value), value % modulus);
                assert_eq!(by.divide(value), (value / modulus, value % modulus));
            }
        }
    }

    proptest! {
        #[test]
        fn any_numbers_are_divided_by_each_other(modulus in 1u64.., value: u64, shifts in (0..64u32, 0..64u32)) {
            let (modulus, value) = ((modulus >> shifts.0).max(1), value >> shifts.1);
            let by = Modulus::new(modulus);
            for value in [value, value / modulus * modulus, (value / modulus * modulus).wrapping_sub(1)] {
                prop_assert_eq!(by.of(value), value % modulus);
                prop_assert_eq!(by.divide(value), (value / modulus, value % modulus));
            }
        }
    }
}
