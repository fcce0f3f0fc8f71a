//! Every format: what it says, that it comes back as it went out, and that no line is of two.

mod common;

use common::{HEADER, any_record, compressed, read, read_with, request, write};
use proptest::prelude::*;
use xpline_model::OpKind;
use xpline_trace::{Format, Header, Level, ReadOptions, Record, encode};

const MEMORY_LEVEL: [Format; 3] = [Format::Ramulator2, Format::Dramsim3, Format::Vans];

#[test]
fn each_format_is_known_by_its_content() {
    let load = |address| Record::new(OpKind::Load, address, 64);
    let timed = Record {
        time: Some(7),
        ..load(0x1000)
    };
    let word = Record::new(OpKind::Load, 0x1000, 8);
    for (text, format, level, expected) in [
        ("LD 0x1000\n", Format::Ramulator2, Level::Memory, vec![load(0x1000)]),
        (
            "\n\r\nLD 0x1000\r\n",
            Format::Ramulator2,
            Level::Memory,
            vec![load(0x1000)],
        ),
        (
            "2 4096\n",
            Format::Ramulator2O3,
            Level::Core,
            vec![Record::new(OpKind::Compute, 0, 2), load(4096)],
        ),
        ("0x1000 READ 7\n", Format::Dramsim3, Level::Memory, vec![timed]),
        ("0x1000 R\n", Format::Vans, Level::Memory, vec![load(0x1000)]),
        ("==9== Lackey\n L 1000,8\n", Format::Lackey, Level::Core, vec![word]),
    ] {
        let mut trace = common::open(text.as_bytes(), &ReadOptions::default()).unwrap();
        assert_eq!((trace.format(), trace.level()), (format, level), "{text:?}");
        let mut records = Vec::new();
        assert!(trace.read(&mut records).unwrap());
        assert_eq!(records, expected, "{text:?}");
        assert_eq!(
            read(&compressed(text.as_bytes())).unwrap(),
            expected,
            "{text:?} compressed"
        );
    }
}

#[test]
fn address_vectors_are_read_with_their_geometry() {
    let geometry = xpline_trace::Geometry::parse("1,2,4").unwrap();
    let options = |format| ReadOptions {
        format,
        geometry: Some(geometry.clone()),
    };
    let expected = [Record::new(OpKind::Load, 64 * 6, 64), Record::new(OpKind::Store, 0, 64)];
    for format in [None, Some(Format::Ramulator2), Some(Format::Ramulator2Rw)] {
        assert_eq!(read_with(b"R 0,1,2\nW 0,0,0\n", &options(format)).unwrap(), expected);
    }
    let error = read(b"R 0,1,2\n").unwrap_err().to_string();
    assert!(
        error.starts_with("t: line 1, byte 2: `0,1,2` names a channel"),
        "{error}"
    );
}

#[test]
fn the_own_format_is_small() {
    let sequential: Vec<Record> = (0..10_000)
        .map(|line| Record::new(OpKind::Load, line * 64, 64))
        .collect();
    assert!(write(&sequential, Format::Xpline).len() < 20_100);
}

/// The bytes that docs/reference/trace-format.md shows.
#[test]
fn the_documented_file() {
    let records = [
        Record::new(OpKind::Load, 128, 64),
        Record::new(OpKind::NtStore, 192, 64),
        Record::new(OpKind::Sfence, 0, 0),
    ];
    let bytes = write(&records, Format::Xpline);
    let document = include_str!("../../../docs/reference/trace-format.md");
    let dump = document.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let digits = dump.lines().map(|line| line.split("  ").next().unwrap());
    let shown: Vec<u8> = digits
        .flat_map(str::split_ascii_whitespace)
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    assert_eq!(
        shown,
        bytes,
        "{}",
        bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>()
    );
}

