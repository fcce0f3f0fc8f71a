//! The front end of a core: it pulls ops in program order, issues loads, and fills the store buffer.

use super::core::{Commit, Stage, Waiting};
use super::hierarchy::Found;
use super::{Agent, LINE, Machine};
use crate::op::{Op, OpKind};
use crate::program::{Program, Wait};
use crate::time::Time;

/// What became of an op.
enum Outcome {
    /// It went; the next may go at this time.
    Next(Time),
    /// It goes on at this time, from where it got to.
    Later(Time, Stage),
    /// It waits until the commit engine wakes the front end.
    Wait(Waiting, Stage),
}

impl Machine {
    /// Take the front end's turn at `self.now`.
    pub(super) fn front<P: Program>(&mut self, core: usize, program: &mut P, until: Time) {
        let mut now = self.now;
        if P::WATCHED
            && let Some((on, since)) = self.cores[core].waited.take()
        {
            program.waited(since, now, on);
        }
        let mut held = self.cores[core].held.take();
        loop {
            let (op, stage) = match held.take() {
                Some(held) => held,
                None => match program.next_op() {
                    Some(op) => {
                        let caches = &mut self.caches;
                        program.foretell(|address| caches.expect(core, address / LINE));
                        (op, Stage::Fresh)
                    }
                    None => {
                        self.cores[core].waiting = Waiting::Ended;
                        self.turns.end();
                        return;
                    }
                },
            };
            match self.issue(core, op, stage, program, now) {
                Outcome::Next(time) => now = time,
                Outcome::Later(time, stage) => {
                    if P::WATCHED {
                        let on = match stage {
                            Stage::Fresh | Stage::Missed => Wait::FillBuffer,
                            Stage::Admitted if op.kind == OpKind::LockedRmw => Wait::Drain,
                            Stage::Admitted => Wait::Window,
                        };
                        program.waited(now, time, on);
                    }
                    held = Some((op, stage));
                    now = time;
                }
                Outcome::Wait(waiting, stage) => {
                    self.cores[core].waiting_since = now;
                    self.cores[core].held = Some((op, stage));
                    self.cores[core].waiting = waiting;
                    self.turns.end();
                    return;
                }
            }
            if !self.still_my_turn(now, until) {
                self.cores[core].held = held;
                self.turns.again(now, Agent::Front(core));
                return;
            }
            self.now = now;
        }
    }

    #[inline]
    fn issue<P: Program>(&mut self, core: usize, op: Op, stage: Stage, program: &mut P, now: Time) -> Outcome {
        match stage {
            Stage::Admitted | Stage::Missed => {}
            Stage::Fresh => {
                let micro_ops = if op.kind == OpKind::Compute {
                    u64::from(op.size)
                } else {
                    self.timing.op_micro_ops
                };
                let room = self.cores[core].window.admit(micro_ops, now);
                if room > now {
                    return Outcome::Later(room, Stage::Admitted);
                }
            }
        }
        match op.kind {
            OpKind::Compute if op.addr > 0 => Outcome::Next(now + op.addr),
            OpKind::Compute => Outcome::Next(now + Time::from(op.size) * self.timing.instruction),
            OpKind::Load => self.load(core, op, stage, program, now),
            OpKind::Prefetch => self.take_hint(core, program, op, now),
            OpKind::Store | OpKind::NtStore | OpKind::Clwb | OpKind::ClflushOpt | OpKind::Clflush | OpKind::Sfence => {
                self.buffer(core, program, op, now)
            }
            OpKind::Mfence => self.full_fence(core, program, now),
            OpKind::Lfence => self.load_fence(core, program, now),
            OpKind::LockedRmw => self.locked(core, program, op, now),
            OpKind::Mispredict => self.mispredict(core, now),
            OpKind::Stamp => {
                if self.cores[core].fences > 0 {
                    return Outcome::Wait(Waiting::Drain, Stage::Admitted);
                }
                let retired = self.cores[core].window.all_retired(now) + self.timing.stamp;
                program.stamp(retired);
                Outcome::Next(retired)
            }
        }
    }

    /// A wrong turn costs little while the data are in the L1d; else the core is slow to get under way again.
    fn mispredict(&self, core: usize, now: Time) -> Outcome {
        let retired = self.cores[core].window.all_retired(now);
        Outcome::Next(if retired > now + self.timing.l1d_hit {
            retired + self.timing.resume
        } else {
            retired + self.timing.mispredict
        })
    }

