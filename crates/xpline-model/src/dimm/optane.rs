//! One Optane DIMM: controller, XPBuffer, AIT and media.
//!
//! Requests are handed over in the order of their arrival and answered at once with the time of their completion;
//! the state kept is when each part is free next.

use super::MediaWrite;
use super::ait::AitCache;
use super::contention::Contention;
use super::media::{Media, WriteTurn};
use super::wear::WearLeveling;
use super::xpbuffer::XpBuffer;
use crate::counters::DimmCounters;
use crate::platform::Optane;
use crate::time::Time;
use crate::way::{Follow, Part};

pub struct OptaneDimm {
    buffer: XpBuffer,
    ait: AitCache,
    media: Media,
    wear: WearLeveling,
    /// The DDR-T link carries one written 64 B line at a time towards the DIMM, and one read line at a time back.
    link_in: Time,
    link_out: Time,
    write_transfer: Time,
    rewrite_transfer: Time,
    /// Writes in a row that found their line in the buffer.
    hits_in_a_row: u32,
    read_transfer: Time,
    hit_latency: Time,
    ait_miss_latency: Time,
    line_shift: u32,
    page_shift: u32,
    full: u8,
    /// Pieces of 64 B in a line.
    pieces: u8,
    /// From when the media take a line until they have written it; for the first part of that time it can still be read.
    write_latency: Time,
    write_delay: Time,
    /// When each of the lines last sent to the media left the write-back queue, oldest first from `next_staged`.
    staged: Vec<Time>,
    next_staged: usize,
    contention: Contention,
    /// Until when a page on the move last held up a write, and all behind it.
    halted_until: Time,
    /// Lines that the media wrote, where someone wants to know.
    pub watched: Option<Vec<MediaWrite>>,
    pub counters: DimmCounters,
}

impl OptaneDimm {
    pub fn new(optane: &Optane) -> Self {
        let pieces = optane.xpbuffer.line / 64;
        let (speed, reference) = (u64::from(optane.ddrt.speed), u64::from(optane.ddrt.reference));
        let at_speed = |time: Time| time * reference / speed;
        Self {
            buffer: XpBuffer::new(optane.xpbuffer.lines, optane.xpbuffer.replacement),
            ait: AitCache::new(optane.ait.cache / optane.ait.page, optane.ait.ways),
            media: Media::new(optane),
            wear: WearLeveling::new(optane),
            link_in: 0,
            link_out: 0,
            write_transfer: at_speed(optane.ddrt.write_transfer),
            rewrite_transfer: at_speed(optane.ddrt.rewrite_transfer),
            hits_in_a_row: 0,
            read_transfer: at_speed(optane.ddrt.read_transfer),
            hit_latency: optane.xpbuffer.hit_latency,
            ait_miss_latency: optane.ait.miss_latency,
            line_shift: optane.xpbuffer.line.trailing_zeros(),
            page_shift: optane.ait.page.trailing_zeros(),
            full: ((1u16 << pieces) - 1) as u8,
            pieces: pieces as u8,
            write_latency: optane.media.write_latency,
            write_delay: optane.media.write_delay,
            staged: vec![0; optane.xpbuffer.write_back_queue as usize],
            next_staged: 0,
            contention: Contention::new(&optane.xpbuffer),
            halted_until: 0,
            watched: None,
            counters: DimmCounters::default(),
        }
    }

    /// Read 64 B at a DIMM-local address while `in_flight` requests are under way on its channel; returns when the data leave it.
    #[inline]
    pub fn read<F: Follow>(&mut self, address: u64, at: Time, in_flight: u32, follow: &mut F) -> Time {
        self.counters.reads += 1;
        self.media.read_passes(at);
        let (xpline, piece) = self.split(address);
        if let Some(slot) = self.buffer.find(xpline) {
            self.buffer.touch(slot);
            let entry = *self.buffer.entry(slot);
            let here = entry.fetched || entry.dirty & piece != 0;
            if here && !self.contention.displaces_read(in_flight) {
                self.counters.buffer_hits += 1;
                let written_back = entry.leaves_at > 0 && entry.dirty == 0;
                let written_at = entry.leaves_at + self.write_latency;
                let being_written = written_back && (entry.leaves_at + self.write_delay..written_at).contains(&at);
                let written = if being_written { written_at } else { 0 };
                let ready_at = entry.ready_at.max(written);
                follow.passes(Part::Line, at, ready_at);
                return self.deliver(at, ready_at, follow);
            }
            self.counters.buffer_misses += 1;
            let ready_at = self.fetch(xpline, at, follow);
            let entry = self.buffer.entry(slot);
            entry.fetched = true;
            entry.ready_at = ready_at;
            return self.deliver(at, ready_at, follow);
        }
        self.counters.buffer_misses += 1;
        let slot = self.buffer.victim();
        let free = self.evict(slot, at);
        follow.passes(Part::Slot, at, free);
        self.buffer.replace(slot, xpline);
        let ready_at = self.fetch(xpline, free, follow);
        let entry = self.buffer.entry(slot);
        entry.fetched = true;
        entry.ready_at = ready_at;
        self.deliver(at, ready_at, follow)
    }

