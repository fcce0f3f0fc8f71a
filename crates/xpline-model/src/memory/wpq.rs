//! The write pending queue of one channel: where a write becomes persistent (ADR).
//!
//! First in, first out. One core may hold at most a few of its entries, so that a slow DIMM blocks the core behind its own writes;
//! so may all cores of the other socket together.

use std::collections::VecDeque;

use crate::time::Time;

/// A ring of the times at which entries leave the queue, oldest first.
struct Departures {
    times: Vec<Time>,
    next: usize,
}

impl Departures {
    fn new(size: u32) -> Self {
        Self {
            times: vec![0; size as usize],
            next: 0,
        }
    }

    /// When the oldest of the last `size` entries leaves: from then on there is room for another.
    #[inline]
    fn room_at(&self) -> Time {
        self.times[self.next]
    }

    #[inline]
    fn push(&mut self, time: Time) {
        self.times[self.next] = time;
        self.next += 1;
        if self.next == self.times.len() {
            self.next = 0;
        }
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
    /// When the entries of the queue, and what waits for room in it, leave: oldest first.
    under_way: VecDeque<Time>,
    last_departure: Time,
}

impl Wpq {
    pub fn new(entries: u32, per_core: u32, cores: u32, over_link: u32) -> Self {
        Self {
            all: Departures::new(entries),
            per_core: (0..cores).map(|_| Departures::new(per_core)).collect(),
            over_link: Departures::new(over_link.min(entries)),
            under_way: VecDeque::with_capacity(64),
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

    /// Add an entry that leaves at `departure`.
    #[inline]
    pub fn push(&mut self, source: Source, departure: Time) {
        self.all.push(departure);
        self.under_way.push_back(departure);
        match source {
            Source::Core(core) => self.per_core[core].push(departure),
            Source::Caches => {}
            Source::Link => self.over_link.push(departure),
        }
        self.last_departure = departure;
    }

    /// Writes that have not left by `now`, those that still wait for room in the queue included. Moments come in order, or nearly.
    #[inline]
    pub fn under_way(&mut self, now: Time) -> u32 {
        while self.under_way.front().is_some_and(|&departure| departure <= now) {
            self.under_way.pop_front();
        }
        self.under_way.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_waits_for_its_own_oldest_entry() {
        let mut wpq = Wpq::new(8, 2, 2, 1);
        wpq.push(Source::Core(0), 100);
        wpq.push(Source::Core(0), 200);
        assert_eq!(wpq.room_at(Source::Core(0)), 100);
        assert_eq!(wpq.room_at(Source::Core(1)), 0);
        assert_eq!(wpq.under_way(99), 2);
        assert_eq!(wpq.under_way(100), 1);
        assert_eq!(wpq.under_way(200), 0);
    }

    #[test]
    fn all_that_comes_over_the_link_has_one_share() {
        let mut wpq = Wpq::new(8, 2, 2, 1);
        wpq.push(Source::Link, 100);
        assert_eq!(wpq.room_at(Source::Link), 100);
        assert_eq!(wpq.room_at(Source::Core(0)), 0);
        assert_eq!(wpq.room_at(Source::Caches), 0);
    }

    #[test]
    fn a_full_queue_holds_everyone() {
        let mut wpq = Wpq::new(2, 2, 3, 2);
        wpq.push(Source::Core(0), 100);
        wpq.push(Source::Core(1), 200);
        assert_eq!(wpq.room_at(Source::Core(2)), 100);
        wpq.push(Source::Caches, 300);
        assert_eq!(wpq.room_at(Source::Caches), 200);
        assert_eq!(wpq.room_at(Source::Link), 200);
        assert_eq!(wpq.under_way(150), 2);
    }
}
