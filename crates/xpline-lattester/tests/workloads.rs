//! Workloads: what their threads ask for, op by op, and what comes out.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use xpline_lattester::{Point, Row, run_point, streams};
use xpline_model::platform::Memory;
use xpline_model::{Op, OpKind, Platform, Program, VOLATILE};

fn platform(name: &str) -> Platform {
    Platform::builtin(name).unwrap()
}

fn point(groups: &str) -> Point {
    Point::parse(&format!(
        r#"{{"experiment": "workload", "name": "test", "groups": [{groups}]}}"#
    ))
    .unwrap()
}

fn run(platform: &Platform, groups: &str) -> Row {
    let point = point(groups);
    point.check(platform).unwrap();
    run_point(platform, &point, &AtomicBool::new(false)).unwrap()
}

fn refused(groups: &str) -> String {
    point(groups).check(&platform("optane")).unwrap_err().to_string()
}

/// The next ops of thread `thread`, without the making of addresses.
fn ops(name: &str, groups: &str, thread: usize, count: usize) -> Vec<Op> {
    let (platform, point) = (platform(name), point(groups));
    point.check(&platform).unwrap();
    let mut stream = streams(&platform, &point).swap_remove(thread);
    std::iter::from_fn(|| stream.next_op())
        .filter(|op| op.kind != OpKind::Compute)
        .take(count)
        .collect()
}

fn addresses(ops: &[Op]) -> Vec<u64> {
    let moves = |op: &&Op| matches!(op.kind, OpKind::Load | OpKind::Store | OpKind::NtStore);
    ops.iter().filter(moves).map(|op| op.addr).collect()
}

const UPDATE: &str = r#"{"name": "update", "threads": 1, "range": 1048576, "mode": "chain", "steps": [
    {"op": "load", "size": 512},
    {"op": "load", "size": 64},
    {"op": "store+clwb", "size": 64, "offset": 320},
    {"op": "ntstore", "size": 128, "offset": -64}]}"#;

#[test]
fn a_chain_awaits_each_read_and_writes_near_the_last_place() {
    use OpKind::*;
    let ops = ops("optane", UPDATE, 0, 18);
    let kinds: Vec<OpKind> = ops.iter().map(|op| op.kind).collect();
    let reads = [&[Lfence][..], &[Load; 8], &[Lfence, Load]].concat();
    let writes = [Store, Clwb, Sfence, NtStore, NtStore, Sfence];
    assert_eq!(kinds, [reads, writes.into(), vec![Lfence]].concat());
    let (bucket, slot) = (ops[1].addr, ops[10].addr);
    assert!(bucket.is_multiple_of(512) && slot.is_multiple_of(64));
    assert_eq!(ops[8].addr, bucket + 7 * 64);
    assert_eq!((ops[11].addr, ops[12].addr), (slot + 320, slot + 320));
    assert_eq!((ops[14].addr, ops[15].addr), (slot + 256, slot + 320));
}

#[test]
fn threads_of_one_partition_take_its_chunks_in_turn() {
    let group = r#"{"name": "scan", "threads": 2, "partitions": 1, "range": 1024, "mode": "sequential",
        "chunk": 256, "steps": [{"op": "load", "size": 128}]}"#;
    let of = |thread| addresses(&ops("optane", group, thread, 8));
    assert_eq!(of(0), [0, 64, 128, 192, 512, 576, 640, 704]);
    assert_eq!(of(1), [256, 320, 384, 448, 768, 832, 896, 960]);
}

#[test]
fn each_thread_has_a_partition_unless_told_otherwise() {
    let group = r#"{"name": "scan", "threads": 4, "range": 4096, "mode": "sequential",
        "steps": [{"op": "ntstore", "size": 64}]}"#;
    for thread in 0..4 {
        let first = addresses(&ops("optane", group, thread, 4));
        assert_eq!(first[0], thread as u64 * 1024);
    }
}

