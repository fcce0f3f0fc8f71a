//! Records into blocks.

use std::io::{self, Write};

use super::{BLOCK_HEADER, Before, KINDS, LARGEST_PAYLOAD, MAGIC, VERSION, tag};
use crate::format::{Refusal, Writer};
use crate::record::{Header, LINE, Level, Record, has_address};

/// Payload at which a block is closed: small enough to buffer, large enough for its header not to count.
const FULL: usize = 64 << 10;

/// Writes a trace; [`Writer::finish`] must be called at its end.
pub struct Encoder {
    header: Option<Header>,
    payload: Vec<u8>,
    records: u32,
    total: u64,
    before: Before,
}

impl Encoder {
    pub fn new(header: Header) -> Self {
        const { assert!(FULL + 64 <= LARGEST_PAYLOAD) };
        Self {
            header: Some(header),
            payload: Vec::with_capacity(FULL + 64),
            records: 0,
            total: 0,
            before: Before::default(),
        }
    }

    fn start(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(header) = self.header.take() else {
            return Ok(());
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.push(u8::from(header.level == Level::Memory));
        bytes.push(0);
        bytes.extend(header.tick_fs.to_le_bytes());
        let checksum = crc32fast::hash(&bytes);
        bytes.extend(checksum.to_le_bytes());
        out.write_all(&bytes)
    }

    fn end_block(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.records == 0 {
            return Ok(());
        }
        let mut header = [0; BLOCK_HEADER];
        header[..4].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&self.records.to_le_bytes());
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&header[..8]);
        checksum.update(&self.payload);
        header[8..].copy_from_slice(&checksum.finalize().to_le_bytes());
        out.write_all(&header)?;
        out.write_all(&self.payload)?;
        self.total += u64::from(self.records);
        self.records = 0;
        self.payload.clear();
        self.before = Before::default();
        Ok(())
    }

    fn push(&mut self, record: &Record, kind: u8) {
        let Record {
            thread,
            address,
            size,
            time,
            ..
        } = *record;
        let with_address = has_address(record.kind);
        let with_size = size != LINE as u32;
        let distance = address.wrapping_sub(self.before.address) as i64;
        let in_bytes = with_address && distance % LINE as i64 != 0;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        self.payload.push(
            kind | flag(thread != self.before.thread, tag::THREAD)
                | flag(time.is_some(), tag::TIME)
                | flag(with_size, tag::SIZE)
                | flag(in_bytes, tag::BYTES),
        );
        if thread != self.before.thread {
            self.varint(u64::from(thread));
            self.before.thread = thread;
        }
        if let Some(time) = time {
            self.varint(zigzag(time.wrapping_sub(self.before.time) as i64));
            self.before.time = time;
        }
        if with_size {
            self.varint(u64::from(size));
        }
        if with_address {
            self.varint(zigzag(if in_bytes { distance } else { distance / LINE as i64 }));
            self.before.address = address;
        }
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.payload.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.payload.push(number as u8);
    }
}

/// Small for small distances, forward or back.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

impl Writer for Encoder {
    fn write(&mut self, out: &mut dyn Write, record: &Record) -> Result<(), Refusal> {
        self.start(out)?;
        let Some(kind) = KINDS.iter().position(|&kind| kind == record.kind) else {
            let what = format!("cannot be written: {:?} is no part of a trace", record.kind);
            return Err(Refusal::Format(what));
        };
        self.push(record, kind as u8);
        self.records += 1;
        if self.payload.len() >= FULL {
            self.end_block(out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<(), Refusal> {
        self.start(out)?;
        self.end_block(out)?;
        let mut end = 0u32.to_le_bytes().to_vec();
        end.extend(self.total.to_le_bytes());
        let checksum = crc32fast::hash(&end);
        end.extend(checksum.to_le_bytes());
        Ok(out.write_all(&end)?)
    }
}