    /// Write 64 B at a DIMM-local address that have `waited` in their queue; returns when the DIMM takes them from the memory controller.
    #[inline]
    pub fn write<F: Follow>(&mut self, address: u64, at: Time, waited: Time, follow: &mut F) -> Time {
        self.counters.writes += 1;
        let (xpline, piece) = self.split(address);
        let linked = self.link_in.max(at);
        follow.passes(Part::LinkIn, at, linked);
        let at = self.wear.free_at(xpline, linked);
        follow.passes(Part::PageMove, linked, at);
        if at > linked {
            self.halted_until = at;
        }
        // Who waits for a page on the move is passed by nobody.
        let waited = waited.min(at - self.halted_until);
        let (slot, taken) = match self.buffer.find(xpline) {
            Some(slot) => {
                self.counters.buffer_hits += 1;
                self.hits_in_a_row += 1;
                self.buffer.touch(slot);
                let partial = self.buffer.entry(slot).dirty != 0;
                let taken = if partial && self.contention.displaces_write(waited) {
                    self.write_back(slot, at).map_or(at, |turn| turn.port)
                } else {
                    at
                };
                (slot, taken)
            }
            None => {
                self.counters.buffer_misses += 1;
                self.hits_in_a_row = 0;
                let slot = self.buffer.victim();
                let free = self.evict(slot, at);
                self.buffer.replace(slot, xpline);
                (slot, free)
            }
        };
        follow.passes(Part::Slot, at, taken);
        let entry = self.buffer.entry(slot);
        let rewritten = entry.leaves_at > 0 && self.hits_in_a_row < SETTLED;
        self.link_in = taken
            + if rewritten {
                self.rewrite_transfer
            } else {
                self.write_transfer
            };
        if entry.leaves_at > taken {
            // A write-back of the whole line waits for the media: it takes the new data along.
            self.wear.count(xpline, 1, taken);
            return taken;
        }
        let overwrites = entry.leaves_at > 0 && entry.dirty & piece != 0;
        entry.dirty |= piece;
        // What comes while the media write the line stays here until a later write finds them done, or its place is needed.
        let being_written = entry.leaves_at > 0 && taken < entry.leaves_at + self.write_latency;
        if entry.dirty == self.full && !being_written {
            entry.dirty = 0;
            entry.fetched = true;
            let turn = self.media.write(xpline, taken);
            self.tell(xpline, self.full);
            self.wear.count(xpline, u32::from(self.pieces), taken);
            self.buffer.entry(slot).leaves_at = turn.taken;
        }
        if overwrites {
            // It stands for a write of its own in the count, as what a line takes along does.
            self.wear.count(xpline, 1, taken);
        }
        taken
    }

    /// Send 64 B asked for `at` and buffered at `ready_at` back over the link; returns when they leave the DIMM.
    #[inline]
    fn deliver<F: Follow>(&mut self, at: Time, ready_at: Time, follow: &mut F) -> Time {
        let slot = self.link_out.max(at);
        self.link_out = slot + self.read_transfer;
        let sent = ready_at.max(slot);
        follow.passes(Part::LinkOut, ready_at.max(at), sent);
        follow.passes(Part::Buffer, sent, sent + self.hit_latency);
        sent + self.hit_latency
    }

    #[inline]
    fn split(&self, address: u64) -> (u64, u8) {
        let xpline = address >> self.line_shift;
        let piece = (address >> 6) & ((1 << (self.line_shift - 6)) - 1);
        (xpline, 1 << piece)
    }

