//! The cache hierarchy: a private L1d and L2 a core, and an L3 a socket that takes what its L2s give up (non-inclusive).
//!
//! It answers where a line was found and which dirty lines leave for memory; time is the core's business.
//! Lines shared between cores are not kept coherent: LATTester's threads work on data of their own.

use super::cache::{Cache, Neighbour, Set, Victim};
use crate::counters::CacheCounters;
use crate::platform::{Platform, Replacement, Sockets};

/// Where a look-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    L1,
    L2,
    L3,
    Memory,
}

/// Dirty lines that one access pushed out of the L3 (at most the victims of one L2 and one L1 victim).
#[derive(Default)]
pub struct WriteBacks {
    lines: [u64; 3],
    count: usize,
}

impl WriteBacks {
    #[inline]
    fn push(&mut self, line: u64) {
        self.lines[self.count] = line;
        self.count += 1;
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.lines[..self.count].iter().copied()
    }
}

struct Private {
    l1d: Cache,
    l2: Cache,
    /// Which of the L3s is that of its socket.
    l3: usize,
    /// What it gave to the L3 last.
    given: Neighbour,
    /// The set of the L2 that was last said to be looked up soon.
    expected: Set,
}

pub struct Hierarchy {
    private: Vec<Private>,
    /// One for each socket that has cores in use.
    l3s: Vec<Cache>,
    pub l1d_counters: CacheCounters,
    pub l2_counters: CacheCounters,
    pub l3_counters: CacheCounters,
}

const LINE: u64 = 64;

impl Hierarchy {
    pub fn new(platform: &Platform) -> Self {
        let sockets = platform.nodes.cpu;
        let both = sockets == Sockets::Both;
        let private = |core| {
            let l2 = Cache::new(platform.l2.size / LINE, platform.l2.ways, 1, Replacement::Lru);
            Private {
                l1d: Cache::new(platform.l1d.size / LINE, platform.l1d.ways, 1, Replacement::Lru),
                l3: if both { sockets.of(core) } else { 0 },
                given: Neighbour::default(),
                expected: l2.set_of(0),
                l2,
            }
        };
        let (lines, l3) = (platform.l3.size / LINE, &platform.l3);
        Self {
            private: (0..platform.core.count as usize).map(private).collect(),
            l3s: (0..if both { 2 } else { 1 })
                .map(|_| Cache::new(lines, l3.ways, l3.slices, l3.replacement))
                .collect(),
            l1d_counters: CacheCounters::default(),
            l2_counters: CacheCounters::default(),
            l3_counters: CacheCounters::default(),
        }
    }

    /// Look the line up for a load (`write` = false) or a store; it is in the L1d afterwards. What it pushes out of the L2 is `in_step`
    /// with what went there before: see [`Cache::insert_beside`].
    #[inline]
    pub fn access(
        &mut self,
        core: usize,
        line: u64,
        write: bool,
        in_step: impl Fn() -> u32,
        out: &mut WriteBacks,
    ) -> Found {
        let l1d = &mut self.private[core].l1d;
        let set = l1d.set_of(line);
        if l1d.touch_in(set, line, write) {
            self.l1d_counters.hits += 1;
            return Found::L1;
        }
        self.l1d_counters.misses += 1;
        let found = self.bring(core, line, in_step, out);
        self.fill_l1d(core, set, line, write);
        found
    }

    /// Look up a line that is not in the L1d; it is in the L2 afterwards.
    fn bring(&mut self, core: usize, line: u64, in_step: impl Fn() -> u32, out: &mut WriteBacks) -> Found {
        let private = &mut self.private[core];
        let set = private.l2.set_of(line);
        if private.l2.touch_in(set, line, false) {
            self.l2_counters.hits += 1;
            return Found::L2;
        }
        self.l2_counters.misses += 1;
        let in_l3 = self.l3s[private.l3].remove(line);
        self.fill_l2(core, set, line, in_l3 == Some(true), in_step, out);
        if in_l3.is_some() {
            self.l3_counters.hits += 1;
            Found::L3
        } else {
            self.l3_counters.misses += 1;
            Found::Memory
        }
    }

    /// A line will be looked up soon: the host fetches meanwhile what the L2 and the L3 hold in its place. Of the line before, whose
    /// place in the L2 it has by now, it fetches what the L3 holds in the place of the line that will probably be pushed out.
    #[inline]
    pub fn expect(&mut self, core: usize, line: u64) {
        let Private { l2, l3, expected, .. } = &mut self.private[core];
        let l3 = &self.l3s[*l3];
        l3.expect(l3.set_of(l2.next_victim(*expected)));
        *expected = l2.set_of(line);
        l2.expect(*expected);
        l3.expect(l3.set_of(line));
    }

    /// Bring a line into the L2 of a core, for a prefetcher; returns where it was, or `None` where it was there already.
    pub fn prefetch(&mut self, core: usize, line: u64, out: &mut WriteBacks) -> Option<Found> {
        let private = &mut self.private[core];
        if private.l2.holds(line) {
            return None;
        }
        let (in_l3, set) = (self.l3s[private.l3].remove(line), private.l2.set_of(line));
        self.fill_l2(core, set, line, in_l3 == Some(true), || 0, out);
        Some(if in_l3.is_some() { Found::L3 } else { Found::Memory })
    }

