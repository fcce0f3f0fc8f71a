//! Workloads: groups of threads with different jobs side by side, each a chain of reads and writes on one of two memories.

use serde::{Deserialize, Serialize};
use xpline_model::{NANOSECOND, Time};

use crate::point::PointError;
use crate::stream::LINE;

/// Groups of threads that run side by side.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What results call it.
    pub name: String,
    pub groups: Vec<Group>,
}

/// Threads that do the same job.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What results call it.
    pub name: String,
    pub threads: u32,
    /// Disjoint parts of the ranges, each shared by as many threads as any other; 0 for one a thread.
    #[serde(default)]
    pub partitions: u32,
    /// Bytes of the platform's memory that the group works in; 0 where it does not.
    pub range: u64,
    /// Bytes of the volatile memory beside.
    #[serde(default)]
    pub volatile_range: u64,
    /// Share of the accesses that go to the volatile memory beside, for accesses at random.
    #[serde(default)]
    pub volatile_share: f64,
    pub mode: Mode,
    /// Bytes that a thread takes at once of a sequential range that it shares.
    #[serde(default = "whole")]
    pub chunk: u64,
    /// Exponent of the Zipf distribution of places; none for equal chances.
    #[serde(default)]
    pub zipf: Option<f64>,
    /// What is done in each iteration.
    pub steps: Vec<Step>,
    /// Iterations from one whose latency is measured to the next; 0 for none.
    #[serde(default)]
    pub sample: u64,
    /// Iterations of all threads together, after which the run ends even if its mean has not settled.
    #[serde(default = "whole")]
    pub operations: u64,
    /// Simulated seconds after which it ends instead.
    #[serde(default)]
    pub run_time: Option<f64>,
}

fn whole() -> u64 {
    u64::MAX
}

/// Where the accesses of a group fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One after the other.
    Sequential,
    /// Anywhere, each aligned to its size.
    Random,
    /// Reads anywhere, each once the read before it has its data; writes near the last place.
    Chain,
}

/// A read or a write of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub op: StepOp,
    #[serde(default)]
    pub memory: Place,
    pub size: u64,
    /// Bytes from the place of the step before to that of a write in a chain.
    #[serde(default)]
    pub offset: i64,
}

/// What is done to each 64 B. All but plain stores are made persistent by an sfence at the end of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepOp {
    Load,
    /// A plain store, left to the caches.
    Store,
    /// A store past the caches.
    NtStore,
    #[serde(rename = "store+clwb")]
    StoreClwb,
    #[serde(rename = "store+clflushopt")]
    StoreClflushOpt,
}

/// The memory that a step touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The platform's own.
    #[default]
    Persistent,
    /// The volatile memory beside it; the platform's own where there is none.
    Volatile,
}

impl Workload {
    pub fn threads(&self) -> u32 {
        self.groups
            .iter()
            .map(|group| group.threads)
            .fold(0, u32::saturating_add)
    }

    /// Whether lines stay dirty in the caches until others push them out.
    pub fn leaves_dirty_lines(&self) -> bool {
        let mut steps = self.groups.iter().flat_map(|group| &group.steps);
        steps.any(|step| step.op == StepOp::Store)
    }

    /// Requests of all threads in which each does one iteration, and some have been sampled where any are.
    pub fn requests_of_round(&self) -> u64 {
        let lines = |group: &Group| u64::from(group.threads) * group.lines();
        let once: u64 = self.groups.iter().map(lines).sum();
        let sampled = self.groups.iter().map(|group| group.sample).max().unwrap_or(0);
        let samples = sampled.saturating_mul(SAMPLES).saturating_mul(once) / u64::from(self.threads()).max(1);
        once.max(samples.min(MOST_OF_SAMPLES))
    }

    /// Requests of all iterations that were asked for; a group with a run time makes as many as it can.
    pub fn requests(&self) -> u64 {
        let of = |group: &Group| match group.run_time {
            Some(_) => u64::MAX,
            None => group.operations.saturating_mul(group.lines()),
        };
        self.groups.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The shortest run time that was asked for: from then on the groups are not all side by side.
    pub fn run_time(&self) -> Option<Time> {
        let seconds = self.groups.iter().filter_map(|group| group.run_time).reduce(f64::min)?;
        Some((seconds * 1e9 * NANOSECOND as f64) as Time)
    }

    /// Whether the parameters fit each other, and the ranges into `persistent` and `volatile` bytes: where `shared`,
    /// both in the `persistent` ones.
    pub fn check(&self, persistent: u64, volatile: Option<u64>) -> Result<(), PointError> {
        if self.groups.is_empty() {
            return refuse("groups", 0, "must be at least 1".into());
        }
        self.groups.iter().try_for_each(Group::check)?;
        let sum = |of: fn(&Group) -> u64| self.groups.iter().map(of).fold(0, u64::saturating_add);
        let (own, beside) = (sum(|group| group.range), sum(|group| group.volatile_range));
        let own = if volatile.is_some() {
            own
        } else {
            own.saturating_add(beside)
        };
        if own > persistent {
            return refuse("range", own, format!("all groups together have {persistent} B"));
        }
        match volatile {
            Some(most) if beside > most => {
                refuse("volatile_range", beside, format!("all groups together have {most} B"))
            }
            _ => Ok(()),
        }
    }
}

impl Group {
    /// Cache lines of an iteration.
    pub fn lines(&self) -> u64 {
        self.steps.iter().map(|step| step.size / LINE).sum()
    }

