//! Threads that start together, each on a CPU of its own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::clock::{self, Clock};
use crate::counters::CacheMisses;
use crate::cpu;
use crate::error::HostError;

/// How long a batch of accesses should take, in seconds: so often a thread looks at the clock, and whether to stop.
const BATCH: f64 = 0.0005;

/// How far ahead the start of a window is set, in seconds, so that every thread is there.
const AHEAD: f64 = 0.000_02;

/// How long a thread works before its first window at least, in seconds: caches fill, and clocks rise.
const WARM_UP: f64 = 0.02;

/// What a thread does.
pub trait Worker: Send {
    /// Make so many accesses, and add a sample of each to `samples` where accesses are timed.
    fn run(&mut self, accesses: u64, samples: &mut Vec<u32>) -> Result<(), HostError>;
}

/// What a thread did in a window.
#[derive(Clone, Debug, Default)]
pub struct Work {
    pub accesses: u64,
    /// Cycles of the TSC from the start to the end of its last batch.
    pub cycles: u64,
    pub samples: Vec<u32>,
    pub disturbance: Disturbance,
    pub cache_misses: Option<u64>,
}

/// What the system did to threads while they were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disturbance {
    pub page_faults: u64,
    pub context_switches: u64,
    pub migrations: u64,
}

impl Disturbance {
    pub fn add(&mut self, other: Self) {
        self.page_faults += other.page_faults;
        self.context_switches += other.context_switches;
        self.migrations += other.migrations;
    }

    /// What has happened to this thread so far.
    fn now() -> Self {
        // SAFETY: zeros are a valid value of the structure.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is ours; with these arguments the call cannot fail.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        Self {
            page_faults: (usage.ru_minflt + usage.ru_majflt) as u64,
            context_switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
            migrations: 0,
        }
    }

    fn since(self, earlier: Self, moved: bool) -> Self {
        Self {
            page_faults: self.page_faults - earlier.page_faults,
            context_switches: self.context_switches - earlier.context_switches,
            migrations: moved.into(),
        }
    }
}

/// Whether to measure another window.
pub enum Next {
    Window,
    Enough,
}

