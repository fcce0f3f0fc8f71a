//! Points: everything that sets an experiment, the platform apart.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::workload::Workload;

/// An experiment with its parameters, and how long it may run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub experiment: Experiment,
    /// Seed of the random addresses.
    pub seed: u64,
    /// The longest the point may run, in requests of the cores; `None` leaves it to the runner.
    pub max_requests: Option<u64>,
    /// Whether the row holds a sample of the requests, with their way through the machine.
    pub timeline: bool,
}

/// The experiments of LATTester.
#[derive(Clone, Debug, PartialEq)]
pub enum Experiment {
    Random(Random),
    Stride(Stride),
    Flush(Flush),
    Align(Align),
    Latency(Latency),
    XpBuffer(XpBuffer),
    PersistLatency(PersistLatency),
    Chase(Chase),
    Replacement(Replacement),
    Wear(Wear),
    Tail(Tail),
    Workload(Workload),
    Mix(Mix),
    Loaded(Loaded),
}

/// Bandwidth of accesses of `size` bytes at random addresses, aligned to their size.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Random {
    pub op: Op,
    pub size: u64,
    pub threads: u32,
}

/// Bandwidth of accesses of `size` bytes, each `stride` bytes after the one before (0: the same place again), with an
/// sfence, for loads an mfence, after each `fence` bytes of an access (0: none).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stride {
    pub op: Op,
    pub size: u64,
    pub stride: u64,
    #[serde(default)]
    pub fence: u64,
    pub threads: u32,
}

/// Bandwidth of plain stores with a clwb over each `clwb` bytes of them and an sfence after each `fence` bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    pub pattern: Pattern,
    pub size: u64,
    pub clwb: u64,
    pub fence: u64,
    pub threads: u32,
}

/// Bandwidth of random accesses of threads that may touch some of the DIMMs only, with an sfence, for loads an mfence,
/// after each `fence` bytes of an access (0: none).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Align {
    pub op: Op,
    pub size: u64,
    pub binding: Binding,
    #[serde(default)]
    pub fence: u64,
    /// Whether each access ends in an mfence.
    #[serde(default)]
    pub fenced: bool,
    pub threads: u32,
}

/// Latency of single fenced accesses of one idle core.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    pub op: Op,
    pub pattern: Pattern,
}

/// Write amplification of rounds that write the first half of each of `lines` lines, then the second halves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XpBuffer {
    pub lines: u64,
}

/// Latency of a sequential write of `size` bytes and the sfence that makes it persistent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersistLatency {
    pub op: Op,
    pub size: u64,
}

/// Latency of loads that wait for each other, at random 64 B of a region: past the caches, or through them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chase {
    /// Bytes that are read.
    pub region: u64,
    /// Address bits that stay 0: the region is spread over the others.
    #[serde(default)]
    pub mask: u64,
    /// Whether lines stay in the caches that they come into.
    #[serde(default)]
    pub cached: bool,
}

/// Share of lines that a buffer of a DIMM has given up, after as many were read, when they are read again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    pub buffer: Buffer,
    pub order: Order,
    pub lines: u64,
}

/// Latency of `size` bytes written to one place over and over, each write made persistent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wear {
    pub op: Op,
    pub size: u64,
}

/// Latency of 64 B writes round a hot spot of `region` bytes, each made persistent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    pub op: Op,
    pub region: u64,
}

/// Bandwidth of reads and writes in a ratio, in buffers of `region` bytes each.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    pub mix: Ratio,
    /// What a write is.
    pub op: Op,
    pub pattern: Pattern,
    #[serde(default = "line")]
    pub size: u64,
    #[serde(default = "half_a_region")]
    pub region: u64,
    pub threads: u32,
}

/// Latency of loads of one thread that wait for each other, while `threads` others make the traffic of a [`Mix`] and
/// pause for `delay` core clocks after each line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loaded {
    pub mix: Ratio,
    pub op: Op,
    pub pattern: Pattern,
    pub delay: u64,
    #[serde(default = "half_a_region")]
    pub region: u64,
    pub threads: u32,
}

fn line() -> u64 {
    64
}

fn half_a_region() -> u64 {
    1 << 30
}

/// Lines that memory reads and writes, such as `2:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ratio {
    pub reads: u32,
    pub writes: u32,
}

