//! Which DIMM an address falls on, and where on it.

use crate::platform::Interleave as Parameters;

/// Round robin of equal chunks over the DIMMs.
#[derive(Clone, Copy, Debug)]
pub struct Interleave {
    dimms: u64,
    shift: u32,
}

impl Interleave {
    pub fn new(parameters: &Parameters) -> Self {
        Self { dimms: u64::from(parameters.dimms), shift: parameters.granularity.trailing_zeros() }
    }

    /// (DIMM, address on the DIMM)
    #[inline]
    pub fn locate(&self, address: u64) -> (usize, u64) {
        if self.dimms == 1 {
            return (0, address);
        }
        let chunk = address >> self.shift;
        let within = address & ((1 << self.shift) - 1);
        ((chunk % self.dimms) as usize, (chunk / self.dimms) << self.shift | within)
    }
}