/// Run the workers, one on each of the CPUs, window after window of `seconds`. `judge` is given what every thread did in a window and
/// says whether to go on; it is not asked about a window that `stop` cut short. Before the first, each thread finds out how many accesses take how long.
pub fn run<W: Worker>(
    workers: Vec<W>,
    cpus: &[u32],
    seconds: f64,
    stop: &AtomicBool,
    mut judge: impl FnMut(Vec<Work>) -> Result<Next, HostError>,
) -> Result<(), HostError> {
    let clock = Clock::get();
    let window = clock.cycles(seconds);
    let warm = clock.cycles(seconds.max(WARM_UP));
    let barrier = Barrier::new(workers.len() + 1);
    let (start, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let results: Vec<Mutex<Result<Work, HostError>>> =
        workers.iter().map(|_| Mutex::new(Ok(Work::default()))).collect();
    let mut outcome = Ok(());
    thread::scope(|scope| {
        for (number, ((mut worker, &cpu), result)) in workers.into_iter().zip(cpus).zip(&results).enumerate() {
            let (barrier, start, over) = (&barrier, &start, &over);
            scope.spawn(move || {
                let mut ready = cpu::pin(cpu).map_err(|error| HostError::System {
                    what: format!("pinning a thread to CPU {cpu}"),
                    error,
                });
                let mut pace = Pace { cpu, window, batch: 1 };
                let mut room = vec![];
                if ready.is_ok() {
                    ready = warm_up(&mut worker, warm, stop).map(|(batch, samples)| {
                        pace.batch = batch;
                        room = touched(samples * 2);
                    });
                }
                let mut failed = ready.err();
                let mut misses = CacheMisses::open();
                loop {
                    barrier.wait();
                    if over.load(Ordering::Acquire) {
                        return;
                    }
                    if number == 0 {
                        start.store(clock::now() + clock.cycles(AHEAD), Ordering::Release);
                    }
                    let done = match failed.take() {
                        Some(error) => Err(error),
                        None => measure(&mut worker, &mut misses, &mut room, pace, start, stop),
                    };
                    if let Ok(done) = &done {
                        room = touched(done.samples.len() * 2);
                    }
                    *result.lock().unwrap_or_else(PoisonError::into_inner) = done;
                    barrier.wait();
                }
            });
        }
        loop {
            start.store(0, Ordering::Release);
            barrier.wait(); // a window begins
            barrier.wait(); // and ends
            let take = |result: &Mutex<Result<Work, HostError>>| {
                std::mem::replace(
                    &mut *result.lock().unwrap_or_else(PoisonError::into_inner),
                    Ok(Work::default()),
                )
            };
            let done: Result<Vec<Work>, HostError> = results.iter().map(take).collect();
            if stop.load(Ordering::Relaxed) {
                outcome = done.map(drop);
                break;
            }
            let next = done.and_then(&mut judge);
            if !matches!(next, Ok(Next::Window)) {
                outcome = next.map(|_| ());
                break;
            }
        }
        over.store(true, Ordering::Release);
        barrier.wait();
    });
    outcome
}

/// How a thread goes about its windows: where, for how many cycles, and how many accesses at a time.
#[derive(Clone, Copy)]
struct Pace {
    cpu: u32,
    window: u64,
    batch: u64,
}

/// Room for so many samples, on pages that are there: a fault would be measured.
fn touched(samples: usize) -> Vec<u32> {
    let mut room = vec![1; samples];
    room.clear();
    room
}

/// Work for so many cycles, untimed; how many accesses make a batch, and how many samples that gave.
fn warm_up(worker: &mut impl Worker, warm: u64, stop: &AtomicBool) -> Result<(u64, usize), HostError> {
    let clock = Clock::get();
    let (begun, mut batch, mut samples) = (clock::now(), 1, Vec::new());
    let mut sampled = 0;
    loop {
        let before = clock::now();
        worker.run(batch, &mut samples)?;
        sampled += samples.len();
        samples.clear();
        let now = clock::now();
        if now - before < clock.cycles(BATCH) {
            batch *= 2;
        } else if now - begun >= warm {
            return Ok(((batch / 2).max(1), sampled));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok((1, 0));
        }
    }
}

fn measure(
    worker: &mut impl Worker,
    misses: &mut CacheMisses,
    room: &mut Vec<u32>,
    pace: Pace,
    start: &AtomicU64,
    stop: &AtomicBool,
) -> Result<Work, HostError> {
    let Pace { cpu, window, batch } = pace;
    let mut work = Work {
        samples: std::mem::take(room),
        ..Work::default()
    };
    let missed = misses.read();
    let before = Disturbance::now();
    let begin = loop {
        match start.load(Ordering::Acquire) {
            0 => std::hint::spin_loop(),
            begin => break begin,
        }
    };
    while clock::now() < begin {
        std::hint::spin_loop();
    }
    let began = clock::now();
    loop {
        worker.run(batch, &mut work.samples)?;
        work.accesses += batch;
        let now = clock::now();
        if now - began >= window || stop.load(Ordering::Relaxed) {
            work.cycles = now - began;
            break;
        }
    }
    work.cache_misses = missed.zip(misses.read()).map(|(before, after)| after - before);
    work.disturbance = Disturbance::now().since(before, cpu::current() != cpu as i32);
    Ok(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(u64);

    impl Worker for Counting {
        fn run(&mut self, accesses: u64, _: &mut Vec<u32>) -> Result<(), HostError> {
            for _ in 0..accesses {
                self.0 = std::hint::black_box(self.0 + 1);
            }
            Ok(())
        }
    }

    struct Failing;

    impl Worker for Failing {
        fn run(&mut self, _: u64, _: &mut Vec<u32>) -> Result<(), HostError> {
            Err(HostError::option("worker", "fails"))
        }
    }

    #[test]
    fn windows_last_as_long_as_they_should() {
        let cpus = cpu::allowed();
        let mut windows = 0;
        run(vec![Counting(0)], &cpus, 0.005, &AtomicBool::new(false), |work| {
            windows += 1;
            let seconds = Clock::get().ns(work[0].cycles) / 1e9;
            assert!(work[0].accesses > 0 && seconds >= 0.005, "{seconds}");
            Ok(if windows == 3 { Next::Enough } else { Next::Window })
        })
        .unwrap();
        assert_eq!(windows, 3);
    }

    #[test]
    fn a_failure_ends_all() {
        let cpus = cpu::allowed();
        let error = run(vec![Failing], &cpus, 0.001, &AtomicBool::new(false), |_| {
            Ok(Next::Window)
        })
        .unwrap_err();
        assert_eq!(error.to_string(), "worker: fails");
    }

    #[test]
    fn a_stop_ends_all() {
        let cpus = cpu::allowed();
        let stop = AtomicBool::new(true);
        run(vec![Counting(0)], &cpus, 1.0, &stop, |_| Ok(Next::Window)).unwrap();
    }
}
