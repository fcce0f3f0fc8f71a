//! System calls: what they do to mappings and tracked files.

use std::io;
use std::sync::atomic::Ordering;

use libc::c_long;
use xpline_wire::{Call, CallKind, FileId, Frame, Mapping, Start, encode};

use crate::exec;
use crate::numbers::{concerns, copies, may_change_mappings, may_wait};
use crate::process::{self, BOUNDS, Process};
use crate::qemu;
use crate::space::{Known, Space};
use crate::thread::{self, Join, Thread};

/// A system call that has begun.
pub struct Entered {
    number: c_long,
    arguments: [u64; 6],
    begin: u64,
    instructions: u64,
    /// The tracked file that it is about.
    file: Option<FileId>,
    /// What is mapped, where a new process may come of the call.
    space: Option<Space>,
}

/// A system call begins.
pub fn enter(thread: &mut Thread, number: c_long, arguments: [u64; 6]) {
    thread.call = None;
    match number {
        libc::SYS_execve => exec::wrap(thread, libc::AT_FDCWD, arguments[0], arguments[1], arguments[2], 0),
        libc::SYS_execveat => {
            exec::wrap(
                thread,
                arguments[0] as i32,
                arguments[1],
                arguments[2],
                arguments[3],
                arguments[4] as i32,
            );
        }
        libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 => {
            thread.hand_over();
            let space = process::current().space().clone();
            thread.call = Some(Entered {
                number,
                arguments,
                begin: 0,
                instructions: 0,
                file: None,
                space: Some(space),
            });
        }
        _ if concerns(number) => {
            let file = file_of(process::current(), number, &arguments);
            // Before a file is shortened or a mapping moved, say what was done to it.
            if file.is_some() || may_change_mappings(number) || may_wait(number) {
                thread.hand_over();
            }
            let counts = file.is_some() || number == libc::SYS_msync;
            let instructions = if counts { thread.take_instructions() } else { 0 };
            if counts || may_change_mappings(number) || (copies(number).is_some() && !BOUNDS.is_empty()) {
                let begin = process::now();
                thread.call = Some(Entered {
                    number,
                    arguments,
                    begin,
                    instructions,
                    file,
                    space: None,
                });
            }
        }
        _ if may_wait(number) => thread.hand_over(),
        _ => {}
    }
}

/// A system call has returned.
pub fn leave(thread: &mut Thread, number: c_long, result: i64) {
    let Some(mut entered) = thread.call.take().filter(|entered| entered.number == number) else {
        return;
    };
    if let Some(space) = entered.space.take() {
        if result == 0 && process::current().id != std::process::id() {
            born(thread, Start::Fork, space);
        }
        return;
    }
    if result < 0 {
        return give_back(thread, &entered);
    }
    copied(thread, &entered, result as u64);
    let [first, second, third, fourth, fifth, sixth] = entered.arguments;
    match number {
        libc::SYS_mmap => {
            let descriptor = if fourth as i32 & libc::MAP_ANONYMOUS == 0 {
                fifth as i32
            } else {
                -1
            };
            mapped(result as u64, second, third as i32, fourth as i32, descriptor, sixth);
        }
        libc::SYS_munmap => {
            process::current().change(|space, epoch, out| space.unmap(epoch, first, pages(second), out))
        }
        libc::SYS_mremap => remapped(first, second, result as u64, third),
        libc::SYS_msync => synchronised(thread, &entered, first, second),
        libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_link | libc::SYS_linkat => {
            process::current().space().get_mut().forget_names();
        }
        _ => on_file(thread, &entered, result as u64),
    }
}

/// The process has a new stream, and this thread alone.
pub fn born(thread: &mut Thread, start: Start, space: Space) {
    thread::forget_others(thread.vcpu());
    match Process::begin(start, space) {
        Ok(()) => thread.reborn(),
        Err(error) => lost(&error),
    }
}

/// A process that cannot reach its listener says so, and goes on untraced.
fn lost(error: &io::Error) {
    eprintln!(
        "xpline: process {} goes on untraced: nobody listens to it ({error})",
        std::process::id()
    );
}

/// The tracked file that a call is about: of its descriptor, or of one of its two.
fn file_of(process: &Process, number: c_long, arguments: &[u64; 6]) -> Option<FileId> {
    let second = match number {
        libc::SYS_sendfile => Some(arguments[1]),
        libc::SYS_copy_file_range => Some(arguments[2]),
        _ => None,
    };
    let tracked = tracked_file(process, arguments[0] as i32);
    tracked.or_else(|| second.and_then(|second| tracked_file(process, second as i32)))
}

