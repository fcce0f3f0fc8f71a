//! VANS, and Ramulator 1 before it: an address, and `R` or `W`.

use std::io::Write;

use xpline_model::OpKind;

use super::{Refusal, Writer, request};
use crate::record::Record;
use crate::text::{Fault, Lines, Words};

/// Bytes of a request.
const REQUEST: u32 = 64;

/// `0xADDRESS R|W` or `R|W 0xADDRESS`; the address is hexadecimal with or without `0x`.
pub struct Vans;

impl Lines for Vans {
    #[inline]
    fn line(&mut self, line: &[u8], records: &mut Vec<Record>) -> Result<(), Fault> {
        let mut words = Words::new(line);
        let first = words.word("an address")?;
        let second = words.word("R or W")?;
        words.end()?;
        let kind = |text: &[u8]| match text {
            b"R" | b"r" => Some(OpKind::Load),
            b"W" | b"w" => Some(OpKind::Store),
            _ => None,
        };
        let (kind, address) = match (kind(first.text), kind(second.text)) {
            (Some(kind), _) => (kind, second),
            (None, Some(kind)) => (kind, first),
            (None, None) => return Err(second.fault(&format!("neither `{first}` nor `{second}` is R or W"))),
        };
        records.push(Record::new(kind, address.hex("an address")?, REQUEST));
        Ok(())
    }
}

impl Writer for Vans {
    fn write(&mut self, out: &mut dyn Write, record: &Record) -> Result<(), Refusal> {
        let op = if request(record, "vans", false)? { "R" } else { "W" };
        Ok(writeln!(out, "{:#x} {op}", record.address)?)
    }

    fn finish(&mut self, _out: &mut dyn Write) -> Result<(), Refusal> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Vec<Record>, Fault> {
        let mut records = Vec::new();
        Vans.line(line.as_bytes(), &mut records).map(|()| records)
    }

    #[test]
    fn an_address_and_an_op_in_either_order() {
        for line in ["0x1040 W", "W 0x1040", "w 1040", "1040 W"] {
            assert_eq!(read(line), Ok(vec![Record::new(OpKind::Store, 0x1040, 64)]), "{line}");
        }
        assert_eq!(read("R 10").unwrap()[0].address, 16);
        assert!(read("R 0,1").unwrap_err().what.contains("not an address"));
        assert!(
            read("0x10 X")
                .unwrap_err()
                .what
                .contains("neither `0x10` nor `X` is R or W")
        );
        assert!(read("0x10").unwrap_err().what.contains("where R or W belongs"));
    }
}
