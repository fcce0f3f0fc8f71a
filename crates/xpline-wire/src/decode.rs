//! Bytes as frames.

use std::io::{self, ErrorKind, Read};

use thiserror::Error;

use crate::encode::{FRAME_LIMIT, HEAD, MAGIC, OPS_HEAD, VERSION, kind};
use crate::frame::{Call, CallKind, EndReason, File, Frame, Hello, Mapping, Ops, Stack, Start};
use crate::op::Op;

/// Why a stream cannot be read on.
#[derive(Debug, Error)]
pub enum WireError {
    #[error("the stream cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("this is no stream of the tracer: it begins with other bytes")]
    NotAStream,
    #[error(
        "the stream is of version {found} and this xpline reads version {VERSION}: run `xpline tracer install` to have \
         the tracer that belongs to it"
    )]
    Version { found: u64 },
    #[error("byte {byte} of the stream: {what}")]
    Malformed { byte: u64, what: String },
}

/// Reads the frames of one stream.
///
/// A stream that breaks off, even in the middle of a frame, is one of a process that was killed: its frames end there, and
/// [`Decoder::complete`] says so.
///
/// ```
/// use xpline_wire::{Decoder, EndReason, Frame, encode, encode_start};
///
/// let mut bytes = Vec::new();
/// encode_start(&mut bytes);
/// encode(&Frame::ThreadStart { thread: 7, time: 100 }, &mut bytes);
/// encode(&Frame::End { time: 200, reason: EndReason::Exit }, &mut bytes);
///
/// let mut decoder = Decoder::new(&bytes[..])?;
/// assert_eq!(decoder.next_frame()?, Some(Frame::ThreadStart { thread: 7, time: 100 }));
/// assert_eq!(decoder.next_frame()?, Some(Frame::End { time: 200, reason: EndReason::Exit }));
/// assert_eq!(decoder.next_frame()?, None);
/// assert!(decoder.complete());
/// # Ok::<(), xpline_wire::WireError>(())
/// ```
pub struct Decoder<R> {
    reader: R,
    /// Bytes before the frame that is read next.
    byte: u64,
    content: Vec<u8>,
    ended: bool,
    broken: bool,
}

impl<R: Read> Decoder<R> {
    /// Reads the beginning of the stream. Each frame takes two reads, so an unbuffered socket will do.
    pub fn new(mut reader: R) -> Result<Self, WireError> {
        let mut start = [0; 16];
        if fill(&mut reader, &mut start)? < start.len() || start[..8] != MAGIC {
            return Err(WireError::NotAStream);
        }
        let found = u64::from_le_bytes(start[8..].try_into().unwrap());
        if found != VERSION {
            return Err(WireError::Version { found });
        }
        Ok(Self {
            reader,
            byte: 16,
            content: Vec::new(),
            ended: false,
            broken: false,
        })
    }

    /// Waits for the next frame; `None` after the last.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        if self.ended || self.broken {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        if fill(&mut self.reader, &mut head)? < HEAD {
            self.broken = true;
            return Ok(None);
        }
        let kind = u32::from_le_bytes(head[..4].try_into().unwrap());
        let size = u32::from_le_bytes(head[4..].try_into().unwrap()) as usize;
        if size > FRAME_LIMIT {
            return Err(self.malformed(format!("a frame of {size} bytes; at most {FRAME_LIMIT} are allowed")));
        }
        self.content.resize(size, 0);
        if fill(&mut self.reader, &mut self.content)? < size {
            self.broken = true;
            return Ok(None);
        }
        let frame = frame(kind, &self.content).map_err(|what| self.malformed(what))?;
        self.byte += (HEAD + size) as u64;
        self.ended = matches!(frame, Frame::End { .. });
        Ok(Some(frame))
    }

    /// Whether the last frame was read. If not, and there are no more frames, the process was killed.
    pub fn complete(&self) -> bool {
        self.ended
    }

    fn malformed(&self, what: String) -> WireError {
        WireError::Malformed { byte: self.byte, what }
    }
}