#[test]
fn groups_and_memories_lie_apart() {
    let groups = r#"{"name": "a", "threads": 1, "range": 4096, "volatile_range": 8192, "mode": "chain",
        "steps": [{"op": "load", "size": 64}, {"op": "load", "memory": "volatile", "size": 64}]},
        {"name": "b", "threads": 1, "range": 1024, "mode": "random", "steps": [{"op": "load", "size": 64}]}"#;
    for (name, volatile) in [("optane", VOLATILE), ("dram", 4096 + 1024)] {
        let a = addresses(&ops(name, groups, 0, 400));
        assert!(a.chunks(2).all(|pair| pair[0] < 4096), "{name}");
        assert!(
            a.chunks(2).all(|pair| (volatile..volatile + 8192).contains(&pair[1])),
            "{name}"
        );
        let b = addresses(&ops(name, groups, 1, 400));
        assert!(b.iter().all(|address| (4096..5120).contains(address)), "{name}");
    }
}

/// Pearson's chi-squared test of 100,000 draws of 100 places, at 0.1 % (99 degrees of freedom).
#[test]
fn zipf_draws_fit_their_distribution() {
    const PLACES: u64 = 100;
    const DRAWS: usize = 100_000;
    for (exponent, seed) in [(0.5, 1), (0.9, 2), (0.99, 3), (1.0, 4), (1.5, 5)] {
        let group = format!(
            r#"{{"name": "hot", "threads": 1, "range": {}, "mode": "random", "zipf": {exponent},
            "steps": [{{"op": "load", "size": 64}}]}}"#,
            64 * PLACES
        );
        let (platform, mut point) = (platform("dram"), point(&group));
        point.seed = seed;
        let mut stream = streams(&platform, &point).remove(0);
        let mut seen = [0u32; PLACES as usize];
        let loads = std::iter::from_fn(|| stream.next_op()).filter(|op| op.kind == OpKind::Load);
        loads.take(DRAWS).for_each(|op| seen[(op.addr / 64) as usize] += 1);
        let weights: Vec<f64> = (1..=PLACES).map(|rank| (rank as f64).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let statistic: f64 = weights
            .iter()
            .zip(seen)
            .map(|(weight, seen)| {
                let expected = weight / total * DRAWS as f64;
                (f64::from(seen) - expected).powi(2) / expected
            })
            .sum();
        assert!(statistic < 148.2, "exponent {exponent}: chi-squared is {statistic}");
    }
}

#[test]
fn the_share_of_accesses_to_volatile_memory_is_kept() {
    let group = r#"{"name": "mix", "threads": 1, "range": 1048576, "volatile_range": 1048576, "volatile_share": 0.3,
        "mode": "random", "steps": [{"op": "load", "size": 64}]}"#;
    let addresses = addresses(&ops("optane", group, 0, 10_000));
    let volatile = addresses.iter().filter(|&&address| address >= VOLATILE).count();
    assert!((2850..3150).contains(&volatile), "{volatile} of 10000");
}

fn reads(count: usize, memory: &str) -> String {
    let step = format!(r#"{{"op": "load", "size": 64, "memory": "{memory}"}}"#);
    format!(
        r#"{{"name": "reads", "threads": 1, "range": 2147483648, "volatile_range": 2147483648, "mode": "chain",
        "sample": 1, "steps": [{}]}}"#,
        vec![step; count].join(",")
    )
}

