//! One op of a thread.

use crate::frame::StackId;

/// What an instruction did to memory, or to the order of what others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpKind {
    Load = 0,
    Store = 1,
    /// A store past the caches: movnti, movntps, movntpd, movntdq, their VEX forms, maskmovq, maskmovdqu.
    NtStore = 2,
    Clwb = 3,
    ClflushOpt = 4,
    Clflush = 5,
    Sfence = 6,
    Mfence = 7,
    Lfence = 8,
    /// A locked read-modify-write, and xchg with memory.
    Locked = 9,
    /// Nothing but its count of instructions: those that ran since the op before.
    Instructions = 10,
}

impl OpKind {
    /// Every kind; the place is the number on the wire.
    pub const ALL: [Self; 11] = [
        Self::Load,
        Self::Store,
        Self::NtStore,
        Self::Clwb,
        Self::ClflushOpt,
        Self::Clflush,
        Self::Sfence,
        Self::Mfence,
        Self::Lfence,
        Self::Locked,
        Self::Instructions,
    ];

    /// Whether ops of this kind have an address.
    pub const fn has_address(self) -> bool {
        !matches!(self, Self::Sfence | Self::Mfence | Self::Lfence | Self::Instructions)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::NtStore => "ntstore",
            Self::Clwb => "clwb",
            Self::ClflushOpt => "clflushopt",
            Self::Clflush => "clflush",
            Self::Sfence => "sfence",
            Self::Mfence => "mfence",
            Self::Lfence => "lfence",
            Self::Locked => "locked",
            Self::Instructions => "instructions",
        }
    }
}

/// One op, as the program asked for it: it may cross lines and pages.
///
/// An access is told of if it touches traced memory, a fence while there is any, and a locked operation on other memory
/// where it orders a store or flush of the same thread. What the kernel copies from or to traced memory in a call
/// comes as loads or stores of the call's instruction, line by line, with `string` set.
///
/// ```
/// use xpline_wire::{Op, OpKind};
///
/// let op = Op { kind: OpKind::Store, string: false, address: 0x7f00_0000_1000, size: 8, instructions: 12, pc: 0x40_1136, stack: 0 };
/// assert_eq!(Op::from_bytes(&op.to_bytes()), Some(op));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub kind: OpKind,
    /// Part of a string instruction (rep movs, rep stos): the elements that follow one another are one op, up to the end
    /// of a 64 B line.
    pub string: bool,
    /// Virtual address in the traced process, of 48 bits and their sign; 0 where the kind has none.
    pub address: u64,
    /// Bytes; 0 where the kind has no address. A flush has the 1 byte that its operand names.
    pub size: u16,
    /// Instructions that the thread ran after the op before, up to and with the one that made this op. The sum over a
    /// thread is all that it ran. Further ops of one instruction have 0.
    pub instructions: u32,
    /// Address of the instruction: below 2^48, as all that user programs have.
    pub pc: u64,
    /// Who called its function, where callers are followed; else 0.
    pub stack: StackId,
}

impl Op {
    /// Bytes of an op on the wire.
    pub const BYTES: usize = 24;
    const STRING: u64 = 1 << 8;

    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let string = if self.string { Self::STRING } else { 0 };
        let place = self.address << 16 | u64::from(self.size);
        let counts = u64::from(self.instructions) | u64::from(self.stack) << 32;
        let origin = self.kind as u64 | string | self.pc << 16;
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&place.to_le_bytes());
        bytes[8..16].copy_from_slice(&counts.to_le_bytes());
        bytes[16..].copy_from_slice(&origin.to_le_bytes());
        bytes
    }

    /// `None` where the kind, or a flag, is not of this version.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let (place, counts, origin) = (word(0), word(8), word(16));
        let kind = *OpKind::ALL.get((origin & 0xff) as usize)?;
        let flags = origin & 0xff00;
        (flags & !Self::STRING == 0).then_some(Self {
            kind,
            string: flags != 0,
            address: (place as i64 >> 16) as u64,
            size: place as u16,
            instructions: counts as u32,
            pc: origin >> 16,
            stack: (counts >> 32) as u32,
        })
    }
}
