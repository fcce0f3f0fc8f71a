//! A thread's op stream, as the machine sees it.

use crate::op::Op;
use crate::time::Time;

/// A thread: the machine pulls its ops in program order and hands back the clock readings it asks for.
///
/// Programs are monomorphised into the machine, so that pulling an op costs no dynamic dispatch.
pub trait Program {
    /// Whether the machine tells this program where its time goes: [`Program::fetched`], [`Program::committed`] and
    /// [`Program::waited`]. Programs that are not watched pay nothing for it.
    const WATCHED: bool = false;

    /// The next op, or `None` when the thread has ended.
    fn next_op(&mut self) -> Option<Op>;

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
