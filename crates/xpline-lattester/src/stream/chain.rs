//! Chains: what a thread of a workload does in each iteration, on one memory or two.

use rand_distr::{Distribution, Zipf};
use xpline_model::platform::Core;
use xpline_model::{Op, OpKind, Time, VOLATILE};

use super::{LINE, address_generation, fence, line};
use crate::rng::Rng;
use crate::workload::{Group, Mode, Place, Step, StepOp};

/// One thread of a group.
#[derive(Clone, Debug)]
pub struct Chain {
    steps: Vec<Step>,
    mode: Mode,
    places: Places,
    making: Op,
    /// The step that is being done, its place, and how far it got.
    step: usize,
    at: Spot,
    phase: Phase,
    iterations: u64,
    bytes: u64,
    sample: u64,
    warming: bool,
    started: Option<Time>,
    samples: Vec<Time>,
}

/// Where the steps of a thread go, one after the other.
#[derive(Clone, Debug)]
pub struct Places {
    steps: Vec<Step>,
    mode: Mode,
    /// The partition of each memory that the thread works in.
    persistent: Partition,
    volatile: Partition,
    volatile_share: f64,
    turns: Turns,
    zipf: Option<f64>,
    rng: Rng,
    /// The place of the step before.
    at: Spot,
}

/// Bytes from `base` on.
#[derive(Clone, Copy, Debug)]
pub struct Partition {
    pub base: u64,
    pub bytes: u64,
}

/// A place in a partition.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub partition: Partition,
    pub offset: u64,
}

/// What comes next, with the bytes of the step that are done.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Begin,
    Place,
    Await,
    Access(u64),
    Flush(u64),
    Fence,
    Next,
}

impl Chain {
    /// Thread `thread` of a group whose ranges begin at `persistent` and `volatile`.
    pub fn new(group: &Group, thread: u32, [persistent, volatile]: [u64; 2], rng: Rng, core: &Core) -> Self {
        let overhead = if group.mode == Mode::Sequential {
            core.stride_overhead
        } else {
            core.random_overhead
        };
        let places = Places::new(group, thread, [persistent, volatile], rng);
        Self {
            mode: group.mode,
            making: address_generation(overhead),
            steps: group.steps.clone(),
            step: 0,
            at: places.at,
            places,
            phase: Phase::Begin,
            iterations: 0,
            bytes: 0,
            sample: group.sample,
            warming: false,
            started: None,
            samples: Vec::new(),
        }
    }

    /// Iterations done so far.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Bytes read and written by them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Latencies of the iterations that were measured, in ps, in order.
    pub fn samples(&self) -> &[Time] {
        &self.samples
    }

    /// Begin, or cease, to run without reading the clock.
    pub fn set_warming(&mut self, warming: bool) {
        self.warming = warming;
        if !warming {
            (self.iterations, self.bytes, self.step, self.phase) = (0, 0, 0, Phase::Begin);
        }
    }

    pub fn stamp(&mut self, now: Time) {
        match self.started.take() {
            None => self.started = Some(now),
            Some(started) => self.samples.push(now - started),
        }
    }

    #[inline]
    pub fn next(&mut self) -> Op {
        loop {
            match self.phase {
                Phase::Begin => {
                    self.phase = Phase::Place;
                    if self.is_sampled() {
                        return fence(OpKind::Stamp);
                    }
                }
                Phase::Place => {
                    let waits = self.mode == Mode::Chain && self.steps[self.step].op == StepOp::Load;
                    self.phase = if waits { Phase::Await } else { Phase::Access(0) };
                    self.at = self.places.of(self.step);
                    return self.making;
                }
                Phase::Await => {
                    self.phase = Phase::Access(0);
                    return fence(OpKind::Lfence);
                }
                Phase::Access(done) => {
                    let kind = match self.steps[self.step].op {
                        StepOp::Load => OpKind::Load,
                        StepOp::NtStore => OpKind::NtStore,
                        StepOp::Store => OpKind::Store,
                        StepOp::StoreClwb | StepOp::StoreClflushOpt => {
                            self.phase = Phase::Flush(done);
                            return line(OpKind::Store, self.at.address(done));
                        }
                    };
                    self.phase = self.after(done);
                    return line(kind, self.at.address(done));
                }
                Phase::Flush(done) => {
                    let kind = match self.steps[self.step].op {
                        StepOp::StoreClwb => OpKind::Clwb,
                        _ => OpKind::ClflushOpt,
                    };
                    self.phase = self.after(done);
                    return line(kind, self.at.address(done));
                }
                Phase::Fence => {
                    self.phase = Phase::Next;
                    return fence(OpKind::Sfence);
                }
                Phase::Next => {
                    self.bytes += self.steps[self.step].size;
                    self.step += 1;
                    if self.step < self.steps.len() {
                        self.phase = Phase::Place;
                        continue;
                    }
                    let sampled = self.is_sampled();
                    self.iterations += 1;
                    (self.step, self.phase) = (0, Phase::Begin);
                    if sampled {
                        return fence(OpKind::Stamp);
                    }
                }
            }
        }
    }

