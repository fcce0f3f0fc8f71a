//! Chunks of threads dealt out to cores.
//!
//! A thread has a core from its first chunk to its last. Where there are more threads than cores, several take turns on one, a
//! chunk each. A process's first thread, which starts others and waits for them, stays in order with their beginnings and ends; else
//! threads may get ahead of one another by [`SLACK`] of the host's time, as if each had had a core of its own there. Memory stays
//! bounded.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::access::{Access, Chunk, Thread};

/// Accesses that wait for their cores, all together: enough to see who runs at the same time.
const WINDOW: usize = 1 << 20;

/// Time of the host, in ns, for which a thread that was ready may have waited there for a core: longer than its turns.
const SLACK: u64 = 100_000_000;

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
    /// The chunk under way on each core.
    running: Vec<Option<UnderWay>>,
    /// When threads whose last chunk has not been taken had ended on the host, and which.
    deaths: BTreeSet<(u64, Thread)>,
    /// Threads of which nothing has been taken yet.
    unborn: HashSet<Thread>,
    queued: usize,
    ended: bool,
}

/// What matters of a chunk to others.
#[derive(Clone, Copy)]
struct UnderWay {
    /// When it had ended on the host.
    end: u64,
    /// It is of the first thread of its process; and its thread ends with it.
    first: bool,
    last: bool,
}

impl UnderWay {
    fn of(chunk: &Chunk) -> Self {
        Self {
            end: chunk.end,
            first: chunk.first,
            last: chunk.last,
        }
    }
}

impl<S: Source> Feed<S> {
    pub fn new(source: S, cores: u32) -> Self {
        Self {
            source,
            cores: cores as usize,
            core_of: HashMap::new(),
            living: Vec::new(),
            queues: Vec::new(),
            running: Vec::new(),
            deaths: BTreeSet::new(),
            unborn: HashSet::new(),
            queued: 0,
            ended: false,
        }
    }

    /// Cores that threads have been dealt to so far.
    pub fn cores_in_use(&self) -> usize {
        self.queues.len()
    }

    /// Read the first chunks, so that there are cores to start with; false if there is nothing.
    pub fn begin(&mut self) -> bool {
        self.fill();
        !self.queues.is_empty()
    }

    /// The next chunk for a core, which is done with the one before.
    pub fn next(&mut self, core: usize) -> Next {
        self.running[core] = None;
        loop {
            self.fill();
            let Some(head) = self.queues[core].front() else {
                return if self.ended { Next::End } else { Next::Wait };
            };
            if self.comes_later(head) {
                return Next::Wait;
            }
            let chunk = self.queues[core].pop_front().expect("the head");
            self.queued -= chunk.accesses.len();
            self.unborn.remove(&chunk.thread);
            if chunk.last {
                self.deaths.remove(&(chunk.end, chunk.thread));
                self.core_of.remove(&chunk.thread);
                self.living[core] -= 1;
            }
            if !chunk.accesses.is_empty() {
                self.running[core] = Some(UnderWay::of(&chunk));
                return Next::Accesses(chunk.thread, chunk.accesses);
            }
        }
    }

    /// Whether something else has to be done before a chunk.
    fn comes_later(&self, chunk: &Chunk) -> bool {
        let born = !self.unborn.contains(&chunk.thread);
        let before = |other: UnderWay| {
            // Who was started comes after what his starter did before, and who waited for an end comes after it.
            let strict = other.first && !born || chunk.first && other.last;
            other.end.saturating_add(if strict { 0 } else { SLACK }) < chunk.begin
        };
        let running = self.running.iter().flatten().copied();
        let heads = self.queues.iter().filter_map(VecDeque::front).map(UnderWay::of);
        chunk.first && self.deaths.first().is_some_and(|&(end, _)| end < chunk.begin)
            || running.chain(heads).any(before)
    }

    fn fill(&mut self) {
        while !self.ended && self.queued < WINDOW {
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
        if chunk.last {
            self.deaths.insert((chunk.end, chunk.thread));
        }
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
                self.running.push(None);
                self.living.len() - 1
            }
        };
        self.living[core] += 1;
        self.unborn.insert(thread);
        self.core_of.insert(thread, core);
        core
    }
}

#[cfg(test)]
mod tests {
    use xpline_model::OpKind;

    use super::*;

