//! From a point to what each thread does: a kernel, where it works, and what an access moves.

use xpline_lattester::{Align, Binding, Experiment, Op, Pattern, Point, Rng};

use crate::error::HostError;
use crate::kernel::{Fence, Kernel, LINE, Placed, Step, Touch, Walk};
use crate::options::{Options, Target};

/// Bytes of a line of the half-line rounds: an XPLine.
const XPLINE: u64 = 256;

/// Between two half-line rounds: some 10 us.
const PAUSE: u64 = 30_000;

/// What a point asks of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub kernel: Kernel,
    pub threads: Vec<Thread>,
    /// Bytes of memory that all threads need together.
    pub memory: u64,
    /// Bytes that an access loads and stores, and the requests of 64 B or less that it makes.
    pub bytes: u64,
    pub requests: u64,
    pub judged_by: Judge,
    /// Lines of the region that hold a closed chain of pointers.
    pub chain: Option<u64>,
}

/// Where a thread works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Offset of its memory.
    pub base: u64,
    /// Its share of that memory, or all where it is shared.
    pub span: u64,
    /// Where its random numbers start.
    pub rng: u64,
}

/// What a point is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// MiB a second.
    Bandwidth,
    /// The mean of the accesses, each timed.
    Latency,
    /// The same, and the accesses that take over ten times the median.
    Stalls,
    /// The time of all accesses over their number: each waits for the one before.
    Chain,
}

/// What a point asks of the host, or why the host cannot do it.
pub fn plan(point: &Point, target: &Target, options: &Options) -> Result<Plan, HostError> {
    let span = options.span;
    let fits = |parameter: &str, bytes: u64| {
        if bytes <= span {
            return Ok(());
        }
        let problem = format!("does not fit in the {span} bytes that a thread works in; raise --span");
        Err(HostError::option(format!("{parameter} = {bytes}"), problem))
    };
    let shared = matches!(&point.experiment, Experiment::Align(align) if shares(align.binding));
    let threads = (0..point.experiment.threads()).map(|thread| Thread {
        base: if shared { 0 } else { u64::from(thread) * span },
        span,
        rng: Rng::new(point.seed, thread).state(),
    });
    let threads: Vec<Thread> = threads.collect();
    let plan = |kernel: Kernel, bytes: u64, judged_by: Judge| Plan {
        memory: if shared { span } else { span * threads.len() as u64 },
        threads: threads.clone(),
        requests: (bytes / LINE).max(1),
        kernel,
        bytes,
        judged_by,
        chain: None,
    };
    let random = |size: u64| Walk::Random {
        places: span / size,
        size,
    };
    Ok(match &point.experiment {
        Experiment::Random(random_access) => {
            let size = random_access.size;
            fits("size", size)?;
            let body = access(random_access.op, size, 0);
            plan(Kernel::untimed(random(size), body), size, Judge::Bandwidth)
        }
        Experiment::Stride(stride) => {
            fits("size", stride.size)?;
            let walk = ring(
                stride.stride,
                (span - stride.size).checked_div(stride.stride).unwrap_or(0),
            );
            let body = access(stride.op, stride.size, stride.fence);
            plan(Kernel::untimed(walk, body), stride.size, Judge::Bandwidth)
        }
        Experiment::Flush(flush) => {
            fits("size", flush.size)?;
            let walk = match flush.pattern {
                Pattern::Sequential => ring(flush.size, (span - flush.size) / flush.size),
                Pattern::Random => random(flush.size),
            };
            let interval = vec![
                Step::lines(&[Touch::Store], flush.clwb / LINE),
                Step::Move(-(flush.clwb as i64)),
                Step::lines(&[Touch::Flush], flush.clwb / LINE),
            ];
            let fenced = vec![
                Step::Repeat(flush.fence / flush.clwb, interval),
                Step::Fence(Fence::Sfence),
            ];
            let body = vec![Step::Repeat(flush.size / flush.fence, fenced)];
            plan(Kernel::untimed(walk, body), flush.size, Judge::Bandwidth)
        }
        Experiment::Align(align) => {
            fits("size", align.size)?;
            let body = match (align.fenced, align.fence) {
                (true, _) => {
                    let mut body = access(align.op, align.size, 0);
                    body.push(Step::Fence(Fence::Mfence));
                    body
                }
                (false, fence) => access(align.op, align.size, fence),
            };
            let walk = match align.binding {
                Binding::SharedAll | Binding::OwnAll => random(align.size),
                _ => return bound(align, point, target, options, body),
            };
            plan(Kernel::untimed(walk, body), align.size, Judge::Bandwidth)
        }
        Experiment::Latency(latency) => {
            let walk = match latency.pattern {
                Pattern::Sequential => ring(LINE, (span - LINE) / LINE),
                Pattern::Random => random(LINE),
            };
            let (before, body) = match latency.op {
                Op::Load => (vec![], vec![Step::lines(&[Touch::LoadWord], 1)]),
                op => {
                    let word = if op == Op::NtStore {
                        Touch::NtStoreWord
                    } else {
                        Touch::StoreWord
                    };
                    let flush = (op == Op::StoreClwb).then_some(Touch::Flush);
                    let touches: Vec<Touch> = [word].into_iter().chain(flush).collect();
                    (
                        preload(LINE),
                        vec![Step::lines(&touches, 1), Step::Fence(Fence::Mfence)],
                    )
                }
            };
            plan(Kernel::timed(walk, before, body, vec![]), 8, Judge::Latency)
        }
        Experiment::PersistLatency(persist) => {
            fits("size", persist.size)?;
            let walk = ring(persist.size, (span - persist.size) / persist.size);
            let kernel = Kernel::timed(walk, preload(persist.size), persisted(persist.op, persist.size), vec![]);
            plan(kernel, persist.size, Judge::Latency)
        }
        Experiment::XpBuffer(rounds) => {
            fits("lines", rounds.lines * XPLINE)?;
            let half = || {
                let write = Step::lines(&[Touch::NtStore], XPLINE / 2 / LINE);
                Step::Repeat(rounds.lines, vec![write, Step::Move(XPLINE as i64 / 2)])
            };
            let back = Step::Move(XPLINE as i64 / 2 - (rounds.lines * XPLINE) as i64);
            let body = vec![half(), back, half(), Step::Spin(PAUSE)];
            plan(
                Kernel::untimed(ring(0, 0), body),
                rounds.lines * XPLINE,
                Judge::Bandwidth,
            )
        }
        Experiment::Chase(chase) if chase.cached => {
            let reach = chase.mask | (chase.region - 1);
            fits("region", reach + 1)?;
            if chase.mask != 0 {
                let problem = "loads that stay in the caches take no mask on the host; leave it at 0";
                return Err(HostError::option(format!("mask = {}", chase.mask), problem));
            }
            Plan {
                chain: Some(chase.region / LINE),
                requests: 1,
                ..plan(Kernel::untimed(Walk::Chain, vec![]), LINE, Judge::Chain)
            }
        }
        Experiment::Chase(chase) => {
            fits("region", chase.region)?;
            fits("mask", chase.mask)?;
            let walk = Walk::Masked {
                lines: chase.region / LINE,
                mask: chase.mask,
            };
            let fence = Step::Fence(Fence::Mfence);
            let back = Step::Move(-(LINE as i64));
            let load = Step::lines(&[Touch::LoadWord], 1);
            let evict = Step::lines(&[Touch::Evict], 1);
            let body = vec![load, fence.clone(), back, evict, fence];
            plan(Kernel::timed(walk, vec![], body, vec![]), LINE, Judge::Latency)
        }
        Experiment::Wear(wear) => {
            fits("size", wear.size)?;
            let kernel = Kernel::timed(ring(0, 0), vec![], persisted(wear.op, wear.size), vec![]);
            plan(kernel, wear.size, Judge::Stalls)
        }
        Experiment::Tail(tail) => {
            fits("region", tail.region)?;
            let walk = ring(LINE, tail.region / LINE - 1);
            plan(
                Kernel::timed(walk, vec![], persisted(tail.op, LINE), vec![]),
                LINE,
                Judge::Stalls,
            )
        }
        other => {
            let problem = "looks inside a DIMM of the model and is not measured on the host";
            return Err(HostError::option(format!("experiment = {}", other.name()), problem));
        }
    })
}

