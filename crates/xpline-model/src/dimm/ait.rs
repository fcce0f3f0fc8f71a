//! The address indirection table: where a page lives on the media, with a cache of its entries in the DIMM's own DRAM.

/// Which pages' translations are cached (set-associative, least recently used goes first).
pub struct AitCache {
    tags: Vec<u32>,
    sets: u64,
    ways: usize,
}

const EMPTY: u32 = u32::MAX;

impl AitCache {
    pub fn new(pages: u64, ways: u32) -> Self {
        Self {
            tags: vec![EMPTY; pages as usize],
            sets: pages / u64::from(ways),
            ways: ways as usize,
        }
    }

    /// Look a page up and keep it: true if it was cached.
    #[inline]
    pub fn touch(&mut self, page: u64) -> bool {
        let spread = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let start = ((spread * self.sets) >> 32) as usize * self.ways;
        let set = &mut self.tags[start..start + self.ways];
        let key = page as u32;
        let (way, hit) = match set.iter().position(|&tag| tag == key) {
            Some(way) => (way, true),
            None => (set.len() - 1, false),
        };
        set.copy_within(0..way, 1);
        set[0] = key;
        hit
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
