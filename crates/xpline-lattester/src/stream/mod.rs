//! Op streams: what each thread of an experiment asks of memory, op by op, without end.

mod access;
mod chain;
mod flush;
mod mixing;
mod placed;
mod replacement;
mod rounds;
mod timed;
mod walk;

use xpline_model::platform::Memory;
use xpline_model::{Op, OpKind, Platform, Program, Time};

use crate::point::{self, Align, Binding, Experiment, Loaded, Pattern, Point};
use crate::rng::Rng;
use crate::samples::Samples;
use crate::workload::{Group, Workload};
use access::Accesses;
use flush::Flushing;
use mixing::{Mixing, Traffic};
use placed::{Placed, SHARED};
use rounds::Rounds;
use timed::Timed;

pub use chain::{Chain, Places};
pub use placed::placement;
pub use replacement::{Found, Probes};
pub use walk::Masked;
use walk::{Random, Stride};

/// Bytes of a cache line: every op of a bandwidth experiment moves one.
pub const LINE: u64 = 64;

/// Bytes that a thread works in: thread `i` at `i` times this.
pub const REGION: u64 = 2 << 30;

/// Bytes of the address space.
pub const SPACE: u64 = 128 << 30;

/// Bytes of an XPLine, where the platform has none.
const XPLINE: u64 = 256;

/// The op stream of one thread.
#[derive(Clone, Debug)]
pub enum Stream {
    Random(Accesses<Random>),
    Stride(Accesses<Stride>),
    Align(Accesses<Placed>),
    FlushSequential(Flushing<Stride>),
    FlushRandom(Flushing<Random>),
    TimedSequential(Timed<Stride>),
    TimedRandom(Timed<Random>),
    TimedMasked(Timed<Masked>),
    XpBuffer(Rounds),
    Replacement(Probes),
    Chain(Chain),
    MixSequential(Mixing<Stride>),
    MixRandom(Mixing<Random>),
}

/// The op streams of a point that [`Point::check`] lets pass, one a thread.
pub fn streams(platform: &Platform, point: &Point) -> Vec<Stream> {
    let experiment = &point.experiment;
    if let Experiment::Workload(workload) = experiment {
        return chains(platform, workload, point.seed);
    }
    (0..experiment.threads())
        .map(|thread| stream(platform, experiment, thread, Rng::new(point.seed, thread)))
        .collect()
}

fn stream(platform: &Platform, experiment: &Experiment, thread: u32, rng: Rng) -> Stream {
    let core = &platform.core;
    let base = u64::from(thread) * REGION;
    match experiment {
        &Experiment::Random(point::Random { op, size, .. }) => {
            let walk = Random::new(base, REGION, size, rng);
            Stream::Random(Accesses::new(walk, op, size, core))
        }
        Experiment::Stride(run) => {
            let walk = Stride::new(base, run.size, run.stride);
            Stream::Stride(Accesses::new(walk, run.op, run.size, core).fenced_each(run.fence))
        }
        Experiment::Align(align) => bound(platform, align, thread, rng),
        Experiment::Flush(flush) => match flush.pattern {
            Pattern::Sequential => {
                let walk = Stride::new(base, flush.size, flush.size);
                Stream::FlushSequential(Flushing::new(walk, flush, core))
            }
            Pattern::Random => {
                let walk = Random::new(base, REGION, flush.size, rng);
                Stream::FlushRandom(Flushing::new(walk, flush, core))
            }
        },
        &Experiment::Latency(point::Latency { op, pattern }) => match pattern {
            Pattern::Sequential => Stream::TimedSequential(Timed::single(Stride::new(base, LINE, LINE), op)),
            Pattern::Random => Stream::TimedRandom(Timed::single(Random::new(base, REGION, LINE, rng), op)),
        },
        &Experiment::PersistLatency(point::PersistLatency { op, size }) => {
            Stream::TimedSequential(Timed::persist(Stride::new(base, size, size), op, size))
        }
        Experiment::XpBuffer(xpbuffer) => Stream::XpBuffer(Rounds::new(xpbuffer.lines, line_bytes(platform))),
        &Experiment::Chase(point::Chase { region, mask, cached }) => {
            Stream::TimedMasked(Timed::chase(Masked::new(region, mask, rng), cached))
        }
        Experiment::Replacement(run) => match &platform.memory {
            Memory::Optane(optane) => Stream::Replacement(Probes::new(optane, run, rng)),
            _ => unreachable!("the check refuses platforms without the buffer"),
        },
        &Experiment::Wear(point::Wear { op, size }) => {
            Stream::TimedSequential(Timed::rewrite(Stride::ring(base, size, size), op, size))
        }
        &Experiment::Tail(point::Tail { op, region }) => {
            Stream::TimedSequential(Timed::rewrite(Stride::ring(base, LINE, region), op, LINE).in_histogram())
        }
        Experiment::Workload(_) => unreachable!("its threads differ: they come from chains"),
        &Experiment::Mix(point::Mix {
            mix: ratio,
            op,
            pattern,
            size,
            region,
            ..
        }) => {
            let traffic = Traffic {
                ratio,
                op,
                pattern,
                size,
                region,
                pause: 0,
            };
            mixing(base, &traffic, rng)
        }
        Experiment::Loaded(run) => loaded(platform, run, thread, base, rng),
    }
}