impl Ratio {
    /// Loads that go with so many writes: a write through the caches reads its line, too.
    pub fn loads(self, op: Op) -> u32 {
        match op {
            Op::Load | Op::NtStore => self.reads,
            Op::Store | Op::StoreClwb => self.reads.saturating_sub(self.writes),
        }
    }
}

impl TryFrom<String> for Ratio {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let part = |text: &str| text.trim().parse().ok().filter(|&part: &u32| part <= 1000);
        let parts = text
            .split_once(':')
            .and_then(|(reads, writes)| Some((part(reads)?, part(writes)?)));
        match parts {
            Some((reads, writes)) if reads + writes > 0 => Ok(Self { reads, writes }),
            _ => Err(format!(
                "{text:?} is no ratio of lines read to lines written, such as 2:1 (1:0 reads only, 0:1 writes only; \
                 parts up to 1000)"
            )),
        }
    }
}

impl From<Ratio> for String {
    fn from(ratio: Ratio) -> Self {
        format!("{}:{}", ratio.reads, ratio.writes)
    }
}

/// What a thread does to each 64 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    Load,
    /// A store past the caches.
    NtStore,
    /// A plain store, left to the caches.
    Store,
    /// A plain store, written back at once.
    #[serde(rename = "store+clwb")]
    StoreClwb,
}

/// The order of a thread's accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    Sequential,
    Random,
}

/// A buffer of an Optane DIMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Buffer {
    /// That of XPLines.
    XpBuffer,
    /// The cache of the address indirection table: lines on pages that share a set.
    Ait,
}

/// The order in which lines are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    Same,
    Reverse,
    Random,
}

/// The DIMMs that a thread may touch. Thread `i` belongs to DIMM `i` modulo the number of DIMMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// Interleaved; a buffer shared by all threads, on all DIMMs.
    SharedAll,
    /// Interleaved; a buffer a thread, on all DIMMs.
    OwnAll,
    /// Interleaved; a buffer a thread, of which it touches what lies on its DIMM.
    OwnDimm,
    /// Interleaved; a shared buffer, of which a thread touches what lies on the DIMMs of its memory controller.
    SharedImc,
    /// Interleaved; a buffer a thread, of which it touches what lies on two DIMMs, one on each memory controller.
    OwnPair,
    /// An address range a DIMM; buffers shared by all threads, on all DIMMs.
    NiSharedAll,
    /// An address range a DIMM; a buffer a thread, on its DIMM.
    NiOwnDimm,
}

/// Why a point cannot run: what was wrong with which parameter, and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    #[error("a point is a JSON object: {0}")]
    NotAnObject(serde_json::Error),

    #[error("experiment = {found}: unknown; known are {}", EXPERIMENTS.join(", "))]
    UnknownExperiment { found: String },

    #[error("{place}: {problem}")]
    BadField { place: String, problem: String },

    #[error("{parameter} = {value}: {allowed}")]
    NotAllowed {
        parameter: &'static str,
        value: String,
        allowed: String,
    },

    #[error("point {index}: {error}")]
    At { index: usize, error: Box<PointError> },
}

const EXPERIMENTS: [&str; 14] = [
    "random",
    "stride",
    "flush",
    "align",
    "latency",
    "xpbuffer",
    "persist-latency",
    "chase",
    "replacement",
    "wear",
    "tail",
    "workload",
    "mix",
    "loaded",
];

