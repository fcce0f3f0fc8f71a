//! The memory of one socket: interleaving, then one channel with its queues and its DIMM each.

use super::channel::Channel;
use super::interleave::Interleave;
use super::wpq::Source;
use crate::counters::DimmCounters;
use crate::dimm::MediaWrite;
use crate::platform::{Memory as Kind, Platform};
use crate::time::Time;

pub struct Home {
    interleave: Interleave,
    channels: Vec<Channel>,
}

impl Home {
    pub fn new(platform: &Platform) -> Self {
        Self {
            interleave: Interleave::new(&platform.interleave, matches!(platform.memory, Kind::Optane(_))),
            channels: (0..platform.interleave.dimms).map(|_| Channel::new(platform)).collect(),
        }
    }

    /// A 64 B read that reaches its memory controller `at`; returns when its data leave the controller.
    #[inline]
    pub fn read(&mut self, address: u64, at: Time) -> Time {
        let (dimm, local) = self.interleave.locate(address);
        self.channels[dimm].read(local, at)
    }

    /// A 64 B write that reaches its memory controller `at`; returns when the write pending queue takes it.
    #[inline]
    pub fn write(&mut self, source: Source, address: u64, at: Time) -> Time {
        let (dimm, local) = self.interleave.locate(address);
        self.channels[dimm].write(source, local, at)
    }

    /// Lines that the media of the DIMM of an address have read.
    #[inline]
    pub fn media_reads(&self, address: u64) -> u64 {
        let (dimm, _) = self.interleave.locate(address);
        self.channels[dimm].media_reads()
    }

    /// Keep what the media write.
    pub fn watch_media(&mut self) {
        self.channels.iter_mut().for_each(Channel::watch_media);
    }

    /// Hand over what the media wrote since the last call.
    pub fn take_media_writes(&mut self, mut take: impl FnMut(MediaWrite)) {
        for (dimm, channel) in self.channels.iter_mut().enumerate() {
            for write in channel.take_media_writes() {
                let address = self.interleave.address(dimm, write.address);
                take(MediaWrite { address, ..write });
            }
        }
    }

    pub fn counters(&self) -> impl Iterator<Item = DimmCounters> + '_ {
        self.channels.iter().map(Channel::counters)
    }

    /// Written 64 B pieces that DIMMs buffer and have not put on their media.
    pub fn dirty_pieces(&self) -> u64 {
        self.channels.iter().map(Channel::dirty_pieces).sum()
    }
}
