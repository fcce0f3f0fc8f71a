//! What is wrong with a point, in words.

use xpline_lattester::{Point, read_points};
use xpline_model::Platform;

/// The message about a point on a platform.
fn refusal(platform: &str, json: &str) -> String {
    let platform = Platform::builtin(platform).unwrap();
    read_points(&platform, &[json]).expect_err(json).to_string()
}

#[test]
fn shapes_that_are_not_points() {
    let cases = [
        (
            "[]",
            "a point is a JSON object: invalid type: sequence, expected a map at line 1 column 0",
        ),
        (
            "{",
            "a point is a JSON object: EOF while parsing an object at line 1 column 1",
        ),
        (
            r#"{"experiment": "sideways"}"#,
            r#"experiment = "sideways": unknown; known are random, stride, flush, align, latency, xpbuffer, persist-latency, chase, replacement, wear, tail, workload, mix, loaded"#,
        ),
        (
            r#"{"op": "load"}"#,
            "experiment = null: unknown; known are random, stride, flush, align, latency, xpbuffer, persist-latency, chase, replacement, wear, tail, workload, mix, loaded",
        ),
        (
            r#"{"experiment": "random", "op": "read", "size": 64, "threads": 1}"#,
            "random: op: unknown value `read`, expected one of `load`, `ntstore`, `store`, `store+clwb`",
        ),
        (
            r#"{"experiment": "random", "op": "load", "size": -64, "threads": 1}"#,
            "random: size: invalid value: integer `-64`, expected a whole number, 0 or more",
        ),
        (
            r#"{"experiment": "random", "op": "load", "size": 64.5, "threads": 1}"#,
            "random: size: invalid type: floating point `64.5`, expected a whole number, 0 or more",
        ),
        (
            r#"{"experiment": "random", "op": "load", "size": 64}"#,
            "random: missing field `threads`",
        ),
        (
            r#"{"experiment": "latency", "op": "load", "pattern": "random", "threads": 2}"#,
            "latency: unknown field `threads`, expected `op` or `pattern`",
        ),
        (
            r#"{"experiment": "xpbuffer", "lines": 64, "seed": "one"}"#,
            r#"xpbuffer: seed: invalid type: string "one", expected a whole number, 0 or more"#,
        ),
    ];
    for (json, message) in cases {
        assert_eq!(refusal("optane", json), message);
    }
}

