//! What all threads of a process share.

use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use xpline_wire::{EndReason, Frame, Hello, Session, Start, Tracked, encode, encode_start};

use crate::callers::Stacks;
use crate::exec;
use crate::qemu;
use crate::sender::Sender;
use crate::space::{Range, Space};

/// The session's file, and what stands in it.
pub static SESSION: OnceLock<(PathBuf, Session)> = OnceLock::new();

/// What to add to an address of the program to have it in the emulator.
pub static GUEST_BASE: AtomicU64 = AtomicU64::new(0);

/// The range in which all traced memory lies: its first byte, and how many. Accesses elsewhere are of no concern, and most
/// are.
#[repr(C)]
pub struct Bounds {
    first: AtomicU64,
    size: AtomicU64,
}

pub static BOUNDS: Bounds = Bounds {
    first: AtomicU64::new(0),
    size: AtomicU64::new(0),
};

impl Bounds {
    /// Whether an access may touch traced memory.
    #[inline]
    pub fn may_hold(&self, address: u64) -> bool {
        address.wrapping_sub(self.first.load(Ordering::Relaxed)) < self.size.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.size.load(Ordering::Relaxed) == 0
    }

    fn set(&self, ranges: &[Range]) {
        /// The longest access, less one: it may begin so far before a range.
        const BEFORE: u64 = 63;
        let (first, end) = match (ranges.first(), ranges.last()) {
            (Some(first), Some(last)) => (
                first.address.saturating_sub(BEFORE),
                last.address.saturating_add(last.size),
            ),
            _ => (0, 0),
        };
        // Whoever sees one without the other takes too much for traced, and the ranges tell.
        self.size.store(0, Ordering::Release);
        self.first.store(first, Ordering::Release);
        self.size.store(end - first, Ordering::Release);
        qemu::set_bounds(first, end);
    }
}

/// How often the mappings changed.
pub static EPOCH: AtomicU64 = AtomicU64::new(0);

/// A process with its stream. A fork, or an exec that failed, leads to a new one.
pub struct Process {
    pub id: u32,
    sender: Sender,
    space: Mutex<Space>,
    ranges: Mutex<Arc<[Range]>>,
    stacks: Stacks,
    silent: AtomicBool,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());

/// The process that runs.
pub fn current() -> &'static Process {
    // SAFETY: set at installation, and never freed.
    unsafe { &*PROCESS.load(Ordering::Acquire) }
}

pub fn everything() -> bool {
    SESSION
        .get()
        .is_some_and(|(_, session)| matches!(session.tracked, Tracked::Everything(_)))
}

/// Whether the session wants to know who calls whom.
pub fn follows_callers() -> bool {
    SESSION.get().is_some_and(|(_, session)| session.callers)
}

/// Nanoseconds of the clock that all processes share.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Process {
    /// Begins a stream, and says what is known of the address space.
    pub fn begin(start: Start, mut space: Space) -> std::io::Result<()> {
        let (_, session) = SESSION.get().expect("the session is read first");
        let sender = Sender::connect(&session.socket)?;
        let program = exec::running();
        let mut bytes = Vec::new();
        encode_start(&mut bytes);
        let hello = Hello {
            process: std::process::id(),
            parent: std::os::unix::process::parent_id(),
            start,
            time: now(),
            executable: program.file.as_os_str().as_bytes().to_vec(),
            arguments: program.arguments.clone(),
        };
        encode(&Frame::Hello(hello), &mut bytes);
        space.repeat(EPOCH.load(Ordering::Relaxed), &mut bytes);
        sender.send(bytes);
        let process = Self {
            id: std::process::id(),
            sender,
            ranges: Mutex::new([].into()),
            space: Mutex::new(space),
            stacks: Stacks::default(),
            silent: AtomicBool::new(false),
        };
        let process = Box::leak(Box::new(process));
        PROCESS.store(process, Ordering::Release);
        process.publish(&process.space.lock().unwrap());
        Ok(())
    }

    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Hands frames over; once nobody listens, the program goes on untraced.
    pub fn send(&self, bytes: Vec<u8>) {
        if !self.sender.send(bytes) && !self.silent.swap(true, Ordering::Relaxed) {
            BOUNDS.set(&[]);
        }
    }

    pub fn say(&self, frame: &Frame) {
        let mut bytes = Vec::new();
        encode(frame, &mut bytes);
        self.send(bytes);
    }

    /// The last word of the stream.
    pub fn end(&self, reason: EndReason) {
        self.say(&Frame::End { time: now(), reason });
        self.sender.drain();
    }

    pub fn space(&self) -> SpaceGuard<'_> {
        SpaceGuard(self.space.lock().unwrap())
    }

    /// What is traced now.
    pub fn ranges(&self) -> Arc<[Range]> {
        Arc::clone(&self.ranges.lock().unwrap())
    }

    /// Changes what is mapped. The change is called with the epoch from which it holds, and writes its frames.
    pub fn change(&self, change: impl FnOnce(&mut Space, u64, &mut Vec<u8>)) {
        let mut space = self.space.lock().unwrap();
        let mut bytes = Vec::new();
        let epoch = EPOCH.load(Ordering::Relaxed) + 1;
        change(&mut space, epoch, &mut bytes);
        if bytes.is_empty() {
            return;
        }
        self.send(bytes);
        self.publish(&space);
        EPOCH.store(epoch, Ordering::Release);
    }

    fn publish(&self, space: &Space) {
        let ranges: Arc<[Range]> = if everything() {
            [Range {
                address: 0,
                size: u64::MAX,
            }]
            .into()
        } else {
            space.traced().into()
        };
        if !self.silent.load(Ordering::Relaxed) {
            BOUNDS.set(&ranges);
        }
        *self.ranges.lock().unwrap() = ranges;
    }
}

/// The space while no other thread changes it.
pub struct SpaceGuard<'a>(MutexGuard<'a, Space>);

impl Deref for SpaceGuard<'_> {
    type Target = Space;

    fn deref(&self) -> &Space {
        &self.0
    }
}

impl SpaceGuard<'_> {
    pub fn get_mut(&mut self) -> &mut Space {
        &mut self.0
    }
}