    /// Read the line from the media; returns when it is in the buffer.
    #[inline]
    fn fetch<F: Follow>(&mut self, xpline: u64, at: Time, follow: &mut F) -> Time {
        let still = self.wear.free_at(xpline, at);
        let translated = still + self.translate(xpline);
        follow.passes(Part::PageMove, at, still);
        follow.passes(Part::Translation, still, translated);
        self.media.read(xpline, translated, follow)
    }

    #[inline]
    fn translate(&mut self, xpline: u64) -> Time {
        let page = xpline >> (self.page_shift - self.line_shift);
        if self.ait.touch(page) {
            self.counters.ait_hits += 1;
            0
        } else {
            self.counters.ait_misses += 1;
            self.ait_miss_latency
        }
    }

    /// Empty a slot; returns when it is free.
    #[inline]
    fn evict(&mut self, slot: usize, at: Time) -> Time {
        let leaves_at = self.buffer.entry(slot).leaves_at;
        match self.write_back(slot, at) {
            None => leaves_at.max(at),
            Some(turn) => self.stage(turn.taken).max(at),
        }
    }

    /// Put a line into the write-back queue until the media take it; returns when there was room for it.
    #[inline]
    fn stage(&mut self, taken: Time) -> Time {
        let room = std::mem::replace(&mut self.staged[self.next_staged], taken);
        self.next_staged += 1;
        if self.next_staged == self.staged.len() {
            self.next_staged = 0;
        }
        room
    }

    /// Send the written pieces of a slot to the media, after a read of the rest where pieces are missing. `None` if nothing was written.
    #[inline]
    fn write_back(&mut self, slot: usize, at: Time) -> Option<WriteTurn> {
        let entry = *self.buffer.entry(slot);
        if entry.dirty == 0 {
            return None;
        }
        if entry.dirty != self.full && !entry.fetched {
            self.media.read_for_merge();
        }
        self.translate(entry.xpline);
        self.buffer.entry(slot).dirty = 0;
        self.wear.count(entry.xpline, u32::from(self.pieces), at);
        self.tell(entry.xpline, entry.dirty);
        Some(self.media.write(entry.xpline, at))
    }

    #[inline]
    fn tell(&mut self, xpline: u64, pieces: u8) {
        if let Some(watched) = &mut self.watched {
            let address = xpline << self.line_shift;
            watched.push(MediaWrite { address, pieces });
        }
    }

    #[inline]
    pub fn media_reads(&self) -> u64 {
        self.media.reads
    }

    pub fn counters(&self) -> DimmCounters {
        DimmCounters {
            media_reads: self.media.reads,
            media_writes: self.media.writes,
            page_moves: self.wear.moves,
            ..self.counters
        }
    }

    /// Written 64 B pieces not yet on the media.
    pub fn dirty_pieces(&self) -> u64 {
        self.buffer.dirty_pieces()
    }
}

/// Writes in a row that find their line in the buffer, after which it counts as settled.
const SETTLED: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimm::of_tests::optane;
    use crate::time::MICROSECOND as US;
    use crate::way::Nobody;

    /// The second 64 B of thirty lines, which have waited 10 us: how many of them find the first gone.
    fn displaced(dimm: &mut OptaneDimm, at: Time) -> u64 {
        let before = dimm.counters().media_writes;
        for line in 1..31 {
            dimm.write(line * 256, at, 0, &mut Nobody);
            dimm.write(line * 256 + 64, at, 10 * US, &mut Nobody);
        }
        dimm.counters().media_writes - before
    }

    #[test]
    fn waiting_for_a_page_on_the_move_displaces_nothing() {
        let optane = optane(&[
            "optane.wear.interval=1",
            "optane.wear.stall=10us",
            "optane.xpbuffer.contention_spared=5us",
            "optane.xpbuffer.contention_wait=0.1us",
        ]);
        let mut calm = OptaneDimm::new(&optane);
        assert!(displaced(&mut calm, 20 * US) > 0);
        let mut moving = OptaneDimm::new(&optane);
        for piece in 0..4 {
            moving.write(piece * 64, 20 * US, 0, &mut Nobody);
        }
        assert_eq!(moving.counters().page_moves, 1);
        assert_eq!(displaced(&mut moving, 20 * US), 0);
    }
}
