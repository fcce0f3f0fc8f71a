//! Reads and writes mixed, and latency under load.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use xpline_lattester::{Row, read_points, run_point, streams};
use xpline_model::{Op, OpKind, Platform, Program};

fn run(platform: &str, json: &str) -> Row {
    let platform = Platform::builtin(platform).unwrap();
    let point = read_points(&platform, &[json]).unwrap().remove(0);
    run_point(&platform, &point, &AtomicBool::new(false)).unwrap()
}

/// The first ops of a thread.
fn ops(json: &str, thread: usize, count: usize) -> Vec<Op> {
    let platform = Platform::builtin("optane").unwrap();
    let point = read_points(&platform, &[json]).unwrap().remove(0);
    let mut stream = streams(&platform, &point).remove(thread);
    (0..count).filter_map(|_| stream.next_op()).collect()
}

/// Kinds, and addresses from the first load and the first write on.
fn kinds(ops: &[Op]) -> Vec<(OpKind, u64)> {
    let first = |is_load: bool| ops.iter().find(|op| (op.kind == OpKind::Load) == is_load).unwrap().addr;
    let from = |op: &Op| match op.kind {
        OpKind::Load => op.addr - first(true),
        _ => op.addr - first(false) + GIB,
    };
    ops.iter().map(|op| (op.kind, from(op))).collect()
}

