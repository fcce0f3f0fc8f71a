//! The memory side of the machine: interleaving, then one channel with its queues and its DIMM each.

mod channel;
mod interleave;
mod system;
mod wpq;

use crate::counters::DimmCounters;
pub use crate::dimm::MediaWrite;
use crate::platform::{Memory as Kind, Platform};
use crate::time::Time;
use channel::Channel;
use interleave::Interleave;

pub use system::{Completion, MemorySystem, Request, RequestKind, SubmitError};

/// Where the volatile memory beside a platform's own begins, for machines that have both.
pub const VOLATILE: u64 = 96 << 30;

pub struct Memory {
    interleave: Interleave,
    channels: Vec<Channel>,
    /// What is at [`VOLATILE`] and above, if it is not this memory.
    volatile: Option<Box<Memory>>,
}

impl Memory {
    pub fn new(platform: &Platform) -> Self {
        Self {
            interleave: Interleave::new(&platform.interleave, matches!(platform.memory, Kind::Optane(_))),
            channels: (0..platform.interleave.dimms).map(|_| Channel::new(platform)).collect(),
            volatile: None,
        }
    }

    /// The platform's own memory, and the volatile memory beside it from [`VOLATILE`] on where it has one.
    pub fn with_volatile(platform: &Platform) -> Self {
        let volatile = platform.volatile.platform.as_deref();
        Self {
            volatile: volatile.map(|volatile| Box::new(Self::new(volatile))),
            ..Self::new(platform)
        }
    }

    /// The memory that an address belongs to, and the address there.
    #[inline]
    fn part(&mut self, address: u64) -> (&mut Self, u64) {
        if address < VOLATILE || self.volatile.is_none() {
            return (self, address);
        }
        let volatile = self.volatile.as_deref_mut().expect("just looked");
        (volatile, address - VOLATILE)
    }

    /// A 64 B read that reaches its memory controller `at`; returns when its data leave the controller.
    #[inline]
    pub fn read(&mut self, address: u64, at: Time) -> Time {
        let (memory, address) = self.part(address);
        let (dimm, local) = memory.interleave.locate(address);
        memory.channels[dimm].read(local, at)
    }

    /// A 64 B write of a core that reaches its memory controller `at`; returns when the write pending queue takes it.
    #[inline]
    pub fn write(&mut self, core: usize, address: u64, at: Time) -> Time {
        let (memory, address) = self.part(address);
        let (dimm, local) = memory.interleave.locate(address);
        memory.channels[dimm].write(core, local, at)
    }

    /// A dirty line that the caches give up `at`; returns when the write pending queue takes it.
    #[inline]
    pub fn write_evicted(&mut self, address: u64, at: Time) -> Time {
        let (memory, address) = self.part(address);
        let (dimm, local) = memory.interleave.locate(address);
        memory.channels[dimm].write_evicted(local, at)
    }

    /// Lines that the media of the DIMM of an address have read.
    #[inline]
    pub fn media_reads(&self, address: u64) -> u64 {
        if let Some(volatile) = &self.volatile
            && address >= VOLATILE
        {
            return volatile.media_reads(address - VOLATILE);
        }
        let (dimm, _) = self.interleave.locate(address);
        self.channels[dimm].media_reads()
    }

    /// Keep what the media write.
    pub fn watch_media(&mut self) {
        self.channels.iter_mut().for_each(Channel::watch_media);
    }

    /// Hand over what the media wrote since the last call, by the platform's addresses.
    pub fn take_media_writes(&mut self, mut take: impl FnMut(MediaWrite)) {
        for (dimm, channel) in self.channels.iter_mut().enumerate() {
            for write in channel.take_media_writes() {
                let address = self.interleave.address(dimm, write.address);
                take(MediaWrite { address, ..write });
            }
        }
    }

    pub fn counters(&self) -> Vec<DimmCounters> {
        self.channels.iter().map(Channel::counters).collect()
    }

    /// The counters of the volatile memory beside, if there is one.
    pub fn volatile_counters(&self) -> Vec<DimmCounters> {
        self.volatile
            .as_ref()
            .map_or_else(Vec::new, |volatile| volatile.counters())
    }

    /// Written 64 B pieces that DIMMs buffer and have not put on their media.
    pub fn dirty_pieces(&self) -> u64 {
        self.channels.iter().map(Channel::dirty_pieces).sum()
    }
}
