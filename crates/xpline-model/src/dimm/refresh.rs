//! When a channel of DRAM refreshes: in each interval it answers no read for a while.

use super::Place;
use crate::platform::Dram;
use crate::time::Time;

#[derive(Clone, Copy)]
pub struct Refresh {
    interval: Time,
    /// How long one takes; 0 if none halts the channel.
    halt: Time,
    /// How long after the beginning the first one comes.
    first: Time,
}

impl Refresh {
    /// Channels take turns, evenly over the interval, the last one first.
    pub fn new(dram: &Dram, place: Place) -> Self {
        Self {
            interval: dram.trefi,
            halt: if dram.refresh_halts { dram.trfc } else { 0 },
            first: dram.trefi * Time::from(place.channels - place.channel) / Time::from(place.channels),
        }
    }

    /// The first time from `at` on that no refresh is under way.
    #[inline]
    pub fn over(&self, at: Time) -> Time {
        if self.halt == 0 {
            return at;
        }
        let within = (at + self.interval - self.first) % self.interval;
        if within < self.halt {
            at + self.halt - within
        } else {
            at
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Memory, Platform};

    const SECOND_OF_FOUR: Place = Place {
        channel: 1,
        channels: 4,
    };

    fn refresh(refresh_halts: bool) -> Refresh {
        let Memory::Dram(mut dram) = Platform::builtin("dram").unwrap().memory else {
            unreachable!("dram is made of DRAM")
        };
        (dram.trefi, dram.trfc, dram.refresh_halts) = (1000, 100, refresh_halts);
        Refresh::new(&dram, SECOND_OF_FOUR)
    }

    #[test]
    fn a_channel_halts_once_an_interval_in_its_turn() {
        let refresh = refresh(true);
        let waits = [0, 749, 750, 800, 849, 850, 1749, 1750].map(|at| refresh.over(at) - at);
        assert_eq!(waits, [0, 0, 100, 50, 1, 0, 0, 100]);
    }

    #[test]
    fn a_refresh_that_does_not_halt_is_not_waited_for() {
        let refresh = refresh(false);
        assert!((0..2000).all(|at| refresh.over(at) == at));
    }
}
