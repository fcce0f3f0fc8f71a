//! Points on the memory of the host, one after the other: only one thing is measured at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use xpline_lattester::{Experiment, Point, PointError, Settings, read_points};
use xpline_model::Platform;

use crate::block::{Device, Reader, Transfers};
use crate::clock::Clock;
use crate::counters::{Counted, MemoryControllers};
use crate::cpu;
use crate::environment::Environment;
use crate::error::HostError;
use crate::kernel::{Code, Isa};
use crate::memory::Mapping;
use crate::native::{self, Native};
use crate::options::{Options, Target};
use crate::plan::{self, Job, Judge, Plan, Thread};
use crate::row::{self, Mean, Row};
use crate::stats::LEAST_REPEATS;
use crate::tally::Tally;
use crate::team::{self, Next};
use crate::workload::{self, Groups};

/// A target with everything that was asked of it found possible; nothing is touched yet.
pub struct Host {
    target: Target,
    options: Options,
    isa: Isa,
    cpus: Vec<u32>,
}

impl Host {
    /// # Errors
    ///
    /// Where an option is out of range, or names what this machine does not have.
    pub fn new(target: &str, options: Options) -> Result<Self, HostError> {
        options.check()?;
        let isa = Isa::choose(options.isa)?;
        Ok(Self {
            target: target.parse()?,
            cpus: cpu::choose(&options.cpus, options.cpu_node)?,
            options,
            isa,
        })
    }

    /// CPUs that threads can be pinned to.
    pub fn cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// Read points and find out whether they can run here.
    ///
    /// # Errors
    ///
    /// The first point that cannot, and why.
    pub fn read_points(&self, texts: &[impl AsRef<str>]) -> Result<Vec<Point>, HostError> {
        let points = read_points(&self.stand_in(), texts)?;
        for (index, point) in points.iter().enumerate() {
            self.check(point).map_err(|error| match (error, texts.len()) {
                (HostError::Point(error), 2..) => HostError::Point(PointError::At {
                    index,
                    error: Box::new(error),
                }),
                (error, _) => error,
            })?;
        }
        Ok(points)
    }

    fn check(&self, point: &Point) -> Result<(), HostError> {
        if let Some(limit) = point.max_requests {
            let problem = "is for models; on the host, precision and time limit say how long a point runs";
            return Err(HostError::option(format!("max_requests = {limit}"), problem));
        }
        match &self.target {
            Target::Block(_) => Transfers::of(point).map(drop),
            _ => {
                let plan = plan::plan(point, &self.target, &self.options)?;
                let mut kernels = plan.jobs.iter().map(|job| &job.kernel);
                Ok(kernels.try_for_each(|kernel| kernel.check_instructions(self.options.flush))?)
            }
        }
    }

    /// A platform with the name and the CPUs of the host, so that its points are checked as those of a model are.
    fn stand_in(&self) -> Platform {
        let mut platform = Platform::builtin("dram").expect("it is built in");
        platform.name = self.target.to_string();
        platform.core.count = self.cpus();
        (platform.interleave.granularity, platform.interleave.dimms) = (self.options.chunk, self.options.dimms.max(1));
        platform
    }

