//! Which DIMM an address falls on, and where on it.

use crate::modulus::Modulus;
use crate::platform::Interleave as Parameters;

/// Round robin of equal chunks over the DIMMs.
#[derive(Clone, Copy, Debug)]
pub struct Interleave {
    dimms: Modulus,
    /// Whether a DIMM numbers its own bytes from 0 on; if not, it sees addresses as they are (and chooses banks by their bits).
    compact: bool,
    /// Whether each round begins with another DIMM, so that threads a power of two apart do not meet on one.
    hashed: bool,
    shift: u32,
}

impl Interleave {
    pub fn new(parameters: &Parameters, compact: bool) -> Self {
        Self {
            compact,
            dimms: Modulus::new(parameters.dimms.into()),
            hashed: parameters.hashed,
            shift: parameters.granularity.trailing_zeros(),
        }
    }

    /// (DIMM, address on the DIMM)
    #[inline(always)]
    pub fn locate(&self, address: u64) -> (usize, u64) {
        if self.dimms.get() == 1 {
            return (0, address);
        }
        let chunk = address >> self.shift;
        let (row, place) = self.dimms.divide(chunk);
        let dimm = if self.hashed {
            self.dimms.of(place + Self::turn(row))
        } else {
            place
        };
        if !self.compact {
            return (dimm as usize, address);
        }
        let within = address & ((1 << self.shift) - 1);
        (dimm as usize, row << self.shift | within)
    }

    /// The address of a place on a DIMM: what [`Interleave::locate`] made of it, undone.
    pub fn address(&self, dimm: usize, local: u64) -> u64 {
        let dimms = self.dimms.get();
        if dimms == 1 || !self.compact {
            return local;
        }
        let within = local & ((1 << self.shift) - 1);
        let row = local >> self.shift;
        let turn = if self.hashed { Self::turn(row) % dimms } else { 0 };
        let place = (dimm as u64 + dimms - turn) % dimms;
        (row * dimms + place) << self.shift | within
    }

    /// Where a round begins: its number, mixed as SplitMix64 does.
    #[inline]
    fn turn(row: u64) -> u64 {
        let mixed = (row ^ row >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 48
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_dimms_lead_back_to_their_addresses() {
        for (dimms, hashed) in [(6, false), (8, true), (6, true)] {
            let parameters = Parameters {
                dimms,
                granularity: 4096,
                hashed,
            };
            let interleave = Interleave::new(&parameters, true);
            for address in (0..1 << 24).step_by(1000) {
                let (dimm, local) = interleave.locate(address);
                assert_eq!(interleave.address(dimm, local), address);
            }
        }
    }

    #[test]
    fn a_hashed_round_touches_every_dimm_and_threads_2_gib_apart_touch_several() {
        let parameters = Parameters {
            dimms: 8,
            granularity: 256,
            hashed: true,
        };
        let interleave = Interleave::new(&parameters, false);
        let dimms = |stride: u64| -> std::collections::BTreeSet<usize> {
            (0..8).map(|number| interleave.locate(number * stride).0).collect()
        };
        assert_eq!(dimms(256).len(), 8);
        assert!(dimms(2 << 30).len() > 3);
    }
}
