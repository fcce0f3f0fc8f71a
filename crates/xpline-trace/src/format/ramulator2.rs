//! The three trace formats of Ramulator 2: `LoadStoreTrace`, `ReadWriteTrace` and `SimpleO3`.

use std::io::Write;

use xpline_model::OpKind;

use super::{Refusal, Writer, request};
use crate::record::Record;
use crate::text::{Fault, Lines, Words};

/// Bytes of a request.
const REQUEST: u32 = 64;

/// `LD` or `ST`, and an address: decimal, or hexadecimal with `0x`.
pub struct LoadStore;

impl Lines for LoadStore {
    #[inline]
    fn line(&mut self, line: &[u8], records: &mut Vec<Record>) -> Result<(), Fault> {
        let mut words = Words::new(line);
        let op = words.word("LD or ST")?;
        let kind = match op.text {
            b"LD" => OpKind::Load,
            b"ST" => OpKind::Store,
            _ => return Err(op.fault(&format!("`{op}` is neither LD nor ST"))),
        };
        let address = words.word("an address")?.number("an address")?;
        words.end()?;
        records.push(Record::new(kind, address, REQUEST));
        Ok(())
    }
}

impl Writer for LoadStore {
    fn write(&mut self, out: &mut dyn Write, record: &Record) -> Result<(), Refusal> {
        let op = if request(record, "ramulator2", false)? {
            "LD"
        } else {
            "ST"
        };
        Ok(writeln!(out, "{op} {:#x}", record.address)?)
    }

    fn finish(&mut self, _out: &mut dyn Write) -> Result<(), Refusal> {
        Ok(())
    }
}

/// How many there are of each part of a memory that an address vector names, from the channel to the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry(Vec<u64>);

impl Geometry {
    /// Numbers with commas between, such as `1,2,4,4,65536,128`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}`: write how many there are of each part that the vectors name, such as 1,2,4,4,65536,128 \
                 for channels, ranks, bank groups, banks, rows and columns (of 64 B)"
            )
        };
        let parts: Option<Vec<u64>> = text
            .split(',')
            .map(|part| part.trim().parse().ok().filter(|&count| count > 0))
            .collect();
        let parts = parts.filter(|parts| parts.len() > 1).ok_or_else(wrong)?;
        let all = parts
            .iter()
            .try_fold(u64::from(REQUEST), |all, &count| all.checked_mul(count));
        all.ok_or_else(|| format!("`{text}`: the memory would hold over 2^64 bytes"))?;
        Ok(Self(parts))
    }
}

/// `R` or `W`, and the vector of a request's address: channel, rank, ..., row, column.
///
/// A vector is no address until it is known how many there are of each part; then it counts them, the column fastest.
pub struct AddressVectors {
    geometry: Option<Geometry>,
}

impl AddressVectors {
    pub fn new(geometry: Option<Geometry>) -> Self {
        Self { geometry }
    }

    /// Whether a line is of this format, whatever the geometry.
    pub fn is_vector(&self, line: &[u8]) -> bool {
        let words: Vec<_> = Words::new(line).collect();
        let [op, vector] = words[..] else { return false };
        let number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        matches!(op.text, b"R" | b"W")
            && vector.text.contains(&b',')
            && vector.text.split(|&byte| byte == b',').all(number)
    }
}

impl Lines for AddressVectors {
    fn line(&mut self, line: &[u8], records: &mut Vec<Record>) -> Result<(), Fault> {
        let mut words = Words::new(line);
        let op = words.word("R or W")?;
        let kind = match op.text {
            b"R" => OpKind::Load,
            b"W" => OpKind::Store,
            _ => return Err(op.fault(&format!("`{op}` is neither R nor W"))),
        };
        let vector = words.word("an address vector")?;
        words.end()?;
        let Some(Geometry(counts)) = &self.geometry else {
            return Err(vector.fault(&format!(
                "`{vector}` names a channel, a rank and so on, not an address; say how many there are of each with \
                 --geometry, such as --geometry 1,2,4,4,65536,128"
            )));
        };
        let parts: Vec<&[u8]> = vector.text.split(|&byte| byte == b',').collect();
        if parts.len() != counts.len() {
            return Err(vector.fault(&format!(
                "`{vector}` has {} parts, and --geometry {}",
                parts.len(),
                counts.len()
            )));
        }
        let mut address = 0;
        for (part, &count) in parts.iter().zip(counts) {
            let number = std::str::from_utf8(part).ok().and_then(|text| text.parse::<u64>().ok());
            let number = number.filter(|&number| number < count).ok_or_else(|| {
                vector.fault(&format!(
                    "`{}` of `{vector}` must be 0 to {}, as --geometry has it",
                    part.escape_ascii(),
                    count - 1
                ))
            })?;
            address = address * count + number;
        }
        records.push(Record::new(kind, address * u64::from(REQUEST), REQUEST));
        Ok(())
    }
}

/// Instructions that touch no memory, the address of a load after them, and that of a store if there is one.
pub struct SimpleO3;

impl Lines for SimpleO3 {
    #[inline]
    fn line(&mut self, line: &[u8], records: &mut Vec<Record>) -> Result<(), Fault> {
        let mut words = Words::new(line);
        let bubble = words.word("a count of instructions")?;
        let instructions = u32::try_from(bubble.decimal("a count of instructions")?)
            .map_err(|_| bubble.fault(&format!("`{bubble}` instructions: must be below 2^32")))?;
        let load = words.word("the address of a load")?.number("the address of a load")?;
        let store = words
            .next()
            .map(|word| word.number("the address of a store"))
            .transpose()?;
        words.end()?;
        if instructions > 0 {
            records.push(Record::new(OpKind::Compute, 0, instructions));
        }
        records.push(Record::new(OpKind::Load, load, REQUEST));
        if let Some(store) = store {
            records.push(Record::new(OpKind::Store, store, REQUEST));
        }
        Ok(())
    }
}

