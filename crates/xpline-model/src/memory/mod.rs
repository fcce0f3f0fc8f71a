//! The memory side of the machine: interleaving, then one channel with its queues and its DIMM each.

mod channel;
mod interleave;
mod system;
mod wpq;

use crate::counters::DimmCounters;
use crate::platform::{Memory as Kind, Platform};
use crate::time::Time;
use channel::Channel;
use interleave::Interleave;

pub use system::{Completion, MemorySystem, Request, RequestKind, SubmitError};

pub struct Memory {
    interleave: Interleave,
    channels: Vec<Channel>,
}

impl Memory {
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

    /// A 64 B write of a core that reaches its memory controller `at`; returns when the write pending queue takes it.
    #[inline]
    pub fn write(&mut self, core: usize, address: u64, at: Time) -> Time {
        let (dimm, local) = self.interleave.locate(address);
        self.channels[dimm].write(core, local, at)
    }

    /// A dirty line that the caches give up `at`; returns when the write pending queue takes it.
    #[inline]
    pub fn write_evicted(&mut self, address: u64, at: Time) -> Time {
        let (dimm, local) = self.interleave.locate(address);
        self.channels[dimm].write_evicted(local, at)
    }

    pub fn counters(&self) -> Vec<DimmCounters> {
        self.channels.iter().map(Channel::counters).collect()
    }

    /// Written 64 B pieces that DIMMs buffer and have not put on their media.
    pub fn dirty_pieces(&self) -> u64 {
        self.channels.iter().map(Channel::dirty_pieces).sum()
    }
}
