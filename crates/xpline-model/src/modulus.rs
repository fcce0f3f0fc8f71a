//! Remainders of a division by a number that is known early, and often a power of two.

#[derive(Clone, Copy, Debug)]
pub struct Modulus {
    modulus: u64,
    /// `modulus - 1` where that is a mask, else 0.
    mask: u64,
}

impl Modulus {
    pub fn new(modulus: u64) -> Self {
        let mask = if modulus.is_power_of_two() { modulus - 1 } else { 0 };
        Self { modulus, mask }
    }

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
            value % self.modulus
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_those_of_a_division() {
        for modulus in 1..70 {
            let by = Modulus::new(modulus);
            for value in (0..200).chain([u64::MAX - 1, u64::MAX]) {
                assert_eq!(by.of(value), value % modulus);
            }
        }
    }
}