/// Reads until the buffer is full or the stream breaks off, and says how many bytes there were.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The other side died with bytes of ours unread.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn frame(kind: u32, content: &[u8]) -> Result<Frame, String> {
    let mut fields = Fields { content };
    let frame = match kind {
        kind::HELLO => Frame::Hello(Hello {
            process: fields.small("process")?,
            parent: fields.small("parent")?,
            start: fields.choice("start", &[Start::Exec, Start::Fork])?,
            time: fields.word()?,
            executable: fields.text()?,
            arguments: fields.texts()?,
        }),
        kind::FILE => Frame::File(File {
            id: fields.small("file")?,
            tracked: fields.choice("tracked", &[false, true])?,
            device: fields.word()?,
            inode: fields.word()?,
            path: fields.rest().to_vec(),
        }),
        kind::MAP => {
            let [epoch, address, size, file, offset, flags] = fields.words()?;
            if flags > 7 {
                return Err(format!("flags {flags:#x} of a mapping; allowed are 0 to 7"));
            }
            Frame::Map(Mapping {
                epoch,
                address,
                size,
                file: file.checked_sub(1).map(|file| narrow(file, "file")).transpose()?,
                offset,
                shared: flags & 1 != 0,
                executable: flags & 2 != 0,
                traced: flags & 4 != 0,
            })
        }
        kind::UNMAP => {
            let [epoch, address, size] = fields.words()?;
            Frame::Unmap { epoch, address, size }
        }
        kind::THREAD_START => Frame::ThreadStart {
            thread: fields.small("thread")?,
            time: fields.word()?,
        },
        kind::THREAD_END => Frame::ThreadEnd {
            thread: fields.small("thread")?,
            time: fields.word()?,
            instructions: fields.word()?,
        },
        kind::OPS => ops(&mut fields)?,
        kind::CALL => Frame::Call(Call {
            thread: fields.small("thread")?,
            kind: fields.choice("call", &CallKind::ALL)?,
            pc: fields.word()?,
            instructions: fields.word()?,
            epoch: fields.word()?,
            begin: fields.word()?,
            end: fields.word()?,
            file: fields.small("file")?,
            offset: fields.word()?,
            size: fields.word()?,
            address: fields.word()?,
            stack: fields.small("stack")?,
        }),
        kind::STACK => Frame::Stack(Stack {
            id: fields.small("stack")?,
            caller: fields.small("stack")?,
            pc: fields.word()?,
            epoch: fields.word()?,
        }),
        kind::END => Frame::End {
            time: fields.word()?,
            reason: fields.choice("reason", &[EndReason::Exit, EndReason::Exec])?,
        },
        _ => {
            return Err(format!(
                "a frame of kind {kind}; allowed are {} to {}",
                kind::HELLO,
                kind::STACK
            ));
        }
    };
    match fields.content.len() {
        0 => Ok(frame),
        left => Err(format!("{left} bytes too many in a frame of kind {kind}")),
    }
}

fn ops(fields: &mut Fields) -> Result<Frame, String> {
    const { assert!(OPS_HEAD == 4 * 8) };
    let thread = fields.small("thread")?;
    let [epoch, begin, end] = fields.words()?;
    let (ops, rest) = fields.rest().as_chunks::<{ Op::BYTES }>();
    if !rest.is_empty() {
        return Err(format!("{} bytes after the last op", rest.len()));
    }
    let ops = ops
        .iter()
        .map(|bytes| Op::from_bytes(bytes).ok_or("an op of an unknown kind"));
    Ok(Frame::Ops(Ops {
        thread,
        epoch,
        begin,
        end,
        ops: ops.collect::<Result<_, _>>()?,
    }))
}

/// What is left of a frame's content.
struct Fields<'a> {
    content: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8], String> {
        let Some((taken, left)) = self.content.split_at_checked(size) else {
            return Err(format!("a frame lacks {} of its bytes", size - self.content.len()));
        };
        self.content = left;
        Ok(taken)
    }

    fn word(&mut self) -> Result<u64, String> {
        self.take(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
    }

    fn words<const COUNT: usize>(&mut self) -> Result<[u64; COUNT], String> {
        let mut words = [0; COUNT];
        for word in &mut words {
            *word = self.word()?;
        }
        Ok(words)
    }

    fn small(&mut self, what: &str) -> Result<u32, String> {
        narrow(self.word()?, what)
    }

    fn choice<T: Copy>(&mut self, what: &str, all: &[T]) -> Result<T, String> {
        let number = self.word()?;
        let chosen = usize::try_from(number).ok().and_then(|number| all.get(number));
        chosen
            .copied()
            .ok_or_else(|| format!("{what} {number}; allowed are 0 to {}", all.len() - 1))
    }

    fn text(&mut self) -> Result<Vec<u8>, String> {
        let size = self.word()?;
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(FRAME_LIMIT + 1);
        Ok(self.take(size)?.to_vec())
    }

    fn texts(&mut self) -> Result<Vec<Vec<u8>>, String> {
        let mut texts = Vec::new();
        while !self.content.is_empty() {
            texts.push(self.text()?);
        }
        Ok(texts)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.content)
    }
}

fn narrow(number: u64, what: &str) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{what} {number}; at most {} is allowed", u32::MAX))
}
