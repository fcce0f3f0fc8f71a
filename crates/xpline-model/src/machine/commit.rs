//! The commit engine of a core: it drains the store buffer in program order, as x86 stores become visible.

use super::core::{Commit, Waiting};
use super::hierarchy::Found;
use super::{Agent, LINE, Machine};
use crate::op::OpKind;
use crate::program::{Program, Write};
use crate::time::Time;
use crate::way::{Follow, Follower, Nobody, Part};

/// What became of the op at the head of the store buffer.
enum Outcome {
    /// It committed; the next may commit at this time.
    Done(Time),
    /// It tries again at this time.
    Retry(Time),
}

/// Free entries of the store buffer at which a waiting front end goes on.
const WAKE_FREE: usize = 8;

impl Machine {
    /// Take the commit engine's turn at `self.now`.
    pub(super) fn commit<P: Program>(&mut self, core: usize, program: &mut P, until: Time) {
        let mut now = self.now;
        loop {
            let Some(&head) = self.cores[core].store_buffer.front() else {
                let state = &mut self.cores[core];
                state.committing = false;
                state.commit_free = now;
                let waited_for = state.waiting == Waiting::Drain;
                self.turns.end();
                if waited_for {
                    self.resume_front(core, now);
                }
                return;
            };
            match self.commit_head(core, program, head, now) {
                Outcome::Done(next) => {
                    self.retire_head(core, program, now);
                    now = next;
                }
                Outcome::Retry(time) => now = time,
            }
            if !self.still_my_turn(now, until) {
                self.turns.again(now, Agent::Commit(core));
                return;
            }
            self.now = now;
        }
    }

    #[inline]
    fn commit_head<P: Program>(&mut self, core: usize, program: &mut P, head: Commit, now: Time) -> Outcome {
        match head.kind {
            OpKind::Store => self.commit_store(core, program, head, now),
            OpKind::NtStore => self.commit_nt_store(core, program, head, now),
            OpKind::Clwb | OpKind::ClflushOpt | OpKind::Clflush => self.commit_flush(core, program, head, now),
            _ => {
                let accepted = self.cores[core].accepted;
                if accepted > now {
                    return Outcome::Retry(accepted);
                }
                self.counted.fences += 1;
                let done = now + self.timing.sfence;
                let state = &mut self.cores[core];
                state.fences -= 1;
                state.flushing.complete_by(done);
                Outcome::Done(done)
            }
        }
    }

    #[inline]
    fn commit_store<P: Program>(&mut self, core: usize, program: &mut P, head: Commit, now: Time) -> Outcome {
        match head.owned_at {
            Some(owned) if owned > now => Outcome::Retry(owned),
            Some(_) => {
                self.counted.stores += 1;
                self.counted.bytes_stored += u64::from(head.bytes);
                Outcome::Done(now + self.timing.op_interval)
            }
            None => match self.own(core, program, head.address, now) {
                Ok(owned) => {
                    self.cores[core].store_buffer[0].owned_at = Some(owned);
                    if self.cores[core].owned == 0 {
                        self.cores[core].owned = 1;
                        self.cores[core].owned_stores = 1;
                    }
                    Outcome::Retry(owned)
                }
                Err(free) => Outcome::Retry(free),
            },
        }
    }

    /// Ask for a line in order to write it; returns when the core owns it, or when a fill buffer will be free.
    #[inline]
    fn own<P: Program>(&mut self, core: usize, program: &mut P, address: u64, now: Time) -> Result<Time, Time> {
        let free = self.cores[core].fills.free_at();
        if free > now {
            return Err(free);
        }
        let line = address / LINE;
        self.cores[core].order.goes_on(line);
        let lookup = self.look_up(core, line, true, now);
        let done = self.fetch(core, program, address, true, lookup, now);
        let filling = if lookup.found == Found::L1 {
            self.cores[core].fills.under_way(line, now)
        } else {
            None
        };
        Ok(filling.map_or(done, |filled| filled.max(done)))
    }

    /// Ask early for the lines of the stores near the head of the store buffer.
    #[inline(always)]
    pub(super) fn own_ahead<P: Program>(&mut self, core: usize, program: &mut P, now: Time) {
        if self.cores[core].stores > 0 {
            self.own_stores(core, program, now);
        }
    }

    fn own_stores<P: Program>(&mut self, core: usize, program: &mut P, now: Time) {
        loop {
            let state = &self.cores[core];
            let next = state.owned;
            let flush_ahead = next > state.owned_stores;
            let depth = if flush_ahead {
                self.timing.flush_rfo_depth
            } else {
                self.timing.rfo_depth
            };
            if state.owned_stores >= depth || next >= state.store_buffer.len() {
                return;
            }
            let entry = state.store_buffer[next];
            let is_store = entry.kind == OpKind::Store;
            if is_store && entry.owned_at.is_none() {
                match self.own(core, program, entry.address, now) {
                    Ok(owned) => self.cores[core].store_buffer[next].owned_at = Some(owned),
                    Err(_) => return,
                }
            }
            self.cores[core].owned += 1;
            self.cores[core].owned_stores += usize::from(is_store);
        }
    }