/// Reads in a buffer at the start of a thread's region, and writes in one at its middle.
///
/// Sequential threads begin anywhere: buffers lie wherever the operating system puts them, not all alike on the DIMMs.
fn mixing(base: u64, traffic: &Traffic, mut rng: Rng) -> Stream {
    let &Traffic {
        pattern, size, region, ..
    } = traffic;
    let written = base + REGION / 2;
    match pattern {
        Pattern::Sequential => {
            let [reads, writes] = [base, written].map(|base| Stride::ring(base, size, region).begun_anywhere(&mut rng));
            Stream::MixSequential(Mixing::new(reads, writes, traffic, rng))
        }
        Pattern::Random => {
            let [reads, writes] = [base, written].map(|base| Random::new(base, region, size, rng.clone()));
            Stream::MixRandom(Mixing::new(reads, writes, traffic, rng))
        }
    }
}

/// The first thread of a loaded memory is timed, the others make the traffic.
fn loaded(platform: &Platform, run: &Loaded, thread: u32, base: u64, rng: Rng) -> Stream {
    let &Loaded { pattern, region, .. } = run;
    if thread > 0 {
        let traffic = Traffic {
            ratio: run.mix,
            op: run.op,
            pattern,
            size: LINE,
            region,
            pause: (run.delay as f64 * 1e3 / platform.core.clock) as Time,
        };
        return mixing(base, &traffic, rng);
    }
    let load = point::Op::Load;
    match pattern {
        Pattern::Sequential => Stream::TimedSequential(Timed::single(Stride::ring(base, LINE, region), load)),
        Pattern::Random => Stream::TimedRandom(Timed::single(Random::new(base, region, LINE, rng), load)),
    }
}

/// The streams of a workload, group by group.
fn chains(platform: &Platform, workload: &Workload, seed: u64) -> Vec<Stream> {
    let has_volatile = platform.volatile.platform.is_some();
    let stream = |thread: WorkloadThread| {
        let WorkloadThread {
            group,
            number,
            bases,
            rng,
        } = thread;
        Stream::Chain(Chain::new(group, number, bases, rng, &platform.core))
    };
    workload_threads(workload, has_volatile, seed).map(stream).collect()
}

/// A thread of a workload: its group, its number there, where the ranges of the group begin, and its random numbers.
pub struct WorkloadThread<'a> {
    pub group: &'a Group,
    pub number: u32,
    pub bases: [u64; 2],
    pub rng: Rng,
}

impl WorkloadThread<'_> {
    /// Where its steps go.
    pub fn places(&self) -> Places {
        Places::new(self.group, self.number, self.bases, self.rng.clone())
    }
}

/// The threads of a workload, group by group.
pub fn workload_threads(
    workload: &Workload,
    has_volatile: bool,
    seed: u64,
) -> impl Iterator<Item = WorkloadThread<'_>> {
    let bases = chain::bases(&workload.groups, has_volatile);
    let threads = workload
        .groups
        .iter()
        .zip(bases)
        .flat_map(|(group, bases)| (0..group.threads).map(move |number| (group, number, bases)));
    (0..)
        .zip(threads)
        .map(move |(thread, (group, number, bases))| WorkloadThread {
            group,
            number,
            bases,
            rng: Rng::new(seed, thread),
        })
}

/// The stream of a thread bound to DIMMs, or free to touch the whole of its buffer.
fn bound(platform: &Platform, align: &Align, thread: u32, rng: Rng) -> Stream {
    let &Align {
        op,
        size,
        binding,
        fence,
        fenced,
        ..
    } = align;
    if let Some(placement) = placement(platform, align, thread) {
        let walk = Placed::new(placement, size, rng);
        let accesses = Accesses::new(walk, op, size, &platform.core).made_in(platform.core.align_time);
        return Stream::Align(if fenced {
            accesses.one_at_a_time()
        } else {
            accesses.fenced_each(fence)
        });
    }
    let (base, bytes) = if binding == Binding::SharedAll {
        (0, SHARED)
    } else {
        (u64::from(thread) * REGION, REGION)
    };
    let walk = Random::new(base, bytes, size, rng);
    let accesses = Accesses::new(walk, op, size, &platform.core).made_in(platform.core.align_time);
    Stream::Random(if fenced {
        accesses.one_at_a_time()
    } else {
        accesses.fenced_each(fence)
    })
}

