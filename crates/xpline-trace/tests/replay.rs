//! Replay: what is counted is what the trace asks for, whatever the platform makes of it.

mod common;

use std::sync::atomic::AtomicBool;

use common::{any_record, compressed, open, request, write};
use proptest::prelude::*;
use xpline_model::{OpKind, Platform};
use xpline_trace::{
    Format, Level, Options, ReadOptions, Record, ReplayOptions, ReplayRow, TraceError, encode, replay_trace,
};

fn options(json: &str) -> ReplayOptions {
    serde_json::from_str::<Options>(json).unwrap().replay().unwrap()
}

fn replay_on(platform: &str, bytes: &[u8], json: &str) -> Result<ReplayRow, TraceError> {
    replay_with(platform, &[], bytes, json)
}

fn replay_with(platform: &str, overrides: &[String], bytes: &[u8], json: &str) -> Result<ReplayRow, TraceError> {
    let options = options(json);
    let platform = Platform::load(platform, overrides, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
    let trace = open(bytes, &options.read)?;
    Ok(replay_trace(&platform, trace, &options, &AtomicBool::new(false))?.unwrap())
}

fn replay(bytes: &[u8], json: &str) -> ReplayRow {
    replay_on("optane-ni", bytes, json).unwrap()
}

/// The longest latency of a read, in ns.
fn longest(row: &ReplayRow) -> f64 {
    row.latencies.as_ref().unwrap().max
}

/// Reads, one after the other.
fn sequential(lines: u64) -> Vec<Record> {
    (0..lines)
        .map(|line| Record::new(OpKind::Load, line * 64, 64))
        .collect()
}

#[test]
fn a_single_read_takes_its_latency() {
    let memory = replay(b"LD 0x1000\n", "{}");
    assert_eq!(
        (memory.settings.level, memory.requests, memory.reads, memory.bytes),
        ("memory", 1, 1, 64)
    );
    assert_eq!(longest(&memory), memory.time_ns);
    assert!((100.0..1000.0).contains(&memory.time_ns), "{}", memory.time_ns);
    assert_eq!(
        (memory.traffic.media_read_bytes, memory.traffic.imc_read_bytes),
        (256, 64)
    );
    assert_eq!(
        (&memory.write_latencies, memory.traffic.ewr, memory.l1d_hit_ratio),
        (&None, None, None)
    );

    let core = replay(b"LD 0x1000\n", r#"{"level": "core"}"#);
    assert_eq!(
        (core.settings.level, core.requests, core.settings.threads),
        ("core", 1, 1)
    );
    assert!(
        longest(&core) > longest(&memory),
        "the way through the core comes on top"
    );
    assert!(core.time_ns >= longest(&core));
}

#[test]
fn caches_stand_above_the_memory_level_only() {
    let again = b"R 0x40\n".repeat(1000);
    let memory = replay(&again, "{}");
    assert_eq!(memory.traffic.imc_read_bytes, 64_000);
    let core = replay(&again, r#"{"level": "core"}"#);
    assert_eq!(core.traffic.imc_read_bytes, 64);
    assert!(core.l1d_hit_ratio.unwrap() > 0.99);
}

#[test]
fn an_access_across_lines_is_a_request_a_line() {
    let record = Record::new(OpKind::Load, 60, 72);
    let row = replay(&write(&[record], Format::Xpline), "{}");
    assert_eq!((row.records, row.requests, row.bytes), (1, 3, 72));
    let row = replay(&write(&[record], Format::Xpline), r#"{"level": "memory"}"#);
    assert_eq!((row.records, row.requests, row.bytes), (1, 3, 192));
}

#[test]
fn what_is_no_request_is_skipped_below_the_caches() {
    let records = [
        Record::new(OpKind::Compute, 0, 100),
        Record::new(OpKind::LockedRmw, 64, 8),
        Record::new(OpKind::Sfence, 0, 0),
        Record::new(OpKind::Clwb, 64, 64),
    ];
    let row = replay(&write(&records, Format::Xpline), r#"{"level": "memory"}"#);
    assert_eq!((row.records, row.skipped, row.reads, row.writes), (4, 3, 1, 1));
}

#[test]
fn addresses_beyond_the_memory_start_over() {
    let row = replay(b"LD 0x2000000040\nLD 0x40\nLD 0xffffffffffffffff\n", "{}");
    assert_eq!((row.wrapped, row.requests), (2, 3));
    let row = replay(b"LD 0x2000000040\nLD 0x40\n", r#"{"level": "core"}"#);
    assert_eq!((row.wrapped, row.traffic.imc_read_bytes), (1, 64));
}

#[test]
fn more_in_flight_is_faster_up_to_the_memory() {
    let text = write(&sequential(20_000), Format::Ramulator2);
    let bandwidth = |in_flight| {
        let row = replay(&text, &format!(r#"{{"in_flight": {in_flight}}}"#));
        assert_eq!(row.settings.in_flight, Some(in_flight));
        row.bandwidth_mib_s.unwrap()
    };
    let [one, four, many] = [1, 4, 32].map(bandwidth);
    assert!(2.0 * one < four && four < many, "{one} {four} {many}");
    assert_eq!(
        replay(&text, "{}").bandwidth_mib_s,
        Some(many),
        "the default on one DIMM"
    );
}

#[test]
fn paced_requests_wait_for_their_times() {
    let slow: String = (0..1000)
        .map(|line| format!("{:#x} READ {}\n", line * 64, 5000 + line * 1000))
        .collect();
    let fast = replay(slow.as_bytes(), r#"{"clock": "1GHz"}"#);
    let paced = replay(slow.as_bytes(), r#"{"clock": "1GHz", "paced": true}"#);
    assert!(fast.time_ns < 999_000.0);
    assert!((999_000.0..1_000_000.0).contains(&paced.time_ns), "{}", paced.time_ns);
    let half = replay(slow.as_bytes(), r#"{"clock": "2GHz", "paced": true}"#);
    assert!((499_500.0..500_500.0).contains(&half.time_ns), "{}", half.time_ns);
}

#[test]
fn threads_have_cores_of_their_own() {
    let mut records = sequential(4000);
    for (index, record) in records.iter_mut().enumerate() {
        record.thread = [70, 9][index % 2];
    }
    let bytes = write(&records, Format::Xpline);
    let rows = ["trace", "one", "round-robin:2", "address:4:4KiB"]
        .map(|map| replay(&bytes, &format!(r#"{{"threads_map": "{map}"}}"#)));
    assert_eq!(rows.each_ref().map(|row| row.settings.threads), [2, 1, 2, 4]);
    assert!(rows.iter().all(|row| row.requests == 4000));
    assert_eq!(
        rows[0].time_ns, rows[2].time_ns,
        "round robin deals these out as the threads do"
    );
    assert!(rows[0].time_ns < rows[1].time_ns);
}

#[test]
fn a_thread_that_comes_long_after_the_first_runs_too() {
    let mut records = sequential(200_000);
    records[150_000..].iter_mut().for_each(|record| record.thread = 1);
    let row = replay(&write(&records, Format::Xpline), "{}");
    assert_eq!((row.settings.threads, row.requests, row.records), (2, 200_000, 200_000));
}

#[test]
fn a_core_does_not_run_far_ahead_of_the_others() {
    // All of thread 0, then all of thread 1: at once they would take half the time.
    let mut records = sequential(400_000);
    records[200_000..].iter_mut().for_each(|record| record.thread = 1);
    let bytes = write(&records, Format::Xpline);
    let apart = replay(&bytes, r#"{"threads_map": "address:2:12800000"}"#);
    let one = replay(&bytes, r#"{"threads_map": "one"}"#);
    assert!(apart.time_ns > 0.8 * one.time_ns, "{} {}", apart.time_ns, one.time_ns);
}

#[test]
fn more_threads_than_cores_are_refused_with_what_to_do() {
    let mut records = sequential(25);
    (0..)
        .zip(&mut records)
        .for_each(|(thread, record)| record.thread = thread);
    let bytes = write(&records, Format::Xpline);
    for level in ["core", "memory"] {
        let error = replay_on("optane-ni", &bytes, &format!(r#"{{"level": "{level}"}}"#))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "t: record 25: thread 24 is one more than the platform's 24 cores; deal the records out with --threads-map \
             round-robin:24"
        );
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let own = write(&sequential(2), Format::Xpline);
    for (bytes, json, message) in [
        (
            &b"0x40 READ 0\n"[..],
            r#"{"paced": true}"#,
            "t: --paced: the trace does not say how long a tick",
        ),
        (
            b"LD 0x40\n",
            r#"{"paced": true, "clock": "1GHz"}"#,
            "t: record 1: has no time to keep pace with",
        ),
        (
            b"0x40 READ 0\n0x40 READ 18446744073709551615\n",
            r#"{"paced": true, "clock": "1kHz"}"#,
            "t: record 2: its time",
        ),
        (&own, r#"{"paced": true}"#, "t: --paced: cores run as fast as they can"),
        (
            &own,
            r#"{"in_flight": 4}"#,
            "t: --in-flight: what a core has in flight is up to the platform",
        ),
        (
            b"LD 0x40\n",
            r#"{"in_flight": 0}"#,
            "t: --in-flight 0: must be 1 to 1048576",
        ),
        (
            b"LD 0x40\n",
            r#"{"threads_map": "one", "format": "xpline"}"#,
            "t: byte 8: the file is cut off here",
        ),
        (
            &own,
            r#"{"threads_map": "round-robin:30"}"#,
            "t: --threads-map: the threads map takes 30 cores",
        ),
        (b"==1== Lackey\n", "{}", "t: reads and writes nothing"),
        (
            b"LD 0x40\nLD 0x4z\n",
            "{}",
            "t: line 2, byte 11: `0x4z` is not an address",
        ),
        (
            b"LD 0x40\nLD 0x4z\n",
            r#"{"level": "core"}"#,
            "t: line 2, byte 11: `0x4z` is not an address",
        ),
    ] {
        let error = replay_on("optane-ni", bytes, json).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn a_stop_stops() {
    let platform = Platform::builtin("dram").unwrap();
    for json in [r#"{"level": "core"}"#, r#"{"level": "memory"}"#] {
        let trace = open(
            &write(&sequential(100_000), Format::Ramulator2),
            &ReadOptions::default(),
        )
        .unwrap();
        assert_eq!(
            replay_trace(&platform, trace, &options(json), &AtomicBool::new(true)).unwrap(),
            None
        );
    }
}

#[test]
fn the_level_of_an_own_trace_is_in_it() {
    let header = xpline_trace::Header {
        level: Level::Memory,
        tick_fs: 1_000_000,
    };
    let records: Vec<Record> = sequential(100)
        .iter()
        .zip(0..)
        .map(|(record, line)| Record {
            time: Some(line * 1000),
            ..*record
        })
        .collect();
    let bytes = encode(&records, Format::Xpline, header).unwrap();
    let row = replay(&compressed(&bytes), r#"{"paced": true}"#);
    assert_eq!((row.settings.level, row.settings.format), ("memory", "xpline"));
    assert!(row.time_ns > 99_000.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_counted_adds_up(records in proptest::collection::vec(request(), 1..400), level in prop_oneof![Just("core"), Just("memory")], dram: bool) {
        let reads = records.iter().filter(|record| record.kind == OpKind::Load).count() as u64;
        let text = write(&records, Format::Ramulator2);
        let platform = if dram { "dram" } else { "optane" };
        let row = replay_on(platform, &text, &format!(r#"{{"level": "{level}"}}"#)).unwrap();
        let unaligned = row.requests - row.records;
        prop_assert_eq!(row.records, records.len() as u64);
        prop_assert!(unaligned <= row.records, "64 B lie on two lines at most");
        prop_assert_eq!(row.reads == 0, reads == 0);
        prop_assert_eq!(row.requests, row.reads + row.writes);
        // An empty queue takes a write at once.
        prop_assert!(row.time_ns > 0.0 || (level == "memory" && reads == 0));
        if level == "memory" {
            prop_assert_eq!(row.traffic.imc_read_bytes, row.reads * 64);
            // Writes to a line that waits in its queue are one there.
            prop_assert!(row.traffic.imc_written_bytes <= row.writes * 64);
            prop_assert_eq!(row.traffic.imc_written_bytes == 0, row.writes == 0);
            let each_alone = ["imc.wpq_combining=0".to_owned()];
            let row = replay_with(platform, &each_alone, &text, r#"{"level": "memory"}"#).unwrap();
            prop_assert_eq!(row.traffic.imc_written_bytes, row.writes * 64);
        }
        prop_assert_eq!(&row, &replay_on(platform, &text, &format!(r#"{{"level": "{level}"}}"#)).unwrap(), "the same again");
    }

    #[test]
    fn any_trace_ends(records in proptest::collection::vec(any_record(), 1..200), map in prop_oneof![Just("one"), Just("round-robin:3"), Just("address:5:4KiB")]) {
        let short = |record: Record| Record { size: record.size % 5000, ..record };
        let records: Vec<Record> = records.into_iter().map(short).collect();
        let bytes = write(&records, Format::Xpline);
        for level in ["core", "memory"] {
            let result = replay_on("optane", &bytes, &format!(r#"{{"level": "{level}", "threads_map": "{map}"}}"#));
            match result {
                Ok(row) => prop_assert_eq!(row.records, records.len() as u64),
                Err(error) => prop_assert!(error.what.contains("reads and writes nothing"), "{}", error),
            }
        }
    }
}
