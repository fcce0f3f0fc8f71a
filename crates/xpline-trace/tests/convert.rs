//! Conversion: files from one format to another, whole or not at all.

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use common::{any_record, read, write};
use proptest::prelude::*;
use xpline_model::OpKind;
use xpline_trace::{Converted, Format, Options, Record, TraceError, convert};

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(source: &PathBuf, target: &PathBuf, json: &str, stop: bool) -> Result<Option<Converted>, TraceError> {
    let options = serde_json::from_str::<Options>(json).unwrap().convert()?;
    let [source, target] = [source, target].map(|path| path.to_str().unwrap());
    convert(source, target, &options, &Default::default(), &AtomicBool::new(stop))
}

#[test]
fn a_conversion_says_what_it_did() {
    let folder = folder("says");
    let [source, target] = ["in", "out.zst"].map(|name| folder.join(name));
    let records = [
        Record::new(OpKind::Compute, 0, 3),
        Record::new(OpKind::Load, 60, 8),
        Record::new(OpKind::LockedRmw, 128, 64),
        Record::new(OpKind::Store, 192, 64),
    ];
    fs::write(&source, write(&records, Format::Xpline)).unwrap();
    let converted = run(&source, &target, r#"{"to": "vans", "lossy": true}"#, false)
        .unwrap()
        .unwrap();
    let expected = Converted {
        from: "xpline",
        to: "vans",
        records: 4,
        written: 5,
        dropped: 1,
        changed: 2,
        bytes: fs::metadata(&target).unwrap().len(),
    };
    assert_eq!(converted, expected);
    let lines = [0, 64, 128, 128, 192].map(|address| Record::new(OpKind::Load, address, 64));
    let expected: Vec<Record> = (0..)
        .zip(lines)
        .map(|(at, line)| {
            if at > 2 {
                Record {
                    kind: OpKind::Store,
                    ..line
                }
            } else {
                line
            }
        })
        .collect();
    assert_eq!(read(&fs::read(&target).unwrap()).unwrap(), expected);
}

#[test]
fn what_fails_or_is_stopped_leaves_nothing() {
    let folder = folder("nothing");
    let [source, target] = ["in", "out"].map(|name| folder.join(name));
    fs::write(&source, "LD 0x40\nLD what\n").unwrap();
    assert!(run(&source, &target, "{}", false).is_err());
    assert_eq!(run(&source, &target, "{}", true), Ok(None));
    fs::write(&source, "1 64 128\n").unwrap();
    assert!(run(&source, &target, r#"{"to": "dramsim3"}"#, false).is_err());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_file_may_be_converted_into_itself() {
    let folder = folder("itself");
    let path = folder.join("t");
    fs::write(&path, "LD 0x40\n").unwrap();
    run(&path, &path, "{}", false).unwrap().unwrap();
    assert_eq!(
        read(&fs::read(&path).unwrap()).unwrap(),
        [Record::new(OpKind::Load, 0x40, 64)]
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With what it cannot hold left out, any trace fits any format that is written.
    #[test]
    fn anything_fits_lossily(records in proptest::collection::vec(any_record(), 1..60)) {
        let folder = folder("lossy");
        let [source, target] = ["in", "out"].map(|name| folder.join(name));
        let records: Vec<Record> = records.into_iter().map(|record| Record { size: record.size % 300 + 1, ..record }).collect();
        fs::write(&source, write(&records, Format::Xpline)).unwrap();
        for format in Format::ALL.into_iter().filter(|&format| format != Format::Ramulator2Rw) {
            let json = format!(r#"{{"to": "{}", "lossy": true}}"#, format.name());
            let converted = run(&source, &target, &json, false).unwrap().unwrap();
            prop_assert_eq!(converted.records, records.len() as u64);
            let bytes = fs::read(&target).unwrap();
            if bytes.is_empty() {
                let moves_data = |record: &Record| {
                    matches!(record.kind, OpKind::Load | OpKind::Store | OpKind::NtStore | OpKind::LockedRmw)
                };
                prop_assert!(!records.iter().any(moves_data));
                continue;
            }
            let back = read(&bytes).unwrap();
            match format {
                Format::Xpline => prop_assert_eq!((&back, converted.changed), (&records, 0)),
                // Instructions that follow each other become one record, and a store alone gets a load.
                Format::Lackey | Format::Ramulator2O3 => prop_assert!(!back.is_empty()),
                _ => prop_assert_eq!(back.len() as u64, converted.written),
            }
        }
    }
}