/// Whichever way it is measured: by the iterations a second, or by their latency. Without refreshes, of which the three do not meet
/// three times as many.
#[test]
fn three_dependent_reads_take_three_random_latencies() {
    for name in ["optane", "dram"] {
        let mut platform = platform(name);
        if let Memory::Dram(dram) = &mut platform.memory {
            dram.refresh_halts = false;
        }
        let random = Point::parse(r#"{"experiment": "latency", "op": "load", "pattern": "random"}"#).unwrap();
        let alone = run_point(&platform, &random, &AtomicBool::new(false)).unwrap();
        let alone = alone.latencies.as_ref().unwrap().mean;
        let row = run(&platform, &reads(3, "persistent"));
        for three in [1e9 / row.operations_s.unwrap(), row.latencies.as_ref().unwrap().mean] {
            assert!(
                (three / (3.0 * alone) - 1.0).abs() < 0.1,
                "{name}: {three} ns, one is {alone}"
            );
        }
    }
}

#[test]
fn volatile_memory_answers_as_its_platform_does() {
    let own = run(&platform("dram"), &reads(1, "persistent")).latencies.unwrap().mean;
    let beside = run(&platform("optane"), &reads(1, "volatile"));
    assert!((beside.latencies.as_ref().unwrap().mean / own - 1.0).abs() < 0.02);
    assert_eq!(
        (beside.traffic.media_read_bytes, beside.traffic.ewr, beside.traffic.err),
        (0, None, None)
    );
    let persistent = run(&platform("optane"), &reads(1, "persistent"))
        .latencies
        .unwrap()
        .mean;
    assert!(persistent > 2.0 * own, "{persistent} ns and {own} ns");
}

#[test]
fn groups_have_their_own_results_and_add_up() {
    let row = run(
        &platform("optane"),
        r#"{"name": "readers", "threads": 3, "range": 1073741824, "mode": "random", "sample": 50,
            "steps": [{"op": "load", "size": 256}]},
           {"name": "writers", "threads": 2, "range": 1073741824, "mode": "sequential",
            "steps": [{"op": "ntstore", "size": 256}]}"#,
    );
    let [readers, writers] = &row.parts[..] else {
        panic!("{:?}", row.parts)
    };
    assert_eq!((readers.threads, writers.threads, row.settings.threads), (3, 2, 5));
    assert!(readers.latencies.is_some() && writers.latencies.is_none());
    let of_bandwidth =
        |part: &xpline_lattester::Part| part.operations_s * 256.0 / f64::from(1 << 20) / part.bandwidth_mib_s;
    assert!((of_bandwidth(readers) - 1.0).abs() < 1e-9 && (of_bandwidth(writers) - 1.0).abs() < 1e-9);
    let sum = readers.bandwidth_mib_s + writers.bandwidth_mib_s;
    assert!((sum / row.bandwidth_mib_s.unwrap() - 1.0).abs() < 0.01);
    assert!((row.operations_s.unwrap() / (readers.operations_s + writers.operations_s) - 1.0).abs() < 1e-9);
}

#[test]
fn a_run_ends_with_its_operations() {
    let group = r#"{"name": "few", "threads": 1, "range": 1048576, "operations": 1000, "mode": "random",
        "steps": [{"op": "load", "size": 128}]}"#;
    assert!(run(&platform("dram"), group).requests <= 2000);
}

