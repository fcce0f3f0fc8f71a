//! What an instruction is to the tracer.

use iced_x86::{Decoder, DecoderOptions, Instruction, MemorySize, Mnemonic, OpKind as Operand, Register};
use xpline_wire::OpKind;

/// What to record of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Its accesses to memory, if it has any.
    Plain,
    /// The same, for instructions that the emulator carries out in several accesses, which are one.
    Pieces,
    /// The same, for those that repeat.
    String,
    /// Its stores pass the caches.
    NonTemporal,
    /// A read-modify-write of memory that is a fence too.
    Locked,
    /// A flush of the line at an address.
    Flush(OpKind, Address),
    Fence(OpKind),
    SystemCall,
}

/// How the address of an operand is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The general register, by its number in the instruction set.
    pub base: Option<u8>,
    pub index: Option<u8>,
    pub scale: u8,
    /// Already with the address of the next instruction, where it counts from there.
    pub displacement: u64,
    pub segment: Option<Segment>,
    /// Whether the sum is cut to 32 bits, before the segment's base is added.
    pub narrow: bool,
}

/// A segment with a base in 64-bit mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    Fs,
    Gs,
}

impl Address {
    /// The address, with the values of the registers that it names.
    pub fn compute(&self, register: impl Fn(u8) -> u64, base_of: impl Fn(Segment) -> u64) -> u64 {
        let base = self.base.map_or(0, &register);
        let index = self.index.map_or(0, &register).wrapping_mul(u64::from(self.scale));
        let sum = base.wrapping_add(index).wrapping_add(self.displacement);
        let offset = if self.narrow { sum & 0xffff_ffff } else { sum };
        offset.wrapping_add(self.segment.map_or(0, base_of))
    }

    fn of(instruction: &Instruction) -> Self {
        let general = |register: Register| {
            let known = register.is_gpr64() || register.is_gpr32();
            known.then(|| register.number() as u8)
        };
        let base = instruction.memory_base();
        Self {
            base: general(base),
            index: general(instruction.memory_index()),
            scale: instruction.memory_index_scale() as u8,
            displacement: instruction.memory_displacement64(),
            segment: match instruction.memory_segment() {
                Register::FS => Some(Segment::Fs),
                Register::GS => Some(Segment::Gs),
                _ => None,
            },
            narrow: base.is_gpr32() || base == Register::EIP || instruction.memory_index().is_gpr32() || {
                base == Register::None
                    && instruction.memory_index() == Register::None
                    && instruction.memory_displ_size() == 4
            },
        }
    }
}

/// Reads the instruction at `pc`.
pub fn classify(bytes: &[u8], pc: u64) -> Class {
    let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
    let flush = |kind| Class::Flush(kind, Address::of(&instruction));
    match instruction.mnemonic() {
        Mnemonic::Clwb => flush(OpKind::Clwb),
        Mnemonic::Clflushopt => flush(OpKind::ClflushOpt),
        Mnemonic::Clflush => flush(OpKind::Clflush),
        Mnemonic::Sfence => Class::Fence(OpKind::Sfence),
        Mnemonic::Mfence => Class::Fence(OpKind::Mfence),
        Mnemonic::Lfence => Class::Fence(OpKind::Lfence),
        Mnemonic::Syscall => Class::SystemCall,
        Mnemonic::Movnti
        | Mnemonic::Movntps
        | Mnemonic::Movntpd
        | Mnemonic::Movntdq
        | Mnemonic::Movntq
        | Mnemonic::Vmovntps
        | Mnemonic::Vmovntpd
        | Mnemonic::Vmovntdq
        | Mnemonic::Maskmovq
        | Mnemonic::Maskmovdqu
        | Mnemonic::Vmaskmovdqu => Class::NonTemporal,
        _ if instruction.has_lock_prefix() => Class::Locked,
        Mnemonic::Xchg if (0..2).any(|operand| instruction.op_kind(operand) == Operand::Memory) => Class::Locked,
        _ if instruction.is_string_instruction()
            && (instruction.has_rep_prefix() || instruction.has_repne_prefix()) =>
        {
            Class::String
        }
        _ => match instruction.memory_size() {
            MemorySize::Unknown => Class::Plain,
            size if size.size() <= 8 => Class::Plain,
            _ => Class::Pieces,
        },
    }
}
