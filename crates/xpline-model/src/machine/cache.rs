//! One set-associative cache: which lines it holds and which of them are dirty. No time in here.

use prefetch_index::prefetch_index;

use crate::modulus::Modulus;
use crate::platform::Replacement;
use crate::tags;

/// A line that replacement pushed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    pub line: u64,
    pub dirty: bool,
}

/// A group of lines and the way of their sets that one of them was put in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbour {
    group: u64,
    way: usize,
}

/// Lines of a group, which is 256 B: they go to neighbouring sets of one slice.
const GROUP: u64 = 4;

const DIRTY: u32 = tags::MARK;
const EMPTY: u32 = 0;

/// Lines are numbered from 0 (address / 64) and stay below 2^31 - 1, which is 128 GiB.
pub struct Cache {
    /// A line number plus 1 and its [`DIRTY`] bit each; within a set the most recently used comes first, but with random replacement
    /// each line keeps its way.
    /// A set starts every `stride` entries from `first` on, such that one of 16 ways or less is in one line of the host's cache.
    entries: Vec<u32>,
    first: usize,
    /// Entries of a set that tags are looked for in, a multiple of [`tags::BLOCK`].
    used: usize,
    stride: usize,
    ways: usize,
    /// Sets of a slice, indexed by the low bits of the line; a hash of its group chooses the slice.
    sets: Modulus,
    slices: u64,
    replacement: Replacement,
    /// Lines held, and lines that fit in: most programs leave some caches empty.
    occupied: usize,
    capacity: usize,
    random: u64,
}

/// Where a set of a cache starts.
#[derive(Clone, Copy)]
pub struct Set(usize);

/// Entries in a line of the host's cache.
const HOST_LINE: usize = 16;

impl Cache {
    pub fn new(lines: u64, ways: u32, slices: u32, replacement: Replacement) -> Self {
        let sets = lines / u64::from(ways) / u64::from(slices);
        let used = (ways as usize).next_multiple_of(tags::BLOCK);
        let stride = if used <= HOST_LINE {
            used.next_power_of_two()
        } else {
            used
        };
        let entries = vec![EMPTY; (sets * u64::from(slices)) as usize * stride + HOST_LINE];
        Self {
            first: entries
                .as_ptr()
                .align_offset(HOST_LINE * size_of::<u32>())
                .min(HOST_LINE),
            entries,
            used,
            stride,
            ways: ways as usize,
            sets: Modulus::new(sets),
            slices: u64::from(slices),
            replacement,
            occupied: 0,
            capacity: (sets * u64::from(slices)) as usize * ways as usize,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// The set of a line.
    #[inline(always)]
    pub fn set_of(&self, line: u64) -> Set {
        let mut set = self.sets.of(line);
        if self.slices > 1 {
            // Fibonacci hashing; the high half scaled to the number of slices, which need not be a power of two.
            let spread = (line / GROUP).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            set += ((spread * self.slices) >> 32) * self.sets.get();
        }
        Set(self.first + set as usize * self.stride)
    }

    #[inline(always)]
    fn entries(&self, set: Set) -> &[u32] {
        &self.entries[set.0..set.0 + self.used]
    }

    #[inline(always)]
    fn entries_mut(&mut self, set: Set) -> &mut [u32] {
        &mut self.entries[set.0..set.0 + self.used]
    }

    /// A set will be looked up soon: the host fetches it meanwhile.
    #[inline]
    pub fn expect(&self, set: Set) {
        prefetch_index(&self.entries, set.0);
        if self.stride > HOST_LINE {
            prefetch_index(&self.entries, set.0 + self.ways - 1);
        }
    }

    /// The line that will go first from a set, where the least recently used goes.
    #[inline(always)]
    pub fn next_victim(&self, set: Set) -> u64 {
        u64::from(self.entries(set)[self.ways - 1] & !DIRTY).wrapping_sub(1)
    }

    /// Whether the line is here; if so it becomes the most recently used, and dirty when `write`.
    #[inline]
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        self.touch_in(self.set_of(line), line, write)
    }

    /// The same, of a line whose set is known.
    #[inline(always)]
    pub fn touch_in(&mut self, set: Set, line: u64, write: bool) -> bool {
        let entries = self.entries_mut(set);
        let Some(way) = find(entries, line) else { return false };
        let entry = entries[way] | if write { DIRTY } else { 0 };
        tags::to_front(entries, way, entry);
        true
    }

    /// Whether the line is here, without using it.
    pub fn holds(&self, line: u64) -> bool {
        find(self.entries(self.set_of(line)), line).is_some()
    }

    /// Put in a line that is not here; the victim, the one used longest ago, is returned.
    #[inline]
    pub fn insert(&mut self, line: u64, dirty: bool) -> Option<Victim> {
        self.insert_in(self.set_of(line), line, dirty)
    }

    /// The same, of a line whose set is known.
    #[inline(always)]
    pub fn insert_in(&mut self, set: Set, line: u64, dirty: bool) -> Option<Victim> {
        let last = self.ways - 1;
        let entries = self.entries_mut(set);
        let old = entries[last];
        tags::to_front(entries, last, entry(line, dirty));
        self.replaced(old)
    }

    /// The same by the replacement of this cache, behind the line that `before` tells of. Random replacement puts a line of the same
    /// group into the same way with a chance of `in_step` in 2^32.
    #[inline]
    pub fn insert_beside(
        &mut self,
        line: u64,
        dirty: bool,
        before: &mut Neighbour,
        in_step: impl Fn() -> u32,
    ) -> Option<Victim> {
        if self.replacement == Replacement::Lru {
            return self.insert(line, dirty);
        }
        let group = line / GROUP;
        let mut way = self.random_way();
        if before.group == group && (self.random as u32) < in_step() {
            way = before.way;
        }
        let has_holes = self.occupied < self.capacity;
        let ways = self.ways;
        let entries = self.entries_mut(self.set_of(line));
        if has_holes && entries[way] != EMPTY {
            way = tags::find(entries, EMPTY).filter(|&way| way < ways).unwrap_or(way);
        }
        *before = Neighbour { group, way };
        let old = std::mem::replace(&mut entries[way], entry(line, dirty));
        self.replaced(old)
    }

    #[inline]
    fn replaced(&mut self, old: u32) -> Option<Victim> {
        if old == EMPTY {
            self.occupied += 1;
            return None;
        }
        Some(Victim {
            line: u64::from(old & !DIRTY) - 1,
            dirty: old & DIRTY != 0,
        })
    }

    #[inline]
    fn random_way(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (((self.random >> 32) * self.ways as u64) >> 32) as usize
    }

    /// Take the line out; `Some(dirty)` if it was here.
    #[inline(always)]
    pub fn remove(&mut self, line: u64) -> Option<bool> {
        if self.occupied == 0 {
            return None;
        }
        let (last, random) = (self.ways - 1, self.replacement == Replacement::Random);
        let entries = self.entries_mut(self.set_of(line));
        let way = find(entries, line)?;
        let dirty = entries[way] & DIRTY != 0;
        if random {
            entries[way] = EMPTY;
        } else {
            entries.copy_within(way + 1..=last, way);
            entries[last] = EMPTY;
        }
        self.occupied -= 1;
        Some(dirty)
    }

    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
        self.occupied = 0;
    }