    #[inline]
    fn is_sampled(&self) -> bool {
        self.sample > 0 && !self.warming && self.iterations.is_multiple_of(self.sample)
    }

    /// The phase after the line at `done`.
    #[inline]
    fn after(&self, done: u64) -> Phase {
        let step = &self.steps[self.step];
        if done + LINE < step.size {
            Phase::Access(done + LINE)
        } else if matches!(step.op, StepOp::Load | StepOp::Store) {
            Phase::Next
        } else {
            Phase::Fence
        }
    }
}

impl Places {
    /// Those of thread `thread` of a group whose ranges begin at `persistent` and `volatile`.
    pub fn new(group: &Group, thread: u32, [persistent, volatile]: [u64; 2], rng: Rng) -> Self {
        let sharing = group.threads / group.parts();
        let (number, turn) = (u64::from(thread / sharing), u64::from(thread % sharing));
        let partition = |place, base| {
            let bytes = group.partition(place);
            Partition {
                base: base + number * bytes,
                bytes,
            }
        };
        let persistent = partition(Place::Persistent, persistent);
        Self {
            steps: group.steps.clone(),
            mode: group.mode,
            persistent,
            volatile: partition(Place::Volatile, volatile),
            volatile_share: group.volatile_share,
            turns: Turns::new(group, sharing.into(), turn),
            zipf: group.zipf,
            rng,
            at: Spot {
                partition: persistent,
                offset: 0,
            },
        }
    }

    /// Where step number `step` of an iteration goes; steps must be asked for in their order.
    #[inline]
    pub fn of(&mut self, step: usize) -> Spot {
        self.at = self.draw(step);
        self.at
    }

    #[inline]
    fn draw(&mut self, step: usize) -> Spot {
        let step = &self.steps[step];
        let (size, is_load, offset) = (step.size, step.op == StepOp::Load, step.offset);
        if self.mode == Mode::Chain && !is_load {
            return self.at.moved(offset);
        }
        let volatile = match step.memory {
            Place::Volatile => true,
            Place::Persistent => self.volatile_share > 0.0 && self.rng.share() < self.volatile_share,
        };
        let partition = if volatile { self.volatile } else { self.persistent };
        let places = partition.bytes / size;
        let place = match self.zipf {
            _ if self.mode == Mode::Sequential => self.turns.next(places),
            None => self.rng.below(places),
            // Ranks count from 1; the first place is the hottest.
            Some(exponent) => {
                let zipf = Zipf::new(places as f64, exponent).expect("a check has let it pass");
                (zipf.sample(&mut self.rng) as u64 - 1).min(places - 1)
            }
        };
        Spot {
            partition,
            offset: place * size,
        }
    }
}

impl Spot {
    /// The address `bytes` further on; a partition is a ring.
    #[inline]
    fn address(self, bytes: u64) -> u64 {
        self.partition.base + (self.offset + bytes) % self.partition.bytes
    }

    #[inline]
    fn moved(self, offset: i64) -> Self {
        let bytes = self.partition.bytes as i64;
        Self {
            offset: (self.offset as i64 + offset).rem_euclid(bytes) as u64,
            ..self
        }
    }
}

/// The places of a sequential thread: chunks of a partition, which the threads that share it take in turn.
#[derive(Clone, Debug)]
struct Turns {
    /// Accesses of a chunk.
    chunk: u64,
    sharing: u64,
    turn: u64,
    /// Accesses done so far.
    done: u64,
}

impl Turns {
    fn new(group: &Group, sharing: u64, turn: u64) -> Self {
        Self {
            chunk: (group.chunk / group.steps[0].size).max(1),
            sharing,
            turn,
            done: 0,
        }
    }

    #[inline]
    fn next(&mut self, places: u64) -> u64 {
        let (chunk, within) = (self.done / self.chunk, self.done % self.chunk);
        self.done += 1;
        let chunk = u128::from(chunk) * u128::from(self.sharing) + u128::from(self.turn);
        ((chunk * u128::from(self.chunk) + u128::from(within)) % u128::from(places)) as u64
    }
}

/// Where the ranges of each group begin: those of the platform's memory one after the other from 0 on, those of the
/// volatile memory from [`VOLATILE`] on, or behind the others where there is no memory beside.
pub fn bases(groups: &[Group], has_volatile: bool) -> Vec<[u64; 2]> {
    let own: u64 = groups.iter().map(|group| group.range).sum();
    let mut next = [0, if has_volatile { VOLATILE } else { own }];
    let base = |group: &Group| {
        let base = next;
        next[0] += group.range;
        next[1] += group.volatile_range;
        base
    };
    groups.iter().map(base).collect()
}
