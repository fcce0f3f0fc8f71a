//! The memory side of the machine: the memory of each socket, and the link to the one that the cores are not on.

mod channel;
mod directory;
mod home;
mod ingress;
mod interleave;
mod link;
mod system;
mod under_way;
mod wpq;

use crate::counters::DimmCounters;
pub use crate::dimm::MediaWrite;
use crate::platform::{Memory as Kind, Platform};
use crate::time::Time;
use crate::way::Follow;
use link::{Homes, Link};
use wpq::Source;

pub use directory::Wanted;
pub use system::{Completion, MemorySystem, Request, RequestKind, SubmitError};

/// Where the volatile memory beside a platform's own begins, for machines that have both.
pub const VOLATILE: u64 = 96 << 30;

/// Requests come from cores, at the end of their socket's mesh; where a link is in between, it is part of the way.
pub struct Memory {
    homes: Homes,
    link: Option<Link>,
    /// What is at [`VOLATILE`] and above, if it is not this memory.
    volatile: Option<Box<Memory>>,
}

/// Where an address lies.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    is_volatile: bool,
    socket: usize,
    dimm: usize,
}

impl Memory {
    pub fn new(platform: &Platform) -> Self {
        Self {
            homes: Homes::new(platform),
            link: Link::new(platform),
            volatile: None,
        }
    }

    /// The platform's own memory, and the volatile memory beside it from [`VOLATILE`] on where it has one that is no cache.
    pub fn with_volatile(platform: &Platform) -> Self {
        let is_cache = matches!(platform.memory, Kind::MemoryMode(_));
        let volatile = platform.volatile.platform.as_deref().filter(|_| !is_cache);
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

    /// A 64 B read that leaves the mesh of its core's socket `at`; returns when its data are back there.
    #[inline]
    pub fn read<F: Follow>(&mut self, core: usize, address: u64, wanted: Wanted, at: Time, follow: &mut F) -> Time {
        let (memory, address) = self.part(address);
        match &mut memory.link {
            None => memory.homes.of(0).read(address, at, follow),
            Some(link) => link.read(&mut memory.homes, core, address, wanted, at, follow),
        }
    }

    /// A 64 B write of a core that owns the line; returns when a write pending queue has taken it.
    #[inline]
    pub fn write<F: Follow>(&mut self, core: usize, address: u64, at: Time, follow: &mut F) -> Time {
        let (memory, address) = self.part(address);
        match &mut memory.link {
            None => memory.homes.of(0).write(Source::Core(core), address, at, follow),
            Some(link) => link.write_back(&mut memory.homes, core, Source::Core(core), address, at, follow),
        }
    }

    /// The same for a line that no cache holds, so that the core does not own it yet.
    #[inline]
    pub fn write_unowned<F: Follow>(&mut self, core: usize, address: u64, at: Time, follow: &mut F) -> Time {
        let (memory, address) = self.part(address);
        match &mut memory.link {
            None => memory.homes.of(0).write(Source::Core(core), address, at, follow),
            Some(link) => link.write(&mut memory.homes, core, address, at, follow),
        }
    }

    /// A dirty line that the caches above a core give up `at`; returns when a write pending queue has taken it.
    #[inline]
    pub fn write_evicted<F: Follow>(&mut self, core: usize, address: u64, at: Time, follow: &mut F) -> Time {
        let (memory, address) = self.part(address);
        match &mut memory.link {
            None => memory.homes.of(0).write(Source::Caches, address, at, follow),
            Some(link) => link.write_back(&mut memory.homes, core, Source::Caches, address, at, follow),
        }
    }

    /// Writes that wait at the DIMM of an address when another arrives `at` its controller.
    #[inline]
    pub fn queued(&mut self, address: u64, at: Time) -> u32 {
        let (memory, address) = self.part(address);
        let (socket, local) = memory.link.as_ref().map_or((0, address), |link| link.locate(address));
        memory.homes.of(socket).queued(local, at)
    }

    /// Every line that nobody has touched counts as read over the link before.
    pub fn presume_read(&mut self) {
        if let Some(link) = &mut self.link {
            link.presume_read();
        }
        if let Some(volatile) = &mut self.volatile {
            volatile.presume_read();
        }
    }

    /// Where an address lies.
    #[inline]
    pub fn place(&mut self, address: u64) -> Place {
        let is_volatile = address >= VOLATILE && self.volatile.is_some();
        let (memory, address) = self.part(address);
        let (socket, local) = memory.link.as_ref().map_or((0, address), |link| link.locate(address));
        let dimm = memory.homes.of(socket).dimm_of(local);
        Place {
            is_volatile,
            socket,
            dimm,
        }
    }

    /// Lines that the media of the DIMM at a place have read.
    #[inline]
    pub fn media_reads(&mut self, place: Place) -> u64 {
        let memory = match self.volatile.as_deref_mut() {
            Some(volatile) if place.is_volatile => volatile,
            _ => return self.homes.of(place.socket).media_reads(place.dimm),
        };
        memory.homes.of(place.socket).media_reads(place.dimm)
    }

    /// Keep what the media write.
    pub fn watch_media(&mut self) {
        self.homes.iter_mut().for_each(|home| home.watch_media());
    }

    /// Hand over what the media wrote since the last call, by the platform's addresses.
    pub fn take_media_writes(&mut self, mut take: impl FnMut(MediaWrite)) {
        for (socket, home) in self.homes.iter_mut().enumerate() {
            home.take_media_writes(|write| {
                let link = self.link.as_ref();
                let address = link.map_or(write.address, |link| link.address(socket, write.address));
                take(MediaWrite { address, ..write });
            });
        }
    }

    /// Those of each DIMM, socket by socket.
    pub fn counters(&self) -> Vec<DimmCounters> {
        self.homes.iter().flat_map(|home| home.counters()).collect()
    }

    /// The counters of the volatile memory beside, if there is one.
    pub fn volatile_counters(&self) -> Vec<DimmCounters> {
        self.volatile
            .as_ref()
            .map_or_else(Vec::new, |volatile| volatile.counters())
    }

    /// Written 64 B pieces that DIMMs buffer and have not put on their media.
    pub fn dirty_pieces(&self) -> u64 {
        self.homes.iter().map(|home| home.dirty_pieces()).sum()
    }
}
