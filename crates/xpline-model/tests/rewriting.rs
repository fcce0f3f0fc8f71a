//! Lines of an Optane DIMM that are written again while the media write them.

use xpline_model::platform::{Memory, Optane};
use xpline_model::{MemorySystem, NANOSECOND, Platform, Request, RequestKind, Time};

/// One DIMM and a clock that only goes on.
struct Dimm {
    memory: MemorySystem,
    optane: Optane,
}

impl Dimm {
    fn new() -> Self {
        let platform = Platform::builtin("optane-ni").unwrap();
        let memory = MemorySystem::new(&platform);
        let Memory::Optane(optane) = platform.memory else {
            panic!("optane-ni is Optane")
        };
        Self {
            memory,
            optane: *optane,
        }
    }

    /// When a request of 64 B `at` is done.
    fn serve(&mut self, kind: RequestKind, address: u64, at: Time) -> Time {
        let request = Request {
            kind,
            address,
            at,
            source: 0,
        };
        self.memory.serve(request).unwrap()
    }

    /// Write the line at 0, piece by piece.
    fn write_line(&mut self, at: Time) {
        for piece in 0..4 {
            self.serve(RequestKind::Write, 64 * piece, at);
        }
    }

    fn media_writes(&self) -> u64 {
        self.memory.counters()[0].media_writes
    }
}

#[test]
fn the_media_write_one_copy_of_a_line_at_a_time() {
    let mut dimm = Dimm::new();
    dimm.write_line(0);
    assert_eq!(dimm.media_writes(), 1);
    dimm.write_line(1000 * NANOSECOND);
    assert_eq!(dimm.media_writes(), 1, "the media are at it");
    let done = dimm.optane.media.write_latency + 1000 * NANOSECOND;
    dimm.serve(RequestKind::Write, 0, done);
    assert_eq!(dimm.media_writes(), 2, "the second copy, and the piece that came last");
    dimm.serve(RequestKind::Write, 0, 2 * done);
    assert_eq!(dimm.media_writes(), 2, "three pieces are as the media have them");
}

#[test]
fn a_line_can_be_read_until_its_write_begins_and_when_it_is_done() {
    let (delay, latency) = {
        let media = Dimm::new().optane.media;
        (media.write_delay, media.write_latency)
    };
    let read_after = |wait: Time| {
        let mut dimm = Dimm::new();
        dimm.write_line(0);
        dimm.serve(RequestKind::Read, 64, wait) - wait
    };
    let at_once = read_after(delay / 2);
    assert!(at_once < 200 * NANOSECOND);
    assert_eq!(read_after(latency + 1000 * NANOSECOND), at_once);
    let in_the_middle = delay + (latency - delay) / 2;
    assert!(read_after(in_the_middle) > latency - in_the_middle);
}

#[test]
fn the_last_lines_of_a_queue_take_newer_data_along() {
    let writes_to = |lines: [u64; 3]| {
        let mut dimm = Dimm::new();
        lines
            .iter()
            .for_each(|line| _ = dimm.serve(RequestKind::Write, 64 * line, 0));
        dimm.memory.counters()[0].writes
    };
    // The first leaves at once, those behind it wait for the link.
    assert_eq!(writes_to([0, 1, 2]), 3);
    assert_eq!(writes_to([0, 1, 1]), 2);
    assert_eq!(writes_to([0, 1, 0]), 3);
}
