//! What a result depends on besides the point: the machine, as far as it can be seen without privileges.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::clock::Clock;
use crate::counters;
use crate::cpu;
use crate::dmi::{self, Module};
use crate::kernel::{Flush, Isa};

/// A machine. A field is `None`, or empty, where the system does not tell.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    pub xpline: &'static str,
    pub time: u64,
    pub hostname: Option<String>,
    pub kernel: Option<String>,
    pub hypervisor: Option<String>,
    pub cpu: Option<String>,
    pub microcode: Option<String>,
    pub cpus: String,
    pub threads_per_core: Option<usize>,
    pub frequency_mhz: Option<f64>,
    pub governor: Option<String>,
    /// The four prefetchers of Intel CPUs, by bits of MSR 0x1A4; elsewhere, or without the right to read it, `None`.
    pub prefetchers: Option<BTreeMap<&'static str, bool>>,
    pub isa: Vec<&'static str>,
    pub flushes: Vec<&'static str>,
    pub caches: Vec<Cache>,
    pub numa: Vec<Node>,
    pub memory_bytes: Option<u64>,
    /// Memory modules, from the tables of the firmware; empty where they cannot be read.
    pub modules: Vec<Module>,
    pub transparent_huge_pages: Option<String>,
    pub mitigations: BTreeMap<String, String>,
    /// Why cache misses are not counted; `None` where they are.
    pub no_counters: Option<String>,
    pub tsc_ghz: f64,
    pub tsc_invariant: bool,
    pub tsc_steady: bool,
    pub load: Option<String>,
}

/// A cache, as the first CPU has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    pub level: u32,
    pub kind: String,
    pub bytes: u64,
    /// CPUs that share it.
    pub shared_by: usize,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    pub node: u32,
    pub cpus: String,
    pub memory_bytes: u64,
    pub distances: Vec<u32>,
}

impl Environment {
    /// The machine as it is now.
    pub fn read() -> Self {
        let clock = Clock::get();
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let first = *cpu::allowed().first().unwrap_or(&0);
        let of_cpu = |name: &str| text(format!("/sys/devices/system/cpu/cpu{first}/{name}"));
        let mhz = of_cpu("cpufreq/scaling_cur_freq").and_then(|khz| Some(khz.parse::<f64>().ok()? / 1000.0));
        Self {
            xpline: env!("CARGO_PKG_VERSION"),
            time: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            hostname: text("/proc/sys/kernel/hostname"),
            kernel: text("/proc/sys/kernel/osrelease"),
            hypervisor: hypervisor(),
            no_counters: counters::absence(),
            cpu: field("model name"),
            microcode: field("microcode"),
            cpus: cpu::ranges(&cpu::allowed()),
            threads_per_core: of_cpu("topology/thread_siblings_list").map(|list| cpu::parse_list(&list).len()),
            frequency_mhz: mhz.or_else(|| field("cpu MHz")?.parse().ok()),
            governor: of_cpu("cpufreq/scaling_governor"),
            prefetchers: prefetchers(first, field("vendor_id").as_deref()),
            isa: Isa::ALL
                .iter()
                .filter(|isa| isa.is_here())
                .map(|isa| isa.name())
                .collect(),
            flushes: Flush::ALL
                .iter()
                .filter(|flush| flush.is_here())
                .map(|flush| flush.name())
                .collect(),
            caches: caches(first),
            numa: nodes(),
            memory_bytes: meminfo("/proc/meminfo"),
            modules: fs::read("/sys/firmware/dmi/tables/DMI").map_or_else(|_| vec![], |tables| dmi::modules(&tables)),
            transparent_huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled").map(chosen),
            mitigations: mitigations(),
            tsc_ghz: clock.cycles_per_ns,
            tsc_invariant: clock.invariant,
            tsc_steady: clock.steady,
            load: text("/proc/loadavg").and_then(|load| Some(load.split_whitespace().next()?.to_string())),
        }
    }

