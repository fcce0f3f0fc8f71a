//! What each group of a workload has done.

use serde::Serialize;
use xpline_latency::Latencies;
use xpline_model::{NANOSECOND, Time};

use crate::row::MIB;
use crate::stream::{Chain, Stream};
use crate::workload::Workload;

/// A group's share of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    pub name: String,
    pub threads: u32,
    pub bytes: u64,
    pub bandwidth_mib_s: f64,
    pub operations_s: f64,
    /// Of the iterations that were sampled.
    #[serde(flatten)]
    pub latencies: Option<Latencies>,
}

/// How far each thread is.
pub struct Marks(Vec<Mark>);

#[derive(Clone, Copy, Default)]
struct Mark {
    iterations: u64,
    bytes: u64,
    samples: usize,
}

impl Marks {
    pub fn new<'a>(streams: impl Iterator<Item = &'a Stream>) -> Self {
        Self(chains(streams).map(mark).collect())
    }

    /// What the groups have done in the `time` since then, and the latencies of all of them together.
    pub fn parts<'a>(
        &self,
        workload: &Workload,
        streams: impl Iterator<Item = &'a Stream>,
        time: Time,
    ) -> (Vec<Part>, Option<Latencies>) {
        let seconds = time as f64 / NANOSECOND as f64 * 1e-9;
        let mut threads = chains(streams).zip(&self.0);
        let mut all = Vec::new();
        let part = |group: &crate::workload::Group| {
            let (mut iterations, mut bytes, mut samples) = (0, 0, Vec::new());
            for (chain, before) in threads.by_ref().take(group.threads as usize) {
                let now = mark(chain);
                iterations += now.iterations - before.iterations;
                bytes += now.bytes - before.bytes;
                samples.extend_from_slice(&chain.samples()[before.samples..]);
            }
            all.extend_from_slice(&samples);
            Part {
                name: group.name.clone(),
                threads: group.threads,
                bytes,
                bandwidth_mib_s: bytes as f64 / MIB / seconds,
                operations_s: iterations as f64 / seconds,
                latencies: Latencies::of(&samples),
            }
        };
        (workload.groups.iter().map(part).collect(), Latencies::of(&all))
    }
}

fn chains<'a>(streams: impl Iterator<Item = &'a Stream>) -> impl Iterator<Item = &'a Chain> {
    streams.filter_map(Stream::chain)
}

fn mark(chain: &Chain) -> Mark {
    Mark {
        iterations: chain.iterations(),
        bytes: chain.bytes(),
        samples: chain.samples().len(),
    }
}
