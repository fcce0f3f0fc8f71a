//! The op streams, op by op.

use std::collections::BTreeSet;

use xpline_lattester::{Mark, Point, Stream, streams};
use xpline_model::{Op, OpKind, Platform, Program};

const GIB: u64 = 1 << 30;
const REGION: u64 = 2 * GIB;

fn point(json: &str) -> Point {
    Point::parse(json).unwrap()
}

fn all_streams(platform: &str, json: &str) -> Vec<Stream> {
    let (platform, point) = (Platform::builtin(platform).unwrap(), point(json));
    point.check(&platform).unwrap();
    streams(&platform, &point)
}

/// The first ops of the first thread on one Optane DIMM.
fn ops(json: &str, count: usize) -> Vec<Op> {
    take(&mut all_streams("optane-ni", json)[0], count)
}

fn take(stream: &mut Stream, count: usize) -> Vec<Op> {
    std::iter::from_fn(|| stream.next_op()).take(count).collect()
}

/// Kinds and addresses, the latter from the lowest on.
fn relative(ops: &[Op]) -> Vec<(OpKind, u64)> {
    let first = ops
        .iter()
        .filter(|op| op.size > 0 && op.kind != OpKind::Compute)
        .map(|op| op.addr)
        .min()
        .unwrap();
    ops.iter().map(|op| (op.kind, op.addr.saturating_sub(first))).collect()
}

fn accesses(stream: &mut Stream, count: usize) -> Vec<u64> {
    let ops = std::iter::from_fn(|| stream.next_op());
    ops.filter(|op| op.kind != OpKind::Compute)
        .map(|op| op.addr)
        .take(count)
        .collect()
}

#[test]
fn lines_that_a_stream_foretells_come_some_places_later() {
    for (platform, json, lines_ahead) in [
        (
            "optane-ni",
            r#"{"experiment": "random", "op": "load", "size": 64, "threads": 1}"#,
            8,
        ),
        (
            "optane",
            r#"{"experiment": "random", "op": "load", "size": 192, "threads": 1}"#,
            9,
        ),
        (
            "optane",
            r#"{"experiment": "random", "op": "store", "size": 4096, "threads": 1}"#,
            64,
        ),
        (
            "optane",
            r#"{"experiment": "align", "op": "load", "size": 256, "binding": "own-pair", "threads": 1}"#,
            8,
        ),
        (
            "optane",
            r#"{"experiment": "stride", "op": "load", "size": 128, "stride": 1024, "threads": 1}"#,
            8,
        ),
    ] {
        let (mut lines, mut foretold) = (Vec::new(), Vec::new());
        let stream = &mut all_streams(platform, json)[0];
        while lines.len() < 1000 {
            let op = stream.next_op().unwrap();
            stream.foretell(|address| foretold.push(address));
            if op.kind != OpKind::Compute {
                lines.push(op.addr);
            }
        }
        assert_eq!(lines[lines_ahead..], foretold[..lines.len() - lines_ahead], "{json}");
    }
}

#[test]
fn an_access_is_its_address_and_then_its_lines_in_ascending_order() {
    let platform = Platform::builtin("optane-ni").unwrap();
    let ops = ops(
        r#"{"experiment": "random", "op": "ntstore", "size": 192, "threads": 1}"#,
        8,
    );
    assert_eq!(
        (ops[0].kind, ops[0].size),
        (OpKind::Compute, platform.core.random_overhead)
    );
    assert_eq!(ops[1].addr % 192, 0);
    for (i, op) in ops[1..4].iter().enumerate() {
        assert_eq!(*op, Op::new(OpKind::NtStore, ops[1].addr + 64 * i as u64, 64));
    }
    assert_eq!(ops[4].kind, OpKind::Compute);
    assert_ne!(ops[5].addr, ops[1].addr);
}

#[test]
fn every_line_of_store_clwb_is_flushed_at_once() {
    let ops = ops(
        r#"{"experiment": "random", "op": "store+clwb", "size": 128, "threads": 1}"#,
        5,
    );
    let at = ops[1].addr;
    assert_eq!(
        ops[1..].iter().map(|op| (op.kind, op.addr - at)).collect::<Vec<_>>(),
        [
            (OpKind::Store, 0),
            (OpKind::Clwb, 0),
            (OpKind::Store, 64),
            (OpKind::Clwb, 64)
        ]
    );
}

#[test]
fn random_accesses_cover_the_region_of_their_thread_and_no_other() {
    let mut streams = all_streams(
        "optane",
        r#"{"experiment": "random", "op": "load", "size": 4096, "threads": 3}"#,
    );
    for (thread, stream) in streams.iter_mut().enumerate() {
        let base = thread as u64 * REGION;
        let eighths: BTreeSet<_> = accesses(stream, 64 * 200)
            .into_iter()
            .map(|addr| {
                assert!((base..base + REGION).contains(&addr));
                (addr - base) / (REGION / 8)
            })
            .collect();
        assert_eq!(eighths.len(), 8);
    }
}

