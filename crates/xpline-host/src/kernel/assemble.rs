//! From the description of a kernel to machine code.
//!
//! The code is a function of the System V calling convention, `fn(state: *mut State, accesses: u64)`. Everything that its loop needs
//! is in registers, so that nothing but what the steps name touches memory:
//!
//! | register | holds |
//! | --- | --- |
//! | `rdi` `rsi` | the state, accesses left |
//! | `r8` `r9` `r10` `r11` | base, state of the generator, offset of the next place or its number in a list, pointer |
//! | `r12` | the address bits outside a mask, or a list of places |
//! | `r13` `r14` `r15` | counters of nested repeats |
//! | `rbx` `rbp` | where the next sample goes; when the access began, or the offset of the next place of a second walk |
//! | `xmm0` `xmm1` | what is loaded, what is stored |

use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, CodeAssembler, byte_ptr, dword_ptr, eax, ebp, edx, qword_ptr, r8, r9, r10, r11,
    r12, r13, r14, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, xmm0, xmm1, xmmword_ptr, ymm0, ymm1, ymmword_ptr, zmm0,
    zmm1, zmmword_ptr,
};

use super::code::{BASE, NEXT, OTHER, PLACES, RNG, SAMPLES};
use super::{Fence, Flush, Isa, Kernel, LINE, Placed, Step, Touch, Turns, Walk};

/// Lines that stand in the code one after the other, before it becomes a loop.
const UNROLLED: u64 = 32;

/// Counters of repeats, the outermost first.
const COUNTERS: [AsmRegister64; 3] = [r13, r14, r15];

/// What is stored: anything but zeros, which some caches treat on their own.
const PATTERN: u64 = 0x5851_f42d_4c95_7f2d;

/// The machine code of a kernel, for any address.
///
/// # Panics
///
/// If repeats nest deeper than three, counting the loop that many lines make.
pub fn assemble(kernel: &Kernel, isa: Isa, flush: Flush) -> Vec<u8> {
    let assembler = CodeAssembler::new(64).expect("64-bit code can be assembled");
    let emitter = Emitter {
        asm: assembler,
        isa,
        flush,
    };
    emitter.function(kernel).expect("the instructions of a kernel exist")
}

struct Emitter {
    asm: CodeAssembler,
    isa: Isa,
    flush: Flush,
}

type Emitted = Result<(), IcedError>;

impl Emitter {
    fn function(mut self, kernel: &Kernel) -> Result<Vec<u8>, IcedError> {
        let saved = [rbx, rbp, r12, r13, r14, r15];
        for register in saved {
            self.asm.push(register)?;
        }
        for (register, offset) in [(r8, BASE), (r9, RNG), (r10, NEXT), (rbp, OTHER), (rbx, SAMPLES)] {
            self.asm.mov(register, qword_ptr(rdi + offset))?;
        }
        self.asm.mov(rax, PATTERN)?;
        self.fill()?;
        self.prepare(&kernel.walk)?;
        let mut top = self.asm.create_label();
        self.asm.set_label(&mut top)?;
        match &kernel.turns {
            Some(turns) => self.in_turn(kernel, turns)?,
            None => {
                self.advance(&kernel.walk, r10)?;
                if kernel.timed {
                    self.timed(kernel)?;
                } else {
                    self.steps(&kernel.body, 0)?;
                }
            }
        }
        self.asm.dec(rsi)?;
        self.asm.jne(top)?;
        if kernel.walk == Walk::Chain {
            self.asm.mov(r10, r11)?;
            self.asm.sub(r10, r8)?;
        }
        if kernel.turns.is_some() {
            self.asm.mov(qword_ptr(rdi + OTHER), rbp)?;
        }
        for (register, offset) in [(r9, RNG), (r10, NEXT), (rbx, SAMPLES)] {
            self.asm.mov(qword_ptr(rdi + offset), register)?;
        }
        if self.isa != Isa::Sse2 {
            self.asm.vzeroupper()?;
        }
        for register in saved.into_iter().rev() {
            self.asm.pop(register)?;
        }
        self.asm.ret()?;
        self.asm.assemble(0)
    }

    /// Accesses along two walks in turn.
    fn in_turn(&mut self, kernel: &Kernel, turns: &Turns) -> Emitted {
        assert!(!kernel.timed, "accesses in turn are timed together");
        self.repeat(turns.first, 0, |emitter| {
            emitter.advance(&kernel.walk, r10)?;
            emitter.steps(&kernel.body, 1)
        })?;
        self.repeat(turns.second, 0, |emitter| {
            emitter.advance(&turns.walk, rbp)?;
            emitter.step(&Step::Move(turns.base as i64), 1)?;
            emitter.steps(&turns.body, 1)
        })
    }

