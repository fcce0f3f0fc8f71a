//! The link between two sockets: what a request costs that has its home on the other one.
//!
//! The way there and back takes time, and the link carries one line at a time each way. The home knows by its directory who
//! may hold a line. Where the directory is kept in the memory itself, as Xeons do with spare bits of each line, a request
//! that changes an entry costs one more write there: reads of lines that were written before, and all requests of
//! lines in order to write them. The home takes what comes over the link in order: a write that finds no
//! room in the write pending queue of its channel holds up all that come behind it, whichever channel they go to, and
//! so does a change of the directory once many requests are under way (see [`Crowd`]).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::directory::{Directory, Wanted};
use super::home::Home;
use super::wpq::Source;
use crate::platform::{Link as Parameters, Platform, Sockets};
use crate::time::Time;
use crate::way::{Follow, Nobody, Part};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Bytes of a page: what takes turns where memory is on both sockets.
const PAGE_SHIFT: u32 = 12;

pub struct Link {
    cores: Sockets,
    memory: Sockets,
    latency: Time,
    read_transfer: Time,
    write_transfer: Time,
    grant: Time,
    hold: Time,
    /// When the way towards each socket is free.
    toward: [Time; 2],
    /// What holds up the home on each socket.
    doors: [Door; 2],
    directory: Option<Directory>,
    /// Entries of the directory to be written: when, and the address.
    changes: BinaryHeap<Reverse<(Time, u64)>>,
    /// The lines of the medium whose directory entries were written last, and until when that holds up a read.
    written: [(u64, Time); WRITTEN],
    next_written: usize,
    media_shift: u32,
    crowd: Crowd,
}

/// Directory writes that are remembered: as many as can hold up a read.
const WRITTEN: usize = 16;

impl Link {
    /// The link of a platform, or `None` where cores and memory are on one socket.
    pub fn new(platform: &Platform) -> Option<Self> {
        let nodes = &platform.nodes;
        if nodes.cpu == nodes.memory && nodes.cpu != Sockets::Both {
            return None;
        }
        let &Parameters {
            latency,
            read_transfer,
            write_transfer,
            grant,
            directory,
            directory_hold,
            ..
        } = &platform.link;
        Some(Self {
            cores: nodes.cpu,
            memory: nodes.memory,
            latency,
            read_transfer,
            write_transfer,
            grant,
            hold: directory_hold,
            toward: [0; 2],
            doors: [Door::default(); 2],
            directory: directory.then(Directory::default),
            changes: BinaryHeap::new(),
            written: [(u64::MAX, 0); WRITTEN],
            next_written: 0,
            media_shift: platform.media_line_bytes().trailing_zeros(),
            crowd: Crowd::new(&platform.link),
        })
    }

    /// Every line that nobody has touched counts as read over the link before.
    pub fn presume_read(&mut self) {
        if let Some(directory) = &mut self.directory {
            directory.presume_read();
        }
    }

    /// The socket whose memory an address is in, and the address there.
    #[inline]
    pub fn locate(&self, address: u64) -> (usize, u64) {
        match self.memory {
            Sockets::One(socket) => (socket, address),
            Sockets::Both => {
                let page = address >> PAGE_SHIFT;
                let within = address & ((1 << PAGE_SHIFT) - 1);
                ((page & 1) as usize, page >> 1 << PAGE_SHIFT | within)
            }
        }
    }

    /// The address that is at `local` in the memory of a socket.
    pub fn address(&self, socket: usize, local: u64) -> u64 {
        match self.memory {
            Sockets::One(_) => local,
            Sockets::Both => {
                let within = local & ((1 << PAGE_SHIFT) - 1);
                (local >> PAGE_SHIFT << 1 | socket as u64) << PAGE_SHIFT | within
            }
        }
    }

    /// A read that leaves the socket of a core `at`; returns when its data are there.
    #[inline]
    pub fn read<F: Follow>(
        &mut self,
        homes: &mut Homes,
        core: usize,
        address: u64,
        wanted: Wanted,
        at: Time,
        follow: &mut F,
    ) -> Time {
        self.write_changes(homes, at);
        let ((to, local), from) = (self.locate(address), self.cores.of(core));
        if from == to {
            let asked = self.snoop(address);
            let done = homes.of(to).read(local, at, follow);
            follow.passes(Part::SocketLink, done, done + asked);
            return done + asked;
        }
        let arrived = self.doors[to].opens(at + self.latency);
        let arrived = self.free_to_read(address, arrived);
        follow.passes(Part::SocketLink, at, arrived);
        let ready = homes.of(to).read(local, arrived, follow);
        if let Some(directory) = &mut self.directory
            && directory.ask(address / LINE, wanted)
        {
            self.changes.push(Reverse((ready, address)));
        }
        let slot = self.toward[from].max(arrived);
        self.toward[from] = slot + self.read_transfer;
        let done = ready + (slot - arrived) + self.latency;
        follow.passes(Part::SocketLink, ready, done);
        self.crowd.joins(at, done);
        done
    }

    /// A whole line that no cache holds leaves the socket of a core `at`; returns when the core knows that its home has accepted it.
    ///
    /// The core must own the line first, which takes another way there and back.
    #[inline]
    pub fn write<F: Follow>(&mut self, homes: &mut Homes, core: usize, address: u64, at: Time, follow: &mut F) -> Time {
        let (to, _) = self.locate(address);
        if self.cores.of(core) == to {
            let asked = self.snoop(address);
            follow.passes(Part::SocketLink, at, at + asked);
            return self.write_back(homes, core, Source::Core(core), address, at + asked, follow);
        }
        // Without a directory the near side is the home of the line: nobody else has to be asked.
        let ownership = if self.directory.is_some() {
            2 * self.latency + self.grant
        } else {
            0
        };
        let granted = at + ownership;
        follow.passes(Part::SocketLink, at, granted);
        self.write_back(homes, core, Source::Core(core), address, granted, follow)
    }

