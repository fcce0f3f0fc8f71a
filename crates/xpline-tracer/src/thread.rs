//! A thread's ops, from its callbacks to the listener.

use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use xpline_wire::{Epoch, Frame, OPS_PREFIX, Op, OpKind, ops_head};

use crate::callers::Callers;
use crate::process::{self, EPOCH};
use crate::qemu;
use crate::space::Range;

/// Ops that a thread keeps before it hands them over: 64 KiB of them.
const CAPACITY: usize = (64 << 10) / Op::BYTES;

/// How many ops before may be one that goes on: a string move's load, then a line of its stores, and the next one.
const LOOK_BACK: usize = 3;

/// A thread of the program. Only its own callbacks touch it, but for the end of the process.
pub struct Thread {
    id: u32,
    vcpu: u32,
    /// Room for the frame's head, and the ops as bytes.
    buffer: Vec<u8>,
    /// When the first of them happened.
    begin: u64,
    epoch: Epoch,
    /// What is traced as of the epoch, and where in it the last access was.
    ranges: Arc<[Range]>,
    last_range: Range,
    /// Instructions counted at the last op.
    counted: u64,
    /// Whether traced memory was written or flushed since the last fence.
    unordered: bool,
    pub callers: Callers,
    /// The instruction of the system call that is under way.
    pub call_pc: u64,
    pub call: Option<crate::calls::Entered>,
    ended: bool,
}

/// How an op may join the one before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Join {
    Never,
    /// If the same execution of its instruction made both, and it goes on where that ends.
    Pieces,
    /// The same, but line by line.
    String,
}

