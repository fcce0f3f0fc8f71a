//! Memory Mode: a hit is DRAM, a miss is DRAM and Optane, and written lines go back.

use std::sync::atomic::AtomicBool;

use xpline_lattester::{Row, read_points, run_point};
use xpline_model::Platform;

fn run(platform: &str, sets: &[&str], json: &str) -> Row {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let platform = Platform::load(platform, &sets, &|path| panic!("{path} is built in")).unwrap();
    let point = read_points(&platform, &[json]).unwrap().remove(0);
    run_point(&platform, &point, &AtomicBool::new(false)).unwrap()
}

/// Mean latency of the loads of a thread in a memory that is as good as idle.
fn latency(platform: &str, sets: &[&str], pattern: &str) -> f64 {
    let json = format!(
        r#"{{"experiment": "loaded", "mix": "1:0", "op": "load", "pattern": "{pattern}", "delay": 1000000, "threads": 1, "max_requests": 60000}}"#
    );
    run(platform, sets, &json).latencies.unwrap().mean
}

#[test]
fn a_hit_takes_as_long_as_dram_and_a_miss_as_long_as_dram_and_optane() {
    for pattern in ["sequential", "random"] {
        let (dram, optane) = (latency("dram", &[], pattern), latency("optane", &[], pattern));
        let hit = latency("memory-mode", &[], pattern);
        assert!((hit / dram - 1.0).abs() < 0.03, "{pattern}: {hit} against {dram}");
        // So few frames that nearly every line has to give way to another before it is read again.
        let miss = latency("memory-mode", &["near.size=64KiB"], pattern);
        assert!(
            (miss / (dram + optane) - 1.0).abs() < 0.1,
            "{pattern}: {miss} against {dram} and {optane}"
        );
    }
}

/// Twelve threads in rings of 9/4 MiB over 24 MiB of DRAM. With pages in order, 3 MiB of them share frames with others, and what
/// comes round in a ring has always just been pushed out: 2 x 3 of 27. With pages anywhere a page is alone in its frame, and hits, with
/// probability exp(-27 / 24).
#[test]
fn misses_follow_from_how_many_pages_meet_in_a_frame() {
    let misses = |pages: &str, kibibytes: u64| {
        let json = format!(
            r#"{{"experiment": "mix", "mix": "1:0", "op": "load", "pattern": "sequential", "region": {}, "threads": 12}}"#,
            kibibytes << 10
        );
        let sets = [
            "near.size=4MiB",
            "l3.size=132KiB",
            "l2.size=16KiB",
            "l1d.size=4KiB",
            &format!("near.pages={pages}"),
        ];
        run("memory-mode", &sets, &json).near_miss_ratio.unwrap()
    };
    assert_eq!(misses("contiguous", 2048), 0.0);
    let ring = misses("contiguous", 2304);
    assert!((ring - 6.0 / 27.0).abs() < 0.03, "{ring}");
    let random = misses("random", 2304);
    assert!((random - (1.0 - (-27.0f64 / 24.0).exp())).abs() < 0.03, "{random}");
}

#[test]
fn long_lines_are_fetched_and_given_back_whole() {
    let json = r#"{"experiment": "mix", "mix": "0:1", "op": "ntstore", "pattern": "sequential", "region": 67108864, "threads": 1, "max_requests": 50000}"#;
    for (line, whole) in [("64B", 1), ("4KiB", 64)] {
        let row = run("memory-mode", &["near.size=64KiB", &format!("near.line={line}")], json);
        let lines = row.bytes / 64;
        // Each page is written once over, so that each line of the cache goes back as often as it is taken.
        let back = row.traffic.imc_written_bytes as f64 / 64.0 / lines as f64;
        assert!(
            (back - 1.0).abs() < 0.2,
            "{line}: {back} lines went back for each written"
        );
        let fetched = row.traffic.imc_read_bytes / 64;
        assert!(
            if whole == 1 {
                fetched == 0
            } else {
                fetched > lines * 9 / 10
            },
            "{line}: {fetched} of {lines}"
        );
    }
}
