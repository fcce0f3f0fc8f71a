//! Rows: what came out of a point, as a table holds it.

use serde::Serialize;
use xpline_latency::Latencies;
use xpline_model::{CoreCounters, Counters, Event, NANOSECOND, Platform, Traffic, hit_ratio};

use crate::parts::Part;
use crate::point::{Binding, Buffer, Experiment, Op, Order, Pattern, Point, Ratio};

pub const MIB: f64 = (1 << 20) as f64;

/// The result of a point, and the point itself. A field is `None` where the experiment has no such parameter, does
/// not measure it, or found nothing to measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub settings: Settings,
    /// Bytes that the threads loaded and stored a second, in MiB.
    pub bandwidth_mib_s: Option<f64>,
    /// Iterations of a workload's threads a second.
    pub operations_s: Option<f64>,
    /// Bytes that the threads loaded and stored.
    pub bytes: u64,
    /// Simulated time that was measured.
    pub time_ns: f64,
    #[serde(flatten, serialize_with = "xpline_latency::columns")]
    pub latencies: Option<Latencies>,
    /// Share of the accesses that took over ten times the median.
    pub stall_share: Option<f64>,
    /// The median of their latencies.
    pub stall_ns: Option<f64>,
    /// The median of the accesses from one to the next.
    pub stall_interval: Option<u64>,
    /// Share of the lines read again that had left the buffer under test.
    pub miss_ratio: Option<f64>,
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Share of the requests that found their line in the XPBuffer (Optane) or their row open (DRAM).
    pub buffer_hit_ratio: Option<f64>,
    pub l3_hit_ratio: Option<f64>,
    /// Share of the requests that did not find their line in the near memory of Memory Mode.
    pub near_miss_ratio: Option<f64>,
    /// Loads, stores and ntstores of the cores.
    pub requests: u64,
    /// Whether the mean was stable to 1 % before `max_requests` ran out.
    pub settled: bool,
    pub source: &'static str,
    /// What each group of a workload did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// A sample of the requests of each thread, where the point asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Vec<Event>>,
}

/// What set a row: the point, flat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    pub platform: String,
    pub experiment: &'static str,
    /// The name of a workload.
    pub workload: Option<String>,
    pub op: Option<Op>,
    pub pattern: Option<Pattern>,
    pub size: Option<u64>,
    pub stride: Option<u64>,
    pub clwb: Option<u64>,
    pub fence: Option<u64>,
    pub binding: Option<Binding>,
    pub fenced: Option<bool>,
    pub lines: Option<u64>,
    pub region: Option<u64>,
    pub mask: Option<u64>,
    pub cached: Option<bool>,
    pub buffer: Option<Buffer>,
    pub order: Option<Order>,
    pub mix: Option<Ratio>,
    pub delay: Option<u64>,
    pub threads: u32,
    pub seed: u64,
    pub max_requests: Option<u64>,
}

/// Accesses that took much longer than most.
#[derive(Clone, Debug, PartialEq)]
pub struct Stalls {
    /// How many of all accesses.
    pub share: f64,
    /// Their median latency, in ns.
    pub median: Option<f64>,
    /// Accesses from one to the next, in the median.
    pub interval: Option<u64>,
}

/// What was measured beside the counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timings {
    pub latencies: Option<Latencies>,
    pub stalls: Option<Stalls>,
    pub miss_ratio: Option<f64>,
    pub parts: Vec<Part>,
}

impl Row {
    /// The row of a point, from what was counted while it was measured.
    pub fn new(platform: &Platform, point: &Point, counted: &Counters, timings: &Timings, settled: bool) -> Self {
        let Timings {
            latencies,
            stalls,
            miss_ratio,
            parts,
        } = timings;
        let dimms = counted.dimm_total();
        let core = &counted.core;
        let bytes = moved(&point.experiment, core);
        let time_ns = counted.time as f64 / NANOSECOND as f64;
        let bandwidth = || bytes as f64 / MIB / (time_ns * 1e-9);
        Self {
            settings: Settings::new(&platform.name, point),
            bandwidth_mib_s: (!point.experiment.is_latency() && time_ns > 0.0).then(bandwidth),
            operations_s: (!parts.is_empty()).then(|| parts.iter().map(|part| part.operations_s).sum()),
            bytes,
            time_ns,
            latencies: latencies.clone(),
            stall_share: stalls.as_ref().map(|stalls| stalls.share),
            stall_ns: stalls.as_ref().and_then(|stalls| stalls.median),
            stall_interval: stalls.as_ref().and_then(|stalls| stalls.interval),
            miss_ratio: *miss_ratio,
            traffic: counted.traffic(),
            buffer_hit_ratio: hit_ratio(dimms.buffer_hits, dimms.buffer_misses),
            l3_hit_ratio: hit_ratio(counted.l3.hits, counted.l3.misses),
            near_miss_ratio: hit_ratio(dimms.near_misses, dimms.near_hits),
            requests: core.loads + core.stores + core.nt_stores,
            settled,
            source: "model",
            parts: parts.clone(),
            timeline: Vec::new(),
        }
    }
}

