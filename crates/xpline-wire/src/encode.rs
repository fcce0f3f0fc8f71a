//! Frames as bytes.

use crate::frame::{Epoch, Frame, ThreadId};
use crate::op::Op;

/// The first bytes of a stream, and the version of what follows.
pub(crate) const MAGIC: [u8; 8] = *b"\x89XPWIRE\n";
pub(crate) const VERSION: u64 = 2;

/// Bytes before a frame's content: its kind, and how many bytes of content follow.
pub(crate) const HEAD: usize = 8;

/// The most bytes that a frame's content may have.
pub const FRAME_LIMIT: usize = 1 << 20;

/// Ops that fit in a frame.
pub const OPS_LIMIT: usize = (FRAME_LIMIT - OPS_HEAD) / Op::BYTES;

/// Bytes of a frame of ops before its first op.
pub(crate) const OPS_HEAD: usize = 32;

/// The kinds of frame, by their number on the wire.
pub(crate) mod kind {
    pub const HELLO: u32 = 1;
    pub const FILE: u32 = 2;
    pub const MAP: u32 = 3;
    pub const UNMAP: u32 = 4;
    pub const THREAD_START: u32 = 5;
    pub const THREAD_END: u32 = 6;
    pub const OPS: u32 = 7;
    pub const CALL: u32 = 8;
    pub const END: u32 = 9;
    pub const STACK: u32 = 10;
}

/// Begins a stream.
pub fn encode_start(out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
}

/// Appends a frame. Arguments beyond what a frame can hold are left out.
///
/// # Panics
///
/// If there are more than [`OPS_LIMIT`] ops in the frame.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) {
    match frame {
        Frame::Hello(hello) => framed(out, kind::HELLO, |out| {
            words(
                out,
                &[
                    hello.process.into(),
                    hello.parent.into(),
                    hello.start as u64,
                    hello.time,
                ],
            );
            let mut room = FRAME_LIMIT - 1024;
            for text in std::iter::once(&hello.executable).chain(&hello.arguments) {
                let Some(left) = room.checked_sub(8 + text.len()) else {
                    break;
                };
                room = left;
                words(out, &[text.len() as u64]);
                out.extend(text);
            }
        }),
        Frame::File(file) => framed(out, kind::FILE, |out| {
            words(out, &[file.id.into(), file.tracked.into(), file.device, file.inode]);
            out.extend(&file.path[..file.path.len().min(FRAME_LIMIT - 1024)]);
        }),
        Frame::Map(map) => framed(out, kind::MAP, |out| {
            let flags = u64::from(map.shared) | u64::from(map.executable) << 1 | u64::from(map.traced) << 2;
            let file = map.file.map_or(0, |file| u64::from(file) + 1);
            words(out, &[map.epoch, map.address, map.size, file, map.offset, flags]);
        }),
        Frame::Unmap { epoch, address, size } => framed(out, kind::UNMAP, |out| words(out, &[*epoch, *address, *size])),
        Frame::ThreadStart { thread, time } => {
            framed(out, kind::THREAD_START, |out| words(out, &[u64::from(*thread), *time]));
        }
        Frame::ThreadEnd {
            thread,
            time,
            instructions,
        } => {
            framed(out, kind::THREAD_END, |out| {
                words(out, &[u64::from(*thread), *time, *instructions])
            });
        }
        Frame::Ops(ops) => {
            assert!(ops.ops.len() <= OPS_LIMIT, "{} ops in a frame", ops.ops.len());
            let head = ops_head(ops.thread, ops.epoch, ops.begin, ops.end, ops.ops.len());
            out.extend(head);
            for op in &ops.ops {
                out.extend(op.to_bytes());
            }
        }
        Frame::Call(call) => framed(out, kind::CALL, |out| {
            words(
                out,
                &[
                    call.thread.into(),
                    call.kind as u64,
                    call.pc,
                    call.instructions,
                    call.epoch,
                    call.begin,
                    call.end,
                    call.file.into(),
                    call.offset,
                    call.size,
                    call.address,
                    call.stack.into(),
                ],
            );
        }),
        Frame::Stack(stack) => framed(out, kind::STACK, |out| {
            words(out, &[stack.id.into(), stack.caller.into(), stack.pc, stack.epoch]);
        }),
        Frame::End { time, reason } => framed(out, kind::END, |out| words(out, &[*time, *reason as u64])),
    }
}

/// Bytes before the ops of a frame.
pub const OPS_PREFIX: usize = HEAD + OPS_HEAD;

/// What stands before `count` ops in their frame, for who keeps them as bytes.
pub fn ops_head(thread: ThreadId, epoch: Epoch, begin: u64, end: u64, count: usize) -> [u8; OPS_PREFIX] {
    let mut bytes = [0; OPS_PREFIX];
    bytes[..4].copy_from_slice(&kind::OPS.to_le_bytes());
    bytes[4..8].copy_from_slice(&((OPS_HEAD + count * Op::BYTES) as u32).to_le_bytes());
    for (at, word) in [u64::from(thread), epoch, begin, end].into_iter().enumerate() {
        bytes[8 + at * 8..16 + at * 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn words(out: &mut Vec<u8>, words: &[u64]) {
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn framed(out: &mut Vec<u8>, kind: u32, content: impl FnOnce(&mut Vec<u8>)) {
    out.extend(kind.to_le_bytes());
    let place = out.len();
    out.extend([0; 4]);
    content(out);
    let size = (out.len() - place - 4) as u32;
    out[place..place + 4].copy_from_slice(&size.to_le_bytes());
}