#[test]
fn mixes_that_cannot_be() {
    let mix = |fields: &str| {
        let common = r#""experiment": "mix", "pattern": "random", "threads": 1"#;
        refusal("optane", &format!("{{{common}, {fields}}}"))
    };
    assert_eq!(
        mix(r#""mix": "2-1", "op": "store""#),
        r#"mix: mix: "2-1" is no ratio of lines read to lines written, such as 2:1 (1:0 reads only, 0:1 writes only; parts up to 1000)"#
    );
    assert_eq!(
        mix(r#""mix": "0:0", "op": "store""#),
        mix(r#""mix": "2-1", "op": "store""#).replace("2-1", "0:0")
    );
    assert_eq!(
        mix(r#""mix": "1:2", "op": "store""#),
        "mix = 1:2: each write of a store reads its line, too; use as many reads as writes or more, or ntstore"
    );
    assert_eq!(
        mix(r#""mix": "2:1", "op": "load""#),
        "op = load: writes nothing; use ntstore, store or store+clwb"
    );
    assert_eq!(
        mix(r#""mix": "2:1", "op": "ntstore", "region": 2147483648"#),
        "region = 2147483648: must be from 64, an access, to 1073741824, half of a thread's 2 GiB"
    );
    let loaded = |delay: u64, threads: u32| {
        refusal(
            "optane",
            &format!(
                r#"{{"experiment": "loaded", "mix": "1:0", "op": "load", "pattern": "random", "delay": {delay}, "threads": {threads}}}"#
            ),
        )
    };
    assert_eq!(
        loaded(1_000_001, 4),
        "delay = 1000001: must be at most 1000000 core clocks"
    );
    // One more thread is timed.
    assert_eq!(
        loaded(0, 24),
        "threads = 25: must be 1 to 24, a core each (optane has 24)"
    );
}

#[test]
fn values_out_of_range() {
    let random = |size: u64, threads: u32| {
        refusal(
            "optane",
            &format!(r#"{{"experiment": "random", "op": "load", "size": {size}, "threads": {threads}}}"#),
        )
    };
    assert_eq!(
        random(100, 1),
        "size = 100: must be a multiple of 64 bytes (a cache line), such as 64 or 128"
    );
    assert_eq!(
        random(0, 1),
        "size = 0: must be a multiple of 64 bytes (a cache line), such as 64 or 128"
    );
    assert_eq!(
        random(1 << 32, 1),
        "size = 4294967296: must be at most 2147483648, the 2 GiB of a thread"
    );
    assert_eq!(
        random(64, 0),
        "threads = 0: must be 1 to 24, a core each (optane has 24)"
    );
    assert_eq!(
        random(64, 25),
        "threads = 25: must be 1 to 24, a core each (optane has 24)"
    );
}

#[test]
fn values_that_do_not_go_together() {
    let cases = [
        (
            r#"{"experiment": "flush", "pattern": "random", "size": 256, "clwb": 64, "fence": 512, "threads": 1}"#,
            "fence = 512: must divide size = 256",
        ),
        (
            r#"{"experiment": "flush", "pattern": "random", "size": 256, "clwb": 192, "fence": 256, "threads": 1}"#,
            "clwb = 192: must divide fence = 256",
        ),
        (
            r#"{"experiment": "align", "op": "ntstore", "size": 256, "binding": "own-all", "fence": 96, "threads": 1}"#,
            "fence = 96: must be a multiple of 64 bytes (a cache line), such as 64 or 128",
        ),
        (
            r#"{"experiment": "align", "op": "load", "size": 64, "binding": "own-all", "fence": 64, "fenced": true, "threads": 1}"#,
            "fenced = true: needs fence = 0; found 64",
        ),
        (
            r#"{"experiment": "align", "op": "load", "size": 8192, "binding": "own-dimm", "threads": 6}"#,
            "size = 8192: must divide the 4096 B that lie on one DIMM (interleave.granularity)",
        ),
        (
            r#"{"experiment": "latency", "op": "store", "pattern": "random"}"#,
            "op = store: its latency ends in the cache; use load, store+clwb or ntstore",
        ),
        (
            r#"{"experiment": "persist-latency", "op": "load", "size": 64}"#,
            "op = load: makes nothing persistent; use ntstore or store+clwb",
        ),
        (
            r#"{"experiment": "xpbuffer", "lines": 0}"#,
            "lines = 0: must be 1 to 8388608",
        ),
        (
            r#"{"experiment": "xpbuffer", "lines": 1, "max_requests": 0}"#,
            "max_requests = 0: must be at least 1",
        ),
    ];
    for (json, message) in cases {
        assert_eq!(refusal("optane", json), message);
    }
    assert_eq!(
        refusal(
            "optane-ni",
            r#"{"experiment": "align", "op": "load", "size": 64, "binding": "own-pair", "threads": 1}"#
        ),
        "binding = own-pair: needs a DIMM on every channel of two memory controllers or more; optane-ni has not"
    );
}

#[test]
fn of_several_points_the_wrong_one_is_named() {
    let platform = Platform::builtin("dram").unwrap();
    let points = [
        r#"{"experiment": "xpbuffer", "lines": 1}"#,
        r#"{"experiment": "xpbuffer", "lines": 0}"#,
    ];
    let error = read_points(&platform, &points).unwrap_err();
    assert_eq!(error.to_string(), "point 1: lines = 0: must be 1 to 8388608");
}

#[test]
fn the_seed_is_1_unless_it_is_given() {
    let seed = |json| Point::parse(json).unwrap().seed;
    assert_eq!(seed(r#"{"experiment": "xpbuffer", "lines": 1}"#), 1);
    assert_eq!(seed(r#"{"experiment": "xpbuffer", "lines": 1, "seed": 7}"#), 7);
}