#[test]
fn the_seed_sets_the_addresses() {
    let first = |seed| {
        ops(
            &format!(r#"{{"experiment": "random", "op": "load", "size": 64, "threads": 1, "seed": {seed}}}"#),
            100,
        )
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

#[test]
fn a_stride_is_from_one_access_to_the_next() {
    let ops = ops(
        r#"{"experiment": "stride", "op": "load", "size": 128, "stride": 1024, "threads": 1}"#,
        9,
    );
    let loads: Vec<u64> = ops
        .iter()
        .filter(|op| op.kind == OpKind::Load)
        .map(|op| op.addr)
        .collect();
    let at = loads[0];
    assert_eq!(loads, [0, 64, 1024, 1088, 2048, 2112].map(|offset| at + offset));
}

/// A loop of stores that is neither one turn nor long takes its time line by line.
#[test]
fn short_loops_of_strided_stores_take_time_by_the_line() {
    let core = Platform::builtin("optane-ni").unwrap().core;
    let making = |op: &str, lines: u32| {
        let size = 64 * lines;
        let json = format!(r#"{{"experiment": "stride", "stride": 0, "op": "{op}", "size": {size}, "threads": 1}}"#);
        let made = ops(&json, 1)[0];
        assert_eq!((made.kind, made.size), (OpKind::Compute, core.stride_overhead));
        made.addr
    };
    let without = (f64::from(core.stride_overhead) * 1e3 / (core.clock * core.ipc)) as u64;
    assert_eq!([1, 4, core.stride_exit].map(|lines| making("store", lines)), [0; 3]);
    assert_eq!(making("load", 8), 0);
    for lines in [8, 16] {
        assert_eq!(making("store", lines), without + u64::from(lines) * core.stride_store);
    }
}

/// The end of a long loop is foreseen wrongly: the core has begun on the line behind the access by then, if it loads.
#[test]
fn a_long_strided_access_ends_in_a_wrong_turn() {
    use OpKind::{Compute, Mispredict, Prefetch};
    let long = 64 * u64::from(Platform::builtin("optane-ni").unwrap().core.stride_exit);
    let ends = |experiment: &str, op: &str, size: u64| {
        let json = format!(r#"{{"experiment": {experiment}, "op": "{op}", "size": {size}, "threads": 1}}"#);
        let ops = ops(&json, size as usize / 64 + 4);
        assert_eq!(ops[0].kind, Compute);
        let first = ops[1].addr;
        let ends = ops[1 + size as usize / 64..].iter().map(move |op| (op.kind, op.addr));
        let ends = ends.take_while(|&(kind, _)| kind != Compute);
        let ends: Vec<_> = ends.map(|(kind, addr)| (kind, addr.wrapping_sub(first))).collect();
        ends
    };
    let strided = r#""stride", "stride": 1024"#;
    let [overrun, turn] = ends(strided, "load", long)[..] else {
        panic!("two ops end a long load")
    };
    assert_eq!((overrun, turn.0), ((Prefetch, long), Mispredict));
    let kinds: Vec<_> = ends(strided, "ntstore", long).iter().map(|end| end.0).collect();
    assert_eq!(kinds, [Mispredict]);
    assert_eq!(ends(strided, "load", long - 64), []);
    assert_eq!(ends(r#""random""#, "load", long), []);
}

#[test]
fn a_strided_access_may_be_fenced_at_intervals() {
    use OpKind::{Clwb, Compute, Sfence, Store};
    let json = r#"{"experiment": "stride", "op": "store+clwb", "size": 128, "stride": 128, "fence": 64, "threads": 1}"#;
    let kinds: Vec<_> = ops(json, 8).iter().map(|op| op.kind).collect();
    assert_eq!(kinds, [Compute, Store, Clwb, Sfence, Store, Clwb, Sfence, Compute]);
}

#[test]
fn a_stride_of_nothing_repeats_the_place() {
    let ops = ops(
        r#"{"experiment": "stride", "op": "store", "size": 64, "stride": 0, "threads": 1}"#,
        6,
    );
    assert_eq!(
        ops.iter()
            .filter(|op| op.kind == OpKind::Store)
            .map(|op| op.addr)
            .collect::<Vec<_>>(),
        [0; 3]
    );
}

#[test]
fn a_stride_wraps_at_the_end_of_the_region() {
    let json = r#"{"experiment": "stride", "op": "load", "size": 64, "stride": 536870912, "threads": 2}"#;
    let mut visited = accesses(&mut all_streams("optane", json)[1], 8);
    assert_eq!(visited[..4], visited[4..]);
    visited.truncate(4);
    visited.sort();
    assert_eq!(visited, [0, 1, 2, 3].map(|half| REGION + half * GIB / 2));
}

#[test]
fn flushes_and_fences_come_at_their_intervals() {
    use OpKind::{Clwb, Compute, Sfence, Store};
    let json =
        r#"{"experiment": "flush", "pattern": "sequential", "size": 256, "clwb": 128, "fence": 256, "threads": 1}"#;
    let ops = ops(json, 11);
    let expected = [
        (Store, 0),
        (Store, 64),
        (Clwb, 0),
        (Clwb, 64),
        (Store, 128),
        (Store, 192),
        (Clwb, 128),
        (Clwb, 192),
    ];
    assert_eq!(ops[0].kind, Compute);
    assert_eq!(relative(&ops[1..9]), expected);
    assert_eq!((ops[9].kind, ops[10].kind), (Sfence, Compute));
}

#[test]
fn a_fence_can_come_more_often_than_an_access() {
    use OpKind::{Clwb, Compute, Sfence, Store};
    let json = r#"{"experiment": "flush", "pattern": "random", "size": 128, "clwb": 64, "fence": 64, "threads": 1}"#;
    let kinds: Vec<_> = ops(json, 8).iter().map(|op| op.kind).collect();
    assert_eq!(kinds, [Compute, Store, Clwb, Sfence, Store, Clwb, Sfence, Compute]);
}

#[test]
fn sequential_flushes_walk_on_and_random_ones_do_not() {
    let starts = |pattern: &str| {
        let json = format!(
            r#"{{"experiment": "flush", "pattern": "{pattern}", "size": 256, "clwb": 64, "fence": 256, "threads": 1}}"#
        );
        let ops = ops(&json, 3 * 10);
        let firsts = ops
            .iter()
            .zip(&ops[1..])
            .filter(|(op, _)| op.kind == OpKind::Compute)
            .map(|(_, first)| first.addr);
        firsts.collect::<Vec<_>>()
    };
    let sequential = starts("sequential");
    assert_eq!(sequential, [0, 256, 512].map(|offset| sequential[0] + offset));
    let random = starts("random");
    assert!(
        random.iter().all(|addr| addr % 256 == 0) && random[1] != random[0] + 256,
        "{random:?}"
    );
}

/// The DIMMs of six, with 4 KiB interleaving, that the first accesses of each thread fall on.
fn dimms(binding: &str, threads: usize) -> Vec<BTreeSet<u64>> {
    let json = format!(
        r#"{{"experiment": "align", "op": "load", "size": 256, "binding": "{binding}", "threads": {threads}}}"#
    );
    let touched = |stream: &mut Stream| accesses(stream, 2000).into_iter().map(|addr| addr / 4096 % 6).collect();
    all_streams("optane", &json).iter_mut().map(touched).collect()
}

#[test]
fn threads_touch_the_dimms_that_they_are_bound_to() {
    let all = BTreeSet::from([0, 1, 2, 3, 4, 5]);
    for binding in ["shared-all", "own-all", "ni-shared-all"] {
        assert_eq!(dimms(binding, 2), [all.clone(), all.clone()], "{binding}");
    }
    for binding in ["own-dimm", "ni-own-dimm"] {
        let own: Vec<_> = (0..8).map(|thread| BTreeSet::from([thread % 6])).collect();
        assert_eq!(dimms(binding, 8), own, "{binding}");
    }
    let imcs = dimms("shared-imc", 8);
    assert_eq!(
        (&imcs[0], &imcs[2], &imcs[7]),
        (&[0, 1, 2].into(), &[0, 1, 2].into(), &[0, 1, 2].into())
    );
    assert_eq!((&imcs[3], &imcs[5]), (&[3, 4, 5].into(), &[3, 4, 5].into()));
    let pairs = dimms("own-pair", 5);
    assert_eq!(pairs, [[0, 3], [1, 4], [2, 5], [0, 3], [1, 4]].map(BTreeSet::from));
}

#[test]
fn bound_accesses_may_end_in_a_fence() {
    use OpKind::{Compute, Load, Mfence, NtStore, Sfence};
    for binding in ["own-all", "own-dimm"] {
        let json = format!(
            r#"{{"experiment": "align", "op": "load", "size": 128, "binding": "{binding}", "fenced": true, "threads": 1}}"#
        );
        let kinds: Vec<_> = ops(&json, 5).iter().map(|op| op.kind).collect();
        assert_eq!(kinds, [Compute, Load, Load, Mfence, Compute], "{binding}");
        let json = json
            .replace(r#""load""#, r#""ntstore""#)
            .replace(r#""fenced": true"#, r#""fence": 64"#);
        let kinds: Vec<_> = ops(&json, 5).iter().map(|op| op.kind).collect();
        assert_eq!(kinds, [Compute, NtStore, Sfence, NtStore, Sfence], "{binding}");
    }
}

#[test]
fn own_buffers_do_not_overlap() {
    for binding in ["own-all", "own-dimm", "own-pair", "ni-own-dimm"] {
        let json =
            format!(r#"{{"experiment": "align", "op": "load", "size": 4096, "binding": "{binding}", "threads": 12}}"#);
        let mut ends = [0; 6]; // of the buffers so far, on each DIMM
        for stream in &mut all_streams("optane", &json) {
            let visited = accesses(stream, 64 * 500);
            for (dimm, end) in ends.iter_mut().enumerate() {
                let mut on_dimm: Vec<_> = visited.iter().filter(|addr| **addr / 4096 % 6 == dimm as u64).collect();
                on_dimm.sort();
                if let [first, .., last] = on_dimm[..] {
                    assert!(
                        first >= end,
                        "{binding}: {first} on DIMM {dimm} lies in the buffer of another thread"
                    );
                    *end = last + 64;
                }
            }
        }
    }
}

#[test]
fn an_access_larger_than_a_chunk_stays_on_its_dimm_where_dimms_have_ranges() {
    let json = r#"{"experiment": "align", "op": "load", "size": 8192, "binding": "ni-own-dimm", "threads": 2}"#;
    let visited = accesses(&mut all_streams("optane", json)[1], 128);
    assert!(visited.iter().all(|addr| addr / 4096 % 6 == 1));
    assert_eq!(visited[64] - visited[63] - 64, 5 * 4096);
}

#[test]
fn a_timed_load_stands_between_two_readings_of_the_clock() {
    use OpKind::{Load, Mfence, Stamp};
    let ops = ops(r#"{"experiment": "latency", "op": "load", "pattern": "sequential"}"#, 8);
    let kinds: Vec<_> = ops.iter().map(|op| op.kind).collect();
    assert_eq!(kinds, [Stamp, Load, Mfence, Stamp, Stamp, Load, Mfence, Stamp]);
    assert_eq!((ops[1].size, ops[5].addr - ops[1].addr), (8, 64));
}

#[test]
fn a_timed_write_finds_its_line_in_the_cache() {
    use OpKind::{Clwb, Load, Mfence, NtStore, Stamp, Store};
    let kinds = |op: &str, count| {
        let json = format!(r#"{{"experiment": "latency", "op": "{op}", "pattern": "random"}}"#);
        let ops = ops(&json, count);
        assert_eq!(
            ops[0].addr, ops[3].addr,
            "the line that was loaded is the one that is written"
        );
        ops.iter().map(|op| op.kind).collect::<Vec<_>>()
    };
    assert_eq!(
        kinds("store+clwb", 8),
        [Load, Mfence, Stamp, Store, Clwb, Mfence, Stamp, Load]
    );
    assert_eq!(kinds("ntstore", 7), [Load, Mfence, Stamp, NtStore, Mfence, Stamp, Load]);
}

#[test]
fn a_persistent_write_is_timed_to_its_sfence() {
    use OpKind::{Clwb, Load, Mfence, NtStore, Sfence, Stamp, Store};
    let kinds = |op: &str, count| {
        let json = format!(r#"{{"experiment": "persist-latency", "op": "{op}", "size": 128}}"#);
        ops(&json, count).iter().map(|op| op.kind).collect::<Vec<_>>()
    };
    assert_eq!(
        kinds("ntstore", 9),
        [Load, Load, Mfence, Stamp, NtStore, NtStore, Sfence, Stamp, Load]
    );
    assert_eq!(
        kinds("store+clwb", 10),
        [Load, Load, Mfence, Stamp, Store, Clwb, Store, Clwb, Sfence, Stamp]
    );
}

#[test]
fn readings_of_the_clock_become_latencies() {
    let mut stream = all_streams(
        "dram",
        r#"{"experiment": "latency", "op": "load", "pattern": "random"}"#,
    )
    .remove(0);
    for now in [100, 180, 200, 290] {
        stream.stamp(now);
    }
    let samples = stream.samples().unwrap();
    assert_eq!(
        (samples.mark().count, samples.mean_since(Mark::default())),
        (2, Some(85.0))
    );
}

#[test]
fn a_round_writes_the_first_halves_and_then_the_second_and_pauses() {
    let ops = ops(r#"{"experiment": "xpbuffer", "lines": 2}"#, 18);
    for round in ops.chunks(9) {
        let (writes, pause) = round.split_at(8);
        assert!(writes.iter().all(|op| op.kind == OpKind::NtStore && op.size == 64));
        let addresses: Vec<_> = writes.iter().map(|op| op.addr).collect();
        assert_eq!(addresses, [0, 64, 256, 320, 128, 192, 384, 448]);
        assert_eq!(pause[0].kind, OpKind::Compute);
    }
}
