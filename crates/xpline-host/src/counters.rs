//! Counters of the CPU and of memory controllers, through Linux perf events, where the kernel permits.
//!
//! Without permission, or in a virtual machine without counters, there are none, and nothing else changes.

use perf_event::events::{Dynamic, Hardware};
use perf_event::{Builder, Counter};
use serde::Serialize;

use crate::cpu;

/// What was counted during the repeats of a point; `None` where nobody may, or can, count it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counted {
    /// Loads and stores that the last cache missed, of the threads that were measured.
    pub cache_misses: Option<u64>,
    /// Bytes between the memory controllers and the DIMMs, of the whole machine.
    pub imc_read_bytes: Option<u64>,
    pub imc_written_bytes: Option<u64>,
}

/// Counters of the whole machine's memory controllers.
#[derive(Debug, Default)]
pub struct MemoryControllers {
    reads: Vec<Counter>,
    writes: Vec<Counter>,
}

/// Events of a memory controller that count 64 B transfers: to DRAM, and to Optane DIMMs (DDR-T).
const READS: [&str; 2] = ["cas_count_read", "unc_m_pmm_rpq_inserts"];
const WRITES: [&str; 2] = ["cas_count_write", "unc_m_pmm_wpq_inserts"];

impl MemoryControllers {
    /// Those that may be read.
    pub fn open() -> Self {
        let units = std::fs::read_dir("/sys/bus/event_source/devices")
            .into_iter()
            .flatten()
            .flatten();
        let names = units.filter_map(|unit| unit.file_name().into_string().ok());
        let mut found = Self::default();
        for unit in names.filter(|name| name.starts_with("uncore_imc")) {
            found
                .reads
                .extend(READS.iter().flat_map(|event| open_uncore(&unit, event)));
            found
                .writes
                .extend(WRITES.iter().flat_map(|event| open_uncore(&unit, event)));
        }
        found
    }

    /// Bytes read and written so far.
    pub fn read(&mut self) -> (Option<u64>, Option<u64>) {
        (bytes(&mut self.reads), bytes(&mut self.writes))
    }
}

fn bytes(counters: &mut [Counter]) -> Option<u64> {
    if counters.is_empty() {
        return None;
    }
    counters
        .iter_mut()
        .map(|counter| counter.read().ok().map(|count| count * 64))
        .sum()
}

/// One counter for each CPU that the unit says stands for a socket.
fn open_uncore(unit: &str, event: &str) -> Vec<Counter> {
    let mask = std::fs::read_to_string(format!("/sys/bus/event_source/devices/{unit}/cpumask")).unwrap_or_default();
    let open = |cpu: u32| {
        let dynamic = Dynamic::builder(unit).ok()?.event(event).ok()?.build().ok()?;
        let mut builder = Builder::new(dynamic);
        builder.any_pid().one_cpu(cpu as usize).include_kernel().include_hv();
        let mut counter = builder.build().ok()?;
        counter.enable().ok()?;
        Some(counter)
    };
    cpu::parse_list(&mask).into_iter().filter_map(open).collect()
}

/// The cache misses of the calling thread.
#[derive(Debug)]
pub struct CacheMisses(Option<Counter>);

impl CacheMisses {
    pub fn open() -> Self {
        let counter = Builder::new(Hardware::CACHE_MISSES).build().ok();
        Self(counter.and_then(|mut counter| counter.enable().ok().map(|()| counter)))
    }

    /// So far; `None` where nobody may count.
    pub fn read(&mut self) -> Option<u64> {
        self.0.as_mut()?.read().ok()
    }
}

/// Why the counters are absent, for people; `None` where they are there.
pub fn absence() -> Option<String> {
    let error = Builder::new(Hardware::CACHE_MISSES).build().err()?;
    Some(match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "the kernel permits no performance counters to this user (kernel.perf_event_paranoid)".into()
        }
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => "this machine has no counters of cache misses".into(),
        _ => format!("performance counters cannot be opened: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_there_or_absent_without_trouble() {
        let mut misses = CacheMisses::open();
        let first = misses.read();
        assert_eq!(first.is_none(), absence().is_some());
        if let (Some(first), Some(second)) = (first, misses.read()) {
            assert!(second >= first);
        }
        let (read, written) = MemoryControllers::open().read();
        assert_eq!(read.is_none(), written.is_none());
    }
}
