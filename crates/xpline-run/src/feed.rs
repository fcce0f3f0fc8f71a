//! Chunks of threads dealt out to cores.
//!
//! A thread has a core from its first chunk to its last. Where there are more threads than cores, several take turns on one, a
//! chunk each. A core that finds no chunk of its own while others have plenty waits: so threads stay about as
//! close as they were when they ran, and memory stays bounded.

use std::collections::{HashMap, VecDeque};

use crate::access::{Access, Chunk, Thread};

/// Accesses that may wait for their cores, all together.
const WINDOW: usize = 64 << 10;

/// Where chunks come from, until the program has ended.
pub trait Source: Iterator<Item = Chunk> {}

impl<I: Iterator<Item = Chunk>> Source for I {}

/// What a core gets when it asks for work.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Accesses(Thread, Vec<Access>),
    /// Others must catch up first.
    Wait,
    End,
}

pub struct Feed<S> {
    source: S,
    cores: usize,
    /// The core of each living thread.
    core_of: HashMap<Thread, usize>,
    /// Living threads of each core.
    living: Vec<u32>,
    queues: Vec<VecDeque<Chunk>>,
    queued: usize,
    ended: bool,
}

impl<S: Source> Feed<S> {
    pub fn new(source: S, cores: u32) -> Self {
        Self {
            source,
            cores: cores as usize,
            core_of: HashMap::new(),
            living: Vec::new(),
            queues: Vec::new(),
            queued: 0,
            ended: false,
        }
    }

    /// Cores that threads have been dealt to so far.
    pub fn cores_in_use(&self) -> usize {
        self.queues.len()
    }

    /// Read the first chunk, so that there is a core to start with; false if there is none.
    pub fn begin(&mut self) -> bool {
        self.read();
        !self.queues.is_empty()
    }

    /// The next chunk for a core.
    pub fn next(&mut self, core: usize) -> Next {
        loop {
            if let Some(chunk) = self.queues[core].pop_front() {
                self.queued -= chunk.accesses.len();
                if chunk.last {
                    self.core_of.remove(&chunk.thread);
                    self.living[core] -= 1;
                }
                if chunk.accesses.is_empty() {
                    continue;
                }
                return Next::Accesses(chunk.thread, chunk.accesses);
            }
            if self.ended {
                return Next::End;
            }
            if self.queued >= WINDOW {
                return Next::Wait;
            }
            self.read();
        }
    }

    /// Stop reading: every core ends after what it has.
    pub fn end(&mut self) {
        self.ended = true;
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.queued = 0;
    }

    fn read(&mut self) {
        let Some(chunk) = self.source.next() else {
            self.ended = true;
            return;
        };
        let core = match self.core_of.get(&chunk.thread) {
            Some(&core) => core,
            None => self.deal(chunk.thread),
        };
        self.queued += chunk.accesses.len();
        self.queues[core].push_back(chunk);
    }

    /// A core for a new thread: a new one or the one with the fewest threads.
    fn deal(&mut self, thread: Thread) -> usize {
        let least = (0..self.living.len()).min_by_key(|&core| self.living[core]);
        let core = match least {
            Some(core) if self.living[core] == 0 || self.living.len() == self.cores => core,
            _ => {
                self.living.push(0);
                self.queues.push(VecDeque::new());
                self.living.len() - 1
            }
        };
        self.living[core] += 1;
        self.core_of.insert(thread, core);
        core
    }
}

#[cfg(test)]
mod tests {
    use xpline_model::OpKind;

    use super::*;

    fn chunk(thread: Thread, accesses: usize, last: bool) -> Chunk {
        let access = Access {
            kind: OpKind::Load,
            address: u64::from(thread),
            size: 8,
            instructions: 0,
            site: 0,
        };
        Chunk {
            thread,
            accesses: vec![access; accesses],
            last,
        }
    }

    fn thread_of(next: Next) -> Option<Thread> {
        match next {
            Next::Accesses(thread, _) => Some(thread),
            _ => None,
        }
    }

    #[test]
    fn a_thousand_short_threads_take_one_core_after_another() {
        let chunks = (0..1000).map(|thread| chunk(thread, 3, true));
        let mut feed = Feed::new(chunks, 24);
        assert!(feed.begin());
        for thread in 0..1000 {
            assert_eq!(thread_of(feed.next(0)), Some(thread));
        }
        assert_eq!(feed.next(0), Next::End);
        assert_eq!(feed.cores_in_use(), 1);
    }

    #[test]
    fn threads_beyond_the_cores_take_turns() {
        let chunks = (0..6).map(|number| chunk(number % 3, 1, false));
        let mut feed = Feed::new(chunks, 2);
        assert!(feed.begin());
        assert_eq!(thread_of(feed.next(0)), Some(0));
        assert_eq!(thread_of(feed.next(0)), Some(2));
        assert_eq!(thread_of(feed.next(1)), Some(1));
        assert_eq!(thread_of(feed.next(1)), Some(1));
        assert_eq!(thread_of(feed.next(0)), Some(0));
        assert_eq!(thread_of(feed.next(0)), Some(2));
        assert_eq!(feed.next(1), Next::End);
    }

    #[test]
    fn a_core_whose_thread_sleeps_waits_and_memory_stays_bounded() {
        let mut read = 0;
        let chunks = (0..1_000_000).map(|number| {
            read += 1;
            chunk(u32::from(number > 0), 1024, false)
        });
        let mut feed = Feed::new(chunks, 2);
        assert!(feed.begin());
        assert_eq!(thread_of(feed.next(0)), Some(0));
        assert_eq!(feed.next(0), Next::Wait);
        assert_eq!(thread_of(feed.next(1)), Some(1));
        assert_eq!(feed.next(0), Next::Wait);
        drop(feed);
        assert!(read < 70, "{read}");
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(!Feed::new(std::iter::empty(), 2).begin());
    }
}
