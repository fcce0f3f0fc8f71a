//! The bytes of a trace, plain or compressed, in a buffer of bounded size.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::TraceError;

/// The first bytes of a zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes read at once.
const CHUNK: usize = 256 << 10;

/// How far a file has been read. Any thread may look.
#[derive(Debug, Default)]
pub struct Progress {
    read: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Bytes read of the file, as it is on disk.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes of the file; 0 where that cannot be known, as of a pipe.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// The content of a file: what is buffered of it, and where that stands.
pub struct Input {
    path: String,
    reader: Box<dyn Read + Send>,
    compressed: bool,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl Input {
    pub fn open(path: &str, progress: &Arc<Progress>) -> Result<Self, TraceError> {
        let cannot = |error: io::Error| TraceError::new(path, format!("cannot be read: {}", reason(&error)));
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(TraceError::new(path, "is a folder; give the name of a trace file"));
        }
        progress.read.store(0, Ordering::Relaxed);
        progress.total.store(metadata.len(), Ordering::Relaxed);
        let counted = Counted {
            inner: file,
            progress: Arc::clone(progress),
        };
        Self::new(path, Box::new(counted))
    }

    /// Any source of bytes; `path` is what messages call it.
    pub fn new(path: &str, mut reader: Box<dyn Read + Send>) -> Result<Self, TraceError> {
        let mut first = Vec::with_capacity(ZSTD.len());
        let cannot = |error: io::Error| TraceError::new(path, format!("cannot be read: {}", reason(&error)));
        reader
            .by_ref()
            .take(ZSTD.len() as u64)
            .read_to_end(&mut first)
            .map_err(cannot)?;
        let compressed = first == ZSTD;
        let whole = io::Cursor::new(first).chain(reader);
        let reader: Box<dyn Read + Send> = if compressed {
            Box::new(zstd::Decoder::new(whole).map_err(cannot)?)
        } else {
            Box::new(whole)
        };
        Ok(Self {
            path: path.to_owned(),
            reader,
            compressed,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            offset: 0,
        })
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the file is compressed.
    pub fn compressed(&self) -> bool {
        self.compressed
    }

    /// Bytes of the content before what is buffered.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What was read and not yet consumed.
    #[inline]
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Buffer more; false at the end of the content.
    pub fn fill(&mut self) -> Result<bool, TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < CHUNK / 2 {
            self.buffer.resize(self.buffer.len() + CHUNK, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let place = self.offset + self.end as u64;
                    let what = if self.compressed {
                        format!(
                            "the compressed file is damaged or cut off here (counted in its content): {}",
                            reason(&error)
                        )
                    } else {
                        format!("cannot be read: {}", reason(&error))
                    };
                    return Err(TraceError::at_byte(&self.path, place, what));
                }
            }
        }
    }

    /// Buffer at least so many bytes; false if the content ends before.
    pub fn fill_to(&mut self, bytes: usize) -> Result<bool, TraceError> {
        while self.end - self.start < bytes {
            if !self.fill()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A file that says how far it has been read.
struct Counted {
    inner: File,
    progress: Arc<Progress>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.progress.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// An error of the system in words, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
