//! One set-associative cache: which lines it holds and which of them are dirty. No time in here.

use crate::platform::Replacement;

/// A line that replacement pushed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    pub line: u64,
    pub dirty: bool,
}

const DIRTY: u32 = 1 << 31;
const EMPTY: u32 = u32::MAX;

/// Lines are numbered from 0 (address / 64) and stay below 2^31 - 1, which is 128 GiB.
#[derive(Clone)]
pub struct Cache {
    /// `sets x ways` entries; within a set the most recently used comes first.
    entries: Vec<u32>,
    ways: usize,
    /// Sets of a slice, indexed by the low bits of the line; a hash of the line chooses the slice.
    sets: u64,
    slices: u64,
    replacement: Replacement,
    occupied: usize,
    random: u64,
}

impl Cache {
    pub fn new(lines: u64, ways: u32, slices: u32, replacement: Replacement) -> Self {
        let sets = lines / u64::from(ways) / u64::from(slices);
        Self {
            entries: vec![EMPTY; (sets * u64::from(ways) * u64::from(slices)) as usize],
            ways: ways as usize,
            sets,
            slices: u64::from(slices),
            replacement,
            occupied: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    #[inline]
    fn set_start(&self, line: u64) -> usize {
        let mut set = line % self.sets;
        if self.slices > 1 {
            // Fibonacci hashing; the high half scaled to the number of slices, which need not be a power of two.
            let spread = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            set += ((spread * self.slices) >> 32) * self.sets;
        }
        set as usize * self.ways
    }

    #[inline]
    fn set(&mut self, line: u64) -> &mut [u32] {
        let start = self.set_start(line);
        &mut self.entries[start..start + self.ways]
    }

    /// Whether the line is here; if so it becomes the most recently used, and dirty when `write`.
    #[inline]
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        let key = line as u32;
        let set = self.set(line);
        for way in 0..set.len() {
            if set[way] & !DIRTY == key {
                let entry = set[way] | if write { DIRTY } else { 0 };
                set.copy_within(0..way, 1);
                set[0] = entry;
                return true;
            }
        }
        false
    }

    /// Put in a line that is not here; the victim is returned.
    #[inline]
    pub fn insert(&mut self, line: u64, dirty: bool) -> Option<Victim> {
        let entry = line as u32 | if dirty { DIRTY } else { 0 };
        let ways = self.ways;
        let random = self.replacement == Replacement::Random;
        let start = self.set_start(line);
        let set = &mut self.entries[start..start + ways];
        let last = set[ways - 1];
        let way = if last == EMPTY || !random {
            ways - 1
        } else {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (((self.random >> 32) * ways as u64) >> 32) as usize
        };
        let old = set[way];
        set.copy_within(0..way, 1);
        set[0] = entry;
        if old == EMPTY {
            self.occupied += 1;
            return None;
        }
        Some(Victim {
            line: u64::from(old & !DIRTY),
            dirty: old & DIRTY != 0,
        })
    }

    /// Take the line out; `Some(dirty)` if it was here.
    #[inline]
    pub fn remove(&mut self, line: u64) -> Option<bool> {
        let key = line as u32;
        let set = self.set(line);
        let way = set.iter().position(|&entry| entry & !DIRTY == key)?;
        let dirty = set[way] & DIRTY != 0;
        set.copy_within(way + 1.., way);
        let last = set.len() - 1;
        set[last] = EMPTY;
        self.occupied -= 1;
        Some(dirty)
    }

    /// Mark the line clean; `Some(was_dirty)` if it is here.
    #[inline]
    pub fn clean(&mut self, line: u64) -> Option<bool> {
        let key = line as u32;
        let entry = self.set(line).iter_mut().find(|entry| **entry & !DIRTY == key)?;
        let dirty = *entry & DIRTY != 0;
        *entry &= !DIRTY;
        Some(dirty)
    }

    /// Dirty lines held, for conservation checks.
    pub fn dirty_lines(&self) -> u64 {
        self.entries.iter().filter(|&&e| e != EMPTY && e & DIRTY != 0).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lru_gives_up_the_line_used_longest_ago() {
        let mut cache = Cache::new(2, 2, 1, Replacement::Lru);
        assert_eq!(cache.insert(10, false), None);
        assert_eq!(cache.insert(11, true), None);
        assert!(cache.touch(10, false));
        assert_eq!(cache.insert(12, false), Some(Victim { line: 11, dirty: true }));
        assert!(!cache.touch(11, false));
    }

    #[test]
    fn cleaning_and_removing_report_dirt() {
        let mut cache = Cache::new(8, 2, 2, Replacement::Random);
        cache.insert(7, true);
        assert_eq!(cache.clean(7), Some(true));
        assert_eq!(cache.clean(7), Some(false));
        assert!(cache.touch(7, true));
        assert_eq!(cache.dirty_lines(), 1);
        assert_eq!(cache.remove(7), Some(true));
        assert_eq!(cache.remove(7), None);
        assert!(cache.is_empty());
    }
}
