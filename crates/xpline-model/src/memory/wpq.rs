//! The write pending queue of one channel: where a write becomes persistent (ADR).
//!
//! First in, first out. One core may hold at most a few of its entries, so that a slow DIMM blocks the core behind its own writes;
//! so may all cores of the other socket together.

use super::under_way::UnderWay;
use crate::time::Time;

/// A ring of the times at which entries leave the queue, oldest first, and of their lines.
struct Departures {
    times: Vec<Time>,
    lines: Vec<u64>,
    next: usize,
}

impl Departures {
    fn new(size: u32) -> Self {
        Self {
            times: vec![0; size as usize],
            lines: vec![0; size as usize],
            next: 0,
        }
    }

    /// When the oldest of the last `size` entries leaves: from then on there is room for another.
    #[inline]
    fn room_at(&self) -> Time {
        self.times[self.next]
    }

    #[inline]
    fn push(&mut self, line: u64, time: Time) {
        self.times[self.next] = time;
        self.lines[self.next] = line;
        self.next += 1;
        if self.next == self.times.len() {
            self.next = 0;
        }
    }

    /// When the entry of a line leaves, if that is after `now` and it is one of the last `recent`.
    #[inline]
    fn find(&self, line: u64, recent: usize, now: Time) -> Option<Time> {
        let size = self.times.len();
        (1..=recent.min(size)).find_map(|back| {
            let place = self.next.checked_sub(back).unwrap_or_else(|| self.next + size - back);
            (self.lines[place] == line && self.times[place] > now).then_some(self.times[place])
        })
    }
}

/// Who sends a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A core of the same socket: each has a share of the queue.
    Core(usize),
    /// The caches of the same socket: they have no share of their own.
    Caches,
    /// Anyone on the other socket: all have one share together.
    Link,
}

pub struct Wpq {
    all: Departures,
    per_core: Vec<Departures>,
    over_link: Departures,
    /// The entries of the queue, and what waits for room in it, until they leave.
    under_way: UnderWay,
    last_departure: Time,
    /// Of the last entries of a core, so many take newer data of their line along.
    combining: usize,
}

impl Wpq {
    pub fn new(entries: u32, per_core: u32, cores: u32, over_link: u32, combining: u32) -> Self {
        Self {
            combining: combining as usize,
            all: Departures::new(entries),
            per_core: (0..cores).map(|_| Departures::new(per_core)).collect(),
            over_link: Departures::new(over_link.min(entries)),
            under_way: UnderWay::new(),
            last_departure: 0,
        }
    }

    /// The earliest time at which a write finds room.
    #[inline]
    pub fn room_at(&self, source: Source) -> Time {
        let share = match source {
            Source::Core(core) => self.per_core[core].room_at(),
            Source::Caches => 0,
            Source::Link => self.over_link.room_at(),
        };
        self.all.room_at().max(share)
    }

    /// When the entry before the one to be added leaves: the queue keeps its order.
    #[inline]
    pub fn last_departure(&self) -> Time {
        self.last_departure
    }

    /// When the entry leaves that takes a write along: one of the core's last, of the same line and still here at `now`.
    #[inline]
    pub fn combines(&self, source: Source, line: u64, now: Time) -> Option<Time> {
        match source {
            Source::Core(core) => self.per_core[core].find(line, self.combining, now),
            Source::Caches | Source::Link => None,
        }
    }

    /// Add an entry of a line that leaves at `departure`.
    #[inline]
    pub fn push(&mut self, source: Source, line: u64, departure: Time) {
        self.all.push(line, departure);
        self.under_way.push(departure);
        match source {
            Source::Core(core) => self.per_core[core].push(line, departure),
            Source::Caches => {}
            Source::Link => self.over_link.push(line, departure),
        }
        self.last_departure = departure;
    }

    /// Writes that have not left by `now`, those that still wait for room in the queue included. Moments come in order, or nearly.
    #[inline]
    pub fn under_way(&mut self, now: Time) -> u32 {
        self.under_way.left(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_waits_for_its_own_oldest_entry() {
        let mut wpq = Wpq::new(8, 2, 2, 1, 0);
        wpq.push(Source::Core(0), 1, 100);
        wpq.push(Source::Core(0), 2, 200);
        assert_eq!(wpq.room_at(Source::Core(0)), 100);
        assert_eq!(wpq.room_at(Source::Core(1)), 0);
        assert_eq!(wpq.under_way(99), 2);
        assert_eq!(wpq.under_way(100), 1);
        assert_eq!(wpq.under_way(200), 0);
    }

    #[test]
    fn a_core_s_last_entries_take_newer_data_along_until_they_leave() {
        let mut wpq = Wpq::new(8, 4, 2, 1, 2);
        for (line, departure) in [(5, 100), (6, 200), (7, 300)] {
            wpq.push(Source::Core(0), line, departure);
        }
        assert_eq!(wpq.combines(Source::Core(0), 7, 150), Some(300));
        assert_eq!(wpq.combines(Source::Core(0), 6, 150), Some(200));
        assert_eq!(wpq.combines(Source::Core(0), 6, 200), None, "it has left");
        assert_eq!(wpq.combines(Source::Core(0), 5, 50), None, "two came after it");
        assert_eq!(wpq.combines(Source::Core(1), 7, 150), None, "another core's");
    }

    #[test]
    fn all_that_comes_over_the_link_has_one_share() {
        let mut wpq = Wpq::new(8, 2, 2, 1, 0);
        wpq.push(Source::Link, 3, 100);
        assert_eq!(wpq.room_at(Source::Link), 100);
        assert_eq!(wpq.room_at(Source::Core(0)), 0);
        assert_eq!(wpq.room_at(Source::Caches), 0);
    }

    #[test]
    fn a_full_queue_holds_everyone() {
        let mut wpq = Wpq::new(2, 2, 3, 2, 0);
        wpq.push(Source::Core(0), 4, 100);
        wpq.push(Source::Core(1), 5, 200);
        assert_eq!(wpq.room_at(Source::Core(2)), 100);
        wpq.push(Source::Caches, 6, 300);
        assert_eq!(wpq.room_at(Source::Caches), 200);
        assert_eq!(wpq.room_at(Source::Link), 200);
        assert_eq!(wpq.under_way(150), 2);
    }
}