    /// Between two readings of the clock that nothing passes: a load ends before the second, and everything that a fence
    /// of the body waits for.
    fn timed(&mut self, kernel: &Kernel) -> Emitted {
        self.steps(&kernel.before, 0)?;
        self.asm.lfence()?;
        self.asm.rdtsc()?;
        self.asm.mov(ebp, eax)?;
        self.asm.lfence()?;
        self.steps(&kernel.body, 0)?;
        self.asm.rdtscp()?;
        self.asm.lfence()?;
        self.asm.sub(eax, ebp)?; // an access takes far less than the 2^32 cycles after which this would be wrong
        self.asm.mov(dword_ptr(rbx), eax)?;
        self.asm.add(rbx, 4)?;
        self.steps(&kernel.after, 0)
    }

    /// Put something in the vector that is stored.
    fn fill(&mut self) -> Emitted {
        match self.isa {
            Isa::Avx512 => self.asm.vpbroadcastq(zmm1, rax),
            Isa::Avx2 => {
                self.asm.vmovq(xmm1, rax)?;
                self.asm.vpbroadcastq(ymm1, xmm1)
            }
            Isa::Sse2 => {
                self.asm.movq(xmm1, rax)?;
                self.asm.punpcklqdq(xmm1, xmm1)
            }
        }
    }

    /// What a walk needs before the first access.
    fn prepare(&mut self, walk: &Walk) -> Emitted {
        match *walk {
            Walk::Random { .. } => Ok(()),
            Walk::Masked { mask, .. } => self.asm.mov(r12, !mask),
            Walk::Chain => self.asm.lea(r11, r8 + r10),
            Walk::Free => self.asm.mov(r12, qword_ptr(rdi + PLACES)),
            Walk::Ring { .. } | Walk::Placed(_) => Ok(()),
        }
    }

    /// Put the address of the next access in `r11`; `next` holds the offset of the next place.
    fn advance(&mut self, walk: &Walk, next: AsmRegister64) -> Emitted {
        match *walk {
            Walk::Random { places, size } => {
                self.random_below(places)?;
                self.times(rdx, size)?;
                self.asm.lea(r11, r8 + rdx)
            }
            Walk::Masked { lines, mask } => {
                self.random_below(lines)?;
                self.asm.shl(rdx, LINE.trailing_zeros())?;
                if mask != 0 {
                    self.asm.pdep(rdx, rdx, r12)?;
                }
                self.asm.lea(r11, r8 + rdx)
            }
            Walk::Ring { stride, last } => {
                // next = next == last ? 0 : next + stride
                self.asm.lea(r11, r8 + next)?;
                self.asm.xor(eax, eax)?;
                self.asm.mov(rcx, last)?;
                self.asm.cmp(next, rcx)?;
                self.asm.mov(rcx, stride)?;
                self.asm.lea(next, next + rcx)?;
                self.asm.cmove(next, rax)
            }
            Walk::Chain => self.asm.mov(r11, qword_ptr(r11)),
            Walk::Placed(placed) => self.advance_placed(&placed),
            Walk::Free => Ok(()),
        }
    }

    /// Address of local offset `l` of DIMM `d`: `(l / chunk * dimms + d) * chunk + l % chunk`.
    fn advance_placed(&mut self, placed: &Placed) -> Emitted {
        let &Placed {
            chunk,
            dimms,
            first,
            step,
            choices,
            base,
            places,
            size,
        } = placed;
        self.random_below(choices)?;
        self.times(rdx, step)?;
        self.asm.mov(r10, rdx)?;
        self.asm.mov(rcx, first)?;
        self.asm.add(r10, rcx)?;
        self.times(r10, chunk)?;
        self.random_below(places)?;
        self.times(rdx, size)?;
        self.asm.mov(rcx, base)?;
        self.asm.add(rdx, rcx)?;
        self.asm.mov(r11, rdx)?;
        self.asm.mov(rcx, chunk - 1)?;
        self.asm.and(r11, rcx)?;
        self.asm.sub(rdx, r11)?; // whole chunks, in bytes
        self.times(rdx, dimms)?;
        self.asm.add(r11, rdx)?;
        self.asm.add(r11, r10)?;
        self.asm.add(r11, r8)
    }

    /// `register` times a constant; uses `rcx`.
    fn times(&mut self, register: AsmRegister64, factor: u64) -> Emitted {
        if factor.is_power_of_two() {
            return self.asm.shl(register, factor.trailing_zeros());
        }
        self.asm.mov(rcx, factor)?;
        self.asm.imul_2(register, rcx)
    }

