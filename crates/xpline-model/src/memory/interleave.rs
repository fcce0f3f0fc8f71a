//! Which DIMM an address falls on, and where on it.

use crate::platform::Interleave as Parameters;

/// Round robin of equal chunks over the DIMMs.
#[derive(Clone, Copy, Debug)]
pub struct Interleave {
    dimms: u64,
    /// Whether a DIMM numbers its own bytes from 0 on; if not, it sees addresses as they are (and chooses banks by their bits).
    compact: bool,
    shift: u32,
}

impl Interleave {
    pub fn new(parameters: &Parameters, compact: bool) -> Self {
        Self {
            compact,
            dimms: u64::from(parameters.dimms),
            shift: parameters.granularity.trailing_zeros(),
        }
    }

    /// (DIMM, address on the DIMM)
    #[inline]
    pub fn locate(&self, address: u64) -> (usize, u64) {
        if self.dimms == 1 {
            return (0, address);
        }
        let chunk = address >> self.shift;
        if !self.compact {
            return ((chunk % self.dimms) as usize, address);
        }
        let within = address & ((1 << self.shift) - 1);
        (
            (chunk % self.dimms) as usize,
            (chunk / self.dimms) << self.shift | within,
        )
    }

    /// The address of a place on a DIMM: what [`Interleave::locate`] made of it, undone.
    pub fn address(&self, dimm: usize, local: u64) -> u64 {
        if self.dimms == 1 || !self.compact {
            return local;
        }
        let within = local & ((1 << self.shift) - 1);
        ((local >> self.shift) * self.dimms + dimm as u64) << self.shift | within
    }
}
