//! Machine code that can run.

use std::io;
use std::ptr::{self, NonNull};

use super::{Flush, Isa, Kernel, assemble};

/// What a thread's kernel starts from, and where it has come to.
#[derive(Debug)]
#[repr(C)]
pub struct State {
    /// Address that the walk's offsets are from.
    pub base: *mut u8,
    /// State of the random numbers.
    pub rng: u64,
    /// Offset of the next place.
    pub next: u64,
    /// Offset of the next place of the second walk.
    pub other: u64,
    /// Where the next sample of a timed kernel goes, in cycles of the TSC.
    pub samples: *mut u32,
    /// The lines that [`Step::Goto`](super::Step::Goto) goes to, counted from the base.
    pub places: *const u32,
}

pub(super) const BASE: i32 = std::mem::offset_of!(State, base) as i32;
pub(super) const RNG: i32 = std::mem::offset_of!(State, rng) as i32;
pub(super) const NEXT: i32 = std::mem::offset_of!(State, next) as i32;
pub(super) const OTHER: i32 = std::mem::offset_of!(State, other) as i32;
pub(super) const SAMPLES: i32 = std::mem::offset_of!(State, samples) as i32;
pub(super) const PLACES: i32 = std::mem::offset_of!(State, places) as i32;

/// A kernel in memory that may be executed, and no longer written.
#[derive(Debug)]
pub struct Code {
    at: NonNull<libc::c_void>,
    length: usize,
}

// SAFETY: the code is never written again, and keeps no state of its own.
unsafe impl Send for Code {}
// SAFETY: as above; each thread brings its own `State`.
unsafe impl Sync for Code {}

impl Code {
    /// Put a kernel in memory. Its instructions must be here: see [`Kernel::check_instructions`].
    ///
    /// # Errors
    ///
    /// Where the system lets no program make code at run time.
    pub fn new(kernel: &Kernel, isa: Isa, flush: Flush) -> io::Result<Self> {
        let bytes = assemble(kernel, isa, flush);
        let length = bytes.len();
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let code = Self {
            at: NonNull::new(at).expect("a mapping is not at address 0"),
            length,
        };
        // SAFETY: the mapping is at least `length` bytes long and not yet shared.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), code.at.as_ptr().cast(), length) };
        // SAFETY: the whole mapping is ours.
        if unsafe { libc::mprotect(code.at.as_ptr(), length, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(code)
    }

    /// Make `accesses` accesses, at least one.
    ///
    /// # Safety
    ///
    /// Every address that the kernel's walk and steps reach from `state.base` must be mapped, and, where it stores, be the thread's
    /// to write; `state.samples` must have room for as many samples if the kernel is timed; a chain must be closed; `state.places` must hold as many places as steps go to. The CPU must have the
    /// instructions.
    pub unsafe fn run(&self, state: &mut State, accesses: u64) {
        // SAFETY: the code was assembled as a function of this type, and keeps to its calling convention.
        let function: extern "sysv64" fn(*mut State, u64) = unsafe { std::mem::transmute(self.at.as_ptr()) };
        function(state, accesses.max(1));
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody runs it any more.
        unsafe { libc::munmap(self.at.as_ptr(), self.length) };
    }
}
