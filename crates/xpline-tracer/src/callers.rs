//! Who called whom: a shadow of each thread's stack, and the stacks that the listener was told of.
//!
//! Frames are told apart by the stack pointer, so that what never returns (longjmp, an exception, a thread's end) leaves none
//! behind for longer than until the next call or return.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use xpline_wire::{Frame, Stack, StackId, encode};

use crate::process::{self, EPOCH};

/// Calls that are kept of a thread, and those that the listener is told of, from the outermost in.
const KEPT: usize = 4096;
const TOLD: usize = 128;

/// Stacks that a process may have; code further in then stands on the last that was told of.
const MOST_STACKS: u32 = 1 << 20;

/// Calls of a thread that have not returned.
#[derive(Default)]
pub struct Callers(Vec<Call>);

struct Call {
    /// Of the call instruction.
    pc: u64,
    /// The stack pointer before it.
    pointer: u64,
    /// The stack from here out, once it was asked for; 0 until then.
    stack: StackId,
}

impl Callers {
    /// A call, with the stack pointer before it.
    pub fn call(&mut self, pc: u64, pointer: u64) {
        self.returned(pointer);
        if self.0.len() < KEPT {
            self.0.push(Call { pc, pointer, stack: 0 });
        }
    }

    /// The stack pointer is back here: what was called below has ended.
    pub fn returned(&mut self, pointer: u64) {
        while self.0.last().is_some_and(|call| call.pointer <= pointer) {
            self.0.pop();
        }
    }

    /// The stack that the thread is on, which the listener knows.
    #[inline]
    pub fn stack(&mut self) -> StackId {
        match self.0.last() {
            None => 0,
            Some(call) if call.stack != 0 => call.stack,
            Some(_) => self.tell(),
        }
    }

    #[cold]
    fn tell(&mut self) -> StackId {
        let told = self.0.iter().rposition(|call| call.stack != 0);
        let mut stack = told.map_or(0, |place| self.0[place].stack);
        let first = told.map_or(0, |place| place + 1);
        for (place, call) in self.0.iter_mut().enumerate().skip(first) {
            if place < TOLD {
                stack = process::current().stacks().number(stack, call.pc);
            }
            call.stack = stack;
        }
        stack
    }

    /// Nothing was told in this stream.
    pub fn forget(&mut self) {
        self.0.iter_mut().for_each(|call| call.stack = 0);
    }
}

/// The stacks that a stream has told of: by the stack of the caller, and the call.
#[derive(Default)]
pub struct Stacks(Mutex<HashMap<(StackId, u64), StackId>>);

impl Stacks {
    /// The number of a stack; the listener is told of a new one, before any op that names it.
    fn number(&self, caller: StackId, pc: u64) -> StackId {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.len() as StackId;
        if let Some(&known) = all.get(&(caller, pc)) {
            return known;
        }
        if count == MOST_STACKS {
            return caller;
        }
        let id = count + 1;
        all.insert((caller, pc), id);
        let epoch = EPOCH.load(std::sync::atomic::Ordering::Acquire);
        let mut bytes = Vec::new();
        encode(&Frame::Stack(Stack { id, caller, pc, epoch }), &mut bytes);
        process::current().send(bytes);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(callers: &Callers) -> Vec<u64> {
        callers.0.iter().map(|call| call.pc).collect()
    }

    #[test]
    fn calls_and_returns() {
        let mut callers = Callers::default();
        assert_eq!(callers.stack(), 0);
        callers.call(1, 1000);
        callers.call(2, 900);
        assert_eq!(places(&callers), [1, 2]);
        callers.returned(900);
        callers.call(3, 900);
        assert_eq!(places(&callers), [1, 3]);
        callers.returned(1000);
        assert!(places(&callers).is_empty());
        callers.returned(2000);
    }

    #[test]
    fn a_jump_out_of_functions_ends_them() {
        let mut callers = Callers::default();
        for (pc, pointer) in [(1, 1000), (2, 900), (3, 800), (4, 700)] {
            callers.call(pc, pointer);
        }
        // Back in what the first call began, which calls again.
        callers.call(5, 900);
        assert_eq!(places(&callers), [1, 5]);
        for depth in 0..2 * KEPT as u64 {
            callers.call(6, 899u64.wrapping_sub(depth) | 1 << 40);
        }
        assert!(callers.0.len() <= KEPT);
    }
}
