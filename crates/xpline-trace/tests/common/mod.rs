//! What the tests share: traces in memory, and op streams that a format can hold.
#![allow(dead_code)] // each test uses some

use std::io::Cursor;

use proptest::prelude::*;
use xpline_model::OpKind;
use xpline_trace::{Format, Header, Input, Level, ReadOptions, Record, Trace, TraceError, encode};

pub const HEADER: Header = Header {
    level: Level::Core,
    tick_fs: 0,
};

/// A trace of these bytes.
pub fn open(bytes: &[u8], options: &ReadOptions) -> Result<Trace, TraceError> {
    Trace::new(Input::new("t", Box::new(Cursor::new(bytes.to_vec())))?, options)
}

/// Everything in a trace of these bytes.
pub fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<Vec<Record>, TraceError> {
    let mut trace = open(bytes, options)?;
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while trace.read(&mut batch)? {
        all.append(&mut batch);
    }
    Ok(all)
}

pub fn read(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
    read_with(bytes, &ReadOptions::default())
}

pub fn write(records: &[Record], format: Format) -> Vec<u8> {
    encode(records, format, HEADER).unwrap()
}

pub fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 0).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// The kinds that a trace may hold: all but the reading of the clock.
fn kinds() -> Vec<OpKind> {
    OpKind::ALL
        .into_iter()
        .filter(|&kind| !matches!(kind, OpKind::Stamp | OpKind::Mispredict))
        .collect()
}

/// Small and large numbers, and those at the ends.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..1000u64,
        any::<u64>(),
        Just(u64::MAX),
        (0..64u32).prop_map(|bit| 1 << bit)
    ]
}

/// Any record at all.
pub fn any_record() -> impl Strategy<Value = Record> {
    (
        prop::sample::select(kinds()),
        0..4u32,
        any::<u32>(),
        number(),
        prop_oneof![Just(64u32), any::<u32>()],
        proptest::option::of(number()),
    )
        .prop_map(|(kind, small, thread, address, size, time)| Record {
            kind,
            thread: if small < 3 { small } else { thread },
            address: if xpline_trace::has_address(kind) { address } else { 0 },
            size,
            time,
        })
}

/// Reads and writes of whole requests: what every memory-level format holds.
pub fn request() -> impl Strategy<Value = Record> {
    (any::<bool>(), number())
        .prop_map(|(read, address)| Record::new(if read { OpKind::Load } else { OpKind::Store }, address, 64))
}
