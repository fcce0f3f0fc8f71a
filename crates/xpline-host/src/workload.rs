//! Workloads: op chains of groups of threads, as kernels that go from place to place.
//!
//! The places are drawn before anything is measured, by the rules of the model's threads, and stand in a list, as in
//! PerMA-Bench: a Zipf distribution costs nothing then. A thread that comes to the end of its list begins it again.

use xpline_lattester::{Mode, Part, Point, Step as Chained, StepOp, Workload, workload_threads};

use crate::error::HostError;
use crate::kernel::{Fence, Kernel, LINE, Step, Touch, Walk};
use crate::options::Target;
use crate::plan::{Job, Judge, Plan, Thread};
use crate::stats::{Median, Samples};
use crate::tally::{self, MIB};
use crate::team::Work;

/// Places of a thread at most: 16 MiB of them, read one after the other.
const MOST_PLACES: u64 = 4 << 20;

/// Bytes that the places of a thread cover, if so many are enough for it: far more than caches hold.
const COVERED: u64 = 1 << 30;

/// Iterations from one that is timed to the next, at most: so many are made between two looks at whether to stop.
const MOST_UNTIMED: u64 = 1 << 20;

/// What a workload asks of the host, or why the host cannot do it.
pub fn plan(workload: &Workload, target: &Target) -> Result<Plan, HostError> {
    let sum = |of: fn(&xpline_lattester::Group) -> u64| workload.groups.iter().map(of).sum::<u64>();
    let (own, beside) = (sum(|group| group.range), sum(|group| group.volatile_range));
    if beside > 0 && !matches!(target, Target::Anonymous { .. }) {
        let problem = "volatile memory beside a file or a device is not measured; leave it out, or measure on host";
        return Err(HostError::option(format!("dram_memory_range = {beside}"), problem));
    }
    if let Some(group) = workload.groups.iter().find(|group| group.sample > MOST_UNTIMED) {
        let problem = format!("on the host, every {MOST_UNTIMED}th operation at least must be timed, or none (0)");
        return Err(HostError::option(
            format!("latency_sample_frequency = {}", group.sample),
            problem,
        ));
    }
    let memory = own + beside;
    let threads = workload.groups.iter().enumerate().flat_map(|(job, group)| {
        (0..group.threads).map(move |_| Thread {
            base: 0,
            span: memory,
            rng: 0,
            job,
        })
    });
    let jobs = workload.groups.iter().map(|group| {
        let body: Vec<Step> = (group.steps.iter())
            .flat_map(|step| steps(step, group.mode, places_of(&group.steps)))
            .collect();
        let kernel = match group.sample {
            0 => Kernel::untimed(Walk::Free, body),
            sample => Kernel::timed(Walk::Free, vec![Step::Repeat(sample - 1, body.clone())], body, vec![]),
        };
        let iterations = group.sample.max(1);
        Job {
            kernel,
            bytes: iterations * group.lines() * LINE,
            requests: iterations * group.lines(),
        }
    });
    Ok(Plan {
        jobs: jobs.collect(),
        threads: threads.collect(),
        memory,
        judged_by: Judge::Operations,
        chain: None,
    })
}

/// A read waits in a chain for the one before it; a write that is to last ends in an sfence.
fn steps(step: &Chained, mode: Mode, places: u64) -> Vec<Step> {
    let touches: &[Touch] = match step.op {
        StepOp::Load => &[Touch::Load],
        StepOp::Store => &[Touch::Store],
        StepOp::NtStore => &[Touch::NtStore],
        StepOp::StoreClwb => &[Touch::Store, Touch::Flush],
        StepOp::StoreClflushOpt => &[Touch::Store, Touch::Evict],
    };
    let waits = mode == Mode::Chain && step.op == StepOp::Load;
    let lasts = !matches!(step.op, StepOp::Load | StepOp::Store);
    let mut made = vec![Step::Goto(places)];
    made.extend(waits.then_some(Step::Fence(Fence::Lfence)));
    made.push(Step::lines(touches, step.size / LINE));
    made.extend(lasts.then_some(Step::Fence(Fence::Sfence)));
    made
}

/// How many places a list of whole iterations has.
fn places_of(steps: &[Chained]) -> u64 {
    let each = steps.len() as u64;
    let bytes: u64 = steps.iter().map(|step| step.size).sum();
    (COVERED / bytes).clamp(1, MOST_PLACES / each) * each
}

/// The list of each thread, in lines from the start of the memory. A write that would pass the end of its partition begins
/// sooner, so that it does not.
pub fn places(workload: &Workload, point: &Point) -> Vec<Vec<u32>> {
    let list = |thread: xpline_lattester::WorkloadThread| {
        let steps = &thread.group.steps;
        let mut places = thread.places();
        let one = |number: u64| {
            let step = number as usize % steps.len();
            let at = places.of(step);
            let offset = at.offset.min(at.partition.bytes - steps[step].size);
            ((at.partition.base + offset) / LINE) as u32
        };
        (0..places_of(steps)).map(one).collect()
    };
    workload_threads(workload, false, point.seed).map(list).collect()
}

/// What each group of a workload does, window by window.
pub struct Groups {
    groups: Vec<Group>,
    /// Iterations of all threads after which the run ends.
    most: u64,
}

struct Group {
    name: String,
    threads: u32,
    /// Iterations that a thread's access makes.
    iterations: u64,
    done: u64,
    bytes: u64,
    /// Of each window, per second.
    bandwidths: Vec<f64>,
    operations: Vec<f64>,
    samples: Samples,
}

impl Groups {
    pub fn new(workload: &Workload) -> Self {
        let group = |group: &xpline_lattester::Group| Group {
            name: group.name.clone(),
            threads: group.threads,
            iterations: group.sample.max(1),
            done: 0,
            bytes: 0,
            bandwidths: vec![],
            operations: vec![],
            samples: Samples::default(),
        };
        let operations = workload.groups.iter().map(|group| group.operations);
        Self {
            groups: workload.groups.iter().map(group).collect(),
            most: operations.fold(0, u64::saturating_add),
        }
    }

    /// Add what the threads did in a window, each access of them so many bytes.
    pub fn add(&mut self, work: &[Work], credits: &[(u64, u64)], seconds: impl Fn(u64) -> f64) {
        let mut threads = work.iter().zip(credits);
        for group in &mut self.groups {
            let (mut bandwidth, mut operations) = (0.0, 0.0);
            for (work, (bytes, _)) in threads.by_ref().take(group.threads as usize) {
                let (done, seconds) = (work.accesses * group.iterations, seconds(work.cycles));
                operations += done as f64 / seconds;
                bandwidth += (work.accesses * bytes) as f64 / MIB / seconds;
                group.done += done;
                group.bytes += work.accesses * bytes;
                work.samples.iter().for_each(|&sample| group.samples.add(sample));
            }
            group.operations.push(operations);
            group.bandwidths.push(bandwidth);
        }
    }

    /// Whether as many iterations are done as were asked for.
    pub fn are_done(&self) -> bool {
        self.groups.iter().map(|group| group.done).sum::<u64>() >= self.most
    }

    /// The medians of the windows, and the latencies of what was timed; `timer` cycles of each are the clock's.
    pub fn parts(&self, timer: u32) -> Vec<Part> {
        let part = |group: &Group| Part {
            name: group.name.clone(),
            threads: group.threads,
            bytes: group.bytes,
            bandwidth_mib_s: Median::of(&group.bandwidths).value,
            operations_s: Median::of(&group.operations).value,
            latencies: tally::latencies(&group.samples, timer),
        };
        self.groups.iter().map(part).collect()
    }
}
