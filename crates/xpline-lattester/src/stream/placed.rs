//! Random accesses of a thread that may touch some of the DIMMs only.

use xpline_model::Platform;
use xpline_model::platform::Core;

use super::REGION;
use super::walk::Walk;
use crate::point::{Align, Binding};
use crate::rng::Rng;

/// Bytes of a buffer that all threads share.
pub const SHARED: u64 = 16 << 30;

/// Bytes of a shared buffer on each DIMM, where DIMMs have an address range each.
const SHARED_A_DIMM: u64 = 4 << 30;

/// Where a thread's accesses may fall: on which DIMMs, and where on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    spread: Spread,
    dimms: Vec<u64>,
    /// Offset of the buffer on each DIMM.
    base: u64,
    /// Bytes of the buffer on each DIMM.
    bytes: u64,
}

/// How addresses are spread over DIMMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spread {
    chunk: u64,
    dimms: u64,
}

impl Spread {
    #[inline]
    fn address(self, dimm: u64, local: u64) -> u64 {
        let (row, within) = (local / self.chunk, local % self.chunk);
        (row * self.dimms + dimm) * self.chunk + within
    }

    /// Bytes on each DIMM of a buffer of `bytes`, in whole chunks.
    fn share(self, bytes: u64) -> u64 {
        bytes / (self.chunk * self.dimms) * self.chunk
    }
}

/// The placement of a thread, or `None` where it may touch its whole buffer.
pub fn placement(platform: &Platform, align: &Align, thread: u32) -> Option<Placement> {
    let spread = Spread {
        chunk: platform.interleave.granularity,
        dimms: platform.interleave.dimms.into(),
    };
    let (thread, channels) = (u64::from(thread), u64::from(platform.imc.channels));
    let dimm = thread % spread.dimms;
    let own = spread.share(REGION);
    let (dimms, base, bytes) = match align.binding {
        Binding::SharedAll | Binding::OwnAll => return None,
        Binding::OwnDimm => (vec![dimm], thread * own, own),
        Binding::SharedImc => {
            let first = dimm / channels * channels;
            ((first..first + channels).collect(), 0, spread.share(SHARED))
        }
        Binding::OwnPair => (vec![thread % channels, channels + thread % channels], thread * own, own),
        Binding::NiSharedAll => ((0..spread.dimms).collect(), 0, SHARED_A_DIMM),
        Binding::NiOwnDimm => (vec![dimm], thread / spread.dimms * REGION, REGION),
    };
    Some(Placement {
        spread,
        dimms,
        base,
        bytes,
    })
}

impl Placement {
    /// Accesses of `size` bytes that fit in the buffer on one DIMM.
    pub fn places(&self, size: u64) -> u64 {
        self.bytes / size
    }

    /// The end of the addresses that it reaches.
    pub fn end(&self) -> u64 {
        (self.base + self.bytes).div_ceil(self.spread.chunk) * self.spread.chunk * self.spread.dimms
    }
}

/// Random places of a placement. A place is a DIMM and an offset on it.
///
/// An access stays on its DIMM, whatever its size. On a machine whose DIMMs have an address range each its addresses are
/// contiguous; here, where addresses interleave, they are those that the platform maps to the same bytes of the same DIMM.
#[derive(Clone, Debug)]
pub struct Placed {
    placement: Placement,
    size: u64,
    places: u64,
    dimm: u64,
    local: u64,
    rng: Rng,
}

impl Placed {
    pub fn new(placement: Placement, size: u64, rng: Rng) -> Self {
        Self {
            places: placement.places(size),
            placement,
            size,
            dimm: 0,
            local: 0,
            rng,
        }
    }

    /// A DIMM, and an offset on it.
    #[inline]
    fn draw(&self, rng: &mut Rng) -> (u64, u64) {
        let Placement { dimms, base, .. } = &self.placement;
        let dimm = dimms[rng.below(dimms.len() as u64) as usize];
        (dimm, base + rng.below(self.places) * self.size)
    }
}

/// Random numbers that a place takes.
const NUMBERS: u64 = 2;

impl Walk for Placed {
    fn overhead(core: &Core) -> u32 {
        core.random_overhead
    }

    #[inline]
    fn advance(&mut self) {
        let mut rng = self.rng.clone();
        (self.dimm, self.local) = self.draw(&mut rng);
        self.rng = rng;
    }

    #[inline]
    fn address(&self, offset: u64) -> u64 {
        self.placement.spread.address(self.dimm, self.local + offset)
    }

    #[inline]
    fn foreseen(&self, places: u64, offset: u64) -> Option<u64> {
        let (dimm, local) = self.draw(&mut self.rng.later(NUMBERS * (places - 1)));
        Some(self.placement.spread.address(dimm, local + offset))
    }
}
