//! What a traced program says: the streams between the tracer, which runs inside each process of the program, and who
//! listens to them.
//!
//! A process connects to the listener's Unix socket and sends one stream: a few bytes that name the format and its version,
//! then [`Frame`]s, from [`Frame::Hello`] to [`Frame::End`]. The same bytes may stand in a file. Numbers are little-endian.
//!
//! - **Where code is**: every [`Op`] has its program counter; [`Frame::Map`] says which file is mapped where, for code too, so
//!   a listener finds file and offset through an [`AddressSpace`], and the source line by the file's debug information.
//! - **Time** is counted in instructions within a thread. Frames also have the host's clock, which relates threads to one another.
//! - **Order**: frames of a thread are in program order. Before a thread makes a call that may wait, it hands over what it has.
//! - **Back-pressure**: a listener that does not read makes the program wait; nothing is dropped.

#![forbid(unsafe_code)]

mod decode;
mod encode;
mod frame;
mod op;
mod session;
mod space;

pub use decode::{Decoder, WireError};
pub use encode::{FRAME_LIMIT, OPS_LIMIT, OPS_PREFIX, encode, encode_start, ops_head};
pub use frame::{
    Call, CallKind, EndReason, Epoch, File, FileId, Frame, Hello, Mapping, Ops, Stack, StackId, Start, ThreadId,
};
pub use op::{Op, OpKind};
pub use session::{Session, Tracked};
pub use space::AddressSpace;