/// Bytes of the lines that the half-line rounds write.
pub fn line_bytes(platform: &Platform) -> u64 {
    platform.memory.optane().map_or(XPLINE, |optane| optane.xpbuffer.line)
}

impl Stream {
    /// Begin, or cease, to touch each line once only, in the order of the experiment, to bring the caches to where it leaves them.
    pub fn set_warming(&mut self, warming: bool) {
        match self {
            Self::Random(accesses) => accesses.set_warming(warming),
            Self::Stride(accesses) => accesses.set_warming(warming),
            Self::Align(accesses) => accesses.set_warming(warming),
            Self::Chain(chain) => chain.set_warming(warming),
            Self::TimedSequential(timed) => timed.restart(),
            Self::TimedRandom(timed) => timed.restart(),
            _ => {}
        }
    }

    /// Latencies measured so far; `None` where the experiment times no single access.
    pub fn samples(&self) -> Option<&Samples> {
        match self {
            Self::TimedSequential(timed) => Some(timed.samples()),
            Self::TimedRandom(timed) => Some(timed.samples()),
            Self::TimedMasked(timed) => Some(timed.samples()),
            Self::Replacement(probes) => Some(probes.samples()),
            _ => None,
        }
    }

    /// Statistics of latencies begin anew.
    pub fn forget_samples(&mut self) {
        match self {
            Self::TimedSequential(timed) => timed.samples_mut().forget(),
            Self::TimedRandom(timed) => timed.samples_mut().forget(),
            Self::TimedMasked(timed) => timed.samples_mut().forget(),
            Self::Replacement(probes) => probes.samples_mut().forget(),
            _ => {}
        }
    }

    /// The thread of a workload.
    pub fn chain(&self) -> Option<&Chain> {
        match self {
            Self::Chain(chain) => Some(chain),
            _ => None,
        }
    }

    /// What replacement probes have found so far; `None` where nothing is probed.
    pub fn found(&self) -> Option<Found> {
        match self {
            Self::Replacement(probes) => Some(probes.found()),
            _ => None,
        }
    }
}

impl AsRef<Self> for Stream {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsMut<Self> for Stream {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Program for Stream {
    #[inline]
    fn next_op(&mut self) -> Option<Op> {
        Some(match self {
            Self::Random(accesses) => accesses.next(),
            Self::Stride(accesses) => accesses.next(),
            Self::Align(accesses) => accesses.next(),
            Self::FlushSequential(flushing) => flushing.next(),
            Self::FlushRandom(flushing) => flushing.next(),
            Self::TimedSequential(timed) => timed.next(),
            Self::TimedRandom(timed) => timed.next(),
            Self::TimedMasked(timed) => timed.next(),
            Self::Replacement(probes) => probes.next(),
            Self::XpBuffer(rounds) => rounds.next(),
            Self::Chain(chain) => chain.next(),
            Self::MixSequential(mixing) => mixing.next(),
            Self::MixRandom(mixing) => mixing.next(),
        })
    }

    #[inline]
    fn foretell(&mut self, name: impl FnMut(u64)) {
        match self {
            Self::Random(accesses) => accesses.foretell(name),
            Self::Stride(accesses) => accesses.foretell(name),
            Self::Align(accesses) => accesses.foretell(name),
            _ => {}
        }
    }

    fn stamp(&mut self, now: Time) {
        match self {
            Self::TimedSequential(timed) => timed.stamp(now),
            Self::TimedRandom(timed) => timed.stamp(now),
            Self::TimedMasked(timed) => timed.stamp(now),
            Self::Replacement(probes) => probes.stamp(now),
            Self::Chain(chain) => chain.stamp(now),
            _ => unreachable!("only timed streams read the clock"),
        }
    }
}

/// What a thread does before an access: it makes the address, in so many instructions.
const fn address_generation(instructions: u32) -> Op {
    Op::new(OpKind::Compute, 0, instructions)
}

/// An op on a whole cache line.
const fn line(kind: OpKind, addr: u64) -> Op {
    Op::new(kind, addr, LINE as u32)
}

const fn fence(kind: OpKind) -> Op {
    Op::new(kind, 0, 0)
}
