//! DRAM as a cache of pages in front of NAND flash, in one module: every write ends in the DRAM, and a power failure finds enough stored
//! energy to bring what is dirty to the flash.

use super::Place;
use super::dram::DramDimm;
use crate::counters::DimmCounters;
use crate::machine::cache::Cache;
use crate::machine::pending::Pending;
use crate::platform::{Dram, Hybrid, Replacement};
use crate::time::Time;
use crate::way::{Follow, Part};

pub struct HybridDimm {
    dram: DramDimm,
    /// Pages in the DRAM.
    pages: Cache,
    page_shift: u32,
    /// Pages on their way from the flash.
    filling: Pending,
    /// When each die of the flash is free.
    dies: Vec<Time>,
    read: Time,
    program: Time,
    /// When each of the pages last given to the flash was written, oldest first from `next` on.
    staged: Vec<Time>,
    next: usize,
    counters: DimmCounters,
}

impl HybridDimm {
    pub fn new(hybrid: &Hybrid, dram: &Dram, place: Place) -> Self {
        let lines = hybrid.cache / hybrid.page;
        let mut pages = Cache::new(lines, hybrid.ways, 1, Replacement::Lru);
        // A module that has been in use for long: it holds as much as it can.
        (0..lines).for_each(|page| _ = pages.insert(page, false));
        Self {
            dram: DramDimm::new(dram, place),
            pages,
            page_shift: hybrid.page.trailing_zeros(),
            filling: Pending::new(hybrid.fills),
            dies: vec![0; hybrid.dies as usize],
            read: hybrid.read,
            program: hybrid.program,
            staged: vec![0; hybrid.write_buffer as usize],
            next: 0,
            counters: DimmCounters::default(),
        }
    }

    /// Read 64 B at a module-local address; returns when the data leave it.
    #[inline]
    pub fn read<F: Follow>(&mut self, address: u64, at: Time, follow: &mut F) -> Time {
        self.counters.reads += 1;
        let here = self.bring(address, false, at);
        follow.passes(Part::Flash, at, here);
        self.dram.read(address, here, follow)
    }

    /// Write 64 B; returns when the module takes them. What the page has besides may still be on its way.
    #[inline]
    pub fn write<F: Follow>(&mut self, address: u64, at: Time, follow: &mut F) -> Time {
        self.counters.writes += 1;
        let page = address >> self.page_shift;
        let room = if self.pages.touch(page, true) {
            self.counters.buffer_hits += 1;
            at
        } else {
            self.fetch(page, true, at).1
        };
        follow.passes(Part::Flash, at, room);
        self.dram.write(address, room, follow)
    }

    /// Have the page of an address in the DRAM; returns when it is there.
    #[inline]
    fn bring(&mut self, address: u64, dirty: bool, at: Time) -> Time {
        let page = address >> self.page_shift;
        if self.pages.touch(page, dirty) {
            self.counters.buffer_hits += 1;
            return self.filling.under_way(page, at).unwrap_or(at);
        }
        self.fetch(page, dirty, at).0
    }

    /// Ask the flash for a page; returns when it is there, and when there was room for it.
    fn fetch(&mut self, page: u64, dirty: bool, at: Time) -> (Time, Time) {
        self.counters.buffer_misses += 1;
        let mut room = at.max(self.filling.free_at());
        if let Some(victim) = self.pages.insert(page, dirty)
            && victim.dirty
        {
            room = room.max(self.staged[self.next]);
            self.counters.media_writes += 1;
            let written = self.use_die(victim.line, room, self.program);
            self.staged[self.next] = written;
            self.next = (self.next + 1) % self.staged.len();
        }
        self.counters.media_reads += 1;
        let here = self.use_die(page, room, self.read);
        self.filling.occupy(page, here);
        (here, room)
    }

    /// Keep the die of a page busy for a time, not before `at`; returns when it is done.
    fn use_die(&mut self, page: u64, at: Time, duration: Time) -> Time {
        let die = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.dies.len();
        let done = self.dies[die].max(at) + duration;
        self.dies[die] = done;
        done
    }

    pub fn counters(&self) -> DimmCounters {
        self.counters
    }

    /// Lines that the flash has read.
    pub fn media_reads(&self) -> u64 {
        self.counters.media_reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimm::of_tests::ALONE;
    use crate::platform::{Memory, Platform};
    use crate::way::Nobody;

    /// Two pages of DRAM in front of one die that reads in 1000 ps and writes in 5000 ps.
    fn module() -> HybridDimm {
        let platform = Platform::builtin("cxl-hybrid").unwrap();
        let Memory::Hybrid(mut hybrid, dram) = platform.memory else {
            unreachable!("cxl-hybrid is a hybrid")
        };
        (hybrid.cache, hybrid.ways, hybrid.dies, hybrid.write_buffer) = (2 * hybrid.page, 2, 1, 1);
        (hybrid.read, hybrid.program) = (1_000_000, 5_000_000);
        HybridDimm::new(&hybrid, &dram, ALONE)
    }

    #[test]
    fn a_page_in_dram_is_quick_and_another_waits_for_the_flash() {
        let mut module = module();
        let hit = module.read(4096, 0, &mut Nobody);
        let miss = module.read(3 * 4096, 1_000_000, &mut Nobody) - 1_000_000;
        assert!(hit < 100_000 && miss > 1_000_000 && miss < 1_100_000, "{hit} {miss}");
        assert_eq!((module.counters().media_reads, module.counters().media_writes), (1, 0));
    }

    #[test]
    fn a_line_of_a_page_on_its_way_waits_for_it() {
        let mut module = module();
        let first = module.read(3 * 4096, 0, &mut Nobody);
        let second = module.read(3 * 4096 + 64, 10, &mut Nobody);
        assert!(second >= 1_000_000 && second < first + 100_000);
        assert_eq!(module.counters().media_reads, 1);
    }

    #[test]
    fn dirty_pages_go_to_the_flash_when_others_come() {
        let mut module = module();
        module.write(0, 0, &mut Nobody);
        module.write(4096, 0, &mut Nobody);
        assert_eq!(module.counters().media_writes, 0);
        module.read(5 * 4096, 1_000, &mut Nobody);
        let late = module.read(7 * 4096, 2_000, &mut Nobody);
        assert_eq!(module.counters().media_writes, 2);
        assert!(late > 10_000_000, "two programs and two reads of one die: {late}");
    }
}