    #[inline]
    fn fill_l2(
        &mut self,
        core: usize,
        set: Set,
        line: u64,
        dirty: bool,
        in_step: impl Fn() -> u32,
        out: &mut WriteBacks,
    ) {
        let private = &mut self.private[core];
        if let Some(victim) = private.l2.insert_in(set, line, dirty) {
            // The L2 holds every line of its L1d, so a line leaves both.
            let dirty = private.l1d.remove(victim.line).unwrap_or(false) || victim.dirty;
            let line = victim.line;
            self.give_to_l3(core, Victim { line, dirty }, in_step, out);
        }
    }

    #[inline]
    fn fill_l1d(&mut self, core: usize, set: Set, line: u64, dirty: bool) {
        let private = &mut self.private[core];
        if let Some(victim) = private.l1d.insert_in(set, line, dirty)
            && victim.dirty
        {
            self.l1d_counters.dirty_evictions += 1;
            let held = private.l2.touch(victim.line, true);
            debug_assert!(held, "the L2 holds every line of its L1d");
        }
    }

    #[inline]
    fn give_to_l3(&mut self, core: usize, victim: Victim, in_step: impl Fn() -> u32, out: &mut WriteBacks) {
        self.l2_counters.dirty_evictions += u64::from(victim.dirty);
        let private = &mut self.private[core];
        if let Some(old) = self.l3s[private.l3].insert_beside(victim.line, victim.dirty, &mut private.given, in_step)
            && old.dirty
        {
            self.l3_counters.dirty_evictions += 1;
            out.push(old.line);
        }
    }

    /// Put a line into the L3 as if it had passed through the private caches; its next uses by the same core are one use.
    #[inline]
    pub fn pass_to_l3(&mut self, core: usize, line: u64, write: bool, in_step: u32) {
        let private = &mut self.private[core];
        if private.l1d.touch(line, write) {
            return;
        }
        private.l1d.insert(line, write);
        let l3 = &mut self.l3s[private.l3];
        let dirty = l3.remove(line).unwrap_or(false);
        l3.insert_beside(line, dirty || write, &mut private.given, || in_step);
    }

    /// Drop a line that [`Hierarchy::pass_to_l3`] may have put in.
    pub fn forget(&mut self, core: usize, line: u64) {
        self.private[core].l1d.remove(line);
        self.drop_line(core, line);
    }

    /// Forget what the L1ds hold.
    pub fn empty_l1ds(&mut self) {
        self.private.iter_mut().for_each(|private| private.l1d.clear());
    }

    /// Write the line back and keep it (clwb): true if it was dirty anywhere in reach of this core.
    #[inline]
    pub fn write_back(&mut self, core: usize, line: u64) -> bool {
        let private = &mut self.private[core];
        let l1d = private.l1d.clean(line).unwrap_or(false);
        match private.l2.clean(line) {
            Some(l2) => l1d || l2,
            None => l1d || self.l3s[private.l3].clean(line).unwrap_or(false),
        }
    }

    /// Drop the line (clflush, clflushopt, ntstore): `Some(dirty)` if it was cached.
    #[inline]
    pub fn drop_line(&mut self, core: usize, line: u64) -> Option<bool> {
        let private = &mut self.private[core];
        if let Some(l2) = private.l2.remove(line) {
            let l1d = private.l1d.remove(line).unwrap_or(false);
            return Some(l1d || l2);
        }
        self.l3s[private.l3].remove(line)
    }

    pub fn reset_counters(&mut self) {
        self.l1d_counters = CacheCounters::default();
        self.l2_counters = CacheCounters::default();
        self.l3_counters = CacheCounters::default();
    }

    /// Dirty lines in all caches.
    pub fn dirty_lines(&self) -> u64 {
        let private: u64 = self
            .private
            .iter()
            .map(|p| p.l1d.dirty_lines() + p.l2.dirty_lines())
            .sum();
        private + self.l3s.iter().map(Cache::dirty_lines).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_to_the_l3_is_found_there_once_and_dirty_if_it_was_ever_written() {
        let mut caches = Hierarchy::new(&Platform::builtin("optane").unwrap());
        for (line, write) in [(1, true), (2, false), (1, false), (3, true)] {
            caches.pass_to_l3(0, line, write, 0);
        }
        caches.forget(0, 3);
        caches.pass_to_l3(0, 3, false, 0);
        caches.empty_l1ds();
        assert_eq!(caches.dirty_lines(), 1);
        let mut out = WriteBacks::default();
        let found = [1, 2, 3, 4].map(|line| caches.access(0, line, false, || 0, &mut out));
        assert_eq!(found, [Found::L3, Found::L3, Found::L3, Found::Memory]);
        assert!(caches.write_back(0, 1) && !caches.write_back(0, 2));
    }
}
