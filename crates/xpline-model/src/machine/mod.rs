//! The machine: cores, caches and memory on one clock.
//!
//! Two agents a core, its front end and its commit engine, take turns in the order of their times; whatever an agent sends towards
//! memory is therefore sent in the order of time, and each part below answers at once with the time of completion. No event is
//! spent on a request's way.

pub mod cache;
mod commit;
mod core;
mod front;
mod hierarchy;
pub mod pending;
mod prefetch;
mod step;
mod timing;
mod turns;
mod window;

use self::core::{Core, Waiting};
use crate::counters::{CoreCounters, Counters};
use crate::memory::{MediaWrite, Memory, Wanted};
use crate::platform::Platform;
use crate::program::{Fetch, FetchedFrom, Program, Wait};
use crate::time::Time;
use crate::way::{Follow, Follower, Nobody, Part};
use hierarchy::{Found, Hierarchy, WriteBacks};
use step::InStep;
use timing::Timing;
use turns::{Agent, Turns};

/// The end of a look-up in the caches.
#[derive(Clone, Copy, Debug)]
struct Lookup {
    found: Found,
    /// When the write pending queues have room for the lines that it pushed out: its own line comes no earlier from memory.
    room: Time,
}

/// A platform at work: caches, queues and buffers keep their state from one call to the next.
///
/// ```
/// use xpline_model::{Machine, Op, OpKind, Platform, Program};
///
/// struct OneLoad(bool);
/// impl Program for OneLoad {
///     fn next_op(&mut self) -> Option<Op> {
///         std::mem::take(&mut self.0).then(|| Op::new(OpKind::Load, 0, 64))
///     }
/// }
/// let platform = Platform::builtin("optane-ni").unwrap();
/// let counters = Machine::new(&platform).run(&mut [OneLoad(true)]);
/// assert_eq!(counters.dimms[0].media_reads, 1);
/// ```
pub struct Machine {
    cores: Vec<Core>,
    caches: Hierarchy,
    memory: Memory,
    timing: Timing,
    in_step: InStep,
    turns: Turns,
    started: usize,
    now: Time,
    counted: CoreCounters,
    media_line_bytes: u64,
}

impl Machine {
    pub fn new(platform: &Platform) -> Self {
        Self::over(platform, Memory::new(platform))
    }

    /// The same with the volatile memory beside the platform's own, from [`crate::VOLATILE`] on. Where the platform has none
    /// ([`crate::platform::Volatile`]), those addresses are its own memory's, as all others are.
    pub fn with_volatile(platform: &Platform) -> Self {
        Self::over(platform, Memory::with_volatile(platform))
    }

    fn over(platform: &Platform, memory: Memory) -> Self {
        Self {
            cores: (0..platform.core.count).map(|_| Core::new(platform)).collect(),
            caches: Hierarchy::new(platform),
            memory,
            timing: Timing::new(platform),
            in_step: InStep::new(&platform.l3),
            turns: Turns::new(platform.core.count),
            started: 0,
            now: 0,
            counted: CoreCounters::default(),
            media_line_bytes: platform.media_line_bytes(),
        }
    }

    /// Run every program to its end, program `i` on core `i`, and return what was counted since the machine was made.
    ///
    /// # Panics
    /// If there are more programs than cores.
    pub fn run<P: Program>(&mut self, programs: &mut [P]) -> Counters {
        self.advance(programs, Time::MAX);
        self.counters()
    }

    /// Run until the clock reaches `until` (in ps) or every program has ended; false once all have.
    ///
    /// Call it again with the same programs to go on.
    ///
    /// # Panics
    /// If there are more programs than cores.
    pub fn advance<P: Program>(&mut self, programs: &mut [P], until: Time) -> bool {
        assert!(
            programs.len() <= self.cores.len(),
            "{} programs on {} cores",
            programs.len(),
            self.cores.len()
        );
        while self.started < programs.len() {
            self.turns.ask(self.now, Agent::Front(self.started));
            self.started += 1;
        }
        while let Some((time, agent)) = self.turns.first() {
            if time >= until {
                self.now = until;
                return true;
            }
            self.now = time;
            match agent {
                Agent::Front(core) => self.front(core, &mut programs[core], until),
                Agent::Commit(core) => self.commit(core, &mut programs[core], until),
            }
        }
        false
    }

