//! What a thread asked of the modelled memory, placed and ready for a machine.

use xpline_model::OpKind;

/// A thread of the program, counted from 0 in the order of appearance.
pub type Thread = u32;

/// A place in the program: an entry of [`crate::Sites`].
pub type Site = u32;

/// One op. It may cross lines; the consumer cuts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Every kind but [`OpKind::Stamp`]; [`OpKind::Compute`] is nothing but its instructions.
    pub kind: OpKind,
    /// Byte address in the platform's memory; 0 for fences.
    pub address: u64,
    /// Bytes; 0 for fences.
    pub size: u32,
    /// Instructions of the thread since its last access.
    pub instructions: u32,
    pub site: Site,
}

/// Accesses of one thread, in program order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub thread: Thread,
    pub accesses: Vec<Access>,
    /// When the first and the last of them happened on the host, in ns.
    pub begin: u64,
    pub end: u64,
    /// It is the thread that its process began with.
    pub first: bool,
    /// The thread ends after them.
    pub last: bool,
}

/// Bytes of a cache line.
pub const LINE: u64 = 64;

/// Whether ops of a kind have an address.
pub fn has_address(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Sfence | OpKind::Mfence | OpKind::Compute | OpKind::Stamp)
}

/// Whether a kind writes a line back.
pub fn is_flush(kind: OpKind) -> bool {
    matches!(kind, OpKind::Clwb | OpKind::ClflushOpt | OpKind::Clflush)
}

impl Access {
    /// The access cut at the ends of lines: address and bytes of each piece.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, u32)> + use<> {
        let (mut at, mut left) = (self.address, self.size.max(1));
        std::iter::from_fn(move || {
            let here = left.min((LINE - at % LINE) as u32);
            let piece = (at, here);
            at += u64::from(here);
            left -= here;
            (here > 0).then_some(piece)
        })
    }
}
