//! The way of the cores' writes into a memory controller, in front of the queues of its channels.
//!
//! First in, first out, and short: when the queue of one channel is full, writes for it soon fill the way in, and those behind them wait
//! whatever their channel. So a crowd at one DIMM holds up the threads that go to its neighbours, and does not grow without end.

use crate::time::Time;

pub struct Ingress {
    /// When the writes that came last found room in the queue of their channel, oldest first from `next`.
    admitted: Vec<Time>,
    next: usize,
}

impl Ingress {
    pub fn new(entries: u32) -> Self {
        Self {
            admitted: vec![0; entries as usize],
            next: 0,
        }
    }

    /// When a write that arrives `at` has come so far that only its own channel holds it up.
    #[inline]
    pub fn enter(&self, at: Time) -> Time {
        self.admitted[self.next].max(at)
    }

    /// A write that has entered finds room in the queue of its channel at `admitted`.
    #[inline]
    pub fn leave(&mut self, admitted: Time) {
        self.admitted[self.next] = admitted;
        self.next += 1;
        if self.next == self.admitted.len() {
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_for_those_that_fill_the_way_in() {
        let mut ingress = Ingress::new(2);
        assert_eq!(ingress.enter(10), 10);
        ingress.leave(100);
        assert_eq!(ingress.enter(11), 11, "there is another entry");
        ingress.leave(11);
        assert_eq!(ingress.enter(12), 100);
        ingress.leave(100);
        assert_eq!(ingress.enter(101), 101);
    }
}
