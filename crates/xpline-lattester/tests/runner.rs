//! Points measured on the model: the same bits always, and bytes that add up.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use xpline_latency::Latencies;
use xpline_lattester::{Point, Row, Stream, read_points, run_point, run_points, streams};
use xpline_model::{Counters, Machine, Op, OpKind, Platform, Program};

fn run(platform: &Platform, json: &str) -> Row {
    let point = read_points(platform, &[json]).unwrap().remove(0);
    run_point(platform, &point, &AtomicBool::new(false)).unwrap()
}

fn builtin(name: &str) -> Platform {
    Platform::builtin(name).unwrap()
}

fn with(name: &str, overrides: &[&str]) -> Platform {
    let overrides: Vec<_> = overrides.iter().map(|text| text.to_string()).collect();
    Platform::load(name, &overrides, &|path| panic!("{path} is built in")).unwrap()
}

#[test]
fn rows_come_in_order_whatever_the_number_of_jobs() {
    let platform = builtin("optane");
    let json: Vec<_> = [
        ("load", 1),
        ("ntstore", 6),
        ("store", 2),
        ("store+clwb", 24),
        ("load", 8),
    ]
    .map(|(op, threads)| {
        format!(
            r#"{{"experiment": "random", "op": "{op}", "size": 4096, "threads": {threads}, "max_requests": 70000}}"#
        )
    })
    .into();
    let points = read_points(&platform, &json).unwrap();
    let rows = |jobs| run_points(&platform, &points, jobs, &AtomicBool::new(false), |_, _| ()).unwrap();
    let alone: Vec<_> = json.iter().map(|json| run(&platform, json)).collect();
    assert_eq!(rows(1), alone);
    assert_eq!(rows(3), alone);
}

