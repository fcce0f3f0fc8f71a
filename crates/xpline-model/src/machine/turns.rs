//! Whose turn it is: the agents of all cores in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Time;

/// The part of a core that acts next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Front(usize),
    Commit(usize),
}

/// Turns to come; ties are settled by who asked first. The agent whose turn it is stays first until it asks for another.
pub struct Turns {
    /// Time, then the order of asking, then the agent, from the highest bits down: one comparison settles all.
    heap: BinaryHeap<Reverse<u128>>,
    asked: u64,
}

/// Bits of an agent: a core, and which of its two agents.
const AGENT_BITS: u32 = 16;

impl Turns {
    pub fn new(cores: u32) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(2 * cores as usize),
            asked: 0,
        }
    }

    /// The agent whose turn comes first, and when.
    #[inline]
    pub fn first(&self) -> Option<(Time, Agent)> {
        let &Reverse(key) = self.heap.peek()?;
        let agent = key as u16;
        let core = usize::from(agent >> 1);
        let agent = if agent & 1 == 0 {
            Agent::Front(core)
        } else {
            Agent::Commit(core)
        };
        Some((time(key), agent))
    }

    /// Ask for a turn of an agent that has none, not before the turn of the first.
    #[inline]
    pub fn ask(&mut self, time: Time, agent: Agent) {
        let key = self.key(time, agent);
        self.heap.push(Reverse(key));
    }

    /// Whether the first agent would still be first if its turn came at `time`.
    #[inline]
    pub fn stays_first(&self, time: Time) -> bool {
        let others = self.heap.as_slice().get(1..).unwrap_or_default();
        others.iter().take(2).all(|&Reverse(key)| time <= self::time(key))
    }

    /// The first agent, which this is, has its next turn at `time`.
    #[inline]
    pub fn again(&mut self, time: Time, agent: Agent) {
        let key = self.key(time, agent);
        if let Some(mut first) = self.heap.peek_mut() {
            *first = Reverse(key);
        }
    }

    /// The first agent has no further turn for now.
    #[inline]
    pub fn end(&mut self) {
        self.heap.pop();
    }

    #[inline]
    fn key(&mut self, time: Time, agent: Agent) -> u128 {
        self.asked += 1;
        let agent = match agent {
            Agent::Front(core) => core << 1,
            Agent::Commit(core) => core << 1 | 1,
        };
        u128::from(time) << 64 | u128::from(self.asked << AGENT_BITS | agent as u64)
    }
}

#[inline]
fn time(key: u128) -> Time {
    (key >> 64) as Time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_of_time_and_then_of_asking() {
        let mut turns = Turns::new(3);
        turns.ask(5, Agent::Front(2));
        turns.ask(3, Agent::Commit(1));
        turns.ask(5, Agent::Front(0));
        assert_eq!(turns.first(), Some((3, Agent::Commit(1))));
        assert!(turns.stays_first(5) && !turns.stays_first(6));
        turns.again(5, Agent::Commit(1));
        for agent in [Agent::Front(2), Agent::Front(0), Agent::Commit(1)] {
            assert_eq!(turns.first(), Some((5, agent)));
            turns.end();
        }
        assert_eq!(turns.first(), None);
    }
}
