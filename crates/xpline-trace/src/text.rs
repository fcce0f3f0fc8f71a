//! Lines of text formats, and the numbers on them.

use memchr::memchr;

use crate::error::TraceError;
use crate::input::Input;
use crate::record::Record;

/// The longest line of any format.
const LONGEST: usize = 4096;

/// What is wrong with a line, and at which of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub column: usize,
    pub what: String,
}

impl Fault {
    pub fn new(column: usize, what: impl Into<String>) -> Self {
        Self {
            column,
            what: what.into(),
        }
    }
}

/// A text format: records, line by line.
pub trait Lines {
    /// Append the records of a line; it comes without its end, and is never blank.
    fn line(&mut self, line: &[u8], records: &mut Vec<Record>) -> Result<(), Fault>;

    /// Append what was held back for the line after the last.
    fn finish(&mut self, _records: &mut Vec<Record>) {}
}

/// A line without the carriage return and the blanks at its end.
pub fn trimmed(line: &[u8]) -> &[u8] {
    let blanks = line.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    &line[..line.len() - blanks]
}

/// Append records until there are `enough` or the lines end; false once they have.
///
/// `number` counts the lines read. `hint` may add to what is said about a line at fault.
pub fn read_lines<L: Lines>(
    input: &mut Input,
    lines: &mut L,
    number: &mut u64,
    records: &mut Vec<Record>,
    enough: usize,
    hint: impl Fn(&[u8]) -> String,
) -> Result<bool, TraceError> {
    while records.len() < enough {
        let buffered = input.buffered();
        let Some(length) = memchr(b'\n', buffered) else {
            if buffered.len() > LONGEST {
                let what = format!("the line is over {LONGEST} bytes long: not a trace of this format, or damaged");
                return Err(TraceError::at_line(input.path(), *number + 1, input.offset(), what));
            }
            if input.fill()? {
                continue;
            }
            if !input.buffered().is_empty() {
                let what = "the file ends within a line, so it is cut off (if it is whole, add a line end)";
                let place = input.offset() + input.buffered().len() as u64;
                return Err(TraceError::at_line(input.path(), *number + 1, place, what));
            }
            lines.finish(records);
            return Ok(false);
        };
        *number += 1;
        let line = trimmed(&buffered[..length]);
        if !line.is_empty()
            && let Err(fault) = lines.line(line, records)
        {
            let what = format!("{}{}", fault.what, hint(line));
            let place = input.offset() + fault.column as u64;
            return Err(TraceError::at_line(input.path(), *number, place, what));
        }
        input.consume(length + 1);
    }
    Ok(true)
}

/// The words of a line, with the place of each.
pub struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    pub fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    /// The next word; `what` is missing if there is none.
    #[inline]
    pub fn word(&mut self, what: &str) -> Result<Word<'a>, Fault> {
        self.next()
            .ok_or_else(|| Fault::new(self.line.len(), format!("the line ends where {what} belongs")))
    }

    /// Nothing may follow.
    #[inline]
    pub fn end(&mut self) -> Result<(), Fault> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(word.fault(&format!("`{word}` is more than the line should hold"))),
        }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    #[inline]
    fn next(&mut self) -> Option<Word<'a>> {
        let blank = |byte: u8| byte == b' ' || byte == b'\t';
        while self.at < self.line.len() && blank(self.line[self.at]) {
            self.at += 1;
        }
        let column = self.at;
        while self.at < self.line.len() && !blank(self.line[self.at]) {
            self.at += 1;
        }
        (self.at > column).then(|| Word {
            text: &self.line[column..self.at],
            column,
        })
    }
}

/// A word of a line.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    pub text: &'a [u8],
    pub column: usize,
}

impl std::fmt::Display for Word<'_> {
    /// The word as it may be shown: printable, and not too long.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        shown(self.text).fmt(f)
    }
}

impl<'a> Word<'a> {
    pub fn fault(&self, what: &str) -> Fault {
        Fault::new(self.column, what)
    }

    /// Whether it starts as a hexadecimal number does.
    #[inline]
    fn digits(&self) -> Option<&'a [u8]> {
        match self.text {
            [b'0', b'x' | b'X', digits @ ..] => Some(digits),
            _ => None,
        }
    }

    /// A hexadecimal number, with or without `0x`.
    #[inline]
    pub fn hex(&self, what: &str) -> Result<u64, Fault> {
        hex(self.digits().unwrap_or(self.text))
            .ok_or_else(|| self.fault(&format!("`{self}` is not {what}: expected up to 16 hexadecimal digits")))
    }

    /// A decimal number, or a hexadecimal one with `0x`.
    #[inline]
    pub fn number(&self, what: &str) -> Result<u64, Fault> {
        let number = match self.digits() {
            Some(digits) => hex(digits),
            None => decimal(self.text),
        };
        number.ok_or_else(|| {
            self.fault(&format!(
                "`{self}` is not {what}: expected a number below 2^64, decimal or hexadecimal with 0x"
            ))
        })
    }

    /// A decimal number.
    #[inline]
    pub fn decimal(&self, what: &str) -> Result<u64, Fault> {
        decimal(self.text)
            .ok_or_else(|| self.fault(&format!("`{self}` is not {what}: expected a decimal number below 2^64")))
    }
}

/// Bytes as they may be shown in a message.
pub fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let short = &text[..text.len().min(MOST)];
    let dots = if text.len() > MOST { "..." } else { "" };
    format!("{}{dots}", short.escape_ascii())
}

/// The value of each hexadecimal digit; 255 for other bytes.
const HEX: [u8; 256] = {
    let mut values = [255; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        values[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

#[inline]
fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut number = 0;
    for &digit in digits {
        let value = HEX[usize::from(digit)];
        if value == 255 {
            return None;
        }
        number = number << 4 | u64::from(value);
    }
    Some(number)
}

#[inline]
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, &digit| {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(value))
    })
}