#[test]
fn every_finished_row_is_announced() {
    let platform = builtin("dram");
    let json =
        ["load", "ntstore"].map(|op| format!(r#"{{"experiment": "latency", "op": "{op}", "pattern": "random"}}"#));
    let points = read_points(&platform, &json).unwrap();
    let heard = std::sync::Mutex::new(vec![None; 2]);
    let hear = |index: usize, row: &Row| heard.lock().unwrap()[index] = Some(row.clone());
    let rows = run_points(&platform, &points, 2, &AtomicBool::new(false), hear).unwrap();
    assert_eq!(
        heard.into_inner().unwrap(),
        rows.into_iter().map(Some).collect::<Vec<_>>()
    );
}

#[test]
fn a_sweep_that_is_stopped_has_no_result() {
    let platform = builtin("dram");
    let points = [r#"{"experiment": "xpbuffer", "lines": 4}"#; 3];
    let points = read_points(&platform, &points).unwrap();
    assert_eq!(
        run_points(&platform, &points, 1, &AtomicBool::new(true), |_, _| ()),
        None
    );
    assert_eq!(run_point(&platform, &points[0], &AtomicBool::new(true)), None);
}

#[test]
fn a_point_runs_until_it_settles_or_its_requests_run_out() {
    let platform = builtin("optane-ni");
    let steady = run(
        &platform,
        r#"{"experiment": "stride", "op": "load", "size": 64, "stride": 64, "threads": 1}"#,
    );
    assert!(steady.settled && steady.requests < 70_000, "{steady:?}");
    let short = r#"{"experiment": "random", "op": "ntstore", "size": 64, "threads": 1, "max_requests": 100}"#;
    let short = run(&platform, short);
    assert!(short.requests <= 200, "{short:?}");
}

#[test]
fn latency_has_percentiles_and_no_bandwidth() {
    let row = run(
        &builtin("optane-ni"),
        r#"{"experiment": "latency", "op": "load", "pattern": "sequential"}"#,
    );
    let Latencies {
        mean,
        p50,
        p90,
        p99,
        p999,
        max,
        ..
    } = row.latencies.unwrap();
    let percentiles = [p50, p90, p99, p999, max];
    assert!(percentiles.is_sorted(), "{percentiles:?}");
    // One load in four misses the XPBuffer.
    assert!((mean - (3.0 * p50 + p90) / 4.0).abs() < 0.02 * p90);
    assert_eq!(row.bandwidth_mib_s, None);
}

#[test]
fn a_seed_of_its_own_gives_another_run_of_the_same_experiment() {
    let platform = builtin("optane");
    let bandwidth = |seed: u64| {
        let json = format!(r#"{{"experiment": "random", "op": "load", "size": 256, "threads": 4, "seed": {seed}}}"#);
        run(&platform, &json).bandwidth_mib_s.unwrap()
    };
    let (one, two) = (bandwidth(1), bandwidth(2));
    assert!(one != two && (one - two).abs() < 0.03 * one, "{one} {two}");
}

/// A stream that ends.
struct First(Stream, usize);

impl Program for First {
    fn next_op(&mut self) -> Option<Op> {
        self.1 = self.1.checked_sub(1)?;
        self.0.next_op()
    }

    fn stamp(&mut self, now: u64) {
        self.0.stamp(now);
    }
}

/// What is counted while the first `ops` ops of each thread of a point run to their end.
fn count(platform: &Platform, json: &str, ops: usize) -> Counters {
    let point = Point::parse(json).unwrap();
    let mut programs: Vec<_> = streams(platform, &point)
        .into_iter()
        .map(|stream| First(stream, ops))
        .collect();
    Machine::new(platform).run(&mut programs)
}

fn experiments() -> impl Strategy<Value = String> {
    let op = prop::sample::select(vec!["load", "ntstore", "store", "store+clwb"]);
    let pattern = prop::sample::select(vec!["sequential", "random"]);
    let lines = || (1u64..=80).prop_map(|lines| 64 * lines);
    let threads = || 1u32..=12;
    let intervals = (0u32..=4, 0u32..=4, 0u32..=4);
    let binding = prop::sample::select(vec![
        "own-all",
        "own-dimm",
        "shared-imc",
        "own-pair",
        "ni-shared-all",
        "ni-own-dimm",
    ]);
    prop_oneof![
        (op.clone(), lines(), threads()).prop_map(|(op, size, threads)| format!(
            r#"{{"experiment": "random", "op": "{op}", "size": {size}, "threads": {threads}}}"#
        )),
        (op.clone(), lines(), lines(), threads()).prop_map(|(op, size, stride, threads)| format!(
            r#"{{"experiment": "stride", "op": "{op}", "size": {size}, "stride": {stride}, "threads": {threads}}}"#
        )),
        (pattern.clone(), intervals, threads()).prop_map(|(pattern, (a, b, c), threads)| format!(
            r#"{{"experiment": "flush", "pattern": "{pattern}", "size": {}, "clwb": {}, "fence": {}, "threads": {threads}}}"#,
            64 << (a + b + c),
            64 << a,
            64 << (a + b)
        )),
        (op, 0u32..=2, binding, threads()).prop_map(|(op, size, binding, threads)| format!(
            r#"{{"experiment": "align", "op": "{op}", "size": {}, "binding": "{binding}", "threads": {threads}}}"#,
            64 << size
        )),
        (prop::sample::select(vec!["load", "ntstore", "store+clwb"]), pattern)
            .prop_map(|(op, pattern)| format!(r#"{{"experiment": "latency", "op": "{op}", "pattern": "{pattern}"}}"#)),
        (1u64..200).prop_map(|lines| format!(r#"{{"experiment": "xpbuffer", "lines": {lines}}}"#)),
        (0u32..4, 0u32..3, prop::sample::select(vec!["ntstore", "store", "store+clwb"]), lines(), 1u32..=8, 0u64..900)
            .prop_map(|(reads, writes, op, size, threads, delay)| {
                let (reads, writes) = (reads.max(writes).max(1), writes);
                let common = format!(
                    r#""mix": "{reads}:{writes}", "op": "{op}", "pattern": "random", "region": 1048576, "threads": {threads}"#
                );
                match delay {
                    0..450 => format!(r#"{{"experiment": "mix", "size": {size}, {common}}}"#),
                    _ => format!(r#"{{"experiment": "loaded", "delay": {delay}, {common}}}"#),
                }
            }),
        (prop::sample::select(vec!["ntstore", "store+clwb"]), lines())
            .prop_map(|(op, size)| format!(r#"{{"experiment": "persist-latency", "op": "{op}", "size": {size}}}"#)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every stream of every experiment runs to its end, and does what it was asked to do.
    #[test]
    fn any_stream_finishes(json in experiments(), name in prop::sample::select(vec!["optane", "dram"])) {
        let platform = builtin(name);
        let ops = 3000;
        let mut asked = [0; 4];
        for mut stream in streams(&platform, &read_points(&platform, &[&json]).unwrap()[0]) {
            for op in (0..ops).filter_map(|_| stream.next_op()) {
                match op.kind {
                    OpKind::Load => asked[0] += 1,
                    OpKind::Store => asked[1] += 1,
                    OpKind::NtStore => asked[2] += 1,
                    OpKind::Clwb => asked[3] += 1,
                    _ => {}
                }
            }
        }
        let core = count(&platform, &json, ops).core;
        prop_assert_eq!([core.loads, core.stores, core.nt_stores, core.flushes], asked);
    }

    /// Lines that are touched once cross the memory controllers once: read if loaded or stored to, written if
    /// written past the caches or flushed.
    #[test]
    fn bytes_are_conserved_between_cores_and_controllers(
        op in prop::sample::select(vec!["load", "ntstore", "store+clwb"]),
        lines in 1u64..32,
        threads in 1u32..=8,
        name in prop::sample::select(vec!["optane", "optane-ni", "dram"]),
    ) {
        let size = 64 * lines;
        let json =
            format!(r#"{{"experiment": "stride", "op": "{op}", "size": {size}, "stride": {size}, "threads": {threads}}}"#);
        let whole_accesses = 1000 / (2 * lines + 1) + 1;
        let ops_of_access = if op == "store+clwb" { 2 * lines + 1 } else { lines + 1 };
        let counted = count(&builtin(name), &json, (whole_accesses * ops_of_access) as usize);
        let touched = whole_accesses * lines * u64::from(threads);
        let controllers = counted.dimm_total();
        prop_assert_eq!(controllers.reads, if op == "ntstore" { 0 } else { touched });
        prop_assert_eq!(controllers.writes, if op == "load" { 0 } else { touched });
        prop_assert!(controllers.media_reads * counted.media_line_bytes >= controllers.reads * 64);
    }

    /// One thread does not notice what it does not use.
    #[test]
    fn unrelated_parts_of_a_platform_do_not_matter(
        (op, unrelated) in prop_oneof![
            Just(("load", vec!["core.nt_interval=1us", "core.flush_interval=1us", "core.store_buffer=1", "imc.wpq=8"])),
            Just(("ntstore", vec!["core.store_rfo_depth=0", "core.flush_interval=1us", "l2.size=64KiB", "l3.hit=1us"])),
        ],
        which in any::<prop::sample::Index>(),
        size in (1u64..=16).prop_map(|lines| 64 * lines),
        pattern in prop::sample::select(vec!["random", "stride"]),
    ) {
        let stride = if pattern == "stride" { format!(r#""stride": {size}, "#) } else { String::new() };
        let json = format!(
            r#"{{"experiment": "{pattern}", "op": "{op}", "size": {size}, {stride}"threads": 1, "max_requests": 20000}}"#
        );
        let other = which.get(&unrelated);
        let plain = run(&builtin("optane-ni"), &json);
        prop_assert_eq!(&run(&with("optane-ni", &[other]), &json), &plain, "{}", other);
        prop_assert_eq!(&run(&with("optane-ni", &["core.count=1"]), &json), &plain);
    }
}

/// What a store brings into full caches pushes as much out of them, however far accesses overlap.
#[test]
fn stores_are_measured_with_caches_full_of_dirty_lines() {
    for (size, stride) in [(64, 64), (2048, 64), (4096, 192), (8192, 4096)] {
        let json = format!(
            r#"{{"experiment": "stride", "op": "store", "size": {size}, "stride": {stride}, "threads": 1, "max_requests": 400000}}"#
        );
        let row = run(&builtin("optane-ni"), &json);
        let ratio = row.traffic.imc_written_bytes as f64 / row.traffic.imc_read_bytes as f64;
        assert!((ratio - 1.0).abs() < 0.02, "{size} B every {stride} B: {ratio}");
    }
}
