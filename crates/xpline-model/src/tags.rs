//! Sets of a set-associative table: a few 31-bit tags, the most recently used first, with a bit each for their owner's use.

/// The owner's bit of a tag.
pub const MARK: u32 = 1 << 31;

/// Tags that are compared at once: a set is a multiple of this long, so that the compiler can use vector instructions.
pub const BLOCK: usize = 4;

/// The place of a tag in its set of at most 64, marked or not. Every tag is looked at: a hit may be anywhere, and a branch for each
/// block costs more than the blocks behind it.
#[inline(always)]
pub fn find(set: &[u32], tag: u32) -> Option<usize> {
    let (blocks, rest) = set.as_chunks::<BLOCK>();
    debug_assert!(rest.is_empty() && set.len() <= 64, "a set has whole blocks");
    let mut found = 0u64;
    for block in blocks.iter().rev() {
        let mut here = 0;
        for (place, &other) in block.iter().enumerate() {
            here |= u64::from(other & !MARK == tag) << place;
        }
        found = found << BLOCK | here;
    }
    (found != 0).then(|| found.trailing_zeros() as usize)
}

/// Put a tag first; those before `place` move back by one, the one at `place` is lost.
#[inline]
pub fn to_front(set: &mut [u32], place: usize, tag: u32) {
    if place > 0 {
        set.copy_within(..place, 1);
    }
    set[0] = tag;
}