    /// Mark the line clean; `Some(was_dirty)` if it is here.
    #[inline]
    pub fn clean(&mut self, line: u64) -> Option<bool> {
        if self.occupied == 0 {
            return None;
        }
        let entries = self.entries_mut(self.set_of(line));
        let way = find(entries, line)?;
        let dirty = entries[way] & DIRTY != 0;
        entries[way] &= !DIRTY;
        Some(dirty)
    }

    /// Dirty lines held, for conservation checks.
    pub fn dirty_lines(&self) -> u64 {
        self.entries.iter().filter(|&&entry| entry & DIRTY != 0).count() as u64
    }
}

#[inline]
fn key(line: u64) -> u32 {
    (line as u32).wrapping_add(1)
}

#[inline]
fn entry(line: u64, dirty: bool) -> u32 {
    key(line) | if dirty { DIRTY } else { 0 }
}

#[inline(always)]
fn find(set: &[u32], line: u64) -> Option<usize> {
    tags::find(set, key(line))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

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
        assert_eq!(cache.occupied, 0);
    }

    proptest! {
        /// Whatever goes in is held until it is given up or taken out, and nothing is given up while its set has room.
        #[test]
        fn random_sets_lose_nothing(
            ways in 1..18u32, steps in vec((0..4u8, 0..90u64, any::<bool>()), 0..400), in_step: u32,
        ) {
            let sets = 4;
            let mut cache = Cache::new(sets * u64::from(ways), ways, 1, Replacement::Random);
            let mut held = std::collections::BTreeMap::new();
            let mut before = Neighbour::default();
            for (step, line, dirty) in steps {
                if step == 0 {
                    prop_assert_eq!(cache.remove(line), held.remove(&line));
                } else if !held.contains_key(&line) {
                    let neighbours = held.keys().filter(|&other| other % sets == line % sets).count();
                    let victim = cache.insert_beside(line, dirty, &mut before, || in_step);
                    prop_assert_eq!(victim.is_some(), neighbours == ways as usize);
                    if let Some(victim) = victim {
                        prop_assert_eq!(held.remove(&victim.line), Some(victim.dirty));
                        prop_assert_eq!(victim.line % sets, line % sets);
                    }
                    held.insert(line, dirty);
                }
            }
            prop_assert!((0..90).all(|line| cache.holds(line) == held.contains_key(&line)));
        }

        /// The same as a list a set, the line used last at its front.
        #[test]
        fn lru_sets_are_lists(sets in 1..6u64, ways in 1..18u32, steps in vec((0..4u8, 0..60u64, any::<bool>()), 0..400)) {
            let mut cache = Cache::new(sets * u64::from(ways), ways, 1, Replacement::Lru);
            let mut lists = vec![Vec::<(u64, bool)>::new(); sets as usize];
            for (step, line, dirty) in steps {
                let list = &mut lists[(line % sets) as usize];
                let place = list.iter().position(|entry| entry.0 == line);
                let held = place.map(|place| list.remove(place).1);
                match (step, held) {
                    (0, _) => {
                        prop_assert_eq!(cache.touch(line, dirty), held.is_some());
                        held.into_iter().for_each(|was_dirty| list.insert(0, (line, was_dirty || dirty)));
                    }
                    (1, None) => {
                        let victim = if list.len() == ways as usize { list.pop() } else { None };
                        let victim = victim.map(|(line, dirty)| Victim { line, dirty });
                        prop_assert_eq!(cache.insert(line, dirty), victim);
                        list.insert(0, (line, dirty));
                    }
                    (2, _) => prop_assert_eq!(cache.remove(line), held),
                    _ => {
                        prop_assert_eq!(cache.clean(line), held);
                        place.into_iter().for_each(|place| list.insert(place, (line, false)));
                    }
                }
            }
            let dirty = lists.iter().flatten().filter(|entry| entry.1).count();
            prop_assert_eq!(cache.dirty_lines(), dirty as u64);
        }
    }
}
