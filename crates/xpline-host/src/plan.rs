//! From a point to what each thread does: a kernel, where it works, and what an access moves.

use xpline_lattester::{Align, Binding, Experiment, Loaded, Op, Pattern, Point, Ratio, Rng};

use crate::error::HostError;
use crate::kernel::{Fence, Kernel, LINE, Placed, Step, Touch, Turns, Walk};
use crate::options::{Options, Target};
use crate::workload;

/// Bytes of a line of the half-line rounds: an XPLine.
const XPLINE: u64 = 256;

/// Between two half-line rounds: some 10 us.
const PAUSE: u64 = 30_000;

/// What a point asks of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What threads do, and which thread does what.
    pub jobs: Vec<Job>,
    pub threads: Vec<Thread>,
    /// Bytes of memory that all threads need together.
    pub memory: u64,
    pub judged_by: Judge,
    /// Lines of the region that hold a closed chain of pointers.
    pub chain: Option<u64>,
}

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub kernel: Kernel,
    /// Bytes that a turn of the kernel's loop is credited with, and the requests of 64 B or less that it makes.
    pub bytes: u64,
    pub requests: u64,
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
    /// Its job, by number.
    pub job: usize,
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
    /// The mean of the accesses of the first thread, each timed, and the bandwidth of the others.
    Loaded,
    /// MiB a second, and what each group of a workload does.
    Operations,
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
        job: 0,
    });
    let threads: Vec<Thread> = threads.collect();
    let plan = |kernel: Kernel, bytes: u64, judged_by: Judge| Plan {
        memory: if shared { span } else { span * threads.len() as u64 },
        threads: threads.clone(),
        jobs: vec![Job {
            kernel,
            bytes,
            requests: (bytes / LINE).max(1),
        }],
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
            let mut plan = plan(Kernel::untimed(random(align.size), body), align.size, Judge::Bandwidth);
            if !matches!(align.binding, Binding::SharedAll | Binding::OwnAll) {
                // A kernel a thread: each knows its DIMM.
                let job = plan.jobs.remove(0);
                for (number, thread) in plan.threads.iter_mut().enumerate() {
                    let mut job = job.clone();
                    job.kernel.walk = own_dimm(align, target, options, plan.memory, number as u64)?;
                    plan.jobs.push(job);
                    (thread.base, thread.span, thread.job) = (0, plan.memory, number);
                }
            }
            plan
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
        Experiment::Mix(mix) => {
            let (kernel, bytes) = mixing(mix.mix, mix.op, mix.pattern, mix.size, mix.region, 0, span)?;
            plan(kernel, bytes, Judge::Bandwidth)
        }
        Experiment::Loaded(loaded) => {
            let Loaded {
                mix,
                op,
                pattern,
                delay,
                region,
                ..
            } = *loaded;
            let (traffic, bytes) = mixing(mix, op, pattern, LINE, region, delay, span)?;
            let walk = match pattern {
                Pattern::Sequential => ring(LINE, region / LINE - 1),
                Pattern::Random => Walk::Random {
                    places: region / LINE,
                    size: LINE,
                },
            };
            let load = Kernel::timed(walk, vec![], vec![Step::lines(&[Touch::LoadWord], 1)], vec![]);
            let mut plan = plan(load, LINE, Judge::Loaded);
            plan.jobs.push(Job {
                requests: (bytes / LINE).max(1),
                kernel: traffic,
                bytes,
            });
            plan.threads.iter_mut().skip(1).for_each(|thread| thread.job = 1);
            plan
        }
        Experiment::Workload(asked) => workload::plan(asked, target)?,
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

/// Reads in a buffer at the start of a thread's memory, and writes in one at its middle, in a ratio; a spin of so many
/// cycles after each line. What a turn moves between caches and memory: a line stored to through the caches is read, too.
fn mixing(
    ratio: Ratio,
    op: Op,
    pattern: Pattern,
    size: u64,
    region: u64,
    delay: u64,
    span: u64,
) -> Result<(Kernel, u64), HostError> {
    if 2 * region > span {
        let problem = format!("two buffers of it do not fit in the {span} bytes that a thread works in; raise --span");
        return Err(HostError::option(format!("region = {region}"), problem));
    }
    let walk = match pattern {
        Pattern::Sequential => ring(size, region / size - 1),
        Pattern::Random => Walk::Random {
            places: region / size,
            size,
        },
    };
    let body = |op: Op| match delay {
        0 => vec![Step::lines(touches(op), size / LINE)],
        delay => vec![Step::Repeat(
            size / LINE,
            vec![Step::lines(touches(op), 1), Step::Spin(delay)],
        )],
    };
    let (loads, stores) = (u64::from(ratio.loads(op)), u64::from(ratio.writes));
    let turns = Turns {
        first: loads,
        second: stores,
        walk: walk.clone(),
        base: span / 2,
        body: body(op),
    };
    let kernel = Kernel {
        turns: Some(turns),
        ..Kernel::untimed(walk, body(Op::Load))
    };
    let lines_of_store = if op == Op::NtStore { 1 } else { 2 };
    Ok((kernel, size * (loads + stores * lines_of_store)))
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

/// Threads that touch one DIMM each, where the DIMM of an address is known: on a device that is interleaved as the options say.
fn own_dimm(align: &Align, target: &Target, options: &Options, total: u64, thread: u64) -> Result<Walk, HostError> {
    let what = "binding";
    if align.binding != Binding::OwnDimm {
        return Err(HostError::option(
            what,
            "on the host, one of own-all, shared-all and, on host:dax targets, own-dimm",
        ));
    }
    if !matches!(target, Target::Dax(_)) || options.dimms == 0 {
        let problem =
            "own-dimm needs to know the DIMM of each address: use a host:dax target and give --dimms and --chunk";
        return Err(HostError::option(what, problem));
    }
    let (chunk, dimms) = (options.chunk, u64::from(options.dimms));
    let own = options.span / (chunk * dimms) * chunk;
    if own < align.size || !chunk.is_multiple_of(align.size) || (thread + 1) * own * dimms > total {
        let problem =
            format!("must divide the {chunk} bytes of a chunk and fit in a thread's share of a DIMM, {own} bytes");
        return Err(HostError::option(format!("size = {}", align.size), problem));
    }
    Ok(Walk::Placed(Placed {
        chunk,
        dimms,
        first: thread % dimms,
        step: 1,
        choices: 1,
        base: thread * own,
        places: own / align.size,
        size: align.size,
    }))
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
