//! Valgrind's lackey with `--trace-mem=yes`: a line for each instruction and for each of its accesses.

use std::io::Write;

use xpline_model::OpKind;

use super::{Refusal, Writer};
use crate::record::{Record, kind_name};
use crate::text::{Fault, Lines, Words};

/// `I`, `L`, `S` or `M` (a load, then a store), a hexadecimal address, a comma, and a size in bytes.
///
/// Instructions that follow each other are one record. Valgrind's own lines (`==PID== ...`) are passed over.
#[derive(Default)]
pub struct Lackey {
    instructions: u32,
}

impl Lackey {
    fn end_instructions(&mut self, records: &mut Vec<Record>) {
        if self.instructions > 0 {
            records.push(Record::new(OpKind::Compute, 0, self.instructions));
            self.instructions = 0;
        }
    }
}

impl Lines for Lackey {
    #[inline]
    fn line(&mut self, line: &[u8], records: &mut Vec<Record>) -> Result<(), Fault> {
        if is_valgrinds(line) {
            return Ok(());
        }
        let mut words = Words::new(line);
        let op = words.word("I, L, S or M")?;
        if !matches!(op.text, b"I" | b"L" | b"S" | b"M") {
            return Err(op.fault(&format!("`{op}` is none of I, L, S and M")));
        }
        let place = words.word("an address and a size")?;
        words.end()?;
        let Some(comma) = place.text.iter().position(|&byte| byte == b',') else {
            return Err(place.fault(&format!("`{place}` has no comma between an address and a size")));
        };
        let [address, size] = [
            crate::text::Word {
                text: &place.text[..comma],
                column: place.column,
            },
            crate::text::Word {
                text: &place.text[comma + 1..],
                column: place.column + comma + 1,
            },
        ];
        let address = address.hex("an address")?;
        let bytes = u32::try_from(size.decimal("a size")?)
            .ok()
            .filter(|&bytes| bytes > 0)
            .ok_or_else(|| size.fault(&format!("a size of `{size}` bytes: must be 1 to 2^32 - 1")))?;
        if op.text == b"I" {
            if self.instructions == u32::MAX {
                self.end_instructions(records);
            }
            self.instructions += 1;
            return Ok(());
        }
        self.end_instructions(records);
        if op.text != b"S" {
            records.push(Record::new(OpKind::Load, address, bytes));
        }
        if op.text != b"L" {
            records.push(Record::new(OpKind::Store, address, bytes));
        }
        Ok(())
    }

    fn finish(&mut self, records: &mut Vec<Record>) {
        self.end_instructions(records);
    }
}

/// Whether a line is one of valgrind's own: `==PID== ` or `--PID-- `.
fn is_valgrinds(line: &[u8]) -> bool {
    let (b"==" | b"--", rest) = line.split_at(line.len().min(2)) else {
        return false;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && rest[digits..].starts_with(&line[..2])
}

/// The most instructions that are written out as a line each.
const MOST_INSTRUCTIONS: u32 = 1 << 20;

/// Writes a line an instruction, without its address.
pub(super) struct LackeyWriter {
    after_instructions: bool,
    /// Whether runs of instructions that follow each other may become one.
    lossy: bool,
}

impl LackeyWriter {
    pub fn new(lossy: bool) -> Self {
        Self {
            after_instructions: false,
            lossy,
        }
    }
}

impl Writer for LackeyWriter {
    fn write(&mut self, out: &mut dyn Write, record: &Record) -> Result<(), Refusal> {
        let refuse = |what: &str| {
            Err(Refusal::Format(format!(
                "cannot be written as lackey, which has {what}"
            )))
        };
        if record.thread != 0 {
            return refuse("no threads");
        }
        if record.time.is_some() {
            return refuse("no times");
        }
        let after_instructions = std::mem::replace(&mut self.after_instructions, record.kind == OpKind::Compute);
        match record.kind {
            OpKind::Load => writeln!(out, " L {:08x},{}", record.address, record.size)?,
            OpKind::Store => writeln!(out, " S {:08x},{}", record.address, record.size)?,
            OpKind::Compute if after_instructions && !self.lossy => {
                return refuse("no way to part instructions that follow each other");
            }
            OpKind::Compute if record.size > MOST_INSTRUCTIONS && !self.lossy => {
                return refuse(&format!(
                    "a line for each instruction (at most {MOST_INSTRUCTIONS} in a row here)"
                ));
            }
            OpKind::Compute => {
                for _ in 0..record.size {
                    out.write_all(b"I  00000000,1\n")?;
                }
            }
            other => return refuse(&format!("no {} ops", kind_name(other))),
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> Result<(), Refusal> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Record>, Fault> {
        let mut records = Vec::new();
        let mut lackey = Lackey::default();
        for line in text.lines() {
            lackey.line(line.as_bytes(), &mut records)?;
        }
        lackey.finish(&mut records);
        Ok(records)
    }

    #[test]
    fn instructions_are_gathered_and_a_modify_is_two_accesses() {
        let text = "==12== Lackey, an example Valgrind tool\nI  04000be0,3\nI  04000be3,5\n L 1ffeffe7e8,8\n M 0421d7cc,4\nI  04000be8,2";
        let expected = [
            Record::new(OpKind::Compute, 0, 2),
            Record::new(OpKind::Load, 0x1f_feff_e7e8, 8),
            Record::new(OpKind::Load, 0x421_d7cc, 4),
            Record::new(OpKind::Store, 0x421_d7cc, 4),
            Record::new(OpKind::Compute, 0, 1),
        ];
        assert_eq!(read(text), Ok(expected.to_vec()));
    }

    #[test]
    fn what_is_wrong_is_named_and_placed() {
        for (line, column, what) in [
            (" X 1000,8", 1, "`X` is none of I, L, S and M"),
            (" L 1000", 3, "has no comma"),
            (" L 1000,", 8, "not a size"),
            (" L 1000,0", 8, "must be 1 to"),
            (" L 10z0,8", 3, "not an address"),
            (" L 1000,8 8", 10, "more than the line should hold"),
            ("==x== no", 0, "none of I"),
        ] {
            let fault = read(line).unwrap_err();
            assert_eq!(fault.column, column, "{line}: {}", fault.what);
            assert!(fault.what.contains(what), "{line}: {}", fault.what);
        }
    }
}
