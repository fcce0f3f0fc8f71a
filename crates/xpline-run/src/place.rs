//! Where tracked memory lies in the platform's: page by page, in the order of first use, as a file system hands out extents.

use std::collections::{BTreeSet, HashMap};

/// Bytes that are placed together: a huge page of a DAX file system.
pub const PAGE: u64 = 2 << 20;

/// Bytes of a page that a synchronising call writes back.
const SMALL_PAGE: u64 = 4096;

/// Bytes that the model's memory has; more starts over from 0.
const MEMORY: u64 = 128 << 30;

/// The owner of memory that is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// A file by device and inode.
    File(u64, u64),
    /// The memory of a process, by the number of its stream.
    Process(u32),
}

#[derive(Default)]
pub struct Placement {
    pages: HashMap<(Owner, u64), u64>,
    last: Option<((Owner, u64), u64)>,
    /// Small pages stored to through a mapping since the file was last made durable.
    dirty: HashMap<Owner, BTreeSet<u64>>,
    last_dirty: Option<(Owner, u64)>,
    next: u64,
}

impl Placement {
    /// The platform's address of a byte.
    #[inline]
    pub fn place(&mut self, owner: Owner, offset: u64) -> u64 {
        let key = (owner, offset / PAGE);
        if let Some((last, page)) = self.last
            && last == key
        {
            return page + offset % PAGE;
        }
        let next = &mut self.next;
        let page = *self.pages.entry(key).or_insert_with(|| {
            *next += PAGE;
            (*next - PAGE) % MEMORY
        });
        self.last = Some((key, page));
        page + offset % PAGE
    }

    /// Place the pages of a range now, one after another.
    pub fn reserve(&mut self, owner: Owner, offset: u64, size: u64) {
        let last = offset.saturating_add(size.saturating_sub(1)) / PAGE;
        for page in offset / PAGE..=last {
            self.place(owner, page * PAGE);
        }
    }

    /// Bytes placed beyond the model's memory, which share addresses with others.
    pub fn wrapped(&self) -> u64 {
        self.next.saturating_sub(MEMORY)
    }

    /// What stands on each page, in no order: its owner and the page's number on the platform.
    pub fn pages(&self) -> impl Iterator<Item = (Owner, u64)> + '_ {
        self.pages.iter().map(|(&(owner, _), &page)| (owner, page / PAGE))
    }

    /// A byte was stored to through a mapping.
    #[inline]
    pub fn stored(&mut self, owner: Owner, offset: u64) {
        let page = (owner, offset / SMALL_PAGE);
        if self.last_dirty != Some(page) {
            self.last_dirty = Some(page);
            self.dirty.entry(owner).or_default().insert(page.1);
        }
    }

    /// Take the small pages of a range that were stored to: their offsets, ascending, and their size.
    pub fn take_dirty(&mut self, owner: Owner, offset: u64, size: u64) -> Vec<(u64, u32)> {
        self.last_dirty = None;
        let Some(dirty) = self.dirty.get_mut(&owner) else {
            return Vec::new();
        };
        let end = offset.saturating_add(size).div_ceil(SMALL_PAGE);
        let taken: Vec<u64> = dirty
            .range(offset / SMALL_PAGE..end.max(offset / SMALL_PAGE))
            .copied()
            .collect();
        taken
            .into_iter()
            .map(|page| {
                dirty.remove(&page);
                (page * SMALL_PAGE, SMALL_PAGE as u32)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Owner = Owner::File(1, 2);

    #[test]
    fn pages_are_placed_in_the_order_of_first_use() {
        let mut placement = Placement::default();
        assert_eq!(placement.place(FILE, 5 * PAGE + 7), 7);
        assert_eq!(placement.place(Owner::Process(0), 0), PAGE);
        assert_eq!(placement.place(FILE, 8), 2 * PAGE + 8);
        assert_eq!(placement.place(FILE, 5 * PAGE + 64), 64);
    }

    #[test]
    fn a_reserved_range_is_in_one_piece() {
        let mut placement = Placement::default();
        placement.reserve(FILE, PAGE / 2, 2 * PAGE);
        assert_eq!(placement.place(FILE, 2 * PAGE), 2 * PAGE);
        assert_eq!(placement.place(FILE, 3 * PAGE), 3 * PAGE);
    }

    #[test]
    fn what_was_stored_to_is_taken_once() {
        let mut placement = Placement::default();
        for offset in [0, 8, 4096, 70_000, 1 << 30] {
            placement.stored(FILE, offset);
        }
        assert_eq!(placement.take_dirty(FILE, 4000, 90), [(0, 4096)]);
        assert_eq!(placement.take_dirty(FILE, 0, u64::MAX).len(), 3);
        assert_eq!(placement.take_dirty(FILE, 0, u64::MAX), []);
        placement.stored(FILE, 1 << 30);
        assert_eq!(placement.take_dirty(FILE, 0, u64::MAX), [(1 << 30, 4096)]);
    }
}
