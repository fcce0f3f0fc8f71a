//! The memory of one socket: interleaving, then one channel with its queues and its DIMM each.

use super::channel::Channel;
use super::ingress::Ingress;
use super::interleave::Interleave;
use super::wpq::Source;
use crate::counters::DimmCounters;
use crate::dimm::{MediaWrite, Place};
use crate::platform::{Memory as Kind, Platform};
use crate::time::Time;
use crate::way::{Follow, Part};

pub struct Home {
    /// The kind of its memory, and the number of its first DIMM, as timelines name them.
    kind: &'static str,
    first: u16,
    interleave: Interleave,
    channels: Vec<Channel>,
    /// One a memory controller, which has so many channels in a row.
    ingresses: Vec<Ingress>,
    channels_of_controller: usize,
}

impl Home {
    /// The memory of the socket that is `number`th of those in use.
    pub fn new(platform: &Platform, number: u32) -> Self {
        let (dimms, imc) = (platform.interleave.dimms, &platform.imc);
        Self {
            kind: platform.memory.name(),
            first: (number * platform.interleave.dimms) as u16,
            interleave: Interleave::new(&platform.interleave, !matches!(platform.memory, Kind::Dram(_))),
            channels: (0..dimms)
                .map(|channel| {
                    Channel::new(
                        platform,
                        Place {
                            channel,
                            channels: dimms,
                        },
                    )
                })
                .collect(),
            ingresses: (0..dimms.div_ceil(imc.channels))
                .map(|_| Ingress::new(imc.ingress))
                .collect(),
            channels_of_controller: imc.channels as usize,
        }
    }

    /// A 64 B read that reaches its memory controller `at`; returns when its data leave the controller.
    #[inline]
    pub fn read<F: Follow>(&mut self, address: u64, at: Time, follow: &mut F) -> Time {
        let (dimm, local) = self.interleave.locate(address);
        let done = self.channels[dimm].read(local, at, follow);
        follow.passes(Part::Dimm(self.kind, self.first + dimm as u16), at, done);
        done
    }

    /// A 64 B write that reaches its memory controller `at`; returns when the write pending queue takes it.
    #[inline]
    pub fn write<F: Follow>(&mut self, source: Source, address: u64, at: Time, follow: &mut F) -> Time {
        let (dimm, local) = self.interleave.locate(address);
        let channel = &mut self.channels[dimm];
        let (accepted, taken) = if matches!(source, Source::Core(_)) {
            let ingress = &mut self.ingresses[dimm / self.channels_of_controller];
            let entered = ingress.enter(at);
            ingress.leave(channel.room_at().max(entered));
            channel.write(source, local, at, entered, follow)
        } else {
            channel.write(source, local, at, at, follow)
        };
        follow.passes(Part::Room, at, accepted);
        follow.passes(Part::Dimm(self.kind, self.first + dimm as u16), at, taken);
        accepted
    }

    /// Writes that wait at the DIMM of an address.
    #[inline]
    pub fn queued(&mut self, address: u64, at: Time) -> u32 {
        let (dimm, _) = self.interleave.locate(address);
        self.channels[dimm].queued(at)
    }

    /// The DIMM of an address.
    #[inline]
    pub fn dimm_of(&self, address: u64) -> usize {
        self.interleave.locate(address).0
    }

    /// Lines that the media of a DIMM have read.
    #[inline]
    pub fn media_reads(&self, dimm: usize) -> u64 {
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
