//! The prefetchers of a core: they bring lines into its L2 that it will probably ask for.

use super::hierarchy::{Found, WriteBacks};
use super::pending::Pending;
use super::{LINE, Machine};
use crate::memory::Wanted;
use crate::platform::Prefetch as Parameters;
use crate::time::Time;
use crate::way::Nobody;

/// Regions that a core's stream prefetcher follows at a time.
const STREAMS: usize = 16;

/// Lines that a stream prefetcher asks for at an access.
const AT_ONCE: u64 = 2;

pub struct Prefetcher {
    stream: bool,
    adjacent: bool,
    distance: u64,
    /// Lines of a region.
    region: u64,
    load_steps: u64,
    store_steps: u64,
    streams: Vec<Stream>,
    next: usize,
    /// Lines on their way into the L2.
    pub under_way: Pending,
}

/// Accesses to a region.
#[derive(Clone, Copy)]
struct Stream {
    region: u64,
    last: u64,
    /// Steps in a row, below 0 for descending ones.
    steps: i64,
    /// The line furthest ahead that was asked for.
    ahead: u64,
}

/// At most the buddy of a line, and a few of its stream.
struct Lines {
    lines: [u64; 1 + AT_ONCE as usize],
    count: usize,
}

impl Lines {
    fn push(&mut self, line: u64) {
        self.lines[self.count] = line;
        self.count += 1;
    }
}

impl Prefetcher {
    pub fn new(parameters: &Parameters) -> Self {
        let none = Stream {
            region: u64::MAX,
            last: 0,
            steps: 0,
            ahead: 0,
        };
        Self {
            stream: parameters.stream,
            adjacent: parameters.adjacent,
            distance: u64::from(parameters.distance),
            region: parameters.region / LINE,
            load_steps: u64::from(parameters.steps),
            store_steps: u64::from(parameters.store_steps),
            streams: vec![none; STREAMS],
            next: 0,
            under_way: Pending::new(parameters.queue),
        }
    }

    /// What to bring when the L2 is asked for a line, to write it or not, which it has not where `missed`.
    fn wanted(&mut self, line: u64, for_store: bool, missed: bool) -> Lines {
        let mut wanted = Lines {
            lines: [0; 1 + AT_ONCE as usize],
            count: 0,
        };
        if self.adjacent && missed {
            wanted.push(line ^ 1);
        }
        if self.stream {
            let steps = if for_store { self.store_steps } else { self.load_steps };
            self.follow(line, steps, &mut wanted);
        }
        wanted
    }

    fn follow(&mut self, line: u64, steps: u64, wanted: &mut Lines) {
        let region = line / self.region;
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.region == region) else {
            self.streams[self.next] = Stream {
                region,
                last: line,
                steps: 0,
                ahead: line,
            };
            self.next = (self.next + 1) % STREAMS;
            return;
        };
        let step = line as i64 - stream.last as i64;
        stream.last = line;
        stream.steps = match step {
            0 => return,
            1 if stream.steps >= 0 => stream.steps + 1,
            -1 if stream.steps <= 0 => stream.steps - 1,
            _ => {
                stream.ahead = line;
                0
            }
        };
        if stream.steps.unsigned_abs() < steps {
            return;
        }
        let first = region * self.region;
        let last = first + self.region - 1;
        for _ in 0..AT_ONCE {
            let next = if stream.steps > 0 {
                Some(stream.ahead.max(line) + 1).filter(|&next| next <= last.min(line + self.distance))
            } else {
                stream
                    .ahead
                    .min(line)
                    .checked_sub(1)
                    .filter(|&next| next >= first && next + self.distance >= line)
            };
            let Some(next) = next else { return };
            stream.ahead = next;
            wanted.push(next);
        }
    }
}

impl Machine {
    /// Let the prefetchers of a core see that its L2 was asked for a line.
    #[inline(never)]
    pub(super) fn prefetch(&mut self, core: usize, line: u64, for_store: bool, found: Found, now: Time) {
        let wanted = self.cores[core].prefetcher.wanted(line, for_store, found != Found::L2);
        let arrival = now + self.timing.request;
        for &line in &wanted.lines[..wanted.count] {
            if self.cores[core].prefetcher.under_way.free_at() > now {
                return;
            }
            let mut evicted = WriteBacks::default();
            let Some(found) = self.caches.prefetch(core, line, &mut evicted) else {
                continue;
            };
            for line in evicted.iter() {
                self.memory.write_evicted(core, line * LINE, arrival, &mut Nobody);
            }
            let done = match found {
                Found::Memory => {
                    let read = self.memory.read(core, line * LINE, Wanted::Share, arrival, &mut Nobody);
                    read + self.timing.response
                }
                _ => now + self.timing.l3_hit,
            };
            self.cores[core].prefetcher.under_way.occupy(line, done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefetcher(stream: bool, adjacent: bool) -> Prefetcher {
        Prefetcher::new(&Parameters {
            stream,
            adjacent,
            distance: 8,
            queue: 16,
            steps: 2,
            store_steps: 3,
            region: 4096,
        })
    }

    fn asks(prefetcher: &mut Prefetcher, lines: &[u64]) -> Vec<u64> {
        let asked = lines.iter().map(|&line| prefetcher.wanted(line, false, true));
        asked.flat_map(|wanted| wanted.lines[..wanted.count].to_vec()).collect()
    }

    #[test]
    fn the_buddy_of_a_line_comes_along() {
        assert_eq!(asks(&mut prefetcher(false, true), &[6, 9]), [7, 8]);
    }

    #[test]
    fn a_stream_begins_with_the_third_line_in_order_and_stays_in_its_page() {
        assert_eq!(asks(&mut prefetcher(true, false), &[0, 1, 2, 3]), [3, 4, 5, 6]);
        assert_eq!(asks(&mut prefetcher(true, false), &[40, 39, 38, 37]), [37, 36, 35, 34]);
        assert_eq!(asks(&mut prefetcher(true, false), &[60, 61, 62, 63]), [63]);
        assert_eq!(asks(&mut prefetcher(true, false), &[0, 5, 9, 2]), []);
    }
}