fn tracked_file(process: &Process, descriptor: i32) -> Option<FileId> {
    if process.space().tracks_nothing() {
        return None;
    }
    let mut out = Vec::new();
    let mut space = process.space();
    let known = space.get_mut().descriptor(descriptor, &mut out);
    if !out.is_empty() {
        process.send(out);
    }
    known.filter(|known| known.tracked).map(|known| known.id)
}

/// The bytes of as many whole pages as it takes.
fn pages(size: u64) -> u64 {
    size.checked_next_multiple_of(4096).unwrap_or(size)
}

/// Instructions that a call that came to nothing had taken: they belong to what comes next.
fn give_back(thread: &mut Thread, entered: &Entered) {
    thread.untake_instructions(entered.instructions);
}

fn mapped(address: u64, size: u64, protection: i32, flags: i32, descriptor: i32, offset: u64) {
    process::current().change(|space, epoch, out| {
        let mut files = Vec::new();
        let known = (descriptor >= 0)
            .then(|| space.descriptor(descriptor, &mut files))
            .flatten();
        out.extend(files);
        let Some(Known { id, tracked }) = known else {
            return space.unmap(epoch, address, pages(size), out);
        };
        let mapping = Mapping {
            epoch,
            address,
            size: pages(size),
            file: Some(id),
            offset,
            shared: flags & libc::MAP_SHARED != 0,
            executable: protection & libc::PROT_EXEC != 0,
            traced: tracked || space.everything(),
        };
        space.map(mapping, out);
    });
}

fn remapped(from: u64, old_size: u64, to: u64, size: u64) {
    process::current().change(|space, epoch, out| {
        let moved = space.find(from).cloned();
        // A size of 0 asks for a second mapping of the same.
        if old_size != 0 {
            space.unmap(epoch, from, pages(old_size), out);
        }
        match moved {
            Some(old) => {
                let offset = old.offset_of(from);
                space.map(
                    Mapping {
                        epoch,
                        address: to,
                        size: pages(size),
                        offset,
                        ..old
                    },
                    out,
                );
            }
            None => space.unmap(epoch, to, pages(size), out),
        }
    });
}

/// msync: of each tracked mapping that the range touches, the part.
fn synchronised(thread: &mut Thread, entered: &Entered, address: u64, size: u64) {
    let process = process::current();
    let end = address.saturating_add(pages(size));
    let mut parts = Vec::new();
    for mapping in process
        .space()
        .within(address, pages(size))
        .filter(|mapping| mapping.traced)
    {
        let begin = mapping.address.max(address);
        let size = end.min(mapping.address + mapping.size) - begin;
        parts.extend(mapping.file.map(|file| (file, mapping.offset_of(begin), size, begin)));
    }
    if parts.is_empty() {
        return give_back(thread, entered);
    }
    say(thread, entered, CallKind::SyncRange, &parts);
}

/// One frame for each part: file, offset, size, address.
fn say(thread: &mut Thread, entered: &Entered, kind: CallKind, parts: &[(FileId, u64, u64, u64)]) {
    thread.hand_over();
    let mut out = Vec::new();
    let mut instructions = entered.instructions;
    let stack = thread.callers.stack();
    let end = process::now();
    for &(file, offset, size, address) in parts {
        let call = Call {
            thread: thread.id(),
            kind,
            pc: thread.call_pc,
            instructions: std::mem::take(&mut instructions),
            epoch: process::EPOCH.load(Ordering::Acquire),
            begin: entered.begin,
            end,
            file,
            offset,
            size,
            address,
            stack,
        };
        encode(&Frame::Call(call), &mut out);
    }
    process::current().send(out);
}