#[test]
fn what_a_format_cannot_hold_is_refused_with_the_reason() {
    let load = Record::new(OpKind::Load, 0x40, 64);
    let with = |change: fn(&mut Record)| {
        let mut record = load;
        change(&mut record);
        [load, record]
    };
    for (records, format, reason) in [
        (
            with(|r| r.size = 8),
            Format::Ramulator2,
            "record 2, a load at 0x40, cannot be written as ramulator2, which has no sizes",
        ),
        (
            with(|r| r.thread = 3),
            Format::Vans,
            "no threads (this one is of thread 3)",
        ),
        (with(|r| r.time = Some(1)), Format::Vans, "no times"),
        (
            with(|r| r.kind = OpKind::Sfence),
            Format::Dramsim3,
            "record 2, a sfence, cannot be written as dramsim3, which has no sfence ops",
        ),
        (with(|r| r.kind = OpKind::Clwb), Format::Lackey, "no clwb ops"),
        (
            [Record::new(OpKind::Store, 0, 64), load],
            Format::Ramulator2O3,
            "a load before each store",
        ),
        (
            [load, Record::new(OpKind::Compute, 0, 1)],
            Format::Ramulator2O3,
            "record 2, the last, cannot be written",
        ),
        ([load, load], Format::Ramulator2Rw, "read only"),
    ] {
        let error = encode(&records, format, HEADER).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

proptest! {
    #[test]
    fn anything_survives_the_own_format(records in proptest::collection::vec(any_record(), 0..300), tick_fs: u64, memory: bool) {
        let level = if memory { Level::Memory } else { Level::Core };
        let header = Header { level, tick_fs };
        let bytes = encode(&records, Format::Xpline, header).unwrap();
        prop_assert_eq!(common::open(&bytes, &ReadOptions::default()).unwrap().header(), header);
        prop_assert_eq!(&read(&bytes).unwrap(), &records);
        prop_assert_eq!(&read(&compressed(&bytes)).unwrap(), &records);
    }

    #[test]
    fn requests_survive_every_format(mut records in proptest::collection::vec(request(), 1..300)) {
        for format in MEMORY_LEVEL {
            if format == Format::Dramsim3 {
                for (cycle, record) in records.iter_mut().enumerate() {
                    record.time = Some(cycle as u64 * 3);
                }
            } else {
                records.iter_mut().for_each(|record| record.time = None);
            }
            prop_assert_eq!(&read(&write(&records, format)).unwrap(), &records, "{}", format.name());
        }
    }

    #[test]
    fn programs_survive_lackey(accesses in proptest::collection::vec((request(), 1..u32::MAX, 0..20u32), 1..100)) {
        let mut records = Vec::new();
        for (access, size, instructions) in accesses {
            if instructions > 0 {
                records.push(Record::new(OpKind::Compute, 0, instructions));
            }
            records.push(Record { size, ..access });
        }
        prop_assert_eq!(read(&write(&records, Format::Lackey)).unwrap(), records);
    }

    #[test]
    fn programs_survive_simple_o3(lines in proptest::collection::vec((any::<u32>(), any::<u64>(), proptest::option::of(any::<u64>())), 1..100)) {
        let mut records = Vec::new();
        for (instructions, load, store) in lines {
            if instructions > 0 {
                records.push(Record::new(OpKind::Compute, 0, instructions));
            }
            records.push(Record::new(OpKind::Load, load, 64));
            records.extend(store.map(|store| Record::new(OpKind::Store, store, 64)));
        }
        prop_assert_eq!(read(&write(&records, Format::Ramulator2O3)).unwrap(), records);
    }

    /// So the order in which formats are tried does not matter.
    #[test]
    fn no_line_is_of_two_formats(line in "[ ]?([ILSMRW]|LD|ST|READ|WRITE|(0x)?[0-9a-f]{1,6})( ([RW]|READ|WRITE|[0-9]{1,4}|0x[0-9a-f]{1,5}|[0-9a-f]{1,4},[0-9]{1,2}|[0-9],[0-9],[0-9])){1,2}\n") {
        let geometry = xpline_trace::Geometry::parse("1000000,100").ok();
        let of = |format: &Format| {
            let options = ReadOptions { format: Some(*format), geometry: geometry.clone() };
            // `ramulator2` stands for its whole family.
            common::open(line.as_bytes(), &options).is_ok_and(|trace| trace.format() == *format)
                && read_with(line.as_bytes(), &options).is_ok()
        };
        let formats: Vec<Format> = Format::ALL.into_iter().filter(of).collect();
        prop_assert!(formats.len() <= 1, "{line:?}: {formats:?}");
        if let [format] = formats[..] && format != Format::Ramulator2Rw {
            prop_assert_eq!(common::open(line.as_bytes(), &ReadOptions::default()).unwrap().format(), format);
        }
    }
}
