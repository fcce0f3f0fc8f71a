//! Whether what a thread stored first is made persistent first.
//!
//! A line is *overtaken* if its thread stored to another line later, and that one was made persistent, by a flush and a fence,
//! while this one had not even been flushed. Whoever reads the memory after a power failure in between finds the second store without
//! the first.

use std::collections::{BTreeMap, VecDeque};

use crate::access::{Site, Thread};

/// Commits that are remembered of a thread: a line that was overtaken by so many was not meant to be persistent soon.
const REMEMBERED: usize = 16;

/// What a fence made persistent.
#[derive(Clone, Copy)]
struct Commit {
    /// The latest of the stores, by its number; and by whom.
    store: u32,
    site: Site,
}

#[derive(Default)]
struct Committer {
    /// The latest store that was flushed, or went past the caches, since the last fence.
    flushed: Option<Commit>,
    commits: VecDeque<Commit>,
}

/// How often lines of one site were overtaken by those of another: by that commit alone, and by more than one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overtaken {
    pub once: u64,
    pub more: u64,
}

#[derive(Default)]
pub struct Order {
    threads: Vec<Committer>,
    /// Stores so far, of all threads.
    stores: u32,
    pub overtaken: BTreeMap<(Site, Site), Overtaken>,
}

/// A thread, as a line remembers it; the last number is all others, of which nothing is said.
pub fn small(thread: Thread) -> u8 {
    thread.min(u32::from(u8::MAX)) as u8
}

impl Order {
    fn committer(&mut self, thread: u8) -> Option<&mut Committer> {
        if thread == u8::MAX {
            return None;
        }
        let index = usize::from(thread);
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Committer::default);
        }
        Some(&mut self.threads[index])
    }

    /// The number of a new store.
    #[inline]
    pub fn stored(&mut self) -> u32 {
        self.stores = self.stores.wrapping_add(1);
        self.stores
    }

    /// A thread flushed a line of its own, or wrote it past the caches: this was the last store to it.
    #[inline]
    pub fn flushed(&mut self, thread: u8, store: u32, site: Site) {
        let Some(committer) = self.committer(thread) else {
            return;
        };
        if committer.flushed.is_none_or(|before| later(store, before.store)) {
            committer.flushed = Some(Commit { store, site });
        }
    }

    /// A thread's fence.
    #[inline]
    pub fn fenced(&mut self, thread: u8) {
        let Some(committer) = self.committer(thread) else {
            return;
        };
        if let Some(commit) = committer.flushed.take() {
            if committer.commits.len() == REMEMBERED {
                committer.commits.pop_front();
            }
            committer.commits.push_back(commit);
        }
    }

    /// A line is flushed now: this was the last store to it, by this site of the same thread.
    #[inline]
    pub fn judge(&mut self, thread: u8, store: u32, site: Site) {
        let Some(committer) = self.committer(thread) else {
            return;
        };
        let mut past = committer.commits.iter().filter(|commit| later(commit.store, store));
        let (Some(&first), next) = (past.next(), past.next().copied()) else {
            return;
        };
        let pair = (site, first.site);
        let overtaken = self.overtaken.entry(pair).or_default();
        overtaken.once += u64::from(next.is_none());
        overtaken.more += u64::from(next.is_some());
    }
}

/// Whether one store comes after another; their numbers wrap.
fn later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) as i32 > 0
}
