//! Requests that are under way at a channel.

use crate::time::Time;

/// When each of them is done, in the order in which they came: a ring that grows where it must.
pub struct UnderWay {
    /// Behind the last of them comes one that is never done.
    done: Vec<Time>,
    first: usize,
    count: usize,
}

/// Requests that are looked at in one go. How many are done when the next one comes is up to chance: a branch for each of them would be
/// foretold wrongly once a request.
const STEP: usize = 4;

impl UnderWay {
    pub fn new() -> Self {
        Self {
            done: vec![Time::MAX; 64],
            first: 0,
            count: 0,
        }
    }

    #[inline]
    pub fn push(&mut self, done: Time) {
        if self.count + 1 == self.done.len() {
            self.grow();
        }
        let (last, end) = (self.place(self.count), self.place(self.count + 1));
        self.done[last] = done;
        self.done[end] = Time::MAX;
        self.count += 1;
    }

    /// Forget all before the first that is not done by `now`; returns how many are left. Moments come in order, or nearly.
    #[inline]
    pub fn left(&mut self, now: Time) -> u32 {
        while self.count > 0 {
            let (mut gone, mut goes) = (0, true);
            for ahead in 0..STEP {
                goes &= self.done[self.place(ahead)] <= now;
                gone += usize::from(goes);
            }
            self.first = self.place(gone);
            self.count -= gone;
            if gone < STEP {
                break;
            }
        }
        self.count as u32
    }

    #[inline]
    fn place(&self, ahead: usize) -> usize {
        (self.first + ahead) & (self.done.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        self.done.rotate_left(self.first);
        self.first = 0;
        self.done.resize(2 * self.done.len(), Time::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same as a queue that is looked through one by one.
        #[test]
        fn those_behind_one_that_is_not_done_stay(steps in vec((0..4u8, 0..40u64, 0..60u64), 0..600)) {
            let (mut under_way, mut queue, mut now) = (UnderWay::new(), VecDeque::new(), 0);
            for (step, pause, duration) in steps {
                if step == 0 {
                    now += pause;
                    while queue.front().is_some_and(|&done| done <= now) {
                        queue.pop_front();
                    }
                    prop_assert_eq!(under_way.left(now), queue.len() as u32);
                } else {
                    under_way.push(now + duration);
                    queue.push_back(now + duration);
                }
            }
        }
    }
}
