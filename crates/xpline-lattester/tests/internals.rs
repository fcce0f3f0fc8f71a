//! What the experiments on the inside of a DIMM do, and what they find: small cases by hand, and parts they must recognise.

use std::sync::atomic::AtomicBool;

use xpline_lattester::{Row, read_points, run_point, streams};
use xpline_model::platform::Memory;
use xpline_model::{Op, OpKind, Platform, Program};

fn platform(name: &str, overrides: &[&str]) -> Platform {
    let overrides: Vec<_> = overrides.iter().map(|text| text.to_string()).collect();
    Platform::load(name, &overrides, &|path| panic!("{path} is built in")).unwrap()
}

fn run(platform: &Platform, json: &str) -> Row {
    let point = read_points(platform, &[json]).unwrap().remove(0);
    run_point(platform, &point, &AtomicBool::new(false)).unwrap()
}

fn refusal(name: &str, json: &str) -> String {
    let error = read_points(&platform(name, &[]), &[json]).expect_err(json);
    error.to_string()
}

/// The first ops of an experiment on one DIMM.
fn ops(json: &str, count: usize) -> Vec<Op> {
    let platform = platform("optane-ni", &[]);
    let point = read_points(&platform, &[json]).unwrap().remove(0);
    let mut stream = streams(&platform, &point).remove(0);
    std::iter::from_fn(|| stream.next_op()).take(count).collect()
}

fn kinds(ops: &[Op]) -> Vec<OpKind> {
    ops.iter().map(|op| op.kind).collect()
}