    /// A line that a cache owned leaves the socket of a core `at`; returns when the core knows that its home has accepted it.
    #[inline]
    pub fn write_back<F: Follow>(
        &mut self,
        homes: &mut Homes,
        core: usize,
        source: Source,
        address: u64,
        at: Time,
        follow: &mut F,
    ) -> Time {
        self.write_changes(homes, at);
        let ((to, local), from) = (self.locate(address), self.cores.of(core));
        if from == to {
            return homes.of(to).write(source, local, at, follow);
        }
        let slot = self.toward[to].max(at);
        self.toward[to] = slot + self.write_transfer;
        let arrived = self.doors[to].opens(slot + self.latency);
        follow.passes(Part::SocketLink, at, arrived);
        let accepted = homes.of(to).write(Source::Link, local, arrived, follow);
        self.doors[to].shut(arrived, accepted);
        if let Some(directory) = &mut self.directory {
            directory.give_back(address / LINE);
        }
        let done = accepted + self.latency;
        follow.passes(Part::SocketLink, accepted, done);
        self.crowd.joins(at, done);
        done
    }

    /// Time to ask the other socket for a line that it may have written, before its home uses it.
    #[inline]
    fn snoop(&mut self, address: u64) -> Time {
        match &mut self.directory {
            Some(directory) if directory.owned_elsewhere(address / LINE) => {
                directory.give_back(address / LINE);
                2 * self.latency
            }
            _ => 0,
        }
    }

    /// Write the entries of the directory whose time has come.
    #[inline]
    fn write_changes(&mut self, homes: &mut Homes, now: Time) {
        while let Some(&Reverse((at, address))) = self.changes.peek()
            && at <= now
        {
            self.changes.pop();
            let (to, local) = self.locate(address);
            let arrived = self.doors[to].opens(at);
            let accepted = homes.of(to).write(Source::Link, local, arrived, &mut Nobody);
            self.doors[to].shut(arrived, accepted + self.crowd.holds_up());
            self.written[self.next_written] = (address >> self.media_shift, accepted + self.hold);
            self.next_written = (self.next_written + 1) % WRITTEN;
        }
    }

    /// When a read that arrives `at` may go on: after a directory write to its line of the medium.
    #[inline]
    fn free_to_read(&self, address: u64, at: Time) -> Time {
        let line = address >> self.media_shift;
        let held = self.written.iter().filter(|(written, _)| *written == line);
        held.map(|&(_, until)| until).fold(at, Time::max)
    }
}

/// The home takes what comes over the link in order: it is shut from when a write has arrived until there is room for it.
#[derive(Clone, Copy, Default)]
struct Door {
    from: Time,
    until: Time,
}

impl Door {
    /// When something that arrives `at` is let in. What arrives before the door is shut passes, although it is asked about later.
    #[inline]
    fn opens(&self, at: Time) -> Time {
        if at < self.from { at } else { at.max(self.until) }
    }

    /// Something that has arrived `at` is taken at `until`.
    #[inline]
    fn shut(&mut self, at: Time, until: Time) {
        if until <= at.max(self.until) {
            return;
        }
        if at > self.until {
            self.from = at;
        }
        self.until = until;
    }
}

/// Law (no mechanism known): changes of the directory pass one by one, and each takes longer the more requests are under way over
/// the link: `crowding * log2(requests / crowd)`, nothing up to the threshold. Figure 17 of the FAST'20 study has one thread
/// mix loads and stores on the other socket's Optane at nearly the rate of its own, and four threads at a sixth of it, while
/// loads alone or ntstores alone, which change nothing in the directory, suffer little.
struct Crowd {
    /// When the requests under way are done, in the order in which they came.
    under_way: VecDeque<Time>,
    /// Their number averaged over the last [`AVERAGED`] requests, times that.
    average: u64,
    threshold: f64,
    crowding: f64,
}

/// Requests over which the number under way is averaged.
const AVERAGED: u64 = 1024;

impl Crowd {
    fn new(link: &Parameters) -> Self {
        Self {
            under_way: VecDeque::new(),
            average: 0,
            threshold: link.crowd,
            crowding: link.crowding as f64,
        }
    }

    /// A request comes at `now` that will be done at `done`.
    #[inline]
    fn joins(&mut self, now: Time, done: Time) {
        while self.under_way.front().is_some_and(|&done| done <= now) {
            self.under_way.pop_front();
        }
        self.under_way.push_back(done);
        self.average = self.average + self.under_way.len() as u64 - self.average / AVERAGED;
    }

    /// How long a change of the directory holds up what comes behind it.
    #[inline]
    fn holds_up(&self) -> Time {
        let requests = self.average as f64 / AVERAGED as f64;
        (self.crowding * (requests / self.threshold).log2().max(0.0)) as Time
    }
}

/// The memory of the sockets that have some in use.
pub struct Homes(Vec<Home>);

impl Homes {
    pub fn new(platform: &Platform) -> Self {
        let sockets = if platform.nodes.memory == Sockets::Both { 2 } else { 1 };
        Self((0..sockets).map(|number| Home::new(platform, number)).collect())
    }

    /// That of a socket.
    #[inline]
    pub fn of(&mut self, socket: usize) -> &mut Home {
        let index = socket.min(self.0.len() - 1);
        &mut self.0[index]
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Home> {
        self.0.iter()
    }

    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Home> {
        self.0.iter_mut()
    }
}