    #[inline]
    fn commit_nt_store<P: Program>(&mut self, core: usize, program: &mut P, head: Commit, now: Time) -> Outcome {
        let line = head.address / LINE;
        let state = &mut self.cores[core];
        let rewriting = state.rewriting;
        let buffers = state.combining();
        let free = buffers.free_at();
        // Whether the line is under way or not: looking it up would tell nothing.
        if free > now.max(rewriting) {
            return Outcome::Retry(free);
        }
        let again = buffers.under_way(line, now).is_some();
        let room = if again { free.max(rewriting) } else { free };
        if room > now {
            return Outcome::Retry(room);
        }
        if again {
            state.rewriting = now + self.timing.nt_again;
        }
        let cached = self.caches.drop_line(core, line);
        let elsewhere = if cached.is_some() { 0 } else { self.timing.nt_uncached };
        let arrival = now + self.timing.request + self.timing.nt_latency + elsewhere;
        if cached == Some(true) && u64::from(head.bytes) < LINE {
            // What the ntstore does not overwrite goes to memory first.
            self.memory.write_evicted(core, head.address, arrival, &mut Nobody);
        }
        let mut follow = Follower(program);
        let closed = arrival - self.timing.request;
        follow.passes(Part::CombiningBuffer, now, closed);
        let accepted = self.memory.write_unowned(core, head.address, arrival, &mut follow) + self.timing.response;
        self.show_write(program, head, [now, closed, arrival, accepted]);
        self.count_nt_store(head);
        let state = &mut self.cores[core];
        state.combining().occupy(line, accepted);
        state.accepted = state.accepted.max(accepted);
        // A store to the same line right behind it is combined in the buffer, but not once an older one of the line is under way.
        if !again
            && let Some(&next) = state.store_buffer.get(1)
            && next.kind == OpKind::NtStore
            && next.address / LINE == line
        {
            state.store_buffer.swap_remove_front(1);
            state.owned = state.owned.saturating_sub(1);
            self.count_nt_store(next);
            if P::WATCHED {
                program.committed(now);
            }
        }
        Outcome::Done(
            now + if cached.is_some() {
                self.timing.nt_cached_interval
            } else {
                self.timing.nt_interval
            },
        )
    }

    /// Show a traced program a line that was sent to memory: when, when it left for the controller, when it arrived there, and when
    /// the core knows that it was accepted.
    #[inline]
    fn show_write<P: Program>(&self, program: &mut P, head: Commit, [sent, left, arrived, accepted]: [Time; 4]) {
        if P::TRACED {
            let mut follow = Follower(&mut *program);
            follow.passes(Part::Mesh, left, arrived);
            follow.passes(Part::Mesh, accepted - self.timing.response, accepted);
            program.written(Write {
                kind: head.kind,
                address: head.address,
                sent,
                accepted,
            });
        }
    }

    fn count_nt_store(&mut self, store: Commit) {
        self.counted.nt_stores += 1;
        self.counted.bytes_stored += u64::from(store.bytes);
    }

    #[inline]
    fn commit_flush<P: Program>(&mut self, core: usize, program: &mut P, head: Commit, now: Time) -> Outcome {
        let line = head.address / LINE;
        let free = self.cores[core].flushing.free_at();
        if free > now {
            return Outcome::Retry(free);
        }
        self.counted.flushes += 1;
        if self.timing.eadr {
            return Outcome::Done(now + self.timing.op_interval);
        }
        let dirty = if head.kind == OpKind::Clwb && self.timing.clwb_keeps_line {
            self.caches.write_back(core, line)
        } else {
            self.cores[core].lose(line);
            self.caches.drop_line(core, line).unwrap_or(false)
        };
        if !dirty {
            let state = &mut self.cores[core];
            state.accepted = state.accepted.max(now + self.timing.flush_clean);
            return Outcome::Done(now + self.timing.op_interval);
        }
        let arrival = now + self.timing.request;
        let accepted = self.memory.write(core, head.address, arrival, &mut Follower(program)) + self.timing.response;
        self.show_write(program, head, [now, now, arrival, accepted]);
        let state = &mut self.cores[core];
        // Reads go first: while the core fetches lines, one that it has flushed stays in the queue.
        let behind_reads = accepted.min(state.fills.all_done()) + self.timing.flush_return;
        state.flushing.occupy(line, accepted.max(behind_reads));
        state.accepted = state.accepted.max(accepted);
        // clflush, unlike clflushopt and clwb, is ordered against the next of its kind.
        Outcome::Done(if head.kind == OpKind::Clflush {
            accepted
        } else {
            now + self.timing.flush_interval
        })
    }

    /// Take the head out of the store buffer, and wake whoever waits for the room.
    #[inline]
    fn retire_head<P: Program>(&mut self, core: usize, program: &mut P, now: Time) {
        if P::WATCHED {
            program.committed(now);
        }
        let state = &mut self.cores[core];
        let retired = state.store_buffer.pop_front();
        let stores = usize::from(retired.is_some_and(|op| op.kind == OpKind::Store));
        state.stores -= stores;
        if state.owned > 0 {
            state.owned -= 1;
            state.owned_stores -= stores;
        }
        let room = self.timing.store_buffer - state.store_buffer.len();
        let wake = state.waiting == Waiting::StoreBuffer && room >= WAKE_FREE.min(self.timing.store_buffer);
        self.own_ahead(core, program, now);
        if wake {
            self.resume_front(core, now);
        }
    }
}