/// A call on a descriptor of a tracked file.
fn on_file(thread: &mut Thread, entered: &Entered, result: u64) {
    let [first, second, third, fourth, ..] = entered.arguments;
    let (descriptor, file) = (first as i32, entered.file);
    let mut one = |kind, offset, size, address| match file {
        Some(file) => say(thread, entered, kind, &[(file, offset, size, address)]),
        None => give_back(thread, entered),
    };
    match entered.number {
        libc::SYS_read => one(CallKind::Read, before(descriptor, result), result, second),
        libc::SYS_write => one(CallKind::Write, before(descriptor, result), result, second),
        libc::SYS_pread64 => one(CallKind::Read, fourth, result, second),
        libc::SYS_pwrite64 => one(CallKind::Write, fourth, result, second),
        libc::SYS_fsync | libc::SYS_fdatasync => one(CallKind::Sync, 0, 0, 0),
        libc::SYS_sync_file_range => one(CallKind::SyncRange, second, third, 0),
        libc::SYS_ftruncate => one(CallKind::Truncate, 0, second, 0),
        libc::SYS_fallocate => one(CallKind::Allocate, third, fourth, 0),
        libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_preadv
        | libc::SYS_pwritev
        | libc::SYS_preadv2
        | libc::SYS_pwritev2 => {
            let Some(file) = file else {
                return give_back(thread, entered);
            };
            let reads = [libc::SYS_readv, libc::SYS_preadv, libc::SYS_preadv2].contains(&entered.number);
            let placed = ![libc::SYS_readv, libc::SYS_writev].contains(&entered.number) && fourth != u64::MAX;
            let offset = if placed { fourth } else { before(descriptor, result) };
            let parts =
                buffers(second, third, result).map(|(done, size, address)| (file, offset + done, size, address));
            let kind = if reads { CallKind::Read } else { CallKind::Write };
            say(thread, entered, kind, &parts.collect::<Vec<_>>());
        }
        libc::SYS_sendfile => between(thread, entered, (second as i32, third), (descriptor, 0), result),
        libc::SYS_copy_file_range => between(thread, entered, (descriptor, second), (third as i32, fourth), result),
        _ => give_back(thread, entered),
    }
}

/// The kernel's copy between two files, each with where its offset stands, if not in the descriptor.
fn between(thread: &mut Thread, entered: &Entered, from: (i32, u64), to: (i32, u64), size: u64) {
    let process = process::current();
    let offset = |(descriptor, place): (i32, u64)| match place {
        0 => before(descriptor, size),
        // The kernel has written there where it ended.
        _ => number_at(place).unwrap_or(0).saturating_sub(size),
    };
    let read = tracked_file(process, from.0).map(|file| (file, offset(from), size, 0));
    let written = tracked_file(process, to.0).map(|file| (file, offset(to), size, 0));
    if let Some(read) = read {
        say(thread, entered, CallKind::Read, &[read]);
    }
    if let Some(written) = written {
        let instructions = if read.is_some() { 0 } else { entered.instructions };
        let entered = Entered {
            instructions,
            space: None,
            ..*entered
        };
        say(thread, &entered, CallKind::Write, &[written]);
    }
    if read.is_none() && written.is_none() {
        give_back(thread, entered);
    }
}

/// The kernel's copy from or to traced memory, line by line, as if the program had made it.
fn copied(thread: &mut Thread, entered: &Entered, result: u64) {
    let Some(kind) = copies(entered.number) else { return };
    let [_, second, third, ..] = entered.arguments;
    let whole = [
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_recvfrom,
        libc::SYS_write,
        libc::SYS_pwrite64,
        libc::SYS_sendto,
    ];
    let parts: Vec<_> = if whole.contains(&entered.number) {
        vec![(0, result, second)]
    } else {
        buffers(second, third, result).collect()
    };
    for (_, size, address) in parts {
        let end = address.saturating_add(size);
        let mut at = address;
        while at < end {
            let next = (at | 63).saturating_add(1).min(end);
            if BOUNDS.may_hold(at) {
                let pc = thread.call_pc;
                thread.access(kind, Join::String, at, (next - at) as u16, pc, 0);
            }
            at = next;
        }
    }
}

/// Where a file stood before so many bytes.
fn before(descriptor: i32, bytes: u64) -> u64 {
    // SAFETY: no more than a question.
    let now = unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) };
    (now.max(0) as u64).saturating_sub(bytes)
}

/// The buffers that so many bytes were copied from or to: bytes before, size, address.
fn buffers(vector: u64, count: u64, mut left: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let mut done = 0;
    let parts = (0..count.min(1024)).map_while(move |index| {
        let entry = vector.wrapping_add(index * 16);
        let (address, size) = (number_at(entry)?, number_at(entry.wrapping_add(8))?);
        let size = size.min(left);
        let part = (done, size, address);
        left -= size;
        done += size;
        (size > 0 || left > 0).then_some(part)
    });
    parts.filter(|&(_, size, _)| size > 0)
}

fn number_at(address: u64) -> Option<u64> {
    qemu::memory(address, 8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
}
