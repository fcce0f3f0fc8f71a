//! Walks: where a thread's accesses fall, one after the other.

use xpline_model::Time;
use xpline_model::platform::Core;

use super::{LINE, REGION};
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

    /// The address `offset` bytes into the access that comes so many places later, where little work tells it. A guess: it may be
    /// wrong where a walk begins again.
    #[inline]
    fn foreseen(&self, _places: u64, _offset: u64) -> Option<u64> {
        None
    }

    /// Instructions that a thread spends on each access besides its memory ops.
    fn overhead(core: &Core) -> u32;

    /// Lines of an access from which on the core mispredicts the end of the loop over them. Random accesses show no such cost.
    fn long_loop(_core: &Core) -> u64 {
        u64::MAX
    }

    /// Time that each line of a loop of stores takes besides, where an access is more than one turn of it and not yet
    /// [long](Walk::long_loop). Random accesses show no such cost.
    fn short_loop(_core: &Core) -> Time {
        0
    }
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

    #[inline]
    fn foreseen(&self, places: u64, offset: u64) -> Option<u64> {
        let place = self.rng.later(places - 1).below(self.places);
        Some(self.base + place * self.size + offset)
    }
}

/// Places a stride apart, from the start of the region on, and again where it ends. Threads start together, and one that
/// gets ahead waits for the others behind the same queues: they stay nearly in step, as the sweep's strides of 4 KiB show.
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
    pub fn new(base: u64, size: u64, stride: u64) -> Self {
        let steps = (REGION - size).checked_div(stride).unwrap_or(0);
        Self {
            base,
            stride,
            last: steps * stride,
            next: 0,
            at: base,
        }
    }
}

impl Stride {
    /// Accesses of `size` bytes, one after the other round a ring of `bytes`.
    pub fn ring(base: u64, size: u64, bytes: u64) -> Self {
        Self {
            base,
            stride: size,
            last: bytes / size * size - size,
            next: 0,
            at: base,
        }
    }
}

impl Stride {
    /// The same walk, begun at a place that is drawn.
    pub fn begun_anywhere(self, rng: &mut Rng) -> Self {
        let places = self.last / self.stride + 1;
        let next = rng.below(places) * self.stride;
        Self { next, ..self }
    }
}

/// Random cache lines of a region that is spread over the address bits outside a mask.
#[derive(Clone, Debug)]
pub struct Masked {
    lines: u64,
    mask: u64,
    at: u64,
    rng: Rng,
}

impl Masked {
    pub fn new(region: u64, mask: u64, rng: Rng) -> Self {
        Self {
            lines: region / LINE,
            mask,
            at: 0,
            rng,
        }
    }

    /// The address `offset` bytes into the region: its bits, in order, in the places outside the mask.
    ///
    /// Mask 0b0100 spreads 0b111 to 0b1011.
    pub fn spread(offset: u64, mask: u64) -> u64 {
        let mut address = offset;
        let mut left = mask;
        while left != 0 {
            let below = (1 << left.trailing_zeros()) - 1;
            address = (address & !below) << 1 | address & below;
            left &= left - 1;
        }
        address
    }
}

impl Walk for Masked {
    fn overhead(core: &Core) -> u32 {
        core.random_overhead
    }

    fn advance(&mut self) {
        self.at = Self::spread(self.rng.below(self.lines) * LINE, self.mask);
    }

    fn address(&self, offset: u64) -> u64 {
        self.at + offset
    }
}

impl Walk for Stride {
    fn fresh(&self, size: u64) -> u64 {
        if self.stride == 0 { size } else { size.min(self.stride) }
    }

    fn overhead(core: &Core) -> u32 {
        core.stride_overhead
    }

    fn long_loop(core: &Core) -> u64 {
        core.stride_exit.into()
    }

    fn short_loop(core: &Core) -> Time {
        core.stride_store
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

    #[inline]
    fn foreseen(&self, places: u64, offset: u64) -> Option<u64> {
        Some(self.at + places * self.stride + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_bits_stay_zero_and_the_others_keep_their_order() {
        assert_eq!(Masked::spread(0b111, 0b0100), 0b1011);
        assert_eq!(Masked::spread(0b111, 0b0101), 0b11010);
        assert_eq!(Masked::spread(0b101, 0), 0b101);
        let mask = 0xff << 12;
        let pages: Vec<u64> = (0..4).map(|page| Masked::spread(page << 12, mask)).collect();
        assert_eq!(pages, [0, 1 << 20, 2 << 20, 3 << 20]);
    }

    #[test]
    fn a_ring_comes_round() {
        let mut ring = Stride::ring(4096, 64, 192);
        let places: Vec<u64> = (0..4)
            .map(|_| {
                ring.advance();
                ring.address(0)
            })
            .collect();
        assert_eq!(places, [4096, 4160, 4224, 4096]);
    }
}
