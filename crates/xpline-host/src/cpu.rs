//! CPUs: which there are, on which NUMA node, and how a thread stays on one.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use crate::error::HostError;

/// The CPUs that this process may run on, in order.
pub fn allowed() -> Vec<u32> {
    // SAFETY: a set of zeros is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as it is said to be, and ours.
    let found = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    assert!(found == 0, "a process can read its own affinity");
    (0..libc::CPU_SETSIZE as u32)
        // SAFETY: the index is below the size of the set.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &set) })
        .collect()
}

/// The CPUs to pin threads to: those that were asked for, or those of a node, or all that are allowed.
pub fn choose(asked: &[u32], node: Option<u32>) -> Result<Vec<u32>, HostError> {
    let allowed = allowed();
    let of_node = node.map(cpus_of_node).transpose()?;
    let cpus: Vec<u32> = if asked.is_empty() {
        let in_node = |cpu: &u32| of_node.as_ref().is_none_or(|cpus| cpus.contains(cpu));
        allowed.iter().copied().filter(in_node).collect()
    } else {
        asked.to_vec()
    };
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(HostError::option(
            format!("cpus = {cpu}"),
            format!("no such CPU for this process; it may use {}", ranges(&allowed)),
        ));
    }
    if cpus.len() != cpus.iter().collect::<BTreeSet<_>>().len() {
        return Err(HostError::option(
            "cpus",
            "a CPU is named twice; each thread needs one of its own",
        ));
    }
    if cpus.is_empty() {
        let node = node.unwrap_or_default();
        let problem = format!("has no CPU that this process may use; {}", nodes_with_cpus());
        return Err(HostError::option(format!("cpu node {node}"), problem));
    }
    Ok(cpus)
}

fn cpus_of_node(node: u32) -> Result<Vec<u32>, HostError> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    match fs::read_to_string(path) {
        Ok(text) => Ok(parse_list(&text)),
        Err(_) => Err(HostError::option(
            format!("cpu node {node}"),
            format!("does not exist; {}", nodes_with_cpus()),
        )),
    }
}

fn nodes_with_cpus() -> String {
    match fs::read_to_string("/sys/devices/system/node/has_cpu") {
        Ok(nodes) => format!("nodes with CPUs: {}", nodes.trim()),
        Err(_) => "this machine names no NUMA nodes".into(),
    }
}

/// NUMA nodes with memory.
pub fn memory_nodes() -> Vec<u32> {
    fs::read_to_string("/sys/devices/system/node/has_memory").map_or_else(|_| vec![], |text| parse_list(&text))
}

/// A list as the kernel writes it: `0-3,8`.
pub fn parse_list(text: &str) -> Vec<u32> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    text.trim().split(',').filter_map(part).flatten().collect()
}

/// CPUs as the kernel would list them.
pub fn ranges(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = vec![];
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let text = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Keep this thread on a CPU.
pub fn pin(cpu: u32) -> io::Result<()> {
    // SAFETY: a set of zeros is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the CPU is one that `allowed` found, and so below the size of the set.
    unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    // SAFETY: the set is as large as it is said to be.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The CPU that this thread is on.
pub fn current() -> i32 {
    // SAFETY: the call has no arguments and touches nothing.
    unsafe { libc::sched_getcpu() }
}

/// Seconds of these CPUs that the hypervisor gave to others, since the machine started; 0 where nobody tells.
pub fn stolen(cpus: &[u32]) -> f64 {
    let Ok(all) = fs::read_to_string("/proc/stat") else {
        return 0.0;
    };
    let ticks = |line: &str| {
        let mut words = line.split_whitespace();
        let cpu: u32 = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        let stolen: f64 = words.nth(7)?.parse().ok()?;
        cpus.contains(&cpu).then_some(stolen)
    };
    // SAFETY: the call only looks a constant up.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    all.lines().filter_map(ticks).sum::<f64>() / per_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_as_they_were() {
        for text in ["0", "0-3", "0-3,8,10-11"] {
            assert_eq!(ranges(&parse_list(text)), text);
        }
        assert_eq!(parse_list("\n"), [0u32; 0]);
    }

    #[test]
    fn what_is_not_there_is_named() {
        assert!(choose(&[100_000], None).unwrap_err().to_string().contains("100000"));
        assert!(choose(&[], Some(999)).unwrap_err().to_string().contains("999"));
        let first = allowed()[0];
        assert!(choose(&[first, first], None).unwrap_err().to_string().contains("twice"));
        assert_eq!(choose(&[], None).unwrap(), allowed());
    }

    #[test]
    fn a_pinned_thread_stays() {
        let last = *allowed().last().unwrap();
        std::thread::spawn(move || {
            pin(last).unwrap();
            assert_eq!(current(), last as i32);
        })
        .join()
        .unwrap();
    }
}
