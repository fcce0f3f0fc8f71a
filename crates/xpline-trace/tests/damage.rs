//! Damaged, cut off and mixed-up traces: an error that says where, never a panic, never silence.

mod common;

use common::{any_record, compressed, read, request, write};
use proptest::prelude::*;
use xpline_model::OpKind;
use xpline_trace::{Format, Record, TraceError};

fn records() -> Vec<Record> {
    let mut records = Vec::new();
    for line in 0..200u64 {
        records.push(Record {
            thread: (line % 3) as u32,
            time: (line % 2 == 0).then_some(line * 17),
            ..Record::new(OpKind::Load, line * line * 8, 8)
        });
        records.push(Record::new(OpKind::Sfence, 0, 0));
    }
    records
}

fn place(error: &TraceError) -> u64 {
    error.place.unwrap_or_else(|| panic!("{error} has no place")).byte
}

#[test]
fn the_own_format_cut_off_at_any_byte_is_refused() {
    let bytes = write(&records(), Format::Xpline);
    for length in 1..bytes.len() {
        let error = read(&bytes[..length]).unwrap_err();
        assert_eq!(place(&error), length as u64, "{error}");
        assert!(error.what.contains("cut off"), "{error}");
    }
    assert!(read(&[]).unwrap_err().what.contains("empty"));
}

#[test]
fn any_bit_flipped_in_the_own_format_is_refused() {
    let bytes = write(&records(), Format::Xpline);
    for byte in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[byte] ^= 1 << bit;
            let error = read(&damaged).unwrap_err();
            // A first byte that is not ours makes it a text, and a bad one.
            assert!(
                place(&error) <= byte as u64 || error.what.contains("cut off"),
                "byte {byte} bit {bit}: {error}"
            );
        }
    }
}

#[test]
fn anything_after_the_end_is_refused() {
    let bytes = write(&records(), Format::Xpline);
    let error = read(&[&bytes[..], &bytes[..]].concat()).unwrap_err();
    assert_eq!(place(&error), bytes.len() as u64);
    assert!(error.what.contains("more after the end"), "{error}");
}

#[test]
fn a_block_left_out_is_missed() {
    let many: Vec<Record> = (0..100_000)
        .map(|line| Record::new(OpKind::Load, line * 640, 64))
        .collect();
    let bytes = write(&many, Format::Xpline);
    let first = 24 + 12 + u32::from_le_bytes(bytes[24..28].try_into().unwrap()) as usize;
    let without = [&bytes[..24], &bytes[first..]].concat();
    let error = read(&without).unwrap_err();
    assert!(error.what.contains("should hold 100000 records"), "{error}");
}

#[test]
fn a_later_version_is_named() {
    let mut bytes = write(&records(), Format::Xpline);
    bytes[8] = 2;
    let checksum = crc32fast::hash(&bytes[..20]).to_le_bytes();
    bytes[20..24].copy_from_slice(&checksum);
    let error = read(&bytes).unwrap_err();
    assert!(
        error.to_string().starts_with("t: byte 8: version 2 of the format"),
        "{error}"
    );
}

#[test]
fn a_compressed_file_cut_off_or_changed_is_refused() {
    let bytes = compressed(&write(&records(), Format::Xpline));
    for length in 4..bytes.len() {
        let error = read(&bytes[..length]).unwrap_err();
        assert!(error.what.contains("damaged or cut off"), "{length}: {error}");
    }
    for byte in 4..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[byte] ^= 1 << bit;
            // Some bits of zstd mean nothing; what is read must then be right.
            if let Ok(read) = read(&damaged) {
                assert_eq!(read, records(), "byte {byte} bit {bit}");
            }
        }
    }
}

#[test]
fn a_text_cut_off_within_a_line_is_refused() {
    let lines: Vec<Record> = (0..50).map(|line| Record::new(OpKind::Load, line * 4096, 64)).collect();
    let text = write(&lines, Format::Vans);
    for length in 1..text.len() {
        match read(&text[..length]) {
            Ok(read) => {
                assert_eq!(text[length - 1], b'\n', "{length}");
                assert_eq!(read, lines[..read.len()]);
            }
            Err(error) => assert!(error.place.unwrap().byte <= length as u64, "{error}"),
        }
    }
    let error = read(b"0x10 R\n0x20").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("t: line 2, byte 11: the file ends within a line"),
        "{error}"
    );
}

#[test]
fn traces_mixed_up_are_told_by_line_and_byte() {
    let error = read(b"LD 0x40\nST 0x80\n0x40 READ 3\n").unwrap_err().to_string();
    let expected = "t: line 3, byte 16: `0x40` is neither LD nor ST (this is a line of a dramsim3 trace, and those before are \
                    ramulator2: two traces mixed up)";
    assert_eq!(error, expected);
    let own = write(&records(), Format::Xpline);
    assert!(
        read(&[b"LD 0x40\n", &own[..]].concat())
            .unwrap_err()
            .to_string()
            .starts_with("t: line 2, byte 8: ")
    );
}

#[test]
fn what_no_format_knows_is_shown() {
    let error = read(b"\nhello, world\n").unwrap_err().to_string();
    assert!(
        error.starts_with(
            "t: line 2, byte 1: `hello, world` is a line of no known format; known are ramulator2 (`LD 0x1000`)"
        ),
        "{error}"
    );
    assert!(read(&[0xff, 0xfe, 0x00]).unwrap_err().what.contains("neither text nor"));
    assert!(read(b"\n\n").unwrap_err().what.contains("empty"));
    let long = [b"LD 0x40\n".to_vec(), vec![b'x'; 1 << 20]].concat();
    assert!(
        read(&long)
            .unwrap_err()
            .to_string()
            .starts_with("t: line 2, byte 8: the line is over 4096 bytes long")
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        _ = read(&bytes);
        _ = read(&[b"\x28\xb5\x2f\xfd".as_slice(), &bytes].concat());
        _ = read(&[b"\x89XPT\r\n\x1a\n".as_slice(), &bytes].concat());
    }

    /// A block that someone else wrote, with a checksum that fits.
    #[test]
    fn any_payload_is_read_or_refused(payload in proptest::collection::vec(any::<u8>(), 1..200), count in 0..300u32) {
        let mut bytes = write(&[], Format::Xpline)[..24].to_vec();
        let mut block = (payload.len() as u32).to_le_bytes().to_vec();
        block.extend(count.to_le_bytes());
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&block);
        checksum.update(&payload);
        block.extend(checksum.finalize().to_le_bytes());
        bytes.extend(block);
        bytes.extend(payload);
        let error = read(&bytes).unwrap_err(); // at best the end is missing
        prop_assert!(place(&error) >= 24);
    }

    #[test]
    fn any_damage_is_noticed(records in proptest::collection::vec(any_record(), 1..50), at: proptest::sample::Index, value: u8) {
        let mut bytes = write(&records, Format::Xpline);
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != value);
        bytes[at] = value;
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn any_byte_put_into_a_text_is_read_or_refused(records in proptest::collection::vec(request(), 1..20), at: proptest::sample::Index, value: u8) {
        for format in [Format::Ramulator2, Format::Dramsim3, Format::Vans] {
            let mut text = write(&records, format);
            let at = at.index(text.len());
            text[at] = value;
            if let Err(error) = read(&text) {
                // The first byte of xpline's own format, or of zstd's, makes that of the text, which has no lines.
                let no_text = matches!(text[0], 0x89 | 0x28);
                prop_assert!(error.place.unwrap().line.is_some() || no_text, "{error}");
            }
        }
    }
}
