//! A thread's op stream, as the machine sees it.

use crate::op::{Op, OpKind};
use crate::time::Time;
use crate::way::Part;

/// A thread: the machine pulls its ops in program order and hands back the clock readings it asks for.
///
/// Programs are monomorphised into the machine, so that pulling an op costs no dynamic dispatch.
pub trait Program {
    /// Whether the machine tells this program where its time goes: [`Program::fetched`], [`Program::committed`] and
    /// [`Program::waited`]. Programs that are not watched pay nothing for it.
    const WATCHED: bool = false;

    /// Whether the machine shows this program the way of its requests: [`Program::passed`] and [`Program::written`], and
    /// what it shows who is watched. Programs that are not traced pay nothing for it.
    const TRACED: bool = false;

    /// The next op, or `None` when the thread has ended.
    fn next_op(&mut self) -> Option<Op>;

    /// Name addresses that ops will ask for soon, as few as once in a while. It changes no result: the machine looks where it
    /// keeps their lines, so that the host waits for its own memory once for all of them.
    #[inline]
    fn foretell(&mut self, _name: impl FnMut(u64)) {}

    /// A clock reading asked for by [`crate::OpKind::Stamp`].
    fn stamp(&mut self, _now: Time) {}

    /// A load was issued whose data take this long to come, in ps. Loads are issued in program order.
    fn loaded(&mut self, _latency: Time) {}

    /// A line comes from beyond the L1d, for the load just pulled or for a store that waits to commit.
    fn fetched(&mut self, _fetch: Fetch) {}

    /// The oldest store, ntstore, flush or sfence that had not committed did so `at`; they commit in program order.
    fn committed(&mut self, _at: Time) {}

    /// The op just pulled could not go on between two moments.
    fn waited(&mut self, _from: Time, _until: Time, _on: Wait) {}

    /// The request that is being made passes through a part of the machine, or waits for it; [`Program::fetched`] or
    /// [`Program::written`] follows.
    fn passed(&mut self, _part: Part, _from: Time, _until: Time) {}

    /// An ntstore or a flush sends a line to memory.
    fn written(&mut self, _write: Write) {}
}

/// A line that comes to the L1d of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    pub address: u64,
    /// For a store, which needs its line before it commits.
    pub for_store: bool,
    /// When it was asked for, and when it is there.
    pub asked: Time,
    pub done: Time,
    pub from: FetchedFrom,
}

/// A line that an ntstore or a flush sends to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    pub kind: OpKind,
    pub address: u64,
    /// When it was sent, and when the core knows that it has been accepted.
    pub sent: Time,
    pub accepted: Time,
}

/// Where a line was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchedFrom {
    Cache,
    /// A buffer of the DIMM, or a row open in it.
    Buffer,
    Media,
}

/// What an op waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// An older load to retire, so that there is room in the window.
    Window,
    /// A fill buffer.
    FillBuffer,
    /// Room in the store buffer: the op at its head is what holds it up.
    StoreBuffer,
    /// Everything before it: a full fence, a locked op, or a reading of the clock.
    Drain,
}