    /// As JSON, the way a table holds it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| Value::Null.to_string())
    }
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// The chosen one of alternatives, `always [madvise] never`.
fn chosen(alternatives: String) -> String {
    let inner = alternatives.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(alternatives.clone(), |(inner, _)| inner.to_string())
}

/// Who the CPU says it runs under, by CPUID leaf 0x4000_0000.
fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    if __cpuid(1).ecx & 1 << 31 == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    let name: String = bytes
        .iter()
        .map(|&byte| byte as char)
        .filter(char::is_ascii_graphic)
        .collect();
    Some(if name.is_empty() { "unnamed".into() } else { name })
}

/// Intel, "Disclosure of Hardware Prefetcher Control on Some Intel Processors": a set bit is a prefetcher that is off.
fn prefetchers(cpu: u32, vendor: Option<&str>) -> Option<BTreeMap<&'static str, bool>> {
    use std::os::unix::fs::FileExt;
    if vendor != Some("GenuineIntel") {
        return None;
    }
    let mut value = [0; 8];
    let file = fs::File::open(format!("/dev/cpu/{cpu}/msr")).ok()?;
    file.read_exact_at(&mut value, 0x1a4).ok()?;
    let names = ["L2 stream", "L2 adjacent line", "L1 stream", "L1 by instruction"];
    Some(
        names
            .into_iter()
            .enumerate()
            .map(|(bit, name)| (name, value[0] & 1 << bit == 0))
            .collect(),
    )
}

fn caches(cpu: u32) -> Vec<Cache> {
    let cache = |index: u32| {
        let of = |name: &str| text(format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}"));
        Some(Cache {
            level: of("level")?.parse().ok()?,
            kind: of("type")?.to_lowercase(),
            bytes: kibibytes(&of("size")?)?,
            shared_by: cpu::parse_list(&of("shared_cpu_list")?).len(),
        })
    };
    (0..8).map_while(cache).collect()
}

/// A size as sysfs writes it: `48K`, `32M`.
fn kibibytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "K" => 10,
        "M" => 20,
        "" => 0,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? << shift)
}

fn nodes() -> Vec<Node> {
    let node = |node: u32| {
        let of = |name: &str| text(format!("/sys/devices/system/node/node{node}/{name}"));
        Node {
            node,
            cpus: of("cpulist").unwrap_or_default(),
            memory_bytes: meminfo(&format!("/sys/devices/system/node/node{node}/meminfo")).unwrap_or(0),
            distances: of("distance")
                .map(|text| text.split_whitespace().filter_map(|one| one.parse().ok()).collect())
                .unwrap_or_default(),
        }
    };
    let online = text("/sys/devices/system/node/online").unwrap_or_default();
    cpu::parse_list(&online).into_iter().map(node).collect()
}

fn meminfo(path: &str) -> Option<u64> {
    let all = fs::read_to_string(path).ok()?;
    let value = all.lines().find_map(|line| line.split_once("MemTotal:"))?.1;
    Some(value.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn mitigations() -> BTreeMap<String, String> {
    let Ok(files) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return BTreeMap::new();
    };
    let one = |entry: fs::DirEntry| Some((entry.file_name().into_string().ok()?, text(entry.path())?));
    let told = files.flatten().filter_map(one);
    told.filter(|(_, state)| state != "Not affected").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        assert_eq!(chosen("always [madvise] never".into()), "madvise");
        assert_eq!(
            [kibibytes("48K"), kibibytes("32M"), kibibytes("7Q")],
            [Some(48 << 10), Some(32 << 20), None]
        );
    }

    #[test]
    fn this_machine_has_a_cpu_and_memory() {
        let environment = Environment::read();
        assert!(environment.memory_bytes.unwrap() > 1 << 20);
        let json: Value = serde_json::from_str(&environment.to_json()).unwrap();
        assert!(json["isa"].as_array().unwrap().contains(&"sse2".into()));
        assert!(json["tsc_ghz"].as_f64().unwrap() > 0.1);
    }
}