impl Thread {
    fn new(vcpu: u32) -> Self {
        let process = process::current();
        let id = rustix::thread::gettid().as_raw_pid() as u32;
        process.say(&Frame::ThreadStart {
            thread: id,
            time: process::now(),
        });
        Self {
            id,
            vcpu,
            buffer: Vec::new(),
            begin: 0,
            epoch: EPOCH.load(Ordering::Acquire),
            ranges: process.ranges(),
            last_range: Range { address: 0, size: 0 },
            counted: qemu::counted(vcpu),
            unordered: false,
            callers: Callers::default(),
            call_pc: 0,
            call: None,
            ended: false,
        }
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    pub fn vcpu(&self) -> u32 {
        self.vcpu
    }

    /// The same thread of the program, as the only one of a new process or stream.
    pub fn reborn(&mut self) {
        let call_pc = self.call_pc;
        let counted = self.counted;
        let mut callers = std::mem::take(&mut self.callers);
        callers.forget();
        // The old buffer's ops are the parent's, or handed over.
        *self = Self {
            call_pc,
            counted,
            callers,
            ..Self::new(self.vcpu)
        };
    }

    /// Whether an access touches traced memory, as of now.
    #[inline]
    fn traced(&mut self, address: u64, size: u16) -> bool {
        if self.epoch != EPOCH.load(Ordering::Acquire) {
            self.follow_mappings();
        }
        let size = u64::from(size.max(1));
        if self.last_range.touches(address, size) {
            return true;
        }
        let place = self
            .ranges
            .partition_point(|range| range.address.saturating_add(range.size) <= address);
        match self.ranges.get(place) {
            Some(range) if range.touches(address, size) => {
                self.last_range = *range;
                true
            }
            _ => false,
        }
    }

    #[cold]
    fn follow_mappings(&mut self) {
        self.hand_over();
        self.epoch = EPOCH.load(Ordering::Acquire);
        self.ranges = process::current().ranges();
        self.last_range = Range { address: 0, size: 0 };
    }

    /// Records an access to traced memory. `rest` is how many instructions of the block come after this one.
    #[inline]
    pub fn access(&mut self, kind: OpKind, join: Join, address: u64, size: u16, pc: u64, rest: u64) {
        if !self.traced(address, size) {
            return;
        }
        self.unordered |= kind != OpKind::Load;
        let counted = qemu::counted(self.vcpu) - rest;
        if join != Join::Never && self.joined(kind, join, address, size, pc, counted) {
            return;
        }
        let instructions = self.instructions(counted);
        let stack = self.callers.stack();
        self.push(Op {
            kind,
            string: join == Join::String,
            address,
            size,
            instructions,
            pc,
            stack,
        });
    }

    /// Records a fence.
    pub fn fence(&mut self, kind: OpKind, pc: u64, rest: u64) {
        self.unordered = false;
        let instructions = self.instructions(qemu::counted(self.vcpu) - rest);
        let stack = self.callers.stack();
        self.push(Op {
            kind,
            string: false,
            address: 0,
            size: 0,
            instructions,
            pc,
            stack,
        });
    }

    /// Records a locked operation: everywhere, where it orders what came before it.
    pub fn locked(&mut self, address: u64, size: u16, pc: u64, rest: u64) {
        if self.unordered || (process::BOUNDS.may_hold(address) && self.traced(address, size)) {
            self.unordered = false;
            let instructions = self.instructions(qemu::counted(self.vcpu) - rest);
            let stack = self.callers.stack();
            self.push(Op {
                kind: OpKind::Locked,
                string: false,
                address,
                size,
                instructions,
                pc,
                stack,
            });
        }
    }

    /// Instructions since the last op, which this one is from now on.
    fn instructions(&mut self, counted: u64) -> u32 {
        let mut since = counted.saturating_sub(self.counted);
        self.counted = counted;
        while let Some(left) = since.checked_sub(u64::from(u32::MAX)) {
            self.push(Op {
                kind: OpKind::Instructions,
                string: false,
                address: 0,
                size: 0,
                instructions: u32::MAX,
                pc: 0,
                stack: 0,
            });
            since = left;
        }
        since as u32
    }

    /// Instructions that are in no op yet, up to here or to the end of the block.
    pub fn take_instructions(&mut self) -> u64 {
        let counted = qemu::counted(self.vcpu);
        let since = counted.saturating_sub(self.counted);
        self.counted = counted;
        since
    }

    /// Takes back what [`Thread::take_instructions`] gave, for the next op.
    pub fn untake_instructions(&mut self, instructions: u64) {
        self.counted -= instructions;
    }

    /// Adds to one of the ops before, if it belongs to it: string moves load and store in turn.
    fn joined(&mut self, kind: OpKind, join: Join, address: u64, size: u16, pc: u64, counted: u64) -> bool {
        // An instruction that repeats is entered anew from time to time, and counted again.
        let again = u64::from(join == Join::String);
        if counted.saturating_sub(self.counted) > again {
            return false;
        }
        let ops = self.buffer.len().saturating_sub(OPS_PREFIX) / Op::BYTES;
        for back in 1..=LOOK_BACK.min(ops) {
            let place = self.buffer.len() - back * Op::BYTES;
            let bytes = &mut self.buffer[place..place + Op::BYTES];
            let before = Op::from_bytes((&*bytes).try_into().unwrap());
            let Some(mut op) = before.filter(|op| op.pc == pc) else {
                return false;
            };
            let follows = op.kind == kind && op.address.wrapping_add(u64::from(op.size)) == address;
            if follows && (join != Join::String || op.address >> 6 == address >> 6) {
                op.size += size;
                bytes.copy_from_slice(&op.to_bytes());
                self.counted = counted;
                return true;
            }
        }
        false
    }

    #[inline]
    fn push(&mut self, op: Op) {
        if self.ended {
            return;
        }
        if self.buffer.is_empty() {
            self.start_buffer();
        }
        self.buffer.extend_from_slice(&op.to_bytes());
        if self.buffer.len() == OPS_PREFIX + CAPACITY * Op::BYTES {
            self.hand_over_all_but_open(op.pc);
        }
    }

    #[cold]
    fn start_buffer(&mut self) {
        self.buffer = process::current().sender().buffer(OPS_PREFIX + CAPACITY * Op::BYTES);
        self.buffer.resize(OPS_PREFIX, 0);
        self.begin = process::now();
    }

    /// Hands over what there is, but for ops of this instruction that may go on.
    #[cold]
    fn hand_over_all_but_open(&mut self, pc: u64) {
        let ops = self.buffer[OPS_PREFIX..].as_chunks::<{ Op::BYTES }>().0;
        let is_open = |bytes: &&[u8; Op::BYTES]| Op::from_bytes(bytes).is_some_and(|op| op.pc == pc);
        let open = ops.iter().rev().take(LOOK_BACK).take_while(is_open).count();
        let open = self.buffer.split_off(self.buffer.len() - open * Op::BYTES);
        self.hand_over();
        self.start_buffer();
        self.buffer.extend(open);
    }

    /// Hands over what there is.
    #[cold]
    pub fn hand_over(&mut self) {
        if self.buffer.len() <= OPS_PREFIX {
            return;
        }
        let mut bytes = std::mem::take(&mut self.buffer);
        let count = (bytes.len() - OPS_PREFIX) / Op::BYTES;
        let head = ops_head(self.id, self.epoch, self.begin, process::now(), count);
        bytes[..OPS_PREFIX].copy_from_slice(&head);
        process::current().send(bytes);
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.hand_over();
        let instructions = self.take_instructions();
        process::current().say(&Frame::ThreadEnd {
            thread: self.id,
            time: process::now(),
            instructions,
        });
    }
}

/// A thread's place. `busy` keeps the process's end apart from its system calls; code that runs is stopped by the emulator.
struct Slot {
    busy: AtomicBool,
    thread: UnsafeCell<Thread>,
}

/// Threads by the number of their virtual processor, in two levels.
struct Table([AtomicPtr<Chunk>; 1024]);
type Chunk = [AtomicPtr<Slot>; 1024];

static TABLE: Table = Table([const { AtomicPtr::new(null_mut()) }; 1024]);

fn place(vcpu: u32) -> &'static AtomicPtr<Slot> {
    let entry = &TABLE.0[(vcpu >> 10) as usize & 1023];
    let mut chunk = entry.load(Ordering::Acquire);
    if chunk.is_null() {
        let new = Box::into_raw(Box::new([const { AtomicPtr::new(null_mut()) }; 1024]));
        chunk = match entry.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(others) => {
                // SAFETY: made above, and shown to nobody.
                drop(unsafe { Box::from_raw(new) });
                others
            }
        };
    }
    // SAFETY: chunks are never freed.
    unsafe { &(*chunk)[(vcpu & 1023) as usize] }
}