    /// Measure points that [`Host::read_points`] gave; a row each, in order. `None` if `stop` was set meanwhile.
    ///
    /// `on_done` is called with the index and the row of each as it completes.
    ///
    /// # Errors
    ///
    /// Where there is not enough memory or space, or the target fails while it is measured.
    pub fn run(
        &self,
        points: &[Point],
        stop: &AtomicBool,
        mut on_done: impl FnMut(usize, &Row),
    ) -> Result<Option<Vec<Row>>, HostError> {
        let environment: Arc<str> = Environment::read().to_json().into();
        let mut rows = Vec::with_capacity(points.len());
        match &self.target {
            Target::Block(path) => {
                let threads = points.iter().map(|point| point.experiment.threads()).max().unwrap_or(0);
                let length = u64::from(threads) * self.options.span;
                let Some(device) = Device::new(path, length, &self.options, stop)? else {
                    return Ok(None);
                };
                for (index, point) in points.iter().enumerate() {
                    let row = self.transfer(&device, point, &environment, stop)?;
                    if !keep(&mut rows, row, index, &mut on_done) {
                        return Ok(None);
                    }
                }
            }
            _ => {
                let plans = points
                    .iter()
                    .map(|point| plan::plan(point, &self.target, &self.options));
                let plans: Vec<Plan> = plans.collect::<Result<_, _>>()?;
                let Some(length) = plans.iter().map(|plan| plan.memory).max() else {
                    return Ok(Some(rows));
                };
                let Some(mapping) = Mapping::new(&self.target, length, &self.options, stop)? else {
                    return Ok(None);
                };
                let timer = native::timer_overhead(&mapping, self.isa)?;
                for (index, (point, plan)) in points.iter().zip(&plans).enumerate() {
                    let row = self.touch(&mapping, timer, point, plan, &environment, stop)?;
                    if !keep(&mut rows, row, index, &mut on_done) {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(rows))
    }

    /// Measure a point on mapped memory.
    fn touch(
        &self,
        mapping: &Mapping,
        timer: u32,
        point: &Point,
        plan: &Plan,
        environment: &Arc<str>,
        stop: &AtomicBool,
    ) -> Result<Option<Row>, HostError> {
        let code = |job: &Job| Ok(Arc::new(native::code(&job.kernel, self.isa, self.options.flush)?));
        let codes: Vec<Arc<Code>> = plan.jobs.iter().map(code).collect::<Result<_, HostError>>()?;
        let mut places = match &point.experiment {
            Experiment::Workload(asked) => workload::places(asked, point).into_iter(),
            _ => vec![].into_iter(),
        };
        let worker = |thread: &Thread| {
            let mut worker = Native::new(&codes[thread.job], &plan.jobs[thread.job].kernel, thread, mapping);
            if let Some(lines) = plan.chain {
                worker.link(&plan::chain(lines, point.seed));
            }
            if let Some(places) = places.next() {
                worker.go_to(places);
            }
            worker
        };
        let workers = plan.threads.iter().map(worker).collect();
        let credits = plan.threads.iter().map(|thread| &plan.jobs[thread.job]);
        let credits = credits.map(|job| (job.bytes, job.requests)).collect();
        let mut tally = Tally::new(plan.judged_by, credits, timer);
        if let Experiment::Workload(asked) = &point.experiment {
            tally = tally.of_groups(Groups::new(asked));
        }
        let flushes = plan.jobs.iter().any(|job| job.kernel.flushes());
        let huge = mapping.huge.map(|huge| huge as f64 / mapping.length() as f64);
        let row = self.repeat(workers, tally, point, environment, stop)?;
        Ok(row.map(|row| Row {
            isa: self.isa.name(),
            flush_by: flushes.then(|| self.options.flush.name()),
            pages: matches!(self.target, Target::Anonymous { .. }).then(|| self.options.pages.name()),
            huge_share: huge,
            mapping: mapping.how,
            ..row
        }))
    }

    /// Measure a point on a device that is read and written.
    fn transfer(
        &self,
        device: &Device,
        point: &Point,
        environment: &Arc<str>,
        stop: &AtomicBool,
    ) -> Result<Option<Row>, HostError> {
        let transfers = Transfers::of(point)?;
        let reader = |number: u32| {
            let thread = Thread {
                base: u64::from(number) * self.options.span,
                span: self.options.span,
                rng: 0,
                job: 0,
            };
            Reader::new(device, &self.target, transfers, thread, number, point.seed)
        };
        let threads = point.experiment.threads();
        let workers = (0..threads).map(reader).collect();
        let tally = Tally::new(transfers.judged_by, vec![(transfers.size, 1); threads as usize], 0);
        let row = self.repeat(workers, tally, point, environment, stop)?;
        Ok(row.map(|row| Row {
            isa: "none",
            mapping: "O_DIRECT",
            ..row
        }))
    }

    /// Window after window, until the median is known well enough or time is up.
    fn repeat<W: team::Worker>(
        &self,
        workers: Vec<W>,
        mut tally: Tally,
        point: &Point,
        environment: &Arc<str>,
        stop: &AtomicBool,
    ) -> Result<Option<Row>, HostError> {
        let cpus = &self.cpus[..workers.len()];
        let (begun, stolen_before) = (Instant::now(), cpu::stolen(cpus));
        let mut controllers = MemoryControllers::open();
        let counted_before = controllers.read();
        let mut settled = false;
        team::run(workers, cpus, self.options.window, stop, |work| {
            tally.add(work);
            let enough = tally.repeats() >= LEAST_REPEATS && tally.samples_suffice();
            settled = enough && tally.median().precision() <= self.options.precision;
            let is_over = begun.elapsed().as_secs_f64() >= self.options.time_limit && tally.repeats() >= 2;
            Ok(if settled || is_over || tally.is_done() {
                Next::Enough
            } else {
                Next::Window
            })
        })?;
        if stop.load(std::sync::atomic::Ordering::Relaxed) || tally.repeats() == 0 {
            return Ok(None);
        }
        let counted_after = controllers.read();
        let stolen = (cpu::stolen(cpus) - stolen_before).max(0.0) / begun.elapsed().as_secs_f64() / cpus.len() as f64;
        let median = tally.median();
        let clock = Clock::get();
        let doubts = [
            (clock.invariant, "the TSC is not invariant"),
            (clock.steady, "the TSC and the clock disagree"),
        ];
        let doubts: Vec<&str> = doubts
            .iter()
            .filter(|(fine, _)| !fine)
            .map(|&(_, doubt)| doubt)
            .collect();
        let unmet = (!settled).then(|| median.precision());
        let mean = || Mean {
            latency_mean_ns: median.value,
        };
        let parts = tally.parts();
        let between = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        let misses = tally.cache_misses();
        Ok(Some(Row {
            settings: Settings::new(&self.target.to_string(), point),
            bandwidth_mib_s: tally.bandwidth(),
            bytes: tally.bytes(),
            time_ns: tally.time_ns(),
            operations_s: (!parts.is_empty()).then(|| parts.iter().map(|part| part.operations_s).sum()),
            latencies: tally.latencies(),
            mean: (tally.judge() == Judge::Chain).then(mean),
            stalls: tally.stalls(),
            requests: tally.requests(),
            settled,
            counted: Counted {
                cache_misses: misses,
                imc_read_bytes: between(counted_before.0, counted_after.0),
                imc_written_bytes: between(counted_before.1, counted_after.1),
            },
            ci_low: median.low,
            ci_high: median.high,
            precision: median.precision(),
            repeats: tally.repeats() as u64,
            outliers: median.outliers as u64,
            isa: "",
            flush_by: None,
            pages: None,
            huge_share: None,
            mapping: "",
            cpus: cpu::ranges(cpus),
            page_faults: tally.disturbance().page_faults,
            context_switches: tally.disturbance().context_switches,
            migrations: tally.disturbance().migrations,
            timer_ns: tally.timer_ns(),
            noise: row::noise(tally.disturbance(), unmet, stolen, &doubts),
            environment: environment.clone(),
            source: "host",
            parts,
        }))
    }
}

/// Keep a row and tell about it; false where there is none.
fn keep(rows: &mut Vec<Row>, row: Option<Row>, index: usize, on_done: &mut impl FnMut(usize, &Row)) -> bool {
    let Some(row) = row else { return false };
    on_done(index, &row);
    rows.push(row);
    true
}
