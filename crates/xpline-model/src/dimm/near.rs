//! Memory Mode: the DRAM DIMM of a channel as a cache in front of its Optane DIMM.
//!
//! The cache is direct-mapped and write-back, and the memory controller looks after it: nothing crosses channels. A line's tag
//! lies with its data, so that to look a line up is to read it. A hit is a read of DRAM. A miss reads Optane after that, and puts what
//! comes in the place of what was there, which goes back to Optane if it was written. All of it is volatile: nobody
//! says which writes have reached Optane.
//!
//! Frames begin with whatever is asked of them first, as in the middle of a long run.

use std::collections::HashMap;

use super::dram::DramDimm;
use super::optane::OptaneDimm;
use super::{MediaWrite, Place};
use crate::counters::DimmCounters;
use crate::platform::{Dram, MemoryMode, Pages};
use crate::time::Time;
use crate::way::{Follow, Nobody, Part};

const LINE: u64 = 64;
const PAGE_SHIFT: u32 = 12;
const PAGE: u64 = 1 << PAGE_SHIFT;

pub struct NearFar {
    near: DramDimm,
    far: OptaneDimm,
    frames: Frames,
    line_shift: u32,
    /// What a miss takes in the controller, besides both memories.
    miss: Time,
    /// When each of the lines last sent back to Optane was taken, oldest first from `next_victim`.
    victims: Vec<Time>,
    next_victim: usize,
    hits: u64,
    misses: u64,
    write_backs: u64,
}

/// A look-up in the cache.
struct Found {
    /// Address in the near memory.
    slot: u64,
    /// The line that was in the place of the one asked for, by its address, if it has to go back.
    victim: Option<u64>,
    hit: bool,
}

impl NearFar {
    pub fn new(mode: &MemoryMode, near: &Dram, place: Place) -> Self {
        Self {
            near: DramDimm::new(near, place),
            far: OptaneDimm::new(&mode.far),
            frames: Frames::new(mode),
            line_shift: mode.near.line.trailing_zeros(),
            miss: mode.near.miss,
            victims: vec![0; mode.near.victims as usize],
            next_victim: 0,
            hits: 0,
            misses: 0,
            write_backs: 0,
        }
    }

    /// Read 64 B while `in_flight` requests are under way on the channel; returns when the data are in the memory controller.
    #[inline]
    pub fn read<F: Follow>(&mut self, address: u64, at: Time, in_flight: u32, follow: &mut F) -> Time {
        let found = self.look_up(address, false);
        let known = self.near.read(found.slot, at, follow);
        if found.hit {
            return known;
        }
        let asked = known + self.miss;
        follow.passes(Part::NearMiss, known, asked);
        let room = self.give_back(found.victim, asked, 0);
        let come = self.far.read(address, asked, in_flight, follow);
        let ready = come.max(room);
        follow.passes(Part::Victims, come, ready);
        self.fetch_rest(address, asked, in_flight);
        self.fill(found.slot, ready, &mut Nobody);
        ready
    }

    /// Write 64 B; returns when the write pending queue is rid of them.
    #[inline]
    pub fn write<F: Follow>(&mut self, address: u64, at: Time, waited: Time, in_flight: u32, follow: &mut F) -> Time {
        let found = self.look_up(address, true);
        self.near.read(found.slot, at, &mut Nobody);
        if found.hit {
            return self.near.write(found.slot, at, follow);
        }
        let room = self.give_back(found.victim, at, waited);
        self.fetch_rest(address, at, in_flight);
        let taken = self.fill(found.slot, at, follow);
        follow.passes(Part::Victims, taken, taken.max(room));
        taken.max(room)
    }

