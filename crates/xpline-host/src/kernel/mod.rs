//! Kernels: what a thread does to memory, described as data and assembled for an instruction set.
//!
//! A kernel is a [`Walk`], which says where each access falls, and [`Step`]s, which say what is done there. Assembling is
//! pure: the machine code for AVX-512 can be made, and checked, on a machine that has none.
//!
//! ```
//! use xpline_host::kernel::{Flush, Isa, Kernel, Step, Touch, Walk, assemble};
//!
//! let walk = Walk::Ring { stride: 256, last: 1 << 20 };
//! let kernel = Kernel::untimed(walk, vec![Step::lines(&[Touch::NtStore], 4)]);
//! let code = assemble(&kernel, Isa::Avx2, Flush::Clwb);
//! assert!(code.len() < 200, "eight vmovntdq and a loop");
//! ```

mod assemble;
mod code;
mod isa;

pub use assemble::assemble;
pub use code::{Code, State};
pub use isa::{Flush, Isa, MissingInstruction};

/// Bytes of a cache line.
pub const LINE: u64 = 64;

/// A loop over accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub walk: Walk,
    /// Done at each place before the clock is read.
    pub before: Vec<Step>,
    /// What is measured.
    pub body: Vec<Step>,
    /// Done after the clock is read again.
    pub after: Vec<Step>,
    /// Whether the clock is read before and after the body, and the difference kept.
    pub timed: bool,
    /// Accesses along another walk that take turns with those along the first; not timed.
    pub turns: Option<Turns>,
}

/// Two kinds of access in turn: so many along the first walk of a kernel, then so many along another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    pub first: u64,
    pub second: u64,
    pub walk: Walk,
    /// What the offsets of the second walk are from.
    pub base: u64,
    pub body: Vec<Step>,
}

/// Where accesses fall, one after the other. Addresses are offsets from a base that the thread gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walk {
    /// A random one of `places`, each of `size` bytes.
    Random { places: u64, size: u64 },
    /// A random one of `lines`, spread over the address bits outside `mask`.
    Masked { lines: u64, mask: u64 },
    /// `stride` bytes after the one before, and 0 again after `last`.
    Ring { stride: u64, last: u64 },
    /// Where the first eight bytes of the place before point to: a chain that memory must hold.
    Chain,
    /// A random place of `size` bytes on some of the DIMMs of an interleaved range.
    Placed(Placed),
    /// Wherever steps go.
    Free,
}

/// Places on DIMMs: chunks of `chunk` bytes go to `dimms` DIMMs in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub chunk: u64,
    pub dimms: u64,
    /// The DIMMs that are touched: `first`, then each `step` on, so many.
    pub first: u64,
    pub step: u64,
    pub choices: u64,
    /// Where the buffer starts on each DIMM, in bytes, and the accesses that fit in it.
    pub base: u64,
    pub places: u64,
    pub size: u64,
}

/// A part of an access, relative to a pointer that starts at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `count` lines, each touched in these ways in turn; the pointer moves past them.
    Lines {
        touches: Vec<Touch>,
        count: u64,
    },
    /// Move the pointer by so many bytes.
    Move(i64),
    Fence(Fence),
    /// The steps, so many times.
    Repeat(u64, Vec<Step>),
    /// Count down from here to zero, about a cycle each.
    Spin(u64),
    /// Go to the next place of a list of so many, and from the last to the first. The list is in memory of its own:
    /// [`State::places`].
    Goto(u64),
}

/// What is done to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Touch {
    Load,
    NtStore,
    Store,
    /// Write the line back, with the instruction that was chosen.
    Flush,
    /// Throw the line out of the caches: clflushopt.
    Evict,
    /// The first eight bytes alone.
    LoadWord,
    NtStoreWord,
    StoreWord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    Lfence,
    Sfence,
    Mfence,
}

impl Step {
    pub fn lines(touches: &[Touch], count: u64) -> Self {
        Self::Lines {
            touches: touches.to_vec(),
            count,
        }
    }
}

impl Kernel {
    /// A kernel that is timed as a whole.
    pub fn untimed(walk: Walk, body: Vec<Step>) -> Self {
        Self {
            walk,
            before: vec![],
            body,
            after: vec![],
            timed: false,
            turns: None,
        }
    }

    /// All steps, in order.
    pub fn steps(&self) -> impl Iterator<Item = &[Step]> {
        let own: [&[Step]; 3] = [&self.before, &self.body, &self.after];
        own.into_iter()
            .chain(self.turns.as_ref().map(|turns| turns.body.as_slice()))
    }

    /// How many places its steps go to by a list; `None` if they do not.
    pub fn places(&self) -> Option<u64> {
        fn of(steps: &[Step]) -> Option<u64> {
            steps.iter().find_map(|step| match step {
                &Step::Goto(places) => Some(places),
                Step::Repeat(_, steps) => of(steps),
                _ => None,
            })
        }
        self.steps().find_map(of)
    }

    /// A kernel that times each access.
    pub fn timed(walk: Walk, before: Vec<Step>, body: Vec<Step>, after: Vec<Step>) -> Self {
        Self {
            walk,
            before,
            body,
            after,
            timed: true,
            turns: None,
        }
    }
}
