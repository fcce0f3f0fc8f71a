//! One memory channel: read and write pending queues in front of a DIMM.

use super::under_way::UnderWay;
use super::wpq::{Source, Wpq};
use crate::counters::DimmCounters;
use crate::dimm::{Dimm, MediaWrite, Place};
use crate::platform::Platform;
use crate::time::Time;
use crate::way::{Follow, Part};

pub struct Channel {
    dimm: Dimm,
    wpq: Wpq,
    reads: UnderWay,
    rpq_occupancy_ps: u64,
    wpq_occupancy_ps: u64,
}

impl Channel {
    pub fn new(platform: &Platform, place: Place) -> Self {
        Self {
            dimm: Dimm::new(platform, place),
            wpq: Wpq::new(
                platform.imc.wpq,
                platform.imc.wpq_per_core,
                platform.core.count,
                platform.link.writes,
                platform.imc.wpq_combining,
            ),
            reads: UnderWay::new(),
            rpq_occupancy_ps: 0,
            wpq_occupancy_ps: 0,
        }
    }

    /// A read that arrives `at`; returns when its data leave the memory controller.
    #[inline(always)]
    pub fn read<F: Follow>(&mut self, address: u64, at: Time, follow: &mut F) -> Time {
        let (reads, writes) = self.under_way(at);
        let done = self.dimm.read(address, at, reads + writes, follow);
        self.reads.push(done);
        self.rpq_occupancy_ps += done - at;
        done
    }

    /// The earliest time at which the write pending queue has room, whoever asks.
    #[inline]
    pub fn room_at(&self) -> Time {
        self.wpq.room_at(Source::Caches)
    }

    /// A write that arrives at the controller `at` and `entered` it later; returns when the write pending queue takes it, since when it
    /// is persistent (ADR), and when the DIMM takes it from there.
    #[inline]
    pub fn write<F: Follow>(
        &mut self,
        source: Source,
        address: u64,
        at: Time,
        entered: Time,
        follow: &mut F,
    ) -> (Time, Time) {
        let line = address >> 6;
        if let Some(departure) = self.wpq.combines(source, line, entered) {
            return (entered, departure);
        }
        let accepted = self.wpq.room_at(source).max(entered);
        // A core waits at the controller, caches keep the line until there is room.
        let (at, entered) = if source == Source::Caches {
            (accepted, accepted)
        } else {
            (at, entered)
        };
        let (reads, writes) = self.under_way(at);
        let first = entered.max(self.wpq.last_departure());
        follow.passes(Part::Order, at, first);
        let in_flight = reads + writes;
        let waited = match source {
            // What the caches give up has waited there, and they know how surely neighbours leave together.
            Source::Caches => 0,
            // Reads hold up the pieces of a line as writes do.
            Source::Core(_) | Source::Link => (first - at) * u64::from(in_flight) / u64::from(writes),
        };
        let departure = self.dimm.write(address, first, waited, in_flight, follow);
        self.wpq.push(source, line, departure);
        self.wpq_occupancy_ps += departure - at;
        (accepted, departure)
    }

    /// Writes that have not left the queue, or wait for room in it.
    #[inline]
    pub fn queued(&mut self, at: Time) -> u32 {
        self.wpq.under_way(at)
    }

    /// Reads and writes under way on this channel; the request that arrives `at` counts as a write.
    #[inline]
    fn under_way(&mut self, at: Time) -> (u32, u32) {
        (self.reads.left(at), self.wpq.under_way(at) + 1)
    }

    #[inline]
    pub fn media_reads(&self) -> u64 {
        self.dimm.media_reads()
    }

    pub fn watch_media(&mut self) {
        self.dimm.watch_media();
    }

    pub fn take_media_writes(&mut self) -> Vec<MediaWrite> {
        self.dimm.take_media_writes()
    }

    pub fn counters(&self) -> DimmCounters {
        DimmCounters {
            rpq_occupancy_ps: self.rpq_occupancy_ps,
            wpq_occupancy_ps: self.wpq_occupancy_ps,
            ..self.dimm.counters()
        }
    }

    pub fn dirty_pieces(&self) -> u64 {
        self.dimm.dirty_pieces()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimm::of_tests::{ALONE, platform};
    use crate::time::NANOSECOND as NS;
    use crate::way::Nobody;

    /// Writes of the media beyond one for each line, while so many reads are under way.
    fn extra_writes(source: Source, reads: u64) -> u64 {
        const LINES: u64 = 3000;
        let platform = platform(&[
            "optane.xpbuffer.contention_spared=0ns",
            "optane.xpbuffer.contention_wait=20us",
        ]);
        let mut channel = Channel::new(&platform, ALONE);
        for first in (0..LINES).step_by(30) {
            let at = (first + 1) * 4000 * NS;
            for line in 0..reads {
                channel.read((1 << 30) + line * 64, at, &mut Nobody);
            }
            for piece in 0..4 {
                for line in first..first + 30 {
                    channel.write(source, line * 256 + piece * 64, at, at, &mut Nobody);
                }
            }
        }
        channel.counters().media_writes - LINES
    }

    #[test]
    fn pieces_that_wait_in_the_queue_find_their_line_gone_and_more_so_beside_reads() {
        let alone = extra_writes(Source::Link, 0);
        assert!(alone > 0);
        assert!(extra_writes(Source::Link, 30) > alone * 6 / 5);
    }

    #[test]
    fn what_caches_give_up_is_not_displaced() {
        assert_eq!(extra_writes(Source::Caches, 0), 0);
    }
}
