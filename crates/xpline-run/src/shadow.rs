//! What happened to each line of tracked memory: who wrote it last, and how far it is on its way to be persistent.

use prefetch_index::prefetch_index;

use crate::access::{LINE, Site};

/// Lines that are kept together: 64 KiB.
const PAGE_LINES: u64 = 1024;

/// Lines of an XPLine: what is known of them is in one line of the host's cache.
const GROUP: u64 = 4;

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Group([Line; GROUP as usize]);

/// A line's way to persistence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not written while traced.
    #[default]
    Untouched,
    /// Stored through the caches, and not flushed since.
    Dirty,
    /// Flushed since the last store.
    Flushed,
    /// Written past the caches, and not stored to or flushed since.
    Past,
}

/// One line of 64 B.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// Who wrote it last; sites count from 1 here, 0 is nobody.
    writer: u32,
    /// Lines that the program had stored to when this one was stored to first since its last flush.
    pub stored_at: u32,
    /// All stores of the program up to the last to this line.
    pub stores: u32,
    /// The thread that did, if it is one of the first few.
    pub thread: u8,
    pub state: State,
    /// Which eighths were written since the last flush.
    pub written: u8,
    /// The last write was a locked operation.
    pub locked: bool,
}

impl Line {
    pub fn writer(&self) -> Option<Site> {
        self.writer.checked_sub(1)
    }

    pub fn set_writer(&mut self, site: Site) {
        self.writer = site + 1;
    }

    /// Note that bytes of the line were written: `address` and `bytes` stay inside it.
    pub fn mark(&mut self, address: u64, bytes: u32) {
        let first = address % LINE / 8;
        let last = (address % LINE + u64::from(bytes.max(1)) - 1) / 8;
        self.written |= (u16::MAX >> (15 - (last - first)) << first) as u8;
    }

    /// Every byte was written since the last flush, to the eighth.
    pub fn is_whole(&self) -> bool {
        self.written == u8::MAX
    }
}

/// Every line of the modelled memory that was touched.
#[derive(Default)]
pub struct Shadow {
    pages: Vec<Option<Box<[Group]>>>,
}

impl Shadow {
    /// The line of an address.
    #[inline]
    pub fn line(&mut self, address: u64) -> &mut Line {
        let line = address / LINE;
        let page = (line / PAGE_LINES) as usize;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let groups = || vec![Group::default(); (PAGE_LINES / GROUP) as usize].into();
        let groups = self.pages[page].get_or_insert_with(groups);
        &mut groups[(line % PAGE_LINES / GROUP) as usize].0[(line % GROUP) as usize]
    }

    /// The line of an address, where it was touched.
    #[inline]
    pub fn known(&self, address: u64) -> Option<&Line> {
        let line = address / LINE;
        let groups = self.pages.get((line / PAGE_LINES) as usize)?.as_ref()?;
        Some(&groups[(line % PAGE_LINES / GROUP) as usize].0[(line % GROUP) as usize])
    }

    /// Whether none of the lines from an address on was written, in so many bytes of one 64 KiB.
    #[inline]
    pub fn is_untouched(&self, address: u64, bytes: u64) -> bool {
        // All are looked at: no branch foretells which of them was.
        let lines = (address..address + bytes).step_by(LINE as usize);
        lines.fold(0, |writers, line| {
            writers | self.known(line).map_or(0, |line| line.writer)
        }) == 0
    }

    /// A line will be looked up soon: the host fetches what is known of it meanwhile.
    #[inline]
    pub fn expect(&self, address: u64) {
        let line = address / LINE;
        if let Some(Some(groups)) = self.pages.get((line / PAGE_LINES) as usize) {
            prefetch_index(groups, (line % PAGE_LINES / GROUP) as usize);
        }
    }

    /// The lines of every 64 KiB that were touched, with the address of the first.
    pub fn pages(&self) -> impl Iterator<Item = (u64, impl Iterator<Item = &Line>)> {
        let pages = (0..).zip(&self.pages);
        pages.filter_map(|(page, groups)| {
            let lines = groups.as_ref()?.iter().flat_map(|group| &group.0);
            Some((page * PAGE_LINES * LINE, lines))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_when_every_eighth_was_written() {
        let mut line = Line::default();
        for address in [0, 16, 32, 48] {
            assert!(!line.is_whole());
            line.mark(address, 16);
        }
        assert!(line.is_whole());
        let mut line = Line::default();
        line.mark(64, 64);
        assert!(line.is_whole());
        let mut line = Line::default();
        line.mark(7, 2);
        assert_eq!(line.written, 0b11);
    }

    #[test]
    fn lines_are_found_again() {
        let mut shadow = Shadow::default();
        shadow.line(1 << 30).set_writer(7);
        assert_eq!(shadow.known((1 << 30) + 63).unwrap().writer(), Some(7));
        assert_eq!(shadow.known((1 << 30) + 64).unwrap().writer(), None);
        assert!(shadow.known(1 << 31).is_none());
        let pages: Vec<(u64, usize)> = shadow
            .pages()
            .map(|(address, lines)| (address, lines.filter(|line| line.writer().is_some()).count()))
            .collect();
        assert_eq!(pages, [(1 << 30, 1)]);
    }
}