impl Point {
    /// A point with the default seed.
    pub fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            seed: DEFAULT_SEED,
            max_requests: None,
            timeline: false,
        }
    }

    /// Read a point from a JSON object, such as `{"experiment": "xpbuffer", "lines": 64}`.
    ///
    /// ```
    /// # use xpline_lattester::Point;
    /// let error = Point::parse(r#"{"experiment": "xpbuffer", "line": 64}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "xpbuffer: unknown field `line`, expected `lines`");
    /// ```
    pub fn parse(json: &str) -> Result<Self, PointError> {
        let mut fields: Map<String, Value> = serde_json::from_str(json).map_err(PointError::NotAnObject)?;
        let experiment = fields.remove("experiment").unwrap_or(Value::Null);
        let name = experiment.as_str().unwrap_or_default();
        let limits: Limits = {
            let own = ["seed", "max_requests", "timeline"];
            let taken = own.into_iter().filter_map(|key| fields.remove_entry(key));
            read(name, taken.collect())?
        };
        let experiment = match name {
            "random" => Experiment::Random(read(name, fields)?),
            "stride" => Experiment::Stride(read(name, fields)?),
            "flush" => Experiment::Flush(read(name, fields)?),
            "align" => Experiment::Align(read(name, fields)?),
            "latency" => Experiment::Latency(read(name, fields)?),
            "xpbuffer" => Experiment::XpBuffer(read(name, fields)?),
            "persist-latency" => Experiment::PersistLatency(read(name, fields)?),
            "chase" => Experiment::Chase(read(name, fields)?),
            "replacement" => Experiment::Replacement(read(name, fields)?),
            "wear" => Experiment::Wear(read(name, fields)?),
            "tail" => Experiment::Tail(read(name, fields)?),
            "workload" => Experiment::Workload(read(name, fields)?),
            "mix" => Experiment::Mix(read(name, fields)?),
            "loaded" => Experiment::Loaded(read(name, fields)?),
            _ => {
                return Err(PointError::UnknownExperiment {
                    found: experiment.to_string(),
                });
            }
        };
        Ok(Self {
            experiment,
            seed: limits.seed,
            max_requests: limits.max_requests,
            timeline: limits.timeline,
        })
    }
}

impl Experiment {
    /// The experiment's name in a point.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Random(_) => "random",
            Self::Stride(_) => "stride",
            Self::Flush(_) => "flush",
            Self::Align(_) => "align",
            Self::Latency(_) => "latency",
            Self::XpBuffer(_) => "xpbuffer",
            Self::PersistLatency(_) => "persist-latency",
            Self::Chase(_) => "chase",
            Self::Replacement(_) => "replacement",
            Self::Wear(_) => "wear",
            Self::Tail(_) => "tail",
            Self::Workload(_) => "workload",
            Self::Mix(_) => "mix",
            Self::Loaded(_) => "loaded",
        }
    }

    /// Whether it times single accesses; bandwidth means nothing then.
    pub fn is_latency(&self) -> bool {
        match self {
            Self::Latency(_) | Self::PersistLatency(_) | Self::Chase(_) => true,
            Self::Replacement(_) | Self::Wear(_) | Self::Tail(_) => true,
            Self::Random(_) | Self::Stride(_) | Self::Flush(_) | Self::Align(_) | Self::XpBuffer(_) => false,
            Self::Workload(_) => false,
            Self::Mix(_) | Self::Loaded(_) => false,
        }
    }

    /// Threads that it runs.
    pub fn threads(&self) -> u32 {
        match self {
            Self::Random(random) => random.threads,
            Self::Stride(stride) => stride.threads,
            Self::Flush(flush) => flush.threads,
            Self::Align(align) => align.threads,
            Self::Mix(mix) => mix.threads,
            Self::Loaded(loaded) => loaded.threads + 1,
            Self::Latency(_) | Self::XpBuffer(_) | Self::PersistLatency(_) => 1,
            Self::Chase(_) | Self::Replacement(_) | Self::Wear(_) | Self::Tail(_) => 1,
            Self::Workload(workload) => workload.threads(),
        }
    }
}

/// Seed of a point that names none.
const DEFAULT_SEED: u64 = 1;

fn default_seed() -> u64 {
    DEFAULT_SEED
}

/// The part of a point that every experiment has.
#[derive(Deserialize)]
struct Limits {
    #[serde(default = "default_seed")]
    seed: u64,
    max_requests: Option<u64>,
    #[serde(default)]
    timeline: bool,
}

fn read<T: DeserializeOwned>(experiment: &str, fields: Map<String, Value>) -> Result<T, PointError> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let field = error.path().to_string();
        let problem = error
            .into_inner()
            .to_string()
            .replace("unknown variant", "unknown value");
        let is_named = problem.contains(" field `"); // unknown or missing
        PointError::BadField {
            place: if is_named {
                experiment.into()
            } else {
                format!("{experiment}: {field}")
            },
            problem: ["u64", "u32"].iter().fold(problem, |problem, number| {
                problem.replace(&format!("expected {number}"), "expected a whole number, 0 or more")
            }),
        }
    })
}
