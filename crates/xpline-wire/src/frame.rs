//! What stands in a stream.

use crate::op::Op;

/// A thread of the traced process: its thread id in the operating system.
pub type ThreadId = u32;

/// A file that the traced process has opened or mapped, counted from 0 within its stream.
pub type FileId = u32;

/// How often the mappings had changed. An op with epoch *e* is to be looked up in the mappings as they stood at *e*.
pub type Epoch = u64;

/// A stack of calls, counted from 1 within its stream; 0 is none, or one that is not known.
pub type StackId = u32;

/// A part of a stream. Frames of one thread are in the order in which they happened; of several threads, in the order in
/// which their buffers were handed over. Times are in nanoseconds of the host's monotonic clock, the same for all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The first frame.
    Hello(Hello),
    /// A file, before the first frame that names it.
    File(File),
    /// A file is mapped from `epoch` on, whatever was there before: a tracked one, or code. Memory that no frame maps is
    /// of no file, or of one that is of no concern.
    Map(Mapping),
    /// Nothing is mapped in the range from `epoch` on.
    Unmap { epoch: Epoch, address: u64, size: u64 },
    /// A thread's first breath; before any other frame of it.
    ThreadStart { thread: ThreadId, time: u64 },
    /// The last frame of a thread, with the instructions it ran since its last op.
    ThreadEnd {
        thread: ThreadId,
        time: u64,
        instructions: u64,
    },
    /// A stack of calls, before the first frame that names it.
    Stack(Stack),
    /// Ops of a thread.
    Ops(Ops),
    /// What the kernel did for a thread.
    Call(Call),
    /// The last frame. A stream that breaks off before it is of a process that was killed.
    End { time: u64, reason: EndReason },
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub process: u32,
    /// Who forked or started it. A process that replaces its program says `Hello` again, in a stream of its own.
    pub parent: u32,
    pub start: Start,
    pub time: u64,
    /// The program's file.
    pub executable: Vec<u8>,
    pub arguments: Vec<Vec<u8>>,
}

/// How a process came to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Start {
    /// A program was started.
    Exec = 0,
    /// A copy of its parent, whose mappings it repeats.
    Fork = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EndReason {
    /// The process ended, of itself or by a signal; its status is with whoever waits for it.
    Exit = 0,
    /// It goes on as another program, in another stream.
    Exec = 1,
}

/// A file by name, and by what identifies it whatever its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub id: FileId,
    /// Whether its content is memory to be modelled.
    pub tracked: bool,
    pub device: u64,
    pub inode: u64,
    pub path: Vec<u8>,
}

/// A range of the address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub epoch: Epoch,
    /// The first byte, and how many.
    pub address: u64,
    pub size: u64,
    /// What is mapped; `None` for memory of no file.
    pub file: Option<FileId>,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Whether stores reach the file (`MAP_SHARED`).
    pub shared: bool,
    pub executable: bool,
    /// Whether ops within the range are in the stream.
    pub traced: bool,
}

/// A stack of calls: the innermost one, and the stack of the function that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    pub id: StackId,
    pub caller: StackId,
    /// Of the call instruction, to be looked up as of `epoch`.
    pub pc: u64,
    pub epoch: Epoch,
}

/// Ops of one thread, in program order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ops {
    pub thread: ThreadId,
    pub epoch: Epoch,
    /// When the first and the last of them happened.
    pub begin: u64,
    pub end: u64,
    pub ops: Vec<Op>,
}

/// A call on a tracked file, or on memory mapped from one, once it has returned without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub thread: ThreadId,
    pub kind: CallKind,
    /// Of the instruction that made the call.
    pub pc: u64,
    /// Who called the function that made it, where callers are followed; else 0.
    pub stack: StackId,
    /// Instructions since the thread's last op or call, up to and with that one.
    pub instructions: u64,
    pub epoch: Epoch,
    /// When it began and ended.
    pub begin: u64,
    pub end: u64,
    pub file: FileId,
    /// Where in the file, and how many bytes: what was copied; the whole file for `Sync`; the new length as `size` for
    /// `Truncate`.
    pub offset: u64,
    pub size: u64,
    /// The program's buffer, for `Read` and `Write`, where it is known; where the file is mapped, for `SyncRange` of a
    /// mapping; else 0. What the kernel does to a buffer in traced memory is in ops before this frame.
    pub address: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CallKind {
    /// Copied from the file to the program (read, pread, readv, preadv: one for each buffer).
    Read = 0,
    /// Copied from the program to the file.
    Write = 1,
    /// The whole file made durable (fsync, fdatasync).
    Sync = 2,
    /// A part made durable (msync, sync_file_range).
    SyncRange = 3,
    /// The file's length set (ftruncate, truncate).
    Truncate = 4,
    /// Room made in the file (fallocate).
    Allocate = 5,
}

impl CallKind {
    /// Every kind; the place is the number on the wire.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::SyncRange,
        Self::Truncate,
        Self::Allocate,
    ];
}
