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
    /// An op at an address that is to be computed, of so many bytes: the emulator does not tell of it.
    Computed(OpKind, u16, Address),
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

fn long_double(instruction: &Instruction) -> bool {
    matches!(instruction.memory_size(), MemorySize::Float80 | MemorySize::Bcd)
}

/// How an instruction changes the stack of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Call,
    /// A return, and the bytes that it takes off the stack.
    Return(u16),
}

/// Reads how the instruction at `pc` changes the stack of calls, if it does.
pub fn flow(bytes: &[u8], pc: u64) -> Option<Flow> {
    let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
    match instruction.mnemonic() {
        Mnemonic::Call => Some(Flow::Call),
        Mnemonic::Ret if instruction.op_count() == 1 => Some(Flow::Return(8 + instruction.immediate16())),
        Mnemonic::Ret => Some(Flow::Return(8)),
        _ => None,
    }
}

/// Reads the instruction at `pc`.
pub fn classify(bytes: &[u8], pc: u64) -> Class {
    let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
    let computed = |kind, size| Class::Computed(kind, size, Address::of(&instruction));
    let flush = |kind| computed(kind, 1);
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
        Mnemonic::Fxsave | Mnemonic::Fxsave64 => computed(OpKind::Store, 512),
        Mnemonic::Fxrstor | Mnemonic::Fxrstor64 => computed(OpKind::Load, 512),
        Mnemonic::Fld | Mnemonic::Fbld if long_double(&instruction) => computed(OpKind::Load, 10),
        Mnemonic::Fstp | Mnemonic::Fbstp if long_double(&instruction) => computed(OpKind::Store, 10),
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

#[cfg(test)]
mod tests {
    use super::*;

    const PC: u64 = 0x40_1000;

    fn class(bytes: &[u8]) -> Class {
        classify(bytes, PC)
    }

    /// The address of a flush, with each register 0x1000 times its number more than 1, fs at 7 << 40 and gs at 9 << 40.
    fn flushed(bytes: &[u8]) -> (OpKind, u64) {
        let Class::Computed(kind, 1, address) = class(bytes) else {
            panic!("{bytes:x?} is {:?}", class(bytes))
        };
        let base = |segment| if segment == Segment::Fs { 7 << 40 } else { 9 << 40 };
        (kind, address.compute(|number| 1 + 0x1000 * u64::from(number), base))
    }

    #[test]
    fn flushes_and_their_addresses() {
        // clwb [rax], clflushopt [rcx+8], clflush [rdx+0x100]
        assert_eq!(flushed(&[0x66, 0x0f, 0xae, 0x30]), (OpKind::Clwb, 1));
        assert_eq!(flushed(&[0x66, 0x0f, 0xae, 0x79, 0x08]), (OpKind::ClflushOpt, 0x1009));
        assert_eq!(flushed(&[0x0f, 0xae, 0xba, 0, 1, 0, 0]), (OpKind::Clflush, 0x2101));
        // clflush [r13-1], clwb [r12]
        assert_eq!(flushed(&[0x41, 0x0f, 0xae, 0x7d, 0xff]), (OpKind::Clflush, 0xd000));
        assert_eq!(flushed(&[0x66, 0x41, 0x0f, 0xae, 0x34, 0x24]), (OpKind::Clwb, 0xc001));
        // clwb [rbx+r9*8+16], clwb [rcx*4+0x20]
        assert_eq!(
            flushed(&[0x66, 0x42, 0x0f, 0xae, 0x74, 0xcb, 0x10]),
            (OpKind::Clwb, 0x3001 + 8 * 0x9001 + 16)
        );
        assert_eq!(
            flushed(&[0x66, 0x0f, 0xae, 0x34, 0x8d, 0x20, 0, 0, 0]),
            (OpKind::Clwb, 4 * 0x1001 + 0x20)
        );
        // clwb [rip+0x10], of 8 bytes
        assert_eq!(
            flushed(&[0x66, 0x0f, 0xae, 0x35, 0x10, 0, 0, 0]),
            (OpKind::Clwb, PC + 8 + 0x10)
        );
        // clwb fs:[rax], clwb gs:[0x30], clwb [eax-2] and fs:[eax-2] which wrap at 32 bits
        assert_eq!(flushed(&[0x64, 0x66, 0x0f, 0xae, 0x30]), (OpKind::Clwb, (7 << 40) + 1));
        assert_eq!(
            flushed(&[0x65, 0x66, 0x0f, 0xae, 0x34, 0x25, 0x30, 0, 0, 0]),
            (OpKind::Clwb, (9 << 40) + 0x30)
        );
        assert_eq!(
            flushed(&[0x67, 0x66, 0x0f, 0xae, 0x70, 0xfe]),
            (OpKind::Clwb, 0xffff_ffff)
        );
        assert_eq!(
            flushed(&[0x64, 0x67, 0x66, 0x0f, 0xae, 0x70, 0xfe]),
            (OpKind::Clwb, (7 << 40) + 0xffff_ffff)
        );
        // clwb [0x80000000], sign-extended, and with 32-bit addresses, which is not
        let absolute = [0x67, 0x66, 0x0f, 0xae, 0x34, 0x25, 0, 0, 0, 0x80];
        assert_eq!(flushed(&absolute[1..]), (OpKind::Clwb, 0xffff_ffff_8000_0000));
        assert_eq!(flushed(&absolute), (OpKind::Clwb, 0x8000_0000));
    }

    #[test]
    fn what_only_looks_like_a_flush_is_none() {
        assert_eq!(class(&[0x0f, 0xae, 0xf8]), Class::Fence(OpKind::Sfence));
        assert_eq!(class(&[0x0f, 0xae, 0xf0]), Class::Fence(OpKind::Mfence));
        assert_eq!(class(&[0x0f, 0xae, 0xe8]), Class::Fence(OpKind::Lfence));
        // fxsave [rax], fstp tbyte [rax], fstp qword [rax]
        assert!(matches!(
            class(&[0x0f, 0xae, 0]),
            Class::Computed(OpKind::Store, 512, _)
        ));
        assert!(matches!(class(&[0xdb, 0x38]), Class::Computed(OpKind::Store, 10, _)));
        assert_eq!(class(&[0xdd, 0x18]), Class::Plain);
        // xsaveopt [rax], stmxcsr [rax]
        assert_eq!(class(&[0x0f, 0xae, 0x30]), Class::Plain);
        assert_eq!(class(&[0x0f, 0xae, 0x18]), Class::Plain);
    }

    #[test]
    fn stores_past_the_caches() {
        // movnti [rax],ecx; movntps [rax],xmm0; movntpd; movntdq; movntq [rax],mm0
        for bytes in [
            &[0x0f, 0xc3, 0x08][..],
            &[0x0f, 0x2b, 0],
            &[0x66, 0x0f, 0x2b, 0],
            &[0x66, 0x0f, 0xe7, 0],
            &[0x0f, 0xe7, 0],
        ] {
            assert_eq!(class(bytes), Class::NonTemporal, "{bytes:x?}");
        }
        // vmovntps ymm, vmovntdq ymm, maskmovq, maskmovdqu, vmaskmovdqu
        for bytes in [
            &[0xc5, 0xfc, 0x2b, 0][..],
            &[0xc5, 0xfd, 0xe7, 0],
            &[0x0f, 0xf7, 0xc1],
            &[0x66, 0x0f, 0xf7, 0xc1],
            &[0xc5, 0xf9, 0xf7, 0xc1],
        ] {
            assert_eq!(class(bytes), Class::NonTemporal, "{bytes:x?}");
        }
        // movdqa [rax],xmm0 and movntdqa xmm0,[rax] are not.
        assert_eq!(class(&[0x66, 0x0f, 0x7f, 0]), Class::Pieces);
        assert_eq!(class(&[0x66, 0x0f, 0x38, 0x2a, 0]), Class::Pieces);
    }

    #[test]
    fn locked_and_repeated_instructions() {
        // lock add [rax],ecx; xchg [rax],ecx; lock cmpxchg16b [rax]
        assert_eq!(class(&[0xf0, 0x01, 0x08]), Class::Locked);
        assert_eq!(class(&[0x87, 0x08]), Class::Locked);
        assert_eq!(class(&[0xf0, 0x48, 0x0f, 0xc7, 0x08]), Class::Locked);
        // xchg eax,ecx; add [rax],ecx
        assert_eq!(class(&[0x87, 0xc8]), Class::Plain);
        assert_eq!(class(&[0x01, 0x08]), Class::Plain);
        // rep movsb, rep stosq, repne scasb; movsb; rep ret
        assert_eq!(class(&[0xf3, 0xa4]), Class::String);
        assert_eq!(class(&[0xf3, 0x48, 0xab]), Class::String);
        assert_eq!(class(&[0xf2, 0xae]), Class::String);
        assert_eq!(class(&[0xa4]), Class::Plain);
        assert_eq!(class(&[0xf3, 0xc3]), Class::Plain);
        assert_eq!(class(&[0x0f, 0x05]), Class::SystemCall);
    }

    #[test]
    fn calls_and_returns() {
        // call rel32; call [rax]; call rax; ret; ret 16; rep ret; jmp rax; syscall
        assert_eq!(flow(&[0xe8, 0, 0, 0, 0], PC), Some(Flow::Call));
        assert_eq!(flow(&[0xff, 0x10], PC), Some(Flow::Call));
        assert_eq!(flow(&[0xff, 0xd0], PC), Some(Flow::Call));
        assert_eq!(flow(&[0xc3], PC), Some(Flow::Return(8)));
        assert_eq!(flow(&[0xc2, 16, 0], PC), Some(Flow::Return(24)));
        assert_eq!(flow(&[0xf3, 0xc3], PC), Some(Flow::Return(8)));
        assert_eq!(flow(&[0xff, 0xe0], PC), None);
        assert_eq!(flow(&[0x0f, 0x05], PC), None);
    }

    #[test]
    fn any_bytes_have_a_class() {
        let mut state = 1u64;
        for _ in 0..100_000 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let bytes = (u128::from(state) << 64 | u128::from(state.swap_bytes())).to_be_bytes();
            classify(&bytes, PC);
            flow(&bytes, PC);
        }
    }
}