fn mean(platform: &Platform, region: u64, mask: u64) -> f64 {
    let json = format!(r#"{{"experiment": "chase", "region": {region}, "mask": {mask}}}"#);
    run(platform, &json).latencies.unwrap().mean
}

fn miss_ratio(platform: &Platform, buffer: &str, order: &str, lines: u64) -> f64 {
    let json =
        format!(r#"{{"experiment": "replacement", "buffer": "{buffer}", "order": "{order}", "lines": {lines}}}"#);
    run(platform, &json).miss_ratio.unwrap()
}

#[test]
fn a_chase_waits_for_each_load_and_flushes_its_line() {
    let ops = ops(r#"{"experiment": "chase", "region": 64}"#, 7);
    use OpKind::{ClflushOpt, Load, Mfence, Stamp};
    assert_eq!(kinds(&ops), [Stamp, Load, Mfence, ClflushOpt, Mfence, Stamp, Stamp]);
    assert!(ops.iter().all(|op| op.addr == 0), "the region is one line");
}

#[test]
fn a_chase_stays_in_its_region_and_off_its_mask() {
    let ops = ops(r#"{"experiment": "chase", "region": 16384, "mask": 4096}"#, 5000);
    let loads: Vec<u64> = ops
        .iter()
        .filter(|op| op.kind == OpKind::Load)
        .map(|op| op.addr)
        .collect();
    assert!(loads.iter().all(|address| address & 4096 == 0 && *address < 2 * 16384));
    let pages: std::collections::BTreeSet<_> = loads.iter().map(|address| address >> 12).collect();
    assert_eq!(Vec::from_iter(pages), [0, 2, 4, 6]);
}

#[test]
fn hot_spots_are_written_in_order_and_round_and_round() {
    let ops = ops(r#"{"experiment": "tail", "op": "ntstore", "region": 128}"#, 13);
    use OpKind::{NtStore, Sfence, Stamp};
    assert_eq!(kinds(&ops[..5]), [Stamp, NtStore, Sfence, Stamp, Stamp]);
    let stores: Vec<u64> = ops.iter().filter(|op| op.kind == NtStore).map(|op| op.addr).collect();
    assert_eq!(stores, [0, 64, 0]);
}

/// Reads within 16 KiB are of one latency, so are those that fill 4 MiB; half way up, half of them miss.
#[test]
fn a_chase_finds_both_buffers() {
    let platform = platform("optane-ni", &[]);
    let Memory::Optane(optane) = &platform.memory else {
        unreachable!("optane-ni is Optane")
    };
    let (buffer, cache) = (optane.xpbuffer.lines as u64 * optane.xpbuffer.line, optane.ait.cache);
    let hit = mean(&platform, buffer / 4, 0);
    assert!((mean(&platform, buffer, 0) - hit).abs() < 0.01 * hit);
    let media = mean(&platform, cache / 4, 0) - hit;
    let half = mean(&platform, 2 * buffer, 0) - hit;
    assert!((half / media - 0.5).abs() < 0.03, "{half} of {media}");
    let within = mean(&platform, cache, 0) - hit;
    assert!((within - media).abs() < 0.02 * media);
    let beyond = mean(&platform, 2 * cache, 0) - hit - media;
    let missed = optane.ait.miss_latency as f64 / 1000.0;
    assert!((beyond / missed - 0.5).abs() < 0.1, "{beyond} of {missed}");
}

/// Bits 12 to 19 select the set of a page: without one of them the cache holds half as much, and bit 20 selects nothing.
#[test]
fn masked_chases_find_the_sets_of_the_table() {
    let platform = platform("optane-ni", &[]);
    let full = mean(&platform, 16 << 20, 0);
    assert!(mean(&platform, 8 << 20, 1 << 12) < 1.01 * full);
    assert!(mean(&platform, 16 << 20, 1 << 12) > 1.05 * full);
    assert!(mean(&platform, 16 << 20, 1 << 19) > 1.05 * full);
    assert!(mean(&platform, 16 << 20, 1 << 20) < 1.01 * full);
}

#[test]
fn first_in_first_out_by_hand() {
    let platform = platform("optane-ni", &["optane.xpbuffer.lines=8"]);
    assert_eq!(miss_ratio(&platform, "xpbuffer", "same", 8), 0.0);
    assert_eq!(miss_ratio(&platform, "xpbuffer", "same", 9), 1.0);
    // The measured part may end within a round.
    assert!((miss_ratio(&platform, "xpbuffer", "reverse", 12) - 4.0 / 12.0).abs() < 1e-3);
    // The probe itself takes a line's place when it misses, and lines that hit stay no longer for it.
    let random = miss_ratio(&platform, "xpbuffer", "random", 16);
    assert!(random > 0.6 && random < 0.85, "{random}");
}

#[test]
fn random_probes_tell_first_in_from_least_recently_used() {
    let fifo = platform("optane-ni", &[]);
    let lru = platform("optane-ni", &["optane.xpbuffer.replacement=lru"]);
    let [fifo, lru] = [fifo, lru].map(|platform| miss_ratio(&platform, "xpbuffer", "random", 96));
    assert!(lru > fifo + 0.08, "{lru} {fifo}");
}

#[test]
fn probes_of_the_table_see_its_ways() {
    let platform = platform("optane-ni", &["optane.ait.ways=8"]);
    let within = miss_ratio(&platform, "ait", "same", 6);
    assert!(
        within < 0.03,
        "once in a while marks run out and a page goes early: {within}"
    );
    let over = miss_ratio(&platform, "ait", "same", 9);
    assert!(over > 0.7 && over < 1.0, "a page in eight survives: {over}");
    assert_eq!(miss_ratio(&platform, "ait", "same", 16), 1.0);
}

#[test]
fn wear_levelling_stalls_every_so_many_writes() {
    let platform = platform("optane-ni", &["optane.wear.interval=700", "optane.wear.stall=30us"]);
    let row = run(&platform, r#"{"experiment": "wear", "op": "ntstore", "size": 256}"#);
    assert_eq!(row.stall_interval, Some(700));
    let stall = row.stall_ns.unwrap();
    assert!(stall > 28_000.0 && stall < 31_000.0, "{stall}");
    let row = run(
        &platform,
        r#"{"experiment": "tail", "op": "ntstore", "region": 256, "max_requests": 100000}"#,
    );
    assert!(
        row.stall_interval.unwrap().abs_diff(4 * 700) < 10,
        "four writes fill the line: {row:?}"
    );
    assert!(row.latencies.as_ref().unwrap().p99999 > 28_000.0 && row.latencies.as_ref().unwrap().p99 < 1_000.0);
}

/// Lines are counted apart: 16 of a page that take turns reach the limit together, and move it once.
#[test]
fn wider_hot_spots_stall_less() {
    let platform = platform("optane-ni", &["optane.wear.interval=500"]);
    let share = |region: u64| {
        let json = format!(r#"{{"experiment": "tail", "op": "ntstore", "region": {region}, "max_requests": 400000}}"#);
        run(&platform, &json).stall_share.unwrap()
    };
    let shares = [256, 1024, 4096, 1 << 20].map(share);
    assert!((shares[0] - 1.0 / 2000.0).abs() < 2e-5, "{shares:?}");
    assert!((shares[2] - 1.0 / 32_000.0).abs() < 8e-6, "{shares:?}");
    assert!(
        shares[0] > shares[1] && shares[1] > shares[2] && shares[3] == 0.0,
        "{shares:?}"
    );
}

#[test]
fn dram_neither_stalls_nor_has_buffers_to_probe() {
    let row = run(
        &platform("dram", &[]),
        r#"{"experiment": "tail", "op": "ntstore", "region": 256, "max_requests": 200000}"#,
    );
    assert_eq!(
        (row.stall_share, row.stall_ns, row.stall_interval),
        (Some(0.0), None, None)
    );
    assert_eq!(
        refusal(
            "dram",
            r#"{"experiment": "replacement", "buffer": "ait", "order": "same", "lines": 4}"#
        ),
        "buffer = ait: dram has none; use an Optane platform"
    );
}

#[test]
fn what_is_wrong_with_a_point() {
    let cases = [
        (
            r#"{"experiment": "chase", "region": 100}"#,
            "region = 100: must be a multiple of 64 bytes (a cache line), such as 64 or 128",
        ),
        (
            r#"{"experiment": "chase", "region": 64, "mask": 33}"#,
            "mask = 33: address bits to keep 0, as their sum: of the bits 6 to 30, so that 4096 is bit 12 (0 for none)",
        ),
        (
            r#"{"experiment": "chase", "region": 2147483648, "mask": 4096}"#,
            "mask = 4096: too many bits: a region of 2147483648 B no longer fits in the 2 GiB of a thread",
        ),
        (
            r#"{"experiment": "replacement", "buffer": "ait", "order": "same", "lines": 1025}"#,
            "lines = 1025: must be 1 to 1024",
        ),
        (
            r#"{"experiment": "replacement", "buffer": "l2", "order": "same", "lines": 4}"#,
            "replacement: buffer: unknown value `l2`, expected `xpbuffer` or `ait`",
        ),
        (
            r#"{"experiment": "wear", "op": "store", "size": 256}"#,
            "op = store: makes nothing persistent; use ntstore or store+clwb",
        ),
        (
            r#"{"experiment": "tail", "op": "ntstore", "region": 0}"#,
            "region = 0: must be a multiple of 64 bytes (a cache line), such as 64 or 128",
        ),
    ];
    for (json, message) in cases {
        assert_eq!(refusal("optane-ni", json), message);
    }
    let interleaved = refusal(
        "optane",
        r#"{"experiment": "replacement", "buffer": "ait", "order": "same", "lines": 4}"#,
    );
    assert_eq!(
        interleaved,
        "buffer = ait: optane spreads a buffer's lines over DIMMs; use one DIMM"
    );
}
