//! Requests a core has under way: a few slots, each busy until its completion.

use crate::time::Time;

/// The fill buffers of a core (or its write-combining buffers): which lines are under way, and until when.
pub struct Pending {
    lines: Vec<u64>,
    done: Vec<Time>,
}

const NO_LINE: u64 = u64::MAX;

impl Pending {
    pub fn new(slots: u32) -> Self {
        Self {
            lines: vec![NO_LINE; slots as usize],
            done: vec![0; slots as usize],
        }
    }

    /// The slot that is or becomes free first, and when.
    #[inline]
    pub fn first_free(&self) -> (usize, Time) {
        let mut best = 0;
        for slot in 1..self.done.len() {
            if self.done[slot] < self.done[best] {
                best = slot;
            }
        }
        (best, self.done[best])
    }

    #[inline]
    pub fn occupy(&mut self, slot: usize, line: u64, done: Time) {
        self.lines[slot] = line;
        self.done[slot] = done;
    }

    /// Completion of the request for a line that is still under way at `now`.
    #[inline]
    pub fn under_way(&self, line: u64, now: Time) -> Option<Time> {
        let slots = self.lines.iter().zip(&self.done);
        slots
            .filter(|&(&pending, &done)| pending == line && done > now)
            .map(|(_, &done)| done)
            .max()
    }

    /// When everything under way has completed.
    #[inline]
    pub fn all_done(&self) -> Time {
        self.done.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_busy_until_its_completion() {
        let mut pending = Pending::new(2);
        pending.occupy(0, 7, 100);
        pending.occupy(1, 8, 50);
        assert_eq!(pending.first_free(), (1, 50));
        assert_eq!(pending.under_way(7, 99), Some(100));
        assert_eq!(pending.under_way(7, 100), None);
        assert_eq!(pending.all_done(), 100);
    }
}