fn mix(mix: &str, op: &str, threads: u32) -> String {
    format!(r#"{{"experiment": "mix", "mix": "{mix}", "op": "{op}", "pattern": "sequential", "threads": {threads}}}"#)
}

const GIB: u64 = 1 << 30;

#[test]
fn a_store_is_one_of_the_reads_and_an_ntstore_is_not() {
    use OpKind::{Clwb, Load, NtStore, Store};
    let through = ops(&mix("3:1", "store", 1), 0, 6);
    let expected = [
        (Load, 0),
        (Load, 64),
        (Store, GIB),
        (Load, 128),
        (Load, 192),
        (Store, GIB + 64),
    ];
    assert_eq!(kinds(&through), expected);
    let past = ops(&mix("1:2", "ntstore", 1), 0, 6);
    let expected = [
        (Load, 0),
        (NtStore, GIB),
        (NtStore, GIB + 64),
        (Load, 64),
        (NtStore, GIB + 128),
        (NtStore, GIB + 192),
    ];
    assert_eq!(kinds(&past), expected);
    let flushed = ops(&mix("2:1", "store+clwb", 1), 0, 4);
    assert_eq!(kinds(&flushed), [(Load, 0), (Store, GIB), (Clwb, GIB), (Load, 64)]);
}

#[test]
fn a_pause_follows_each_line_and_the_first_thread_chases() {
    let json =
        r#"{"experiment": "loaded", "mix": "1:0", "op": "load", "pattern": "sequential", "delay": 22, "threads": 1}"#;
    let busy = ops(json, 1, 4);
    // 22 clocks of 2.2 GHz.
    assert_eq!(busy[1].kind, OpKind::Compute);
    assert!((1..=20_000).contains(&busy[1].addr));
    assert_eq!(busy[2], Op::new(OpKind::Load, busy[0].addr + 64, 64));
    let timed: Vec<_> = ops(json, 0, 4).iter().map(|op| op.kind).collect();
    assert_eq!(timed, [OpKind::Stamp, OpKind::Load, OpKind::Mfence, OpKind::Stamp]);
}

/// With full caches, every line stored to is read once and written back once.
#[test]
fn memory_sees_the_ratio_that_was_asked_for() {
    for (ratio, op, reads_over_writes) in [("2:1", "store", 2.0), ("1:1", "store", 1.0), ("3:2", "ntstore", 1.5)] {
        let row = run("dram", &mix(ratio, op, 4));
        let seen = row.traffic.imc_read_bytes as f64 / row.traffic.imc_written_bytes as f64;
        assert!((seen / reads_over_writes - 1.0).abs() < 0.05, "{ratio} {op}: {seen}");
        let moved = row.traffic.imc_read_bytes + row.traffic.imc_written_bytes;
        assert!((row.bytes as f64 / moved as f64 - 1.0).abs() < 0.05, "{ratio} {op}");
    }
}

/// FAST'20, section 5.4: mixed traffic of several threads is what suffers on the other socket's Optane; that on DRAM, pure
/// traffic and a single thread suffer little.
#[test]
fn mixed_traffic_of_several_threads_collapses_on_remote_optane_only() {
    let gap = |memory: &str, json: &str| {
        let [near, far] = [memory.to_string(), format!("{memory}-remote")].map(|name| run(&name, json).bandwidth_mib_s);
        near.unwrap() / far.unwrap()
    };
    let sixteen = mix("1:1", "store+clwb", 16);
    assert!(gap("optane", &sixteen) > 10.0);
    assert!(gap("dram", &sixteen) < 4.0);
    for json in [mix("1:0", "load", 16), mix("0:1", "ntstore", 4), mix("1:1", "store", 1)] {
        assert!(gap("optane", &json) < 3.0, "{json}");
    }
}

#[test]
fn latency_rises_with_the_load_and_bandwidth_with_it() {
    let loaded = |delay: u64| {
        run(
            "dram",
            &format!(
                r#"{{"experiment": "loaded", "mix": "1:0", "op": "load", "pattern": "random", "delay": {delay}, "threads": 20}}"#
            ),
        )
    };
    let (busy, calm, idle) = (loaded(0), loaded(1000), loaded(100_000));
    let mean = |row: &Row| row.latencies.as_ref().unwrap().mean;
    assert!(mean(&busy) > mean(&calm) && mean(&calm) >= mean(&idle));
    assert!(busy.bandwidth_mib_s > calm.bandwidth_mib_s && calm.bandwidth_mib_s > idle.bandwidth_mib_s);
    let alone = run(
        "dram",
        r#"{"experiment": "latency", "op": "load", "pattern": "random"}"#,
    );
    assert!((mean(&idle) / mean(&alone) - 1.0).abs() < 0.03);
}

/// However many ops have passed the caches before, it is the loads that are timed and not the time between them.
#[test]
fn loads_are_timed_beside_stores_of_any_number_of_threads() {
    for threads in 13..17 {
        let json = format!(
            r#"{{"experiment": "loaded", "mix": "2:1", "op": "store", "pattern": "random", "delay": 100, "threads": {threads}, "max_requests": 100000}}"#
        );
        assert!(run("dram", &json).latencies.unwrap().p50 > 80.0, "{threads} threads");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A round has what the ratio says, and no line lies outside of the two buffers.
    #[test]
    fn rounds_keep_the_ratio(
        reads in 1u32..20,
        writes in 0u32..20,
        lines in 1u64..9,
        op in prop::sample::select(vec!["store", "ntstore", "store+clwb"]),
        pattern in prop::sample::select(vec!["sequential", "random"]),
    ) {
        let reads = if op == "ntstore" { reads } else { reads.max(writes) };
        let (size, region) = (64 * lines, 64 * 1000);
        let json = format!(
            r#"{{"experiment": "mix", "mix": "{reads}:{writes}", "op": "{op}", "pattern": "{pattern}", "size": {size}, "region": {region}, "threads": 2}}"#
        );
        let loads = u64::from(if op == "ntstore" { reads } else { reads - writes }) * lines;
        let stores = u64::from(writes) * lines;
        let of_round = loads + stores * if op == "store+clwb" { 2 } else { 1 };
        let round = ops(&json, 1, 3 * of_round as usize);
        let base = 2 * GIB;
        for op in &round {
            let start = if op.kind == OpKind::Load { base } else { base + GIB };
            prop_assert!((start..start + region).contains(&op.addr));
        }
        let count = |kind| round.iter().filter(|op| op.kind == kind).count() as u64;
        prop_assert_eq!(count(OpKind::Load), 3 * loads);
        prop_assert_eq!(count(OpKind::Store) + count(OpKind::NtStore), 3 * stores);
        prop_assert_eq!(count(OpKind::Clwb), if op == "store+clwb" { 3 * stores } else { 0 });
    }
}
