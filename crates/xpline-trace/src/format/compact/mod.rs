//! xpline's own format: blocks of records, each with a checksum. `docs/reference/trace-format.md` is its description.

mod decode;
mod encode;

use xpline_model::OpKind;

pub use decode::Decoder;
pub use encode::Encoder;

/// The first bytes of a file. The end-of-line and control characters show when it was treated as text on the way.
pub const MAGIC: [u8; 8] = *b"\x89XPT\r\n\x1a\n";

pub const VERSION: u16 = 1;

/// Bytes of the file header: magic, version, level, a zero, femtoseconds of a tick, checksum.
pub const HEADER: usize = 24;

/// Bytes of a block header: bytes of the payload, records, checksum.
pub const BLOCK_HEADER: usize = 12;

/// Bytes of the end: a zero, records of the file, checksum.
pub const END: usize = 16;

/// The longest payload of a block.
pub const LARGEST_PAYLOAD: usize = 1 << 20;

/// The first byte of a record: its kind in the low half, and which fields follow.
mod tag {
    pub const KIND: u8 = 0x0f;
    /// A thread other than that of the record before.
    pub const THREAD: u8 = 0x10;
    /// A time.
    pub const TIME: u8 = 0x20;
    /// A size other than 64 bytes.
    pub const SIZE: u8 = 0x40;
    /// The distance to the address before is in bytes, not in lines.
    pub const BYTES: u8 = 0x80;
}

/// The kinds, each at its number.
const KINDS: [OpKind; 12] = [
    OpKind::Load,
    OpKind::Store,
    OpKind::NtStore,
    OpKind::Clwb,
    OpKind::ClflushOpt,
    OpKind::Clflush,
    OpKind::Sfence,
    OpKind::Mfence,
    OpKind::LockedRmw,
    OpKind::Compute,
    OpKind::Lfence,
    OpKind::Prefetch,
];

/// What the next record is told relative to; as new at the start of each block.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    thread: u32,
    address: u64,
    time: u64,
}