    fn look_up(&mut self, address: u64, write: bool) -> Found {
        let found = self.frames.replace(address, write);
        if found.hit {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
        found
    }

    /// Send a written line back to Optane; returns when there was room for it among those on their way.
    fn give_back(&mut self, victim: Option<u64>, at: Time, waited: Time) -> Time {
        let Some(victim) = victim else { return at };
        self.write_backs += 1;
        let mut taken = at;
        for piece in 0..1 << (self.line_shift - LINE.trailing_zeros()) {
            taken = self.far.write(victim + piece * LINE, taken, waited, &mut Nobody);
        }
        let room = std::mem::replace(&mut self.victims[self.next_victim], taken);
        self.next_victim = (self.next_victim + 1) % self.victims.len();
        room.max(at)
    }

    /// Read what a long line has besides the 64 B asked for.
    fn fetch_rest(&mut self, address: u64, at: Time, in_flight: u32) {
        let first = address >> self.line_shift << self.line_shift;
        let rest = (first..first + (1 << self.line_shift)).step_by(LINE as usize);
        for piece in rest.filter(|&piece| piece != address / LINE * LINE) {
            self.far.read(piece, at, in_flight, &mut Nobody);
        }
    }

    /// Write a whole line of the cache; returns when its first 64 B are taken.
    fn fill<F: Follow>(&mut self, slot: u64, at: Time, follow: &mut F) -> Time {
        let first = slot >> self.line_shift << self.line_shift;
        let taken = self.near.write(slot, at, follow);
        for piece in (first..first + (1 << self.line_shift)).step_by(LINE as usize) {
            if piece != slot / LINE * LINE {
                self.near.write(piece, at, &mut Nobody);
            }
        }
        taken
    }

    pub fn media_reads(&self) -> u64 {
        self.far.media_reads()
    }

    pub fn watch_media(&mut self) {
        self.far.watched = Some(Vec::new());
    }

    pub fn take_media_writes(&mut self) -> Vec<MediaWrite> {
        self.far.watched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Those of the Optane DIMM, and of the cache.
    pub fn counters(&self) -> DimmCounters {
        DimmCounters {
            near_hits: self.hits,
            near_misses: self.misses,
            near_write_backs: self.write_backs,
            ..self.far.counters()
        }
    }

    /// Written 64 B pieces that are in the cache or in the XPBuffer only. All of a long line counts once a piece of it is written.
    pub fn dirty_pieces(&self) -> u64 {
        self.far.dirty_pieces() + self.frames.dirty() * ((1 << self.line_shift) / LINE)
    }
}

/// The frames of the near memory, a page of 4 KiB each, and which lines they hold. A page of the address space always falls on the
/// same frame: the operating system places it once.
struct Frames {
    pages: Pages,
    count: u64,
    line_shift: u32,
    /// The frame of each page, where frames are handed out in order.
    placed: HashMap<u64, u64>,
    frames: HashMap<u64, Frame>,
}

/// The lines of a frame, all of one page as long as no other comes.
enum Frame {
    /// A page, and which of its lines were written, a bit each.
    One { page: u64, written: u64 },
    /// For each line, the page that it is of, and whether it was written.
    Several(Box<[(u32, bool)]>),
}

impl Frames {
    fn new(mode: &MemoryMode) -> Self {
        Self {
            pages: mode.near.pages,
            count: mode.near.size / PAGE,
            line_shift: mode.near.line.trailing_zeros(),
            placed: HashMap::new(),
            frames: HashMap::new(),
        }
    }

    /// The frame of a page.
    fn of(&mut self, page: u64) -> u64 {
        match self.pages {
            Pages::Contiguous => {
                let next = self.placed.len() as u64;
                *self.placed.entry(page).or_insert(next) % self.count
            }
            // The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): any page may be on any frame.
            Pages::Random => {
                let z = page.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (z ^ (z >> 31)) % self.count
            }
        }
    }

    /// Look a line up, and put it in if it is not there.
    #[inline]
    fn replace(&mut self, address: u64, write: bool) -> Found {
        let (page, within) = (address >> PAGE_SHIFT, address & (PAGE - 1));
        let line = (within >> self.line_shift) as usize;
        let frame = self.of(page);
        let held = self.frames.entry(frame).or_insert(Frame::One { page, written: 0 });
        let before = held.replace(line, page, write, PAGE >> self.line_shift);
        let gone = before.filter(|&(_, written)| written);
        Found {
            slot: frame << PAGE_SHIFT | within,
            victim: gone.map(|(page, _)| page << PAGE_SHIFT | (line as u64) << self.line_shift),
            hit: before.is_none(),
        }
    }

    /// Lines that were written and have not gone back.
    fn dirty(&self) -> u64 {
        let dirty = |frame: &Frame| match frame {
            Frame::One { written, .. } => u64::from(written.count_ones()),
            Frame::Several(lines) => lines.iter().filter(|(_, written)| *written).count() as u64,
        };
        self.frames.values().map(dirty).sum()
    }
}

impl Frame {
    /// Put a line of a page in; returns the page whose line had its place, and whether that was written, if it was another.
    fn replace(&mut self, line: usize, page: u64, write: bool, lines: u64) -> Option<(u64, bool)> {
        match self {
            Self::One { page: held, written } if *held == page => {
                *written |= u64::from(write) << line;
                return None;
            }
            Self::One { page, written } => {
                let each = |line| (*page as u32, *written >> line & 1 == 1);
                *self = Self::Several((0..lines).map(each).collect());
            }
            Self::Several(_) => {}
        }
        let Self::Several(lines) = self else { return None };
        let (held, written) = lines[line];
        if u64::from(held) == page {
            lines[line].1 |= write;
            return None;
        }
        lines[line] = (page as u32, write);
        Some((held.into(), written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Memory, Platform};

    fn mode(sets: &[&str]) -> MemoryMode {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        match Platform::load("memory-mode", &sets, &none).unwrap().memory {
            Memory::MemoryMode(mode) => *mode,
            _ => unreachable!("memory-mode is what it says"),
        }
    }

    #[test]
    fn pages_in_order_meet_when_the_frames_run_out() {
        let mut frames = Frames::new(&mode(&["near.size=64KiB"]));
        let pages: Vec<u64> = (0..18).map(|page| frames.of(page * 7)).collect();
        assert_eq!(pages[..16], (0..16).collect::<Vec<_>>());
        assert_eq!(pages[16..], [0, 1]);
        assert_eq!(frames.of(7), 1);
    }

    #[test]
    fn a_line_gives_way_to_that_of_another_page_and_goes_back_if_it_was_written() {
        let mut frames = Frames::new(&mode(&["near.size=64KiB"]));
        assert!(
            frames.replace(0x40, false).hit,
            "a frame begins with what is asked of it first"
        );
        assert!(frames.replace(0x80, true).hit);
        (1..16).for_each(|page| _ = frames.of(page));
        let other = 16 << PAGE_SHIFT;
        let clean = frames.replace(other + 0x40, false);
        assert!(!clean.hit && clean.victim.is_none());
        assert_eq!(clean.slot, 0x40);
        let written = frames.replace(other + 0x80, true);
        assert_eq!((written.hit, written.victim), (false, Some(0x80)));
        assert_eq!(frames.replace(0x80, false).victim, Some(other + 0x80));
        assert!(frames.replace(0xc0, false).hit, "the rest of the page is still there");
        assert_eq!(frames.dirty(), 0);
    }

    #[test]
    fn a_long_line_goes_and_comes_whole() {
        let mut frames = Frames::new(&mode(&["near.size=64KiB", "near.line=4KiB"]));
        assert!(frames.replace(0x40, true).hit);
        (1..16).for_each(|page| _ = frames.of(page));
        let other = 16 << PAGE_SHIFT;
        assert_eq!(frames.replace(other + 0x80, false).victim, Some(0));
        assert!(frames.replace(other + 0xfc0, false).hit);
        assert_eq!(frames.dirty(), 0);
    }
}
