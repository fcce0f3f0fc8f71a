//! The address indirection table: where a page lives on the media, with a cache of its entries in the DIMM's own DRAM.

use crate::tags;

/// Which pages' translations are cached (set-associative, least recently used goes first).
pub struct AitCache {
    /// A page number plus 1 each, 0 where there is none; a set starts every `stride` entries.
    tags: Vec<u32>,
    stride: usize,
    sets: u64,
    last: usize,
}

impl AitCache {
    pub fn new(pages: u64, ways: u32) -> Self {
        let sets = pages / u64::from(ways);
        let stride = (ways as usize).next_multiple_of(tags::BLOCK);
        Self {
            tags: vec![0; sets as usize * stride],
            stride,
            sets,
            last: ways as usize - 1,
        }
    }

    /// Look a page up and keep it: true if it was cached.
    #[inline]
    pub fn touch(&mut self, page: u64) -> bool {
        let spread = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let start = ((spread * self.sets) >> 32) as usize * self.stride;
        let set = &mut self.tags[start..start + self.stride];
        let tag = page as u32 + 1;
        let place = tags::find(set, tag, 0);
        tags::to_front(set, place.unwrap_or(self.last), tag);
        place.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cached_once_seen() {
        let mut ait = AitCache::new(64, 8);
        assert!(!ait.touch(3));
        assert!(ait.touch(3));
    }
}