    /// A random number below `bound` in `rdx`: SplitMix64 and a multiplication, the numbers of the model's streams. Uses
    /// `rax` and `rcx`.
    fn random_below(&mut self, bound: u64) -> Emitted {
        self.asm.mov(rax, 0x9e37_79b9_7f4a_7c15_u64)?;
        self.asm.add(r9, rax)?;
        self.asm.mov(rax, r9)?;
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9_u64), (27, 0x94d0_49bb_1331_11eb)] {
            self.asm.mov(rcx, rax)?;
            self.asm.shr(rcx, shift)?;
            self.asm.xor(rax, rcx)?;
            self.asm.mov(rcx, factor)?;
            self.asm.imul_2(rax, rcx)?;
        }
        self.asm.mov(rcx, rax)?;
        self.asm.shr(rcx, 31)?;
        self.asm.xor(rax, rcx)?;
        self.asm.mov(rcx, bound)?;
        self.asm.mul(rcx)
    }

    fn steps(&mut self, steps: &[Step], depth: usize) -> Emitted {
        steps.iter().try_for_each(|step| self.step(step, depth))
    }

    fn step(&mut self, step: &Step, depth: usize) -> Emitted {
        match step {
            Step::Lines { touches, count } => self.lines(touches, *count, depth),
            &Step::Move(bytes) => match i32::try_from(bytes) {
                Ok(bytes) => self.asm.add(r11, bytes),
                Err(_) => {
                    self.asm.mov(rcx, bytes as u64)?;
                    self.asm.add(r11, rcx)
                }
            },
            Step::Fence(Fence::Lfence) => self.asm.lfence(),
            Step::Fence(Fence::Sfence) => self.asm.sfence(),
            Step::Fence(Fence::Mfence) => self.asm.mfence(),
            Step::Repeat(times, steps) => self.repeat(*times, depth, |emitter| emitter.steps(steps, depth + 1)),
            &Step::Spin(cycles) => {
                let mut again = self.asm.create_label();
                self.asm.mov(rcx, cycles)?;
                self.asm.set_label(&mut again)?;
                self.asm.dec(rcx)?;
                self.asm.jne(again)
            }
            &Step::Goto(places) => {
                self.asm.mov(edx, dword_ptr(r12 + r10 * 4))?;
                self.asm.shl(rdx, LINE.trailing_zeros())?;
                self.asm.lea(r11, r8 + rdx)?;
                self.asm.xor(eax, eax)?;
                self.asm.inc(r10)?;
                self.asm.mov(rcx, places)?;
                self.asm.cmp(r10, rcx)?;
                self.asm.cmove(r10, rax)
            }
        }
    }

    fn repeat(&mut self, times: u64, depth: usize, body: impl Fn(&mut Self) -> Emitted) -> Emitted {
        match times {
            0 => Ok(()),
            1 => body(self),
            _ => {
                let counter = COUNTERS[depth];
                let mut again = self.asm.create_label();
                self.asm.mov(counter, times)?;
                self.asm.set_label(&mut again)?;
                body(self)?;
                self.asm.dec(counter)?;
                self.asm.jne(again)
            }
        }
    }

    /// Lines one after the other, and the pointer past them.
    fn lines(&mut self, touches: &[Touch], count: u64, depth: usize) -> Emitted {
        let some = |emitter: &mut Self, count: u64| {
            for line in 0..count {
                for &touch in touches {
                    emitter.touch(touch, (line * LINE) as i32)?;
                }
            }
            emitter.asm.add(r11, (count * LINE) as i32)
        };
        if count >= UNROLLED {
            self.repeat(count / UNROLLED, depth, |emitter| some(emitter, UNROLLED))?;
        }
        match count % UNROLLED {
            0 => Ok(()),
            rest => some(self, rest),
        }
    }

    /// Touch the line `offset` bytes from the pointer.
    fn touch(&mut self, touch: Touch, offset: i32) -> Emitted {
        let asm = &mut self.asm;
        let at = |piece: u64| r11 + (offset + piece as i32);
        match (touch, self.isa) {
            (Touch::LoadWord, _) => asm.mov(rax, qword_ptr(at(0))),
            (Touch::StoreWord, _) => asm.mov(qword_ptr(at(0)), r8),
            (Touch::NtStoreWord, _) => asm.movnti(qword_ptr(at(0)), r8),
            (Touch::Evict, _) => asm.clflushopt(byte_ptr(at(0))),
            (Touch::Flush, _) => {
                let line: AsmMemoryOperand = byte_ptr(at(0));
                match self.flush {
                    Flush::Clwb => asm.clwb(line),
                    Flush::ClflushOpt => asm.clflushopt(line),
                    Flush::Clflush => asm.clflush(line),
                }
            }
            (_, isa) => (0..LINE)
                .step_by(isa.bytes() as usize)
                .try_for_each(|piece| match (touch, isa) {
                    (Touch::Load, Isa::Avx512) => asm.vmovdqa64(zmm0, zmmword_ptr(at(piece))),
                    (Touch::Load, Isa::Avx2) => asm.vmovdqa(ymm0, ymmword_ptr(at(piece))),
                    (Touch::Load, Isa::Sse2) => asm.movdqa(xmm0, xmmword_ptr(at(piece))),
                    (Touch::NtStore, Isa::Avx512) => asm.vmovntdq(zmmword_ptr(at(piece)), zmm1),
                    (Touch::NtStore, Isa::Avx2) => asm.vmovntdq(ymmword_ptr(at(piece)), ymm1),
                    (Touch::NtStore, Isa::Sse2) => asm.movntdq(xmmword_ptr(at(piece)), xmm1),
                    (_, Isa::Avx512) => asm.vmovdqa64(zmmword_ptr(at(piece)), zmm1),
                    (_, Isa::Avx2) => asm.vmovdqa(ymmword_ptr(at(piece)), ymm1),
                    (_, Isa::Sse2) => asm.movdqa(xmmword_ptr(at(piece)), xmm1),
                }),
        }
    }
}
