//! The reorder buffer: ops retire in program order, so an old load under way holds back what comes long after it.

use std::collections::VecDeque;

use crate::time::Time;

pub struct Window {
    size: u64,
    issued: u64,
    /// Loads that have not been a whole window back: (place in program order, completion).
    loads: VecDeque<(u64, Time)>,
    /// The last place that may be issued before the first of these loads completes.
    free: u64,
    /// When the last of all loads has completed.
    completed: Time,
}

impl Window {
    pub fn new(size: u32) -> Self {
        Self {
            size: u64::from(size),
            issued: 0,
            loads: VecDeque::new(),
            free: u64::MAX,
            completed: 0,
        }
    }

    /// Make room for `micro_ops` more at `now`; returns when there is room.
    #[inline]
    pub fn admit(&mut self, micro_ops: u64, now: Time) -> Time {
        self.issued += micro_ops;
        let mut at = now;
        while self.free < self.issued {
            let first = self.loads.pop_front();
            at = first.map_or(at, |(_, done)| at.max(done));
            self.free = self.loads.front().map_or(u64::MAX, |&(place, _)| place + self.size);
        }
        at
    }

    /// The op just admitted is a load that completes at `done`.
    #[inline]
    pub fn load_completes(&mut self, done: Time) {
        self.loads.push_back((self.issued, done));
        self.free = self.free.min(self.issued + self.size);
        self.completed = self.completed.max(done);
    }

    /// When every op admitted so far has retired.
    #[inline]
    pub fn all_retired(&self, now: Time) -> Time {
        self.completed.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_waits_for_the_load_a_window_before_it() {
        let mut window = Window::new(4);
        assert_eq!(window.admit(1, 0), 0);
        window.load_completes(100);
        assert_eq!(window.admit(4, 10), 10);
        assert_eq!(window.all_retired(20), 100);
        assert_eq!(window.admit(1, 20), 100);
    }
}
