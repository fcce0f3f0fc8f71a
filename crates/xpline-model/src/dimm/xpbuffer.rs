//! The XPBuffer: 64 lines of 256 B, fully associative, shared by reads and writes.
//!
//! It only knows which lines it holds, in which order they were used, and what is known of each; what to do about it is the DIMM's business.

use crate::platform::BufferReplacement;
use crate::time::Time;

/// What the buffer knows of one XPLine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    pub xpline: u64,
    /// 64 B pieces written since the line was last sent to the media, one bit each.
    pub dirty: u8,
    /// Whether the pieces not written are here (read from the media) or only the written ones.
    pub fetched: bool,
    /// When the data read from the media arrive.
    pub ready_at: Time,
    /// When the write-back under way leaves the slot free for other lines.
    pub leaves_at: Time,
    newer: u16,
    older: u16,
    chain: u16,
}

const NONE: u16 = u16::MAX;

/// So few chains hold a second line that the host foretells where they end.
const BUCKETS_A_LINE: usize = 16;

pub struct XpBuffer {
    entries: Vec<Entry>,
    /// Heads of the hash chains by XPLine.
    heads: Vec<u16>,
    newest: u16,
    oldest: u16,
    used: usize,
    /// Whether a line that is used again stays longer.
    lru: bool,
}

impl XpBuffer {
    pub fn new(lines: u32, replacement: BufferReplacement) -> Self {
        let buckets = (lines as usize * BUCKETS_A_LINE).next_power_of_two();
        Self {
            entries: vec![Entry::default(); lines as usize],
            heads: vec![NONE; buckets],
            newest: NONE,
            oldest: NONE,
            used: 0,
            lru: replacement == BufferReplacement::Lru,
        }
    }

    #[inline]
    fn bucket(&self, xpline: u64) -> usize {
        (xpline.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (self.heads.len() - 1)
    }

    /// The slot of a line, if it is here.
    #[inline]
    pub fn find(&self, xpline: u64) -> Option<usize> {
        let mut slot = self.heads[self.bucket(xpline)];
        while slot != NONE {
            let entry = &self.entries[slot as usize];
            if entry.xpline == xpline {
                return Some(slot as usize);
            }
            slot = entry.chain;
        }
        None
    }

    #[inline]
    pub fn entry(&mut self, slot: usize) -> &mut Entry {
        &mut self.entries[slot]
    }

    /// The slot is used again: where the least recently used line goes first, it is the newest now.
    #[inline]
    pub fn touch(&mut self, slot: usize) {
        if self.lru && self.newest != slot as u16 {
            self.unlink(slot);
            self.link_newest(slot);
        }
    }

    /// The slot to give to a new line: an unused one, or the first to go.
    #[inline]
    pub fn victim(&self) -> usize {
        if self.used < self.entries.len() {
            self.used
        } else {
            self.oldest as usize
        }
    }

    /// Give the slot (from [`Self::victim`]) to a line; it becomes the newest.
    #[inline(always)]
    pub fn replace(&mut self, slot: usize, xpline: u64) -> &mut Entry {
        if slot == self.used {
            self.used += 1;
        } else {
            self.unchain(slot);
            self.unlink(slot);
        }
        let bucket = self.bucket(xpline);
        self.entries[slot] = Entry {
            xpline,
            chain: self.heads[bucket],
            ..Entry::default()
        };
        self.heads[bucket] = slot as u16;
        self.link_newest(slot);
        &mut self.entries[slot]
    }

    /// Lines that hold written pieces not yet sent to the media.
    pub fn dirty_pieces(&self) -> u64 {
        self.entries[..self.used]
            .iter()
            .map(|e| u64::from(e.dirty.count_ones()))
            .sum()
    }

    #[inline]
    fn unchain(&mut self, slot: usize) {
        let (xpline, next) = (self.entries[slot].xpline, self.entries[slot].chain);
        let bucket = self.bucket(xpline);
        let mut at = self.heads[bucket];
        if at == slot as u16 {
            self.heads[bucket] = next;
            return;
        }
        while self.entries[at as usize].chain != slot as u16 {
            at = self.entries[at as usize].chain;
        }
        self.entries[at as usize].chain = next;
    }

    #[inline]
    fn unlink(&mut self, slot: usize) {
        let (newer, older) = (self.entries[slot].newer, self.entries[slot].older);
        if newer == NONE {
            self.newest = older;
        } else {
            self.entries[newer as usize].older = older;
        }
        if older == NONE {
            self.oldest = newer;
        } else {
            self.entries[older as usize].newer = newer;
        }
    }

    #[inline]
    fn link_newest(&mut self, slot: usize) {
        let previous = self.newest;
        self.entries[slot].newer = NONE;
        self.entries[slot].older = previous;
        if previous == NONE {
            self.oldest = slot as u16;
        } else {
            self.entries[previous as usize].newer = slot as u16;
        }
        self.newest = slot as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer of two lines, in which 5 came before 6.
    fn five_and_six(replacement: BufferReplacement) -> XpBuffer {
        let mut buffer = XpBuffer::new(2, replacement);
        for xpline in [5, 6] {
            let slot = buffer.victim();
            buffer.replace(slot, xpline);
        }
        buffer
    }

    #[test]
    fn first_in_is_first_out_however_often_it_is_used() {
        let mut buffer = five_and_six(BufferReplacement::Fifo);
        let five = buffer.find(5).unwrap();
        buffer.touch(five);
        assert_eq!(buffer.victim(), five);
    }

    #[test]
    fn the_line_used_longest_ago_is_the_victim() {
        let mut buffer = five_and_six(BufferReplacement::Lru);
        let five = buffer.find(5).unwrap();
        buffer.touch(five);
        let victim = buffer.victim();
        assert_eq!(buffer.entry(victim).xpline, 6);
        buffer.replace(victim, 7);
        assert_eq!(buffer.find(6), None);
        assert!(buffer.find(5).is_some() && buffer.find(7).is_some());
    }
}
