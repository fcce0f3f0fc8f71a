//! The memory side on its own, for another simulator: requests in, completions out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Memory, Wanted};
use crate::counters::DimmCounters;
use crate::platform::Platform;
use crate::time::Time;
use crate::timeline::Sample;
use crate::way::{Follow, Nobody};

/// What a request wants of its 64 B line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Complete when the data leave the memory controller.
    Read,
    /// Complete when the write pending queue takes the line: under ADR it is persistent from then on.
    Write,
}

/// A request for the 64 B line at `address` that reaches its memory controller `at` (ps), or the link where that is on another socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub kind: RequestKind,
    pub address: u64,
    pub at: Time,
    /// The core it comes from: each core has a share of the write pending queues.
    pub source: u32,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What [`MemorySystem::submit`] returned for the request.
    pub ticket: u64,
    /// When it completed, in ps.
    pub at: Time,
}

/// Why a request was refused; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("a request at {at} ps comes after one at {latest} ps: submit requests in the order of their times")]
    OutOfOrder { at: Time, latest: Time },
    #[error("source {source_core} is not a core of the platform: it has {cores}, numbered from 0")]
    NoSuchCore { source_core: u32, cores: u32 },
}

/// Memory controllers and DIMMs of a platform, without its cores and caches.
///
/// ```
/// use xpline_model::{MemorySystem, Platform, Request, RequestKind};
///
/// let platform = Platform::builtin("optane-ni")?;
/// let mut memory = MemorySystem::new(&platform);
/// let read = Request { kind: RequestKind::Read, address: 4096, at: 0, source: 0 };
/// let ticket = memory.submit(read)?;
/// assert_eq!(memory.poll(0), None);
/// let completion = memory.poll(1_000_000).unwrap();
/// assert_eq!(completion.ticket, ticket);
/// assert!(completion.at > 100_000, "a read of the media takes over 100 ns");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemorySystem {
    memory: Memory,
    cores: u32,
    latest: Time,
    next_ticket: u64,
    under_way: BinaryHeap<Reverse<(Time, u64)>>,
}

impl MemorySystem {
    pub fn new(platform: &Platform) -> Self {
        Self {
            memory: Memory::new(platform),
            cores: platform.core.count,
            latest: 0,
            next_ticket: 0,
            under_way: BinaryHeap::new(),
        }
    }

    /// Hand a request over; returns its ticket. Requests come in the order of their times.
    pub fn submit(&mut self, request: Request) -> Result<u64, SubmitError> {
        let done = self.serve(request)?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.under_way.push(Reverse((done, ticket)));
        Ok(ticket)
    }

    /// Hand a request over without a ticket; returns when it will complete, which the model knows at once.
    #[inline]
    pub fn serve(&mut self, request: Request) -> Result<Time, SubmitError> {
        self.serve_followed(request, &mut Nobody)
    }

    /// The same, and have the way of the request in a sample.
    pub fn serve_sampled(&mut self, request: Request, sample: &mut Sample) -> Result<Time, SubmitError> {
        let done = self.serve_followed(request, sample)?;
        let (name, is_write) = match request.kind {
            RequestKind::Read => ("read", false),
            RequestKind::Write => ("write", true),
        };
        sample.request(name, request.address, request.at, done, is_write);
        Ok(done)
    }

    #[inline]
    fn serve_followed<F: Follow>(&mut self, request: Request, follow: &mut F) -> Result<Time, SubmitError> {
        let Request {
            kind,
            address,
            at,
            source,
        } = request;
        if at < self.latest {
            return Err(SubmitError::OutOfOrder {
                at,
                latest: self.latest,
            });
        }
        if source >= self.cores {
            return Err(SubmitError::NoSuchCore {
                source_core: source,
                cores: self.cores,
            });
        }
        self.latest = at;
        Ok(match kind {
            RequestKind::Read => self.memory.read(source as usize, address, Wanted::Share, at, follow),
            RequestKind::Write => self.memory.write(source as usize, address, at, follow),
        })
    }

    /// The next completion up to `now` (ps), in the order of their times; `None` if there is none yet.
    pub fn poll(&mut self, now: Time) -> Option<Completion> {
        let &Reverse((at, ticket)) = self.under_way.peek()?;
        (at <= now).then(|| {
            self.under_way.pop();
            Completion { ticket, at }
        })
    }

    /// A reading of the counters of each DIMM.
    pub fn counters(&self) -> Vec<DimmCounters> {
        self.memory.counters()
    }
}
