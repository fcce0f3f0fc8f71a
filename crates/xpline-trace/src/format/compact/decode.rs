//! Blocks back into records, with every way in which they can be damaged.

use super::{BLOCK_HEADER, Before, END, HEADER, KINDS, LARGEST_PAYLOAD, MAGIC, VERSION, tag};
use crate::error::TraceError;
use crate::input::Input;
use crate::record::{Header, LINE, Level, Record, has_address};

/// Reads a trace block by block.
pub struct Decoder {
    header: Header,
    records: u64,
}

impl Decoder {
    /// Read the file header.
    pub fn new(input: &mut Input) -> Result<Self, TraceError> {
        need(input, HEADER, "header")?;
        let bytes = &input.buffered()[..HEADER];
        let fault = |at: usize, what: String| Err(TraceError::at_byte(input.path(), at as u64, what));
        if bytes[..8] != MAGIC {
            return fault(
                0,
                "not an xpline trace, or damaged: it does not start as one does".into(),
            );
        }
        let checksum = crc32fast::hash(&bytes[..HEADER - 4]);
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if bytes[HEADER - 4..] != checksum.to_le_bytes() {
            return fault(8, "the header is damaged: its checksum does not fit".into());
        }
        if version != VERSION {
            return fault(
                8,
                format!(
                    "version {version} of the format, of which this xpline reads version {VERSION}: use a newer xpline"
                ),
            );
        }
        let level = match (bytes[10], bytes[11]) {
            (0, 0) => Level::Core,
            (1, 0) => Level::Memory,
            (level, reserved) => return fault(10, format!("level {level}, {reserved}: must be 0, 0 or 1, 0")),
        };
        let tick_fs = u64::from_le_bytes(bytes[12..20].try_into().expect("eight bytes"));
        input.consume(HEADER);
        Ok(Self {
            header: Header { level, tick_fs },
            records: 0,
        })
    }

    pub fn header(&self) -> Header {
        self.header
    }

    /// Append the records of the next block; false after the last.
    pub fn read_block(&mut self, input: &mut Input, records: &mut Vec<Record>) -> Result<bool, TraceError> {
        need(input, 4, "start of a block, or the end")?;
        let length = word(input.buffered(), 0) as usize;
        if length == 0 {
            return self.read_end(input).map(|()| false);
        }
        if length > LARGEST_PAYLOAD {
            let what = format!("damaged: a block of {length} bytes, of which there may be {LARGEST_PAYLOAD}");
            return Err(TraceError::at_byte(input.path(), input.offset(), what));
        }
        need(input, BLOCK_HEADER + length, "block")?;
        let block = &input.buffered()[..BLOCK_HEADER + length];
        let count = word(block, 4);
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&block[..8]);
        checksum.update(&block[BLOCK_HEADER..]);
        if checksum.finalize() != word(block, 8) {
            let what = format!("the block of {length} bytes that starts here is damaged: its checksum does not fit");
            return Err(TraceError::at_byte(input.path(), input.offset(), what));
        }
        let mut payload = Payload {
            bytes: &block[BLOCK_HEADER..],
            at: 0,
            before: Before::default(),
        };
        for _ in 0..count {
            match payload.record() {
                Some(record) => records.push(record),
                None => return Err(misfit(input, payload.at)),
            }
        }
        if payload.at != length {
            return Err(misfit(input, payload.at));
        }
        self.records += u64::from(count);
        input.consume(BLOCK_HEADER + length);
        Ok(true)
    }

    fn read_end(&mut self, input: &mut Input) -> Result<(), TraceError> {
        need(input, END, "end")?;
        let end = &input.buffered()[..END];
        let fault = |what: String| Err(TraceError::at_byte(input.path(), input.offset(), what));
        if crc32fast::hash(&end[..END - 4]) != word(end, END - 4) {
            return fault("the end is damaged: its checksum does not fit".into());
        }
        let total = u64::from_le_bytes(end[4..12].try_into().expect("eight bytes"));
        if total != self.records {
            let found = self.records;
            return fault(format!(
                "damaged: the file should hold {total} records, and holds {found}"
            ));
        }
        input.consume(END);
        if input.fill_to(1)? {
            let what = "there is more after the end of the trace: two files run together, or damaged";
            return Err(TraceError::at_byte(input.path(), input.offset(), what));
        }
        Ok(())
    }
}

/// Buffer so many bytes, or say that the file is cut off within `part`.
fn need(input: &mut Input, bytes: usize, part: &str) -> Result<(), TraceError> {
    if input.fill_to(bytes)? {
        return Ok(());
    }
    let place = input.offset() + input.buffered().len() as u64;
    let what = format!("the file is cut off here: it ends where its {part} should go on");
    Err(TraceError::at_byte(input.path(), place, what))
}

/// The checksum fits and the records do not.
fn misfit(input: &Input, at: usize) -> TraceError {
    let place = input.offset() + (BLOCK_HEADER + at) as u64;
    let what = "the records of this block do not fit its length: written by a program that does it wrong";
    TraceError::at_byte(input.path(), place, what)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The records of a block.
struct Payload<'a> {
    bytes: &'a [u8],
    at: usize,
    before: Before,
}

impl Payload<'_> {
    /// The next record; `None` if the bytes are not one.
    #[inline]
    fn record(&mut self) -> Option<Record> {
        let first = *self.bytes.get(self.at)?;
        self.at += 1;
        let kind = *KINDS.get(usize::from(first & tag::KIND))?;
        if first & tag::THREAD != 0 {
            self.before.thread = u32::try_from(self.varint()?).ok()?;
        }
        let time = if first & tag::TIME != 0 {
            self.before.time = self.before.time.wrapping_add(self.zigzag()? as u64);
            Some(self.before.time)
        } else {
            None
        };
        let size = if first & tag::SIZE != 0 {
            u32::try_from(self.varint()?).ok()?
        } else {
            LINE as u32
        };
        let address = if has_address(kind) {
            let distance = self.zigzag()?;
            let unit = if first & tag::BYTES != 0 { 1 } else { LINE as i64 };
            self.before.address = self.before.address.wrapping_add(distance.wrapping_mul(unit) as u64);
            self.before.address
        } else {
            0
        };
        Some(Record {
            kind,
            thread: self.before.thread,
            address,
            size,
            time,
        })
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            number |= part << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    #[inline]
    fn zigzag(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}
