//! Walks: where a thread's accesses fall, one after the other.

use xpline_model::platform::Core;

use super::REGION;
use crate::rng::Rng;

/// The places of a thread's accesses.
pub trait Walk {
    /// Go to the next place.
    fn advance(&mut self);

    /// Bytes of an access of `size` bytes that the access before, one place back, has not touched.
    fn fresh(&self, size: u64) -> u64 {
        size
    }

    /// The address `offset` bytes into the access at the present place.
    fn address(&self, offset: u64) -> u64;

    /// Instructions that a thread spends on each access besides its memory ops.
    fn overhead(core: &Core) -> u32;
}

/// Random places in a buffer, aligned to the access.
#[derive(Clone, Debug)]
pub struct Random {
    base: u64,
    size: u64,
    places: u64,
    at: u64,
    rng: Rng,
}

impl Random {
    /// Accesses of `size` bytes in the `bytes` from `base`.
    pub fn new(base: u64, bytes: u64, size: u64, rng: Rng) -> Self {
        Self {
            base,
            size,
            places: bytes / size,
            at: base,
            rng,
        }
    }
}

impl Walk for Random {
    fn overhead(core: &Core) -> u32 {
        core.random_overhead
    }

    #[inline]
    fn advance(&mut self) {
        self.at = self.base + self.rng.below(self.places) * self.size;
    }

    #[inline]
    fn address(&self, offset: u64) -> u64 {
        self.at + offset
    }
}

/// Places a stride apart, from the start again where the region ends. The first is a random one of them, since the
/// threads of a real run are never in step.
#[derive(Clone, Debug)]
pub struct Stride {
    base: u64,
    stride: u64,
    /// Offset of the last place.
    last: u64,
    next: u64,
    at: u64,
}

impl Stride {
    /// Accesses of `size` bytes in the region from `base`.
    pub fn new(base: u64, size: u64, stride: u64, mut rng: Rng) -> Self {
        let steps = (REGION - size).checked_div(stride).unwrap_or(0);
        Self {
            base,
            stride,
            last: steps * stride,
            next: rng.below(steps + 1) * stride,
            at: base,
        }
    }
}

impl Walk for Stride {
    fn fresh(&self, size: u64) -> u64 {
        if self.stride == 0 { size } else { size.min(self.stride) }
    }

    fn overhead(core: &Core) -> u32 {
        core.stride_overhead
    }

    #[inline]
    fn advance(&mut self) {
        self.at = self.base + self.next;
        self.next = if self.next == self.last {
            0
        } else {
            self.next + self.stride
        };
    }

    #[inline]
    fn address(&self, offset: u64) -> u64 {
        self.at + offset
    }
}