    /// A hint: nothing comes of it where every fill buffer is taken.
    fn take_hint<P: Program>(&mut self, core: usize, program: &mut P, op: Op, now: Time) -> Outcome {
        if self.cores[core].fills.free_at() <= now {
            let lookup = self.look_up(core, op.addr / LINE, false, now);
            if lookup.found != Found::L1 {
                self.fetch(core, program, op.addr, false, lookup, now);
            }
        }
        Outcome::Next(now + self.timing.op_interval)
    }

    #[inline]
    fn load<P: Program>(&mut self, core: usize, op: Op, stage: Stage, program: &mut P, now: Time) -> Outcome {
        let lookup = if stage == Stage::Missed {
            self.cores[core].missed
        } else {
            self.counted.loads += 1;
            self.counted.bytes_loaded += u64::from(op.size);
            self.look_up(core, op.addr / LINE, false, now)
        };
        let state = &mut self.cores[core];
        let done = if lookup.found == Found::L1 {
            let hit = now + self.timing.l1d_hit;
            let filled = state.fills.under_way(op.addr / LINE, now);
            filled.map_or(hit, |filled| filled.max(hit))
        } else {
            let free = state.fills.free_at();
            if free > now {
                state.missed = lookup;
                return Outcome::Later(free, Stage::Missed);
            }
            self.fetch(core, program, op.addr, false, lookup, now)
        };
        self.cores[core].window.load_completes(done);
        program.loaded(done - now);
        Outcome::Next(now + self.timing.op_interval)
    }

    #[inline]
    fn buffer<P: Program>(&mut self, core: usize, program: &mut P, op: Op, now: Time) -> Outcome {
        let state = &mut self.cores[core];
        if state.store_buffer.len() == self.timing.store_buffer {
            return Outcome::Wait(Waiting::StoreBuffer, Stage::Admitted);
        }
        state.store_buffer.push_back(Commit {
            kind: op.kind,
            address: op.addr,
            bytes: op.size,
            owned_at: None,
        });
        state.stores += usize::from(op.kind == OpKind::Store);
        state.fences += u32::from(op.kind == OpKind::Sfence);
        let idle = !state.committing;
        if idle {
            state.committing = true;
            let at = now.max(state.commit_free);
            self.turns.ask(at, Agent::Commit(core));
        }
        self.own_ahead(core, program, now);
        Outcome::Next(now + self.timing.op_interval)
    }

    /// Everything before a full fence must have left the store buffer, be accepted by memory, and have retired.
    fn full_fence<P: Program>(&mut self, core: usize, program: &mut P, now: Time) -> Outcome {
        let state = &self.cores[core];
        if !state.store_buffer.is_empty() {
            return Outcome::Wait(Waiting::Drain, Stage::Admitted);
        }
        let done = state.window.all_retired(now).max(state.accepted).max(state.commit_free) + self.timing.fence;
        self.counted.fences += 1;
        self.cores[core].flushing.complete_by(done);
        if P::WATCHED {
            program.waited(now, done, Wait::Drain);
        }
        Outcome::Next(done)
    }

    /// Everything loaded before a load fence must be here.
    fn load_fence<P: Program>(&mut self, core: usize, program: &mut P, now: Time) -> Outcome {
        self.counted.fences += 1;
        let done = self.cores[core].window.all_retired(now);
        if P::WATCHED {
            program.waited(now, done, Wait::Drain);
        }
        Outcome::Next(done)
    }

    fn locked<P: Program>(&mut self, core: usize, program: &mut P, op: Op, now: Time) -> Outcome {
        let state = &self.cores[core];
        if !state.store_buffer.is_empty() {
            return Outcome::Wait(Waiting::Drain, Stage::Admitted);
        }
        let ready = state.window.all_retired(now).max(state.accepted).max(state.commit_free);
        if ready > now {
            return Outcome::Later(ready, Stage::Admitted);
        }
        self.counted.loads += 1;
        self.counted.stores += 1;
        self.counted.fences += 1;
        self.counted.bytes_loaded += u64::from(op.size);
        self.counted.bytes_stored += u64::from(op.size);
        let lookup = self.look_up(core, op.addr / LINE, true, now);
        // All loads have retired, so a fill buffer is free.
        let done = self.fetch(core, program, op.addr, true, lookup, now);
        if P::WATCHED {
            program.waited(now, done + self.timing.fence, Wait::Drain);
        }
        Outcome::Next(done + self.timing.fence)
    }
}