/// Places `stride` apart, so many steps on from the first.
fn ring(stride: u64, steps: u64) -> Walk {
    Walk::Ring {
        stride,
        last: steps * stride,
    }
}

fn touches(op: Op) -> &'static [Touch] {
    match op {
        Op::Load => &[Touch::Load],
        Op::NtStore => &[Touch::NtStore],
        Op::Store => &[Touch::Store],
        Op::StoreClwb => &[Touch::Store, Touch::Flush],
    }
}

/// `size` bytes in ascending order, with a fence after each `fence` bytes (0: none): for loads an mfence.
fn access(op: Op, size: u64, fence: u64) -> Vec<Step> {
    if fence == 0 {
        return vec![Step::lines(touches(op), size / LINE)];
    }
    let kind = if op == Op::Load { Fence::Mfence } else { Fence::Sfence };
    vec![Step::Repeat(
        size / fence,
        vec![Step::lines(touches(op), fence / LINE), Step::Fence(kind)],
    )]
}

/// Bring lines into the cache, and the pointer back to the first.
fn preload(bytes: u64) -> Vec<Step> {
    vec![
        Step::lines(&[Touch::Load], bytes / LINE),
        Step::Move(-(bytes as i64)),
        Step::Fence(Fence::Mfence),
    ]
}

/// Writes and the sfence that makes them persistent; an mfence after it, because a reading of the clock waits for no store.
fn persisted(op: Op, size: u64) -> Vec<Step> {
    vec![
        Step::lines(touches(op), size / LINE),
        Step::Fence(Fence::Sfence),
        Step::Fence(Fence::Mfence),
    ]
}

fn shares(binding: Binding) -> bool {
    matches!(binding, Binding::SharedAll | Binding::SharedImc | Binding::NiSharedAll)
}

/// Threads that touch some of the DIMMs only: where the DIMM of each address is known.
fn bound(
    align: &Align,
    _point: &Point,
    target: &Target,
    options: &Options,
    body: Vec<Step>,
) -> Result<Plan, HostError> {
    let _ = (align, target, options, body);
    Err(HostError::option(
        "binding",
        "the DIMM of an address is known on a device-DAX target with --dimms only",
    ))
}

/// Lines of a region in one closed chain, in random order: the byte offset that follows each line.
pub fn chain(lines: u64, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed, 0);
    let mut order: Vec<u64> = (0..lines).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    let mut next = vec![0; lines as usize];
    for (place, &line) in order.iter().enumerate() {
        next[line as usize] = order[(place + 1) % order.len()] * LINE;
    }
    next
}

#[allow(dead_code)]
fn placed(_: Placed) {}
