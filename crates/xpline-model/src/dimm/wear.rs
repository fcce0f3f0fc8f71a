//! Wear levelling: a page that was written too often in one place moves to another, and can be neither read nor written meanwhile.
//!
//! Lines are counted, pages are moved: writes to a line do not bring its neighbours' counters any further, but a move resets all
//! counters of the page. The counters are few; of lines that share a place for them, the least written is forgotten.

use crate::platform::{Optane, Wear};
use crate::time::Time;

/// Counters in which a line is looked for.
const WAYS: usize = 4;

/// Groups of [`WAYS`] counters: 512 lines in a row that are written over and over are told apart, and most of 1024.
const GROUPS: usize = 256;

#[derive(Clone, Copy, Default)]
struct Counter {
    xpline: u32,
    /// Bytes written since the page last moved, in pieces of 64 B.
    pieces: u32,
}

pub struct WearLeveling {
    counters: Vec<[Counter; WAYS]>,
    /// Pieces written to one line after which its page moves.
    limit: u32,
    /// Lines of a page, as a shift.
    page_shift: u32,
    duration: Time,
    /// Pages on the move, and when each has arrived.
    moving: Vec<(u64, Time)>,
    /// When the last of them has arrived.
    calm_from: Time,
    pub moves: u64,
}

impl WearLeveling {
    pub fn new(optane: &Optane) -> Self {
        let Wear { interval, stall } = optane.wear;
        Self {
            counters: vec![Default::default(); GROUPS],
            limit: interval.saturating_mul((optane.xpbuffer.line / 64) as u32),
            page_shift: (optane.ait.page / optane.xpbuffer.line).trailing_zeros(),
            duration: stall,
            moving: Vec::new(),
            calm_from: 0,
            moves: 0,
        }
    }

    /// When an access to the line that comes `at` may go on: at once, unless its page is on the move.
    #[inline]
    pub fn free_at(&self, xpline: u64, at: Time) -> Time {
        if at >= self.calm_from {
            return at;
        }
        let page = xpline >> self.page_shift;
        let moving = self.moving.iter().filter(|(moved, _)| *moved == page);
        moving.map(|&(_, arrived)| arrived).fold(at, Time::max)
    }

    /// Count so many 64 B pieces written to a line `at`; at the limit its page begins to move.
    #[inline]
    pub fn count(&mut self, xpline: u64, pieces: u32, at: Time) {
        let counter = self.counter(xpline);
        counter.pieces += pieces;
        if counter.pieces >= self.limit {
            self.move_page(xpline >> self.page_shift, at);
        }
    }

    #[inline]
    fn group(xpline: u64) -> usize {
        (xpline.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % GROUPS
    }

    /// The counter of a line; if it has none, the least of its group begins anew as its.
    #[inline]
    fn counter(&mut self, xpline: u64) -> &mut Counter {
        let key = xpline as u32;
        let group = &mut self.counters[Self::group(xpline)];
        if let Some(way) = group.iter().position(|counter| counter.xpline == key) {
            return &mut group[way];
        }
        let least = group.iter_mut().min_by_key(|counter| counter.pieces);
        let counter = least.expect("a group has counters");
        *counter = Counter { xpline: key, pieces: 0 };
        counter
    }

    #[cold]
    fn move_page(&mut self, page: u64, at: Time) {
        for counter in self.counters.iter_mut().flatten() {
            if u64::from(counter.xpline) >> self.page_shift == page {
                counter.pieces = 0;
            }
        }
        self.moves += 1;
        self.moving.retain(|&(_, arrived)| arrived > at);
        self.moving.push((page, at + self.duration));
        self.calm_from = self.calm_from.max(at + self.duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimm::of_tests::optane;

    /// Three writes of a 256 B line move its page of 16 lines, for 1000 ps.
    fn wear() -> WearLeveling {
        let mut optane = optane(&[]);
        optane.wear = Wear {
            interval: 3,
            stall: 1000,
        };
        WearLeveling::new(&optane)
    }

    #[test]
    fn the_third_write_of_a_line_moves_its_page() {
        let mut wear = wear();
        wear.count(5, 4, 10);
        wear.count(5, 4, 20);
        assert_eq!((wear.moves, wear.free_at(5, 25)), (0, 25));
        wear.count(5, 4, 30);
        assert_eq!(wear.moves, 1);
        assert_eq!(wear.free_at(5, 40), 1030);
        assert_eq!(wear.free_at(0, 40), 1030, "lines 0 to 15 share the page");
        assert_eq!(wear.free_at(16, 40), 40, "line 16 is on the next page");
        assert_eq!(wear.free_at(5, 1030), 1030);
    }

    #[test]
    fn lines_are_counted_apart_and_a_move_resets_the_page() {
        let mut wear = wear();
        wear.count(5, 8, 0);
        wear.count(6, 8, 0);
        wear.count(20, 8, 0);
        assert_eq!(wear.moves, 0, "none was written three times");
        wear.count(5, 4, 0);
        wear.count(6, 8, 2000);
        assert_eq!(wear.moves, 1, "line 6 began anew when the page moved");
        wear.count(20, 4, 2000);
        assert_eq!(wear.moves, 2, "line 20 is on another page");
    }

    #[test]
    fn parts_of_a_line_add_up() {
        let mut wear = wear();
        (0..11).for_each(|_| wear.count(5, 1, 0));
        assert_eq!(wear.moves, 0);
        wear.count(5, 1, 0);
        assert_eq!(wear.moves, 1);
    }

    #[test]
    fn two_pages_may_be_on_the_move() {
        let mut wear = wear();
        wear.count(0, 12, 0);
        wear.count(16, 12, 500);
        assert_eq!((wear.free_at(0, 600), wear.free_at(16, 600)), (1000, 1500));
        assert_eq!(wear.free_at(0, 1200), 1200);
    }

    /// Every line of 32 pages is written three times in turn: the first of each page moves it.
    #[test]
    fn hot_spots_of_128_kib_are_counted_exactly() {
        let mut wear = wear();
        for _ in 0..3 {
            (0..512).for_each(|xpline| wear.count(xpline, 4, 0));
        }
        assert_eq!(wear.moves, 32);
    }

    #[test]
    fn a_line_that_is_written_often_keeps_its_counter_among_many() {
        let mut wear = wear();
        wear.count(5, 8, 0);
        (1 << 20..2 << 20).for_each(|xpline| wear.count(xpline, 1, 0));
        wear.count(5, 4, 0);
        assert_eq!(wear.moves, 1);
    }
}
