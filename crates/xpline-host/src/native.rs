//! Kernels at work on mapped memory.

use std::sync::Arc;

use crate::clock::Clock;
use crate::error::HostError;
use crate::kernel::{Code, Flush, Isa, Kernel, State, Step, Walk};
use crate::memory::Mapping;
use crate::plan::Thread;
use crate::team::Worker;

/// Samples that the cost of a reading of the clock is taken from.
const READINGS: u64 = 20_000;

/// A thread's kernel, and how far it has come.
pub struct Native<'a> {
    code: Arc<Code>,
    timed: bool,
    memory: &'a Mapping,
    state: State,
    /// What `state.places` points to, and how many the kernel goes to.
    places: Vec<u32>,
    listed: usize,
}

// SAFETY: the base is within `memory`, which threads may share; the places are the worker's own; no other pointer outlives a
// call of `run`.
unsafe impl Send for Native<'_> {}

impl<'a> Native<'a> {
    /// A worker in its part of the memory.
    ///
    /// # Panics
    ///
    /// If that part is not within the memory.
    pub fn new(code: &Arc<Code>, kernel: &Kernel, thread: &Thread, memory: &'a Mapping) -> Self {
        assert!(
            thread.base + thread.span <= memory.length(),
            "a thread works within the memory"
        );
        Self {
            code: code.clone(),
            timed: kernel.timed,
            memory,
            state: State {
                // SAFETY: the offset is within the mapping.
                base: unsafe { memory.base().add(thread.base as usize) },
                rng: thread.rng,
                next: 0,
                other: 0,
                samples: std::ptr::null_mut(),
                places: std::ptr::null(),
            },
            places: vec![],
            listed: kernel.places().unwrap_or(0) as usize,
        }
    }

    /// Give it the list of places that its steps go to, in lines from the start of its part of the memory.
    ///
    /// # Panics
    ///
    /// If they are not within the memory.
    pub fn go_to(&mut self, places: Vec<u32>) {
        let room = self.memory.length() - (self.state.base as u64 - self.memory.base() as u64);
        assert!(places.iter().all(|&line| u64::from(line) * 64 < room));
        self.places = places;
        self.state.places = self.places.as_ptr();
    }

    /// Write a closed chain of pointers, given as the offset that follows each line.
    ///
    /// # Panics
    ///
    /// If it does not fit in the memory.
    pub fn link(&mut self, next: &[u64]) {
        let base = self.state.base;
        let room = self.memory.length() - (base as u64 - self.memory.base() as u64);
        assert!(next.len() as u64 * 64 <= room && next.iter().all(|&offset| offset < room));
        for (line, &offset) in next.iter().enumerate() {
            // SAFETY: the line and where it points to are within the memory, which no other thread has yet.
            unsafe { base.add(line * 64).cast::<*mut u8>().write(base.add(offset as usize)) };
        }
    }
}

impl Worker for Native<'_> {
    fn run(&mut self, accesses: u64, samples: &mut Vec<u32>) -> Result<(), HostError> {
        if self.timed {
            samples.reserve(accesses as usize);
            self.state.samples = samples.spare_capacity_mut().as_mut_ptr().cast();
        }
        assert!(
            self.places.len() >= self.listed,
            "a kernel has the places that it goes to"
        );
        // SAFETY: the plan keeps walks and steps within the thread's part of the memory, which is mapped and checked to be
        // long enough; there is room for the samples; the instructions were checked when the code was made.
        unsafe { self.code.run(&mut self.state, accesses) };
        if self.timed {
            // SAFETY: a timed kernel writes one sample an access, from the first free place on.
            unsafe { samples.set_len(samples.len() + accesses as usize) };
        }
        self.memory.check()
    }
}

/// What two readings of the clock cost by themselves, in cycles: the median of many with nothing between them.
pub fn timer_overhead(memory: &Mapping, isa: Isa) -> Result<u32, HostError> {
    let nothing: Vec<Step> = vec![];
    let walk = Walk::Ring { stride: 0, last: 0 };
    let kernel = Kernel::timed(walk, vec![], nothing, vec![]);
    let code = Arc::new(code(&kernel, isa, Flush::Clflush)?);
    let thread = Thread {
        base: 0,
        span: memory.length(),
        rng: 0,
        job: 0,
    };
    let mut samples = Vec::new();
    Native::new(&code, &kernel, &thread, memory).run(READINGS, &mut samples)?;
    let middle = samples.len() / 2;
    Ok(*samples.select_nth_unstable(middle).1)
}

/// A kernel that can run here.
pub fn code(kernel: &Kernel, isa: Isa, flush: Flush) -> Result<Code, HostError> {
    kernel.check_instructions(flush)?;
    Code::new(kernel, isa, flush).map_err(|error| HostError::System {
        what: "making code at run time (does a security policy forbid it?)".into(),
        error,
    })
}

/// Nanoseconds of a sample, without what reading the clock costs.
pub fn net_ns(cycles: f64, overhead: u32) -> f64 {
    (cycles - f64::from(overhead)).max(0.0) / Clock::get().cycles_per_ns
}
