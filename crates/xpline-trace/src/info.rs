//! What is in a trace, without replaying it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::ahead::Ahead;
use crate::error::TraceError;
use crate::input::Progress;
use crate::record::{has_address, kind_name};
use crate::trace::ReadOptions;

/// Threads that are told apart; of more, only that there are more matters.
const MOST_THREADS: usize = 1 << 20;

/// A trace in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TraceInfo {
    pub trace: String,
    pub format: &'static str,
    pub compressed: bool,
    pub level: &'static str,
    pub records: u64,
    /// Records of each kind.
    pub kinds: BTreeMap<&'static str, u64>,
    pub threads: u64,
    /// Bytes of all accesses.
    pub bytes: u64,
    pub instructions: u64,
    /// The lowest address touched, and the first beyond the highest.
    pub lowest_address: Option<u64>,
    pub end_address: Option<u64>,
    /// Records that have a time.
    pub timed: u64,
    pub first_tick: Option<u64>,
    pub last_tick: Option<u64>,
    /// Femtoseconds of a tick; `None` where the trace does not say.
    pub tick_fs: Option<u64>,
}

/// Read a whole trace, checking all of it. `None` if `stop` was set meanwhile.
pub fn info(
    path: &str,
    options: &ReadOptions,
    progress: &Arc<Progress>,
    stop: &AtomicBool,
) -> Result<Option<TraceInfo>, TraceError> {
    let Some(mut trace) = Ahead::open(path, options, progress, stop)? else {
        return Ok(None);
    };
    let mut info = TraceInfo {
        trace: path.to_owned(),
        format: trace.format().name(),
        compressed: trace.compressed(),
        level: trace.header().level.name(),
        tick_fs: Some(trace.header().tick_fs).filter(|&tick_fs| tick_fs > 0),
        ..TraceInfo::default()
    };
    let mut threads = BTreeSet::new();
    let mut thread = None;
    let mut batch = Vec::new();
    while trace.read(&mut batch, stop)? {
        for record in &batch {
            info.records += 1;
            *info.kinds.entry(kind_name(record.kind)).or_default() += 1;
            if thread != Some(record.thread) && threads.len() < MOST_THREADS {
                thread = Some(record.thread);
                threads.insert(record.thread);
            }
            if has_address(record.kind) {
                let end = record.address.saturating_add(u64::from(record.size));
                info.bytes = info.bytes.saturating_add(u64::from(record.size));
                info.lowest_address = Some(
                    info.lowest_address
                        .map_or(record.address, |low| low.min(record.address)),
                );
                info.end_address = info.end_address.max(Some(end));
            } else {
                info.instructions = info.instructions.saturating_add(u64::from(record.size));
            }
            if let Some(time) = record.time {
                info.timed += 1;
                info.first_tick = info.first_tick.or(Some(time));
                info.last_tick = Some(time);
            }
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    info.threads = threads.len() as u64;
    Ok(Some(info))
}