    /// Let the programs' next `accesses` loads and stores each pass through the caches alone, and the ops between them: untimed and
    /// uncounted, to begin with caches in steady state.
    ///
    /// Lines that the caches give up are dropped; fences and clock readings do nothing, ntstores drop their line. A program either ends
    /// or goes on making accesses: one that only computes would never come back.
    pub fn warm_caches<P: Program>(&mut self, programs: &mut [P], accesses: u64) {
        let mut dropped = WriteBacks::default();
        self.warm(programs, accesses, |caches, core, line, write, in_step| {
            caches.access(core, line, write, || in_step, &mut dropped);
            dropped = WriteBacks::default();
        });
    }

    /// The same for the L3 alone, which takes less time: what passes through an L2 reaches the L3 in the same order, only later.
    /// For caches that hold nothing yet; the private ones still hold nothing afterwards.
    pub fn warm_l3<P: Program>(&mut self, programs: &mut [P], accesses: u64) {
        self.warm(programs, accesses, Hierarchy::pass_to_l3);
        self.caches.empty_l1ds();
    }

    fn warm<P: Program>(
        &mut self,
        programs: &mut [P],
        accesses: u64,
        mut access: impl FnMut(&mut Hierarchy, usize, u64, bool, u32),
    ) {
        use crate::op::OpKind;
        for _ in 0..accesses {
            for (core, program) in programs.iter_mut().enumerate() {
                while let Some(op) = program.next_op() {
                    program.foretell(|address| self.caches.expect(core, address / LINE));
                    let line = op.addr / LINE;
                    match op.kind {
                        OpKind::Load | OpKind::Store | OpKind::LockedRmw => {
                            let order = &mut self.cores[core].order;
                            if op.kind == OpKind::Store {
                                order.goes_on(line);
                            }
                            let in_step = self.in_step.chance(order, 0);
                            access(&mut self.caches, core, line, op.kind != OpKind::Load, in_step);
                            break;
                        }
                        OpKind::NtStore => {
                            self.caches.forget(core, line);
                            break;
                        }
                        OpKind::Prefetch => {
                            let in_step = self.in_step.chance(&self.cores[core].order, 0);
                            access(&mut self.caches, core, line, false, in_step);
                        }
                        OpKind::Clwb | OpKind::Clflush | OpKind::ClflushOpt if self.timing.eadr => {}
                        OpKind::Clwb if self.timing.clwb_keeps_line => _ = self.caches.write_back(core, line),
                        OpKind::Clwb | OpKind::Clflush | OpKind::ClflushOpt => self.caches.forget(core, line),
                        _ => {}
                    }
                }
            }
        }
        self.caches.reset_counters();
    }

    /// From now on every line that nobody has touched counts as read over the socket link before, as in the middle of a long
    /// run: the directory has nothing to note when it is read again. Nothing changes where cores and memory are on one socket.
    pub fn presume_read(&mut self) {
        self.memory.presume_read();
    }

    /// The clock, in ps.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A reading of every counter.
    pub fn counters(&self) -> Counters {
        Counters {
            time: self.now,
            core: self.counted,
            l1d: self.caches.l1d_counters,
            l2: self.caches.l2_counters,
            l3: self.caches.l3_counters,
            dimms: self.memory.counters(),
            volatile: self.memory.volatile_counters(),
            media_line_bytes: self.media_line_bytes,
        }
    }

    /// 64 B pieces that programs wrote and the media do not have yet: in caches, and in the buffers of DIMMs.
    pub fn unwritten_pieces(&self) -> u64 {
        self.caches.dirty_lines() + self.memory.dirty_pieces()
    }

    /// From now on keep what the media write, for [`Machine::take_media_writes`].
    pub fn watch_media(&mut self) {
        self.memory.watch_media();
    }

