//! SIGBUS on a mapped file: what stood behind a page is gone, because the file was truncated or its device failed.
//!
//! The handler puts anonymous memory in place of the lost pages, so that the thread can go on to the end of what it does, and
//! leaves a mark for whoever asks then. A SIGBUS anywhere else is passed on to the handler that was there before.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Mappings that can be guarded at a time.
const PLACES: usize = 64;

struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
    lost: AtomicBool,
}

static GUARDED: [Place; PLACES] = [const {
    Place {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
    }
}; PLACES];

/// The handler that was there before ours, while there are guards.
static BEFORE: Mutex<(usize, MaybeUninit<libc::sigaction>)> = Mutex::new((0, MaybeUninit::uninit()));

/// The same, where the handler can read it without a lock.
static PREVIOUS: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_TAKES_INFO: AtomicBool = AtomicBool::new(false);

/// Watches over a mapping for as long as it lives.
#[derive(Debug)]
pub struct Guard {
    place: usize,
}

impl Guard {
    /// Guard `length` bytes from `start`, which must stay mapped for as long as the guard lives.
    pub fn new(start: usize, length: usize) -> io::Result<Self> {
        let mut before = BEFORE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let place = GUARDED
            .iter()
            .position(|place| place.end.load(Ordering::Acquire) == 0)
            .ok_or_else(|| io::Error::other("too many mapped files at a time"))?;
        if before.0 == 0 {
            before.1 = MaybeUninit::new(install()?);
        }
        before.0 += 1;
        let free = &GUARDED[place];
        free.lost.store(false, Ordering::Release);
        free.start.store(start, Ordering::Release);
        free.end.store(start + length, Ordering::Release);
        Ok(Self { place })
    }

    /// Whether pages were lost.
    pub fn is_lost(&self) -> bool {
        GUARDED[self.place].lost.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut before = BEFORE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        GUARDED[self.place].end.store(0, Ordering::Release);
        before.0 -= 1;
        if before.0 == 0 {
            // SAFETY: the action was filled in when the first guard was made, and is what the system gave us then.
            unsafe { libc::sigaction(libc::SIGBUS, before.1.as_ptr(), ptr::null_mut()) };
        }
    }
}

/// Put our handler in place; the one before.
fn install() -> io::Result<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: zeros are a valid action without flags and with an empty mask.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_sigbus as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the type that SA_SIGINFO asks for and makes only async-signal-safe calls.
    if unsafe { libc::sigaction(libc::SIGBUS, &ours, before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, and so has filled it in.
    let before = unsafe { before.assume_init() };
    PREVIOUS_TAKES_INFO.store(before.sa_flags & libc::SA_SIGINFO != 0, Ordering::Release);
    PREVIOUS.store(before.sa_sigaction, Ordering::Release);
    Ok(before)
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands a SIGBUS handler valid information, with an address.
    let address = unsafe { (*info).si_addr() } as usize;
    for place in &GUARDED {
        let end = place.end.load(Ordering::Acquire);
        let start = place.start.load(Ordering::Acquire);
        if (start..end).contains(&address) {
            place.lost.store(true, Ordering::Release);
            let page = address & !4095;
            // SAFETY: the range is within a guarded mapping, whose pages nobody can use any more; mmap is a plain system call.
            let replaced = unsafe {
                libc::mmap(
                    page as *mut libc::c_void,
                    end - page,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if replaced != libc::MAP_FAILED {
                return;
            }
        }
    }
    pass_on(signal, info, context);
}

/// Do what would have been done without us.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    match PREVIOUS.load(Ordering::Acquire) {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: with the default action back in place, the access faults again and ends the process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        handler if PREVIOUS_TAKES_INFO.load(Ordering::Acquire) => {
            // SAFETY: a handler that was installed with SA_SIGINFO has this type.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: a handler that was installed without SA_SIGINFO has this type.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
