//! Requests a core has under way: a few slots, each busy until its completion.

use crate::time::Time;

/// The fill buffers of a core (or its write-combining buffers): which lines are under way, and until when.
///
/// A ring of the last requests in the order of their completion: the first of them has the slot that is free next.
pub struct Pending {
    /// Completions, from `first` on; as many as there are slots.
    done: Vec<Time>,
    /// Their lines, plus 1.
    lines: Vec<u32>,
    slots: usize,
    first: usize,
}

impl Pending {
    pub fn new(slots: u32) -> Self {
        let ring = (slots as usize).next_power_of_two();
        Self {
            done: vec![0; ring],
            lines: vec![0; ring],
            slots: slots as usize,
            first: 0,
        }
    }

    /// When a slot is or becomes free.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.done[self.place(0)]
    }

    /// Give the slot that is free first to a request.
    #[inline(always)]
    pub fn occupy(&mut self, line: u64, done: Time) {
        let oldest = self.place(0);
        self.lines[oldest] = 0;
        self.first += 1;
        let mut at = self.place(self.slots - 1);
        for other in (0..self.slots - 1).rev() {
            let before = self.place(other);
            if self.done[before] <= done {
                break;
            }
            self.done[at] = self.done[before];
            self.lines[at] = self.lines[before];
            at = before;
        }
        self.done[at] = done;
        self.lines[at] = line as u32 + 1;
    }

    /// Everything under way has completed by then at the latest.
    #[inline]
    pub fn complete_by(&mut self, time: Time) {
        for done in &mut self.done {
            *done = time.min(*done);
        }
    }

    /// Completion of the request for a line that is still under way at `now`.
    #[inline]
    pub fn under_way(&self, line: u64, now: Time) -> Option<Time> {
        self.last(line).filter(|&done| done > now)
    }

    /// Completion of the last request for a line, if its slot has not been given to another since.
    #[inline]
    pub fn last(&self, line: u64) -> Option<Time> {
        let tag = line as u32 + 1;
        if !self.lines.contains(&tag) {
            return None;
        }
        let slots = self.lines.iter().zip(&self.done);
        slots.filter(|&(&held, _)| held == tag).map(|(_, &done)| done).max()
    }

    /// When everything under way has completed.
    #[inline]
    pub fn all_done(&self) -> Time {
        self.done[self.place(self.slots - 1)]
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        (self.first + index) & (self.done.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slot_is_busy_until_its_completion() {
        let mut pending = Pending::new(2);
        pending.occupy(7, 100);
        pending.occupy(8, 50);
        assert_eq!(pending.free_at(), 50);
        assert_eq!(pending.under_way(7, 99), Some(100));
        assert_eq!(pending.under_way(7, 100), None);
        assert_eq!(pending.all_done(), 100);
        pending.occupy(7, 80);
        assert_eq!(pending.free_at(), 80);
        assert_eq!(pending.under_way(7, 60), Some(100));
        assert_eq!(pending.under_way(8, 40), None);
        pending.complete_by(90);
        assert_eq!(pending.free_at(), 80);
        assert_eq!(pending.all_done(), 90);
    }

    proptest! {
        /// The same as slots looked through one by one.
        #[test]
        fn the_slot_free_first_is_given_first(slots in 1..20u32, steps in vec((0..30u64, 1..500u64, 0..40u64), 0..200)) {
            let mut pending = Pending::new(slots);
            let mut naive = vec![(u64::MAX, 0); slots as usize];
            let mut now = 0;
            for (line, duration, pause) in steps {
                let free = naive.iter_mut().min_by_key(|slot| slot.1).expect("at least one slot");
                prop_assert_eq!(pending.free_at(), free.1);
                now = free.1.max(now + pause);
                *free = (line, now + duration);
                pending.occupy(line, now + duration);
                prop_assert_eq!(Some(pending.all_done()), naive.iter().map(|slot| slot.1).max());
                for line in 0..30 {
                    let latest = naive.iter().filter(|slot| slot.0 == line && slot.1 > now).map(|slot| slot.1).max();
                    prop_assert_eq!(pending.under_way(line, now), latest);
                }
            }
        }
    }
}