    /// Hand over what the media of each DIMM wrote since the last call, in the order of the DIMMs and then of the writes.
    pub fn take_media_writes(&mut self, take: impl FnMut(MediaWrite)) {
        self.memory.take_media_writes(take);
    }

    /// Whether an agent at `time` may go on without losing its turn to another, or running past `until`.
    #[inline]
    fn still_my_turn(&self, time: Time, until: Time) -> bool {
        time < until && self.turns.stays_first(time)
    }

    /// Look a line up in the caches of a core, for a load or for a store, at `now`. It is in the L1d from then on, and what it pushed
    /// out of the caches is on its way to memory.
    #[inline]
    fn look_up(&mut self, core: usize, line: u64, write: bool, now: Time) -> Lookup {
        let mut evicted = WriteBacks::default();
        let state = &self.cores[core];
        let in_step = || self.in_step.chance(&state.order, state.queued);
        let found = self.caches.access(core, line, write, in_step, &mut evicted);
        let arrival = now + self.timing.request;
        let mut room = 0;
        for line in evicted.iter() {
            let (memory, address) = (&mut self.memory, line * LINE);
            let queued = memory.queued(address, arrival);
            let accepted = memory.write_evicted(core, address, arrival, &mut Nobody);
            let state = &mut self.cores[core];
            state.queued = queued;
            state.evicting = state.evicting.max(now) + self.timing.evict_interval;
            room = room.max(accepted).max(state.evicting);
        }
        Lookup { found, room }
    }

    /// Bring a line that was looked up into the L1d of a core at `now`; returns when it is there.
    /// A fill buffer is free where it was not in the L1d.
    #[inline]
    fn fetch<P: Program>(
        &mut self,
        core: usize,
        program: &mut P,
        address: u64,
        for_store: bool,
        lookup: Lookup,
        now: Time,
    ) -> Time {
        let watched = (P::WATCHED && lookup.found == Found::Memory).then(|| {
            let place = self.memory.place(address);
            (place, self.memory.media_reads(place))
        });
        let done = match lookup.found {
            Found::L1 => return now + self.timing.l1d_hit,
            Found::L2 => self.prefetched(core, address / LINE, now).max(now + self.timing.l2_hit),
            Found::L3 => now + self.timing.l3_hit,
            Found::Memory => {
                let wanted = if for_store { Wanted::Own } else { Wanted::Share };
                let (arrival, mut follow) = (now + self.timing.request, Follower(program));
                let read = self.memory.read(core, address, wanted, arrival, &mut follow);
                let free = read.max(lookup.room);
                follow.passes(Part::Mesh, now, arrival);
                follow.passes(Part::Evicted, read, free);
                let owned = free + if for_store { self.timing.ownership } else { 0 };
                follow.passes(Part::Mesh, free, owned + self.timing.response);
                owned + self.timing.response
            }
        };
        self.cores[core].fills.occupy(address / LINE, done);
        if self.timing.prefetches {
            self.prefetch(core, address / LINE, for_store, lookup.found, now);
        }
        if P::WATCHED {
            let from = match watched {
                Some((place, before)) if self.memory.media_reads(place) > before => FetchedFrom::Media,
                Some(_) => FetchedFrom::Buffer,
                None => FetchedFrom::Cache,
            };
            program.fetched(Fetch {
                address,
                for_store,
                asked: now,
                done,
                from,
            });
        }
        done
    }

    /// When a line of the L2 is there, if a prefetcher has it under way.
    #[inline]
    fn prefetched(&self, core: usize, line: u64, now: Time) -> Time {
        if !self.timing.prefetches {
            return now;
        }
        self.cores[core]
            .prefetcher
            .under_way
            .under_way(line, now)
            .unwrap_or(now)
    }

    #[inline]
    fn resume_front(&mut self, core: usize, now: Time) {
        let state = &mut self.cores[core];
        let on = if state.waiting == Waiting::StoreBuffer {
            Wait::StoreBuffer
        } else {
            Wait::Drain
        };
        state.waited = Some((on, state.waiting_since));
        state.waiting = Waiting::Nothing;
        self.turns.ask(now, Agent::Front(core));
    }
}

/// Bytes of a cache line.
const LINE: u64 = 64;
