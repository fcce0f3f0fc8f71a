//! The state of one core: a front end that issues loads and fills the store buffer, and a commit engine that drains it in order.

use std::collections::VecDeque;

use super::Lookup;
use super::hierarchy::Found;
use super::pending::Pending;
use super::prefetch::Prefetcher;
use super::step::Order;
use super::window::Window;
use crate::op::Op;
use crate::op::OpKind;
use crate::platform::Platform;
use crate::program::Wait;
use crate::time::Time;

/// What the front end waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing: it goes on at its own time.
    Nothing,
    /// Room in the store buffer.
    StoreBuffer,
    /// The store buffer to be empty (a full fence, or the clock).
    Drain,
    /// The program has ended.
    Ended,
}

/// An op that waits to commit, in program order.
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    pub kind: OpKind,
    pub address: u64,
    pub bytes: u32,
    /// When the line of a store is in the L1d, once its fetch has begun.
    pub owned_at: Option<Time>,
}

/// How far an op got whose time has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not begun.
    Fresh,
    /// It has its place in the window.
    Admitted,
    /// A load that missed the L1d and needs a fill buffer.
    Missed,
}

pub struct Core {
    pub waiting: Waiting,
    /// Since when it waits; and what it has waited for and since when, from the moment that it goes on.
    pub waiting_since: Time,
    pub waited: Option<(Wait, Time)>,
    /// An op pulled from the program that could not go yet.
    pub held: Option<(Op, Stage)>,
    /// What the look-up of a load that missed has found.
    pub missed: Lookup,
    pub window: Window,
    pub fills: Pending,
    /// Lines of ntstores, where they are not in fill buffers.
    pub combining: Option<Pending>,
    pub prefetcher: Prefetcher,
    pub store_buffer: VecDeque<Commit>,
    /// Stores in the buffer: the other ops need no line.
    pub stores: usize,
    /// Entries at the head of the buffer whose stores have asked for their line, and how many stores that is.
    pub owned: usize,
    pub owned_stores: usize,
    /// Lines flushed whose entries in the write pending queues have not been returned.
    pub flushing: Pending,
    /// The order of its stores.
    pub order: Order,
    /// Writes that waited at the DIMM of the dirty line that it pushed out last.
    pub queued: u32,
    /// When it may push out the next.
    pub evicting: Time,
    /// Fences in the store buffer.
    pub fences: u32,
    /// Whether the commit engine is scheduled.
    pub committing: bool,
    /// When everything sent towards memory so far is known to be accepted.
    pub accepted: Time,
    pub commit_free: Time,
    /// When the next ntstore to a line that is under way may go.
    pub rewriting: Time,
}

impl Core {
    pub fn new(platform: &Platform) -> Self {
        let core = &platform.core;
        Self {
            waiting: Waiting::Nothing,
            waiting_since: 0,
            waited: None,
            held: None,
            missed: Lookup {
                found: Found::Memory,
                room: 0,
            },
            window: Window::new(core.window),
            fills: Pending::new(core.fill_buffers),
            combining: (core.combining_buffers > 0).then(|| Pending::new(core.combining_buffers)),
            prefetcher: Prefetcher::new(&platform.prefetch),
            store_buffer: VecDeque::with_capacity(core.store_buffer as usize),
            stores: 0,
            owned: 0,
            owned_stores: 0,
            flushing: Pending::new(core.flushes),
            order: Order::new(),
            queued: 0,
            evicting: 0,
            fences: 0,
            committing: false,
            accepted: 0,
            commit_free: 0,
            rewriting: 0,
        }
    }

    /// Where the lines of ntstores wait until memory has accepted them.
    #[inline]
    pub fn combining(&mut self) -> &mut Pending {
        self.combining.as_mut().unwrap_or(&mut self.fills)
    }

    /// The line has left the caches: stores that had asked for it ahead of time must ask again, in their turn.
    #[inline]
    pub fn lose(&mut self, line: u64) {
        for entry in self.store_buffer.iter_mut().take(self.owned) {
            if entry.kind == OpKind::Store && entry.address / super::LINE == line {
                entry.owned_at = None;
            }
        }
    }
}
