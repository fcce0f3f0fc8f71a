//! DRAMsim3: an address, `READ` or `WRITE`, and the clock cycle at which the request comes.

use std::io::Write;

use xpline_model::OpKind;

use super::{Refusal, Writer, request};
use crate::record::Record;
use crate::text::{Fault, Lines, Words};

/// Bytes of a request.
const REQUEST: u32 = 64;

/// `0xADDRESS READ|WRITE CYCLE`, and the names that DRAMSim2 had for the same; the address is hexadecimal with or without `0x`.
pub struct Dramsim3;

impl Lines for Dramsim3 {
    #[inline]
    fn line(&mut self, line: &[u8], records: &mut Vec<Record>) -> Result<(), Fault> {
        let mut words = Words::new(line);
        let address = words.word("an address")?.hex("an address")?;
        let op = words.word("READ or WRITE")?;
        let kind = match op.text {
            b"READ" | b"read" | b"P_MEM_RD" | b"P_FETCH" => OpKind::Load,
            b"WRITE" | b"write" | b"P_MEM_WR" | b"BOFF" => OpKind::Store,
            _ => return Err(op.fault(&format!("`{op}` is neither READ nor WRITE"))),
        };
        let cycle = words.word("a clock cycle")?.decimal("a clock cycle")?;
        words.end()?;
        records.push(Record {
            time: Some(cycle),
            ..Record::new(kind, address, REQUEST)
        });
        Ok(())
    }
}

/// Writes the cycle of each request; requests without a time come one a cycle.
#[derive(Default)]
pub(super) struct Dramsim3Writer {
    cycle: u64,
}

impl Writer for Dramsim3Writer {
    fn write(&mut self, out: &mut dyn Write, record: &Record) -> Result<(), Refusal> {
        let op = if request(record, "dramsim3", true)? {
            "READ"
        } else {
            "WRITE"
        };
        let cycle = record.time.unwrap_or(self.cycle);
        self.cycle = cycle.saturating_add(1);
        Ok(writeln!(out, "{:#x} {op} {cycle}", record.address)?)
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
        Dramsim3.line(line.as_bytes(), &mut records).map(|()| records)
    }

    #[test]
    fn an_address_an_op_and_a_cycle() {
        let expected = Record {
            time: Some(12),
            ..Record::new(OpKind::Load, 0x1040, 64)
        };
        for line in ["0x1040 READ 12", "1040 read 12", "0X1040\tREAD   12"] {
            assert_eq!(read(line), Ok(vec![expected]), "{line}");
        }
        for (op, kind) in [
            ("WRITE", OpKind::Store),
            ("P_MEM_WR", OpKind::Store),
            ("P_MEM_RD", OpKind::Load),
        ] {
            assert_eq!(read(&format!("0x40 {op} 0")).unwrap()[0].kind, kind, "{op}");
        }
        assert!(read("0x40 WRIT 0").unwrap_err().what.contains("neither READ nor WRITE"));
        assert!(
            read("0x40 READ")
                .unwrap_err()
                .what
                .contains("where a clock cycle belongs")
        );
        assert!(read("0x40 READ 1x").unwrap_err().what.contains("not a clock cycle"));
        assert!(
            read("0x10000000000000000 READ 1")
                .unwrap_err()
                .what
                .contains("not an address")
        );
    }
}
