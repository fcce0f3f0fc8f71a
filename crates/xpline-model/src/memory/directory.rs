//! The directory of a socket's memory: what the caches of the other socket may hold of it, line by line.

use std::collections::HashMap;

/// What a request from the other socket wants of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To read it.
    Share,
    /// To write it.
    Own,
}

/// What the other socket may hold of a line. Two bits each in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Not known yet: nobody has asked since the directory was made.
    Untouched = 0,
    /// Nothing.
    Nothing = 1,
    /// A clean copy.
    Shared = 2,
    /// A copy that may be dirty.
    Owned = 3,
}

/// Lines of a block that one entry of the table holds.
const BLOCK: u64 = 64;

#[derive(Debug, Default)]
pub struct Directory {
    /// Blocks of which a line was touched, two bits a line.
    blocks: HashMap<u64, u128>,
    /// Whether untouched lines have been read by the other socket before.
    read_before: bool,
}

impl Directory {
    /// From now on every line that nobody has asked for counts as read by the other socket before.
    pub fn presume_read(&mut self) {
        self.read_before = true;
    }

    /// The other socket asks for a line; whether that changes what the directory says of it.
    #[inline]
    pub fn ask(&mut self, line: u64, wanted: Wanted) -> bool {
        let held = self.held(line);
        let (enough, becomes) = match wanted {
            Wanted::Share => (matches!(held, Held::Shared | Held::Owned), Held::Shared),
            Wanted::Own => (held == Held::Owned, Held::Owned),
        };
        if !enough {
            self.set(line, becomes);
        }
        !enough
    }

    /// The other socket has written a line back and keeps nothing of it. The write itself takes the new entry along.
    #[inline]
    pub fn give_back(&mut self, line: u64) {
        self.set(line, Held::Nothing);
    }

    /// Whether the other socket may hold a line that its home has not.
    #[inline]
    pub fn owned_elsewhere(&self, line: u64) -> bool {
        self.held(line) == Held::Owned
    }

    #[inline]
    fn held(&self, line: u64) -> Held {
        let block = self.blocks.get(&(line / BLOCK)).copied().unwrap_or(0);
        match block >> (line % BLOCK * 2) & 3 {
            0 if self.read_before => Held::Shared,
            0 => Held::Untouched,
            1 => Held::Nothing,
            2 => Held::Shared,
            _ => Held::Owned,
        }
    }

    #[inline]
    fn set(&mut self, line: u64, held: Held) {
        let shift = line % BLOCK * 2;
        let block = self.blocks.entry(line / BLOCK).or_default();
        *block = *block & !(3 << shift) | (held as u128) << shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_changes_when_the_other_socket_wants_more() {
        let mut directory = Directory::default();
        assert!(directory.ask(7, Wanted::Share));
        assert!(!directory.ask(7, Wanted::Share));
        assert!(directory.ask(7, Wanted::Own));
        assert!(directory.owned_elsewhere(7));
        assert!(!directory.ask(7, Wanted::Own) && !directory.ask(7, Wanted::Share));
        directory.give_back(7);
        assert!(!directory.owned_elsewhere(7));
        assert!(directory.ask(7, Wanted::Share));
    }

    #[test]
    fn neighbours_have_entries_of_their_own() {
        let mut directory = Directory::default();
        assert!((0..130).all(|line| directory.ask(line, Wanted::Own)));
        directory.give_back(64);
        let changed: Vec<u64> = (0..130).filter(|&line| directory.ask(line, Wanted::Own)).collect();
        assert_eq!(changed, [64]);
    }

    #[test]
    fn lines_read_before_need_no_change_to_be_read_again() {
        let mut directory = Directory::default();
        directory.give_back(1);
        directory.presume_read();
        assert!(!directory.ask(0, Wanted::Share));
        assert!(directory.ask(1, Wanted::Share));
        assert!(directory.ask(0, Wanted::Own));
    }
}
