//! What sits on a channel. A DIMM does not know the core: it sees an address, a kind and a time, and answers with a time.

pub mod ait;
mod contention;
pub mod dram;
pub mod hybrid;
pub mod media;
pub mod near;
pub mod optane;
pub mod refresh;
pub mod wear;
pub mod xpbuffer;

use crate::counters::DimmCounters;
use crate::platform::{Memory, Platform};
use crate::time::Time;
use crate::way::Follow;
use dram::DramDimm;
use hybrid::HybridDimm;
use near::NearFar;
use optane::OptaneDimm;

/// A line that the medium wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaWrite {
    /// Address of its first byte.
    pub address: u64,
    /// Which 64 B pieces of it were newly written, the first in the lowest bit.
    pub pieces: u8,
}

/// Which of the channels of its socket a DIMM is on.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub channel: u32,
    pub channels: u32,
}

/// A new kind of memory is one file here and one arm below.
pub enum Dimm {
    Optane(Box<OptaneDimm>),
    Dram(Box<DramDimm>),
    Hybrid(Box<HybridDimm>),
    NearFar(Box<NearFar>),
}

impl Dimm {
    pub fn new(platform: &Platform, place: Place) -> Self {
        match &platform.memory {
            Memory::Optane(optane) => Self::Optane(Box::new(OptaneDimm::new(optane))),
            Memory::Dram(dram) => Self::Dram(Box::new(DramDimm::new(dram, place))),
            Memory::Hybrid(hybrid, dram) => Self::Hybrid(Box::new(HybridDimm::new(hybrid, dram, place))),
            Memory::MemoryMode(mode) => match platform.volatile.platform.as_deref().map(|near| &near.memory) {
                Some(Memory::Dram(near)) => Self::NearFar(Box::new(NearFar::new(mode, near, place))),
                _ => unreachable!("a check has let the platform pass"),
            },
        }
    }

    /// Read 64 B while `in_flight` requests are under way on the channel; returns when the data are in the memory controller.
    #[inline]
    pub fn read<F: Follow>(&mut self, address: u64, at: Time, in_flight: u32, follow: &mut F) -> Time {
        match self {
            Self::Optane(dimm) => dimm.read(address, at, in_flight, follow),
            Self::Dram(dimm) => dimm.read(address, at, follow),
            Self::Hybrid(dimm) => dimm.read(address, at, follow),
            Self::NearFar(dimm) => dimm.read(address, at, in_flight, follow),
        }
    }

    /// Write 64 B that have `waited` in the write pending queue, while `in_flight` requests are under way on the channel; returns when
    /// the DIMM takes them from there.
    #[inline]
    pub fn write<F: Follow>(&mut self, address: u64, at: Time, waited: Time, in_flight: u32, follow: &mut F) -> Time {
        match self {
            Self::Optane(dimm) => dimm.write(address, at, waited, follow),
            Self::Dram(dimm) => dimm.write(address, at, follow),
            Self::Hybrid(dimm) => dimm.write(address, at, follow),
            Self::NearFar(dimm) => dimm.write(address, at, waited, in_flight, follow),
        }
    }

    /// Lines that the medium has read.
    #[inline]
    pub fn media_reads(&self) -> u64 {
        match self {
            Self::Optane(dimm) => dimm.media_reads(),
            Self::Dram(dimm) => dimm.counters.media_reads,
            Self::Hybrid(dimm) => dimm.media_reads(),
            Self::NearFar(dimm) => dimm.media_reads(),
        }
    }

    /// Keep what the medium writes, where it does not simply write what it is asked to.
    pub fn watch_media(&mut self) {
        match self {
            Self::Optane(dimm) => dimm.watched = Some(Vec::new()),
            Self::Dram(_) | Self::Hybrid(_) => {}
            Self::NearFar(dimm) => dimm.watch_media(),
        }
    }

    /// What the medium wrote since the last call.
    pub fn take_media_writes(&mut self) -> Vec<MediaWrite> {
        match self {
            Self::Optane(dimm) => dimm.watched.as_mut().map(std::mem::take).unwrap_or_default(),
            Self::Dram(_) | Self::Hybrid(_) => Vec::new(),
            Self::NearFar(dimm) => dimm.take_media_writes(),
        }
    }

    pub fn counters(&self) -> DimmCounters {
        match self {
            Self::Optane(dimm) => dimm.counters(),
            Self::Dram(dimm) => dimm.counters,
            Self::Hybrid(dimm) => dimm.counters(),
            Self::NearFar(dimm) => dimm.counters(),
        }
    }

    /// Written 64 B pieces that the DIMM buffers and has not put on its medium.
    pub fn dirty_pieces(&self) -> u64 {
        match self {
            Self::Optane(dimm) => dimm.dirty_pieces(),
            Self::Dram(_) | Self::Hybrid(_) => 0,
            Self::NearFar(dimm) => dimm.dirty_pieces(),
        }
    }
}

#[cfg(test)]
pub mod of_tests {
    use super::Place;
    use crate::platform::{Memory, Optane, Platform};

    /// The only channel of a socket.
    pub const ALONE: Place = Place {
        channel: 0,
        channels: 1,
    };

    /// `optane-ni`, one DIMM, with other values for some keys.
    pub fn platform(overrides: &[&str]) -> Platform {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        Platform::load("optane-ni", &overrides, &none).unwrap()
    }

    /// Its DIMM.
    pub fn optane(overrides: &[&str]) -> Optane {
        match platform(overrides).memory {
            Memory::Optane(optane) => *optane,
            _ => unreachable!("optane-ni is Optane"),
        }
    }
}