    fn chunk(thread: Thread, accesses: usize, begin: u64, end: u64) -> Chunk {
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
            begin,
            end,
            first: thread == 0,
            last: false,
        }
    }

    fn thread_of(next: Next) -> Option<Thread> {
        match next {
            Next::Accesses(thread, _) => Some(thread),
            _ => None,
        }
    }

    #[test]
    fn a_thread_begins_after_what_its_starter_had_done() {
        let chunks = vec![chunk(0, 1, 0, 10), chunk(1, 1, 12, 20), chunk(2, 1, 22, 30)];
        let mut feed = Feed::new(chunks.into_iter(), 4);
        assert!(feed.begin());
        assert_eq!(feed.cores_in_use(), 3);
        assert_eq!(feed.next(1), Next::Wait);
        assert_eq!(thread_of(feed.next(0)), Some(0));
        assert_eq!(feed.next(2), Next::Wait, "it is not done");
        assert_eq!(feed.next(0), Next::End);
        assert_eq!(
            thread_of(feed.next(2)),
            Some(2),
            "its sister, which had to wait for a core, may be later"
        );
        assert_eq!(thread_of(feed.next(1)), Some(1));
    }

    #[test]
    fn what_comes_after_a_threads_end_waits_for_it() {
        let end = Chunk {
            last: true,
            ..chunk(1, 0, 30, 30)
        };
        let chunks = vec![chunk(0, 1, 0, 10), chunk(1, 1, 0, 30), end, chunk(0, 1, 40, 50)];
        let mut feed = Feed::new(chunks.into_iter(), 4);
        assert!(feed.begin());
        assert_eq!(thread_of(feed.next(0)), Some(0));
        assert_eq!(feed.next(0), Next::Wait);
        assert_eq!(thread_of(feed.next(1)), Some(1));
        assert_eq!(feed.next(0), Next::Wait);
        assert_eq!(feed.next(1), Next::End);
        assert_eq!(thread_of(feed.next(0)), Some(0));
    }

    #[test]
    fn threads_that_took_turns_on_the_host_overlap() {
        let chunks = (0..10).map(|turn| chunk(1 + turn % 2, 1, u64::from(turn) * 1000, u64::from(turn) * 1000 + 999));
        let mut feed = Feed::new(chunks, 2);
        assert!(feed.begin());
        for _ in 0..5 {
            assert_eq!(thread_of(feed.next(0)), Some(1));
        }
        assert_eq!(thread_of(feed.next(1)), Some(2));
    }

    #[test]
    fn a_thousand_threads_take_turns_on_the_cores() {
        let chunks = (0..1000).map(|thread| Chunk {
            last: true,
            ..chunk(thread, 1, u64::from(thread) * 2 * SLACK, u64::from(thread) * 2 * SLACK)
        });
        let mut feed = Feed::new(chunks, 24);
        assert!(feed.begin());
        assert_eq!(feed.cores_in_use(), 24);
        let mut seen = Vec::new();
        for turn in 0.. {
            match feed.next(turn % 24) {
                Next::Accesses(thread, _) => seen.push(thread),
                Next::End if seen.len() == 1000 => break,
                Next::Wait | Next::End => {}
            }
        }
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn threads_beyond_the_cores_take_turns() {
        let chunks = (0..6).map(|number| chunk(number % 3, 1, 0, 0));
        let mut feed = Feed::new(chunks, 2);
        assert!(feed.begin());
        let on_first: Vec<_> = std::iter::from_fn(|| thread_of(feed.next(0))).collect();
        let on_second: Vec<_> = std::iter::from_fn(|| thread_of(feed.next(1))).collect();
        assert_eq!((on_first, on_second), (vec![0, 2, 0, 2], vec![1, 1]));
        assert_eq!(feed.next(1), Next::End);
    }

    #[test]
    fn a_core_whose_thread_sleeps_waits_and_memory_stays_bounded() {
        let mut read = 0;
        let chunks = (0..1_000_000).map(|number| {
            read += 1;
            chunk(u32::from(number > 0), 1024, number, number)
        });
        let mut feed = Feed::new(chunks, 2);
        assert!(feed.begin());
        assert_eq!(thread_of(feed.next(0)), Some(0));
        assert_eq!(feed.next(1), Next::Wait, "its starter is not done");
        assert_eq!(feed.next(0), Next::Wait);
        assert_eq!(thread_of(feed.next(1)), Some(1));
        assert_eq!(feed.next(0), Next::Wait);
        drop(feed);
        assert!(read <= 1030, "{read}");
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(!Feed::new(std::iter::empty(), 2).begin());
    }
}