const NO_LOAD: &str = "cannot be written as ramulator2-o3, which has a load after each run of instructions";

/// Gathers a line: instructions, then a load, then maybe a store.
pub(super) struct O3Writer {
    instructions: u32,
    load: Option<u64>,
    /// Whether a store without a load gets one, of its own line, and instructions without a load are left out at the end.
    lossy: bool,
}

impl O3Writer {
    pub fn new(lossy: bool) -> Self {
        Self {
            instructions: 0,
            load: None,
            lossy,
        }
    }

    fn end_line(&mut self, out: &mut dyn Write, store: Option<u64>) -> Result<(), Refusal> {
        if let Some(load) = self.load.take() {
            write!(out, "{} {load}", self.instructions)?;
            if let Some(store) = store {
                write!(out, " {store}")?;
            }
            writeln!(out)?;
            self.instructions = 0;
        }
        Ok(())
    }
}

impl Writer for O3Writer {
    fn write(&mut self, out: &mut dyn Write, record: &Record) -> Result<(), Refusal> {
        if record.kind == OpKind::Compute && record.thread == 0 && record.time.is_none() {
            self.end_line(out, None)?;
            if self.instructions > 0 && !self.lossy {
                return Err(Refusal::Format(NO_LOAD.to_owned()));
            }
            self.instructions = self.instructions.saturating_add(record.size);
        } else if request(record, "ramulator2-o3", false)? {
            self.end_line(out, None)?;
            self.load = Some(record.address);
        } else if self.load.is_some() {
            self.end_line(out, Some(record.address))?;
        } else if self.lossy {
            self.load = Some(record.address);
            self.end_line(out, Some(record.address))?;
        } else {
            let what = "cannot be written as ramulator2-o3, which has a load before each store";
            return Err(Refusal::Format(what.into()));
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<(), Refusal> {
        self.end_line(out, None)?;
        if self.instructions > 0 && !self.lossy {
            return Err(Refusal::Format(NO_LOAD.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &mut impl Lines, line: &str) -> Result<Vec<Record>, Fault> {
        let mut records = Vec::new();
        lines.line(line.as_bytes(), &mut records).map(|()| records)
    }

    #[test]
    fn loads_and_stores() {
        assert_eq!(
            read(&mut LoadStore, "LD 0x40"),
            Ok(vec![Record::new(OpKind::Load, 64, 64)])
        );
        assert_eq!(
            read(&mut LoadStore, "ST 128"),
            Ok(vec![Record::new(OpKind::Store, 128, 64)])
        );
        let fault = read(&mut LoadStore, "LX 128").unwrap_err();
        assert_eq!((fault.column, &*fault.what), (0, "`LX` is neither LD nor ST"));
        assert_eq!(read(&mut LoadStore, "LD 0x1g").unwrap_err().column, 3);
        assert_eq!(read(&mut LoadStore, "LD").unwrap_err().column, 2);
        assert_eq!(read(&mut LoadStore, "LD 1 2").unwrap_err().column, 5);
    }

    #[test]
    fn a_vector_counts_its_parts_the_last_fastest() {
        let geometry = Geometry::parse("2,4,8").unwrap();
        let mut lines = AddressVectors::new(Some(geometry));
        let address = (4 + 2) * 8 + 3;
        assert_eq!(
            read(&mut lines, "W 1,2,3"),
            Ok(vec![Record::new(OpKind::Store, address * 64, 64)])
        );
        assert!(
            read(&mut lines, "R 1,4,3")
                .unwrap_err()
                .what
                .contains("`4` of `1,4,3` must be 0 to 3")
        );
        assert!(
            read(&mut lines, "R 1,4")
                .unwrap_err()
                .what
                .contains("has 2 parts, and --geometry 3")
        );
    }

    #[test]
    fn a_vector_needs_a_geometry() {
        let fault = read(&mut AddressVectors::new(None), "R 0,1").unwrap_err();
        assert!(fault.what.contains("not an address"), "{}", fault.what);
    }

    #[test]
    fn a_geometry_is_counts_whose_memory_has_addresses() {
        for wrong in ["", "1", "1,0", "1,,2", "1,-2", "a,b"] {
            assert!(Geometry::parse(wrong).unwrap_err().contains("such as"), "{wrong}");
        }
        assert!(Geometry::parse("4294967296,4294967296").unwrap_err().contains("2^64"));
    }

    #[test]
    fn instructions_a_load_and_a_store() {
        let [load, store] = [Record::new(OpKind::Load, 4096, 64), Record::new(OpKind::Store, 64, 64)];
        assert_eq!(
            read(&mut SimpleO3, "3 4096 0x40"),
            Ok(vec![Record::new(OpKind::Compute, 0, 3), load, store])
        );
        assert_eq!(read(&mut SimpleO3, "0 4096"), Ok(vec![load]));
        assert!(
            read(&mut SimpleO3, "4294967296 0")
                .unwrap_err()
                .what
                .contains("below 2^32")
        );
        assert!(read(&mut SimpleO3, "-1 0").is_err());
    }
}
