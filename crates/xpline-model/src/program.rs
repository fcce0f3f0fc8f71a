//! A thread's op stream, as the machine sees it.

use crate::op::Op;
use crate::time::Time;

/// A thread: the machine pulls its ops in program order and hands back the clock readings it asks for.
///
/// Programs are monomorphised into the machine, so that pulling an op costs no dynamic dispatch.
pub trait Program {
    /// The next op, or `None` when the thread has ended.
    fn next_op(&mut self) -> Option<Op>;

    /// A clock reading asked for by [`crate::OpKind::Stamp`].
    fn stamp(&mut self, _now: Time) {}

    /// A load was issued whose data take this long to come, in ps. Loads are issued in program order.
    fn loaded(&mut self, _latency: Time) {}
}
