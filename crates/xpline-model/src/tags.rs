//! Sets of a set-associative table: a few 32-bit tags, the most recently used first.

/// Tags that are compared at once: a set is a multiple of this long, so that the compiler can use vector instructions.
pub const BLOCK: usize = 4;

/// The place of a tag in its set, whatever the bits in `ignored` are.
#[inline]
pub fn find(set: &[u32], tag: u32, ignored: u32) -> Option<usize> {
    let (blocks, rest) = set.as_chunks::<BLOCK>();
    debug_assert!(rest.is_empty(), "a set has whole blocks");
    for (index, block) in blocks.iter().enumerate() {
        let mut found = 0;
        for (place, &other) in block.iter().enumerate() {
            found |= u32::from(other & !ignored == tag) << place;
        }
        if found != 0 {
            return Some(index * BLOCK + found.trailing_zeros() as usize);
        }
    }
    None
}

/// Put a tag first; those before `place` move back by one, the one at `place` is lost.
#[inline]
pub fn to_front(set: &mut [u32], place: usize, tag: u32) {
    set.copy_within(..place, 1);
    set[0] = tag;
}
