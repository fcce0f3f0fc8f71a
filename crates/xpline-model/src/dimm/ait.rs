//! The address indirection table: where a page lives on the media, with a cache of its entries in the DIMM's own DRAM.

use crate::modulus::Modulus;
use crate::tags;

/// Which pages' translations are cached.
///
/// The low bits of the page number select a set. A way bears a mark once it is used; when the last way of a set is marked, the
/// others lose theirs, and the first way without a mark makes room (the bit form of pseudo-LRU). Knees of masked pointer chases
/// and replacement probes tell so: least recently used would never hit when one page more than a set holds is read round and round.
pub struct AitCache {
    /// A page number plus 1 each, 0 where there is none; a set starts every `stride` entries.
    tags: Vec<u32>,
    stride: usize,
    /// Marks of each set, a bit a way.
    marks: Vec<u64>,
    all_marked: u64,
    sets: Modulus,
    last: usize,
}

impl AitCache {
    pub fn new(pages: u64, ways: u32) -> Self {
        let sets = pages / u64::from(ways);
        let stride = (ways as usize).next_multiple_of(tags::BLOCK);
        Self {
            tags: vec![0; sets as usize * stride],
            stride,
            marks: vec![0; sets as usize],
            all_marked: u64::MAX >> (64 - ways),
            sets: Modulus::new(sets),
            last: ways as usize - 1,
        }
    }

    /// Look a page up and keep it: true if it was cached.
    #[inline]
    pub fn touch(&mut self, page: u64) -> bool {
        let page = page as u32;
        let set = self.sets.of(page.into()) as usize;
        let start = set * self.stride;
        let ways = &mut self.tags[start..start + self.stride];
        let marks = &mut self.marks[set];
        let place = tags::find(ways, page + 1);
        let way = place.unwrap_or_else(|| ((!*marks).trailing_zeros() as usize).min(self.last));
        ways[way] = page + 1;
        *marks |= 1 << way;
        if *marks == self.all_marked {
            *marks = 1 << way;
        }
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

    #[test]
    fn low_bits_of_the_page_select_the_set() {
        let mut ait = AitCache::new(8, 2);
        // Pages 0, 4 and 8 share a set of two ways; 1 does not.
        for page in [0, 1, 4, 8] {
            assert!(!ait.touch(page));
        }
        assert!(ait.touch(1));
        assert!(ait.touch(8));
    }

    /// Four ways by hand. Marks after 0 1 2 3: the last fill leaves only its own. 4 takes the place of 0, and so on.
    #[test]
    fn the_first_way_without_a_mark_makes_room() {
        let mut ait = AitCache::new(4, 4);
        let hits: Vec<bool> = [0, 1, 2, 3, 4, 1, 0, 3].map(|page| ait.touch(page)).into();
        // 4 replaces 0; 1 hits and is marked; 0 replaces 2, is the last without a mark, and clears the others; 3 hits.
        assert_eq!(hits, [false, false, false, false, false, true, false, true]);
        // Marked are 0 (way 2) and 3 (way 3): 5 takes way 0, where 4 was.
        assert!(!ait.touch(5));
        assert!(ait.touch(1) && ait.touch(0));
        assert!(!ait.touch(4));
    }

    #[test]
    fn a_single_way_is_always_the_one_to_go() {
        let mut ait = AitCache::new(2, 1);
        assert!(!ait.touch(0) && !ait.touch(2) && !ait.touch(0));
        assert!(ait.touch(0));
    }
}