/// A quarter of it is warm-up.
#[test]
fn a_run_ends_with_its_time() {
    let group = |rest: &str| {
        format!(
            r#"{{"name": "short", "threads": 4, "range": 1073741824, "mode": "random", {rest}
            "steps": [{{"op": "ntstore", "size": 64}}]}}"#
        )
    };
    let platform = platform("optane-ni");
    for microseconds in [20, 200] {
        let row = run(
            &platform,
            &group(&format!(r#""run_time": {microseconds}e-6, "operations": 1,"#)),
        );
        let all = row.time_ns / 0.75 / 1000.0;
        assert!(
            (all / f64::from(microseconds) - 1.0).abs() < 1e-6,
            "{all} us of {microseconds}"
        );
    }
    // A mean that is known needs no more: the run is the one without a bound.
    let known = |rest: &str| run(&platform, &group(rest)).time_ns;
    assert!((known(r#""run_time": 1.0,"#) / known("") - 1.0).abs() < 0.2);
    for wrong in ["0", "1e-9", "1e7"] {
        let message = refused(&group(&format!(r#""run_time": {wrong},"#)));
        assert!(
            message.contains("run_time = ") && message.contains("must be from 0.000001 to 1000000 s"),
            "{message}"
        );
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let with = |rest: &str| format!(r#"{{"name": "g", "threads": 4, "range": 4096, "mode": "random", {rest}}}"#);
    let load = r#""steps": [{"op": "load", "size": 64}]"#;
    for (rest, part) in [
        (
            format!(r#""partitions": 3, {load}"#),
            "partitions = 3: group g: must divide threads = 4",
        ),
        (
            format!(r#""volatile_share": 0.5, {load}"#),
            "volatile_share = 0.5: group g: needs",
        ),
        (
            format!(r#""volatile_share": 1.5, {load}"#),
            "volatile_share = 1.5: group g: must be 0 to 1",
        ),
        (
            format!(r#""zipf": -1.0, {load}"#),
            "zipf = -1: group g: must be above 0",
        ),
        (r#""steps": []"#.into(), "steps = 0: group g: must be one"),
        (
            r#""steps": [{"op": "load", "size": 100}]"#.into(),
            "size = 100: group g: must be a multiple of 64",
        ),
        (
            r#""steps": [{"op": "load", "size": 2048}]"#.into(),
            "at most a partition",
        ),
        (
            r#""steps": [{"op": "ntstore", "size": 64, "offset": 3}]"#.into(),
            "offset = 3: group g",
        ),
        (
            format!(r#""operations": 0, {load}"#),
            "operations = 0: group g: must be at least 1",
        ),
    ] {
        let message = refused(&with(&rest));
        assert!(message.contains(part), "{message}");
    }
    let chain = |steps: &str| {
        refused(&format!(
            r#"{{"name": "g", "threads": 1, "range": 4096, "volatile_range": 4096, "mode": "chain", "steps": [{steps}]}}"#
        ))
    };
    assert!(chain(r#"{"op": "ntstore", "size": 64}"#).contains("begins with a read"));
    let crossed = r#"{"op": "load", "size": 64}, {"op": "ntstore", "size": 64, "memory": "volatile"}"#;
    assert!(chain(crossed).contains("the memory that was read before it"));
    assert!(refused(&with(load).replace("\"threads\": 4", "\"threads\": 99")).contains("threads = 99"));
    let huge = with(load).replace("4096", "1000000000000");
    assert!(refused(&huge).contains("all groups together have 103079215104 B"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the offsets, sizes and partitions, each thread stays inside its own partition.
    #[test]
    fn threads_stay_in_their_partitions(
        (threads, partitions) in prop::sample::select(vec![(1, 0), (1, 1), (4, 0), (4, 2), (6, 3)]),
        lines in prop::collection::vec((1..8u64, -20..20i64, any::<bool>()), 0..4),
        zipf in prop::option::of(0.1..2.0f64),
    ) {
        let step = |&(lines, offset, load): &(u64, i64, bool)| if load {
            format!(r#"{{"op": "load", "size": {}}}"#, 64 * lines)
        } else {
            format!(r#"{{"op": "store+clwb", "size": {}, "offset": {}}}"#, 64 * lines, 64 * offset)
        };
        let steps: Vec<String> = [(1, 0, true)].iter().chain(&lines).map(step).collect();
        let zipf = zipf.map_or("null".into(), |zipf| zipf.to_string());
        let group = format!(
            r#"{{"name": "g", "threads": {threads}, "partitions": {partitions}, "range": 6144, "mode": "chain",
            "zipf": {zipf}, "steps": [{}]}}"#, steps.join(","));
        let parts = if partitions == 0 { threads } else { partitions };
        let bytes = 6144 / parts / 64 * 64;
        for thread in 0..threads {
            let own = thread / (threads / parts) * bytes;
            let ops = ops("optane", &group, thread as usize, 200);
            prop_assert!(addresses(&ops).iter().all(|address| (own..own + bytes).contains(address)));
        }
    }
}
