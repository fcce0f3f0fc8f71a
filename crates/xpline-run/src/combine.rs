//! The write-combining buffers of a core: ntstores to one line leave together.
//!
//! A vector of 64 B reaches the op stream as several pieces; the core sends one line.

use crate::access::{LINE, Site};

/// An ntstore as it leaves its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    pub address: u64,
    pub bytes: u32,
    pub site: Site,
    /// ntstores that it was made of.
    pub stores: u32,
}

/// Lines that are being written, oldest first.
pub struct Combiner {
    open: Vec<(u64, u64, Combined)>,
    buffers: usize,
}

impl Combiner {
    pub fn new(buffers: u32) -> Self {
        Self {
            open: Vec::with_capacity(buffers as usize),
            buffers: buffers as usize,
        }
    }

    /// Add a piece that stays inside one line; returns what leaves: the line if it is whole now, or the oldest for want of room.
    #[inline]
    pub fn add(&mut self, address: u64, bytes: u32, site: Site) -> Option<Combined> {
        let line = address / LINE;
        let bits = u64::MAX >> (64 - u64::from(bytes.clamp(1, 64))) << (address % LINE);
        let mut left = None;
        let place = match self.open.iter().position(|&(open, ..)| open == line) {
            Some(place) => place,
            None => {
                if self.open.len() == self.buffers {
                    left = Some(self.open.remove(0).2);
                }
                let empty = Combined {
                    address,
                    bytes: 0,
                    site,
                    stores: 0,
                };
                self.open.push((line, 0, empty));
                self.open.len() - 1
            }
        };
        let (_, filled, combined) = &mut self.open[place];
        *filled |= bits;
        combined.address = combined.address.min(address);
        combined.bytes = filled.count_ones();
        combined.stores += 1;
        // A piece is 64 B at most, so where the oldest had to leave a whole line leaves at the next call.
        left.or_else(|| self.take_whole())
    }

    #[inline]
    fn take_whole(&mut self) -> Option<Combined> {
        let place = self.open.iter().position(|&(_, filled, _)| filled == u64::MAX)?;
        Some(self.open.remove(place).2)
    }

    /// What is open leaves, oldest first: at a fence, or where the line is asked for in another way.
    pub fn drain(&mut self) -> impl Iterator<Item = Combined> + '_ {
        self.open.drain(..).map(|(.., combined)| combined)
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a line is open.
    #[inline]
    pub fn holds(&self, line: u64) -> bool {
        self.open.iter().any(|&(open, ..)| open == line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_pieces_leave_as_one_line() {
        let mut buffers = Combiner::new(2);
        for address in [128, 144, 160] {
            assert_eq!(buffers.add(address, 16, 5), None);
        }
        let line = buffers.add(176, 16, 6).unwrap();
        assert_eq!((line.address, line.bytes, line.site, line.stores), (128, 64, 5, 4));
        assert!(buffers.is_empty());
    }

    #[test]
    fn the_oldest_leaves_for_want_of_room() {
        let mut buffers = Combiner::new(2);
        assert_eq!(buffers.add(0, 8, 0), None);
        assert_eq!(buffers.add(64, 8, 0), None);
        let left = buffers.add(128, 64, 0).unwrap();
        assert_eq!((left.address, left.bytes), (0, 8));
        assert!(buffers.holds(1) && buffers.holds(2));
        assert_eq!(buffers.add(72, 8, 0).unwrap().address, 128);
        assert_eq!(buffers.drain().map(|left| left.bytes).collect::<Vec<_>>(), [16]);
    }

    #[test]
    fn bytes_written_twice_count_once() {
        let mut buffers = Combiner::new(1);
        buffers.add(8, 8, 0);
        buffers.add(8, 8, 0);
        let left = buffers.drain().next().unwrap();
        assert_eq!((left.bytes, left.stores), (8, 2));
    }
}