    /// Disjoint parts of the ranges.
    pub fn parts(&self) -> u32 {
        if self.partitions == 0 {
            self.threads
        } else {
            self.partitions
        }
    }

    /// Bytes of a partition of the persistent and of the volatile range.
    pub fn partition(&self, place: Place) -> u64 {
        let range = match place {
            Place::Persistent => self.range,
            Place::Volatile => self.volatile_range,
        };
        range / u64::from(self.parts()) / LINE * LINE
    }

    fn check(&self) -> Result<(), PointError> {
        let name = &self.name;
        if self.threads == 0 {
            return refuse("threads", 0, format!("group {name}: must be at least 1"));
        }
        if !self.threads.is_multiple_of(self.parts()) {
            let allowed = format!(
                "group {name}: must divide threads = {}, or be 0 for one a thread",
                self.threads
            );
            return refuse("partitions", self.partitions, allowed);
        }
        if !(0.0..=1.0).contains(&self.volatile_share) {
            return refuse(
                "volatile_share",
                self.volatile_share,
                format!("group {name}: must be 0 to 1"),
            );
        }
        if self.volatile_share > 0.0 && (self.mode != Mode::Random || self.volatile_range == 0) {
            let allowed = format!("group {name}: needs accesses at random and a volatile_range");
            return refuse("volatile_share", self.volatile_share, allowed);
        }
        if let Some(zipf) = self.zipf
            && !(zipf > 0.0 && zipf <= MOST_ZIPF && self.mode != Mode::Sequential)
        {
            let allowed = format!("group {name}: must be above 0, at most {MOST_ZIPF}, and not of sequential accesses");
            return refuse("zipf", zipf, allowed);
        }
        if self.chunk < LINE {
            return refuse(
                "chunk",
                self.chunk,
                format!("group {name}: must be at least {LINE} bytes"),
            );
        }
        if self.operations == 0 {
            return refuse("operations", 0, format!("group {name}: must be at least 1"));
        }
        if let Some(seconds) = self.run_time
            && !(LEAST_SECONDS..=MOST_SECONDS).contains(&seconds)
        {
            let allowed = format!("group {name}: must be from {LEAST_SECONDS} to {MOST_SECONDS} s");
            return refuse("run_time", seconds, allowed);
        }
        self.steps()
    }

    fn steps(&self) -> Result<(), PointError> {
        let name = &self.name;
        let (few, many) = (self.steps.is_empty(), self.steps.len() > 1 && self.mode != Mode::Chain);
        if few || many {
            let allowed = format!("group {name}: must be one, or more of a chain");
            return refuse("steps", self.steps.len(), allowed);
        }
        if self.mode == Mode::Chain && self.steps[0].op != StepOp::Load {
            return refuse(
                "steps",
                "a write first",
                format!("group {name}: a chain begins with a read"),
            );
        }
        let mut last = Place::Persistent;
        for step in &self.steps {
            let is_load = step.op == StepOp::Load;
            if self.mode == Mode::Chain && !is_load && step.memory != last {
                let allowed = format!("group {name}: a write goes to the memory that was read before it");
                return refuse("memory", "another", allowed);
            }
            last = step.memory;
            let whole = step.size > 0 && step.size.is_multiple_of(LINE);
            let mut memories = vec![step.memory];
            if self.volatile_share > 0.0 {
                memories.push(Place::Volatile);
            }
            let fits = memories.iter().all(|&place| step.size <= self.partition(place));
            if !whole || !fits {
                let allowed = format!(
                    "group {name}: must be a multiple of {LINE} bytes, at most a partition of its memory: {} B \
                     persistent, {} B volatile",
                    self.partition(Place::Persistent),
                    self.partition(Place::Volatile)
                );
                return refuse("size", step.size, allowed);
            }
            if step.offset % LINE as i64 != 0 || (is_load && step.offset != 0) {
                let allowed = format!("group {name}: must be a multiple of {LINE} bytes, and of a write");
                return refuse("offset", step.offset, allowed);
            }
        }
        Ok(())
    }
}

/// Iterations that are sampled in a window, so that percentiles stand on a thousand.
const SAMPLES: u64 = 128;

/// Requests that a window may be long for the sake of samples.
const MOST_OF_SAMPLES: u64 = 64 << 10;

/// The shortest run time: some requests fit into it.
const LEAST_SECONDS: f64 = 1e-6;

/// The longest run time: eleven days.
const MOST_SECONDS: f64 = 1e6;

/// The steepest Zipf distribution: the first place then takes all but a thousandth.
const MOST_ZIPF: f64 = 10.0;

fn refuse<T>(parameter: &'static str, value: impl ToString, allowed: String) -> Result<T, PointError> {
    Err(PointError::NotAllowed {
        parameter,
        value: value.to_string(),
        allowed,
    })
}