/// The thread that runs this callback, within code of the program.
#[inline]
pub fn running(vcpu: u32) -> &'static mut Thread {
    let slot = place(vcpu).load(Ordering::Relaxed);
    debug_assert!(!slot.is_null());
    // SAFETY: a slot lives until its thread's end, and only the thread's own callbacks, one at a time, take it.
    unsafe { &mut *(*slot).thread.get() }
}

/// The same, within a system call.
pub fn with_calling<T>(vcpu: u32, act: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    let slot = place(vcpu).load(Ordering::Relaxed);
    // SAFETY: as in `running`.
    let slot = unsafe { slot.as_ref()? };
    while slot.busy.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    // SAFETY: `busy` keeps others away.
    let result = act(unsafe { &mut *slot.thread.get() });
    slot.busy.store(false, Ordering::Release);
    Some(result)
}

/// A thread begins; to be called by itself.
pub fn begin(vcpu: u32) {
    let thread = Thread::new(vcpu);
    let place = place(vcpu);
    if place.load(Ordering::Acquire).is_null() {
        let slot = Slot {
            busy: AtomicBool::new(false),
            thread: UnsafeCell::new(thread),
        };
        place.store(Box::into_raw(Box::new(slot)), Ordering::Release);
    } else {
        // The slot of one that ended.
        with_calling(vcpu, |ended| *ended = thread);
    }
}

/// A thread ends; to be called by itself.
pub fn end(vcpu: u32) {
    with_calling(vcpu, Thread::end);
}

/// The process ends: none of its threads runs code any more.
pub fn end_all() {
    for vcpu in all() {
        with_calling(vcpu, Thread::end);
    }
}

/// There are no other threads than this one.
pub fn forget_others(vcpu: u32) {
    for other in all().filter(|&other| other != vcpu) {
        place(other).store(null_mut(), Ordering::Release);
    }
}

fn all() -> impl Iterator<Item = u32> {
    let chunks = TABLE.0.iter().enumerate().filter_map(|(high, chunk)| {
        // SAFETY: chunks are never freed.
        unsafe { chunk.load(Ordering::Acquire).as_ref() }.map(|chunk| (high, chunk))
    });
    chunks.flat_map(|(high, chunk)| {
        let taken = chunk
            .iter()
            .enumerate()
            .filter(|(_, slot)| !slot.load(Ordering::Acquire).is_null());
        taken.map(move |(low, _)| (high << 10 | low) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever makes a chunk first, all get the same places in it, and what the others made is freed. Miri sees to both.
    #[test]
    fn threads_that_begin_together_share_a_chunk() {
        const FIRST: u32 = 7 << 10;
        let places = |_| std::thread::spawn(|| [0, 1, 1023].map(|low| place(FIRST | low) as *const _ as usize));
        let found: Vec<_> = (0..8).map(places).collect();
        let found: Vec<_> = found.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(found.iter().all(|places| *places == found[0]));
        assert!(found[0][0] < found[0][1] && found[0][1] < found[0][2]);
        assert!(
            all().all(|vcpu| vcpu >> 10 != 7),
            "places are empty until a thread takes them"
        );
    }
}