impl Settings {
    /// What sets the row of a point on a memory of this name.
    pub fn new(platform: &str, point: &Point) -> Self {
        let experiment = &point.experiment;
        let settings = Self {
            platform: platform.into(),
            experiment: experiment.name(),
            workload: None,
            op: None,
            pattern: None,
            size: None,
            stride: None,
            clwb: None,
            fence: None,
            binding: None,
            fenced: None,
            lines: None,
            region: None,
            mask: None,
            cached: None,
            buffer: None,
            order: None,
            mix: None,
            delay: None,
            threads: experiment.threads(),
            seed: point.seed,
            max_requests: point.max_requests,
        };
        match experiment {
            Experiment::Random(p) => Self {
                op: Some(p.op),
                size: Some(p.size),
                ..settings
            },
            Experiment::Stride(p) => Self {
                op: Some(p.op),
                size: Some(p.size),
                stride: Some(p.stride),
                fence: (p.fence > 0).then_some(p.fence),
                ..settings
            },
            Experiment::Flush(p) => Self {
                pattern: Some(p.pattern),
                size: Some(p.size),
                clwb: Some(p.clwb),
                fence: Some(p.fence),
                ..settings
            },
            Experiment::Align(p) => Self {
                op: Some(p.op),
                size: Some(p.size),
                binding: Some(p.binding),
                fence: (p.fence > 0).then_some(p.fence),
                fenced: Some(p.fenced),
                ..settings
            },
            Experiment::Latency(p) => Self {
                op: Some(p.op),
                pattern: Some(p.pattern),
                ..settings
            },
            Experiment::XpBuffer(p) => Self {
                lines: Some(p.lines),
                ..settings
            },
            Experiment::PersistLatency(p) => Self {
                op: Some(p.op),
                size: Some(p.size),
                ..settings
            },
            Experiment::Chase(p) => Self {
                region: Some(p.region),
                mask: Some(p.mask),
                cached: Some(p.cached),
                ..settings
            },
            Experiment::Replacement(p) => Self {
                buffer: Some(p.buffer),
                order: Some(p.order),
                lines: Some(p.lines),
                ..settings
            },
            Experiment::Wear(p) => Self {
                op: Some(p.op),
                size: Some(p.size),
                ..settings
            },
            Experiment::Tail(p) => Self {
                op: Some(p.op),
                region: Some(p.region),
                ..settings
            },
            Experiment::Workload(p) => Self {
                workload: Some(p.name.clone()),
                ..settings
            },
            Experiment::Mix(p) => Self {
                mix: Some(p.mix),
                op: Some(p.op),
                pattern: Some(p.pattern),
                size: Some(p.size),
                region: Some(p.region),
                ..settings
            },
            Experiment::Loaded(p) => Self {
                mix: Some(p.mix),
                op: Some(p.op),
                pattern: Some(p.pattern),
                delay: Some(p.delay),
                region: Some(p.region),
                threads: p.threads,
                ..settings
            },
        }
    }
}

/// Bytes that a point is credited with: what the threads load and store. In a mix whole lines count, as between caches and
/// memory, so that one stored to through the caches counts twice: it is read, and written back.
pub fn moved(experiment: &Experiment, core: &CoreCounters) -> u64 {
    match experiment {
        Experiment::Mix(_) | Experiment::Loaded(_) => 64 * (core.loads + core.nt_stores + 2 * core.stores),
        _ => core.bytes_loaded + core.bytes_stored,
    }
}
