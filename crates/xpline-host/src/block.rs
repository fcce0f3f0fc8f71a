//! Files and block devices through O_DIRECT: what a program gets that reads and writes instead of mapping.

use std::alloc::{self, Layout};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use xpline_lattester::{Experiment, Op, Point, Rng};

use crate::clock;
use crate::error::HostError;
use crate::memory::{self, Created};
use crate::options::{Options, Target};
use crate::plan::{Judge, Thread};
use crate::team::Worker;

/// Transfers start and end at multiples of this: the largest logical block in use.
const BLOCK: u64 = 4096;

/// A file or device, open past the page cache.
#[derive(Debug)]
pub struct Device {
    file: File,
    _created: Option<Created>,
}

/// What each thread does: one transfer an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfers {
    pub writes: bool,
    /// An fdatasync after each write.
    pub synced: bool,
    pub size: u64,
    pub step: Step,
    pub judged_by: Judge,
}

/// Where the next transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Random,
    Stride(u64),
}

impl Transfers {
    /// What a point asks of a block device, or why it cannot be done there.
    pub fn of(point: &Point) -> Result<Self, HostError> {
        let (op, size, step, judged_by) = match &point.experiment {
            Experiment::Random(random) => (random.op, random.size, Step::Random, Judge::Bandwidth),
            Experiment::Stride(stride) if stride.fence == 0 => {
                (stride.op, stride.size, Step::Stride(stride.stride), Judge::Bandwidth)
            }
            Experiment::PersistLatency(persist) => {
                (persist.op, persist.size, Step::Stride(persist.size), Judge::Latency)
            }
            Experiment::Wear(wear) => (wear.op, wear.size, Step::Stride(0), Judge::Stalls),
            other => {
                let problem = "needs memory that is mapped; a host:block target runs random, stride without fences, \
                               persist-latency and wear";
                return Err(HostError::option(format!("experiment = {}", other.name()), problem));
            }
        };
        if op == Op::NtStore {
            let problem =
                "is for memory that is mapped; use load (read), store (write) or store+clwb (write, then fdatasync)";
            return Err(HostError::option("op = ntstore", problem));
        }
        let stride = if let Step::Stride(stride) = step { stride } else { size };
        if let Some(odd) = [size, stride].into_iter().find(|bytes| !bytes.is_multiple_of(BLOCK)) {
            let problem = format!("must be a multiple of {BLOCK}, as O_DIRECT asks for");
            return Err(HostError::option(format!("size = {odd}"), problem));
        }
        Ok(Self {
            writes: op != Op::Load,
            synced: op == Op::StoreClwb,
            size,
            step,
            judged_by,
        })
    }
}

impl Device {
    /// Open a device, or create a file, of `length` bytes, all of them written. `None` if `stop` was set meanwhile.
    pub fn new(path: &Path, length: u64, options: &Options, stop: &AtomicBool) -> Result<Option<Self>, HostError> {
        let is_device = path.metadata().is_ok_and(|about| about.file_type().is_block_device());
        let (file, created) = if is_device {
            if !options.destroy {
                return Err(HostError::file(
                    path,
                    "everything on the device would be overwritten; say so with --destroy",
                ));
            }
            let mut how = OpenOptions::new();
            let file = how
                .read(true)
                .write(true)
                .custom_flags(libc::O_DIRECT | libc::O_EXCL)
                .open(path);
            (
                file.map_err(|error| HostError::file(path, format!("cannot be opened: {error}")))?,
                None,
            )
        } else {
            let (file, created) = memory::create(path, length, options.keep, libc::O_DIRECT)?;
            (file, Some(created))
        };
        let device = Self {
            file,
            _created: created,
        };
        let mut buffer = Buffer::new(1 << 20);
        buffer.fill();
        let mut done = 0;
        while done < length {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let size = (length - done).min(buffer.length as u64);
            let written = device.file.write_all_at(&buffer.bytes()[..size as usize], done);
            written.map_err(|error| HostError::file(path, format!("cannot be written: {error}")))?;
            done += size;
        }
        Ok(Some(device))
    }
}

/// Memory that O_DIRECT takes: aligned to a block.
#[derive(Debug)]
struct Buffer {
    at: *mut u8,
    length: usize,
}

// SAFETY: the memory belongs to the buffer alone.
unsafe impl Send for Buffer {}

impl Buffer {
    fn layout(length: usize) -> Layout {
        Layout::from_size_align(length, BLOCK as usize).expect("a size of a transfer is a valid layout")
    }

    fn new(length: usize) -> Self {
        assert!(length > 0, "a transfer moves something");
        // SAFETY: the layout is not empty.
        let at = unsafe { alloc::alloc_zeroed(Self::layout(length)) };
        if at.is_null() {
            alloc::handle_alloc_error(Self::layout(length));
        }
        Self { at, length }
    }

    /// Bytes that no device can compress away as zeros.
    fn fill(&mut self) {
        let mut rng = Rng::new(1, 0);
        self.bytes_mut()
            .iter_mut()
            .for_each(|byte| *byte = rng.below(256) as u8);
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is as long, initialised and ours.
        unsafe { std::slice::from_raw_parts(self.at, self.length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { alloc::dealloc(self.at, Self::layout(self.length)) };
    }
}

/// A thread's transfers.
pub struct Reader<'a> {
    device: &'a Device,
    target: &'a Target,
    transfers: Transfers,
    thread: Thread,
    buffer: Buffer,
    rng: Rng,
    next: u64,
}

impl<'a> Reader<'a> {
    pub fn new(
        device: &'a Device,
        target: &'a Target,
        transfers: Transfers,
        thread: Thread,
        number: u32,
        seed: u64,
    ) -> Self {
        let mut buffer = Buffer::new(transfers.size as usize);
        buffer.fill();
        Self {
            device,
            target,
            transfers,
            thread,
            buffer,
            rng: Rng::new(seed, number),
            next: 0,
        }
    }

    fn advance(&mut self) -> u64 {
        let Transfers { size, step, .. } = self.transfers;
        let at = match step {
            Step::Random => self.rng.below(self.thread.span / size) * size,
            Step::Stride(stride) => {
                let at = self.next;
                self.next = if at + stride + size > self.thread.span {
                    0
                } else {
                    at + stride
                };
                at
            }
        };
        self.thread.base + at
    }
}

impl Worker for Reader<'_> {
    fn run(&mut self, accesses: u64, samples: &mut Vec<u32>) -> Result<(), HostError> {
        for _ in 0..accesses {
            let at = self.advance();
            let before = clock::now();
            let file = &self.device.file;
            let mut done = if self.transfers.writes {
                file.write_all_at(self.buffer.bytes(), at)
            } else {
                file.read_exact_at(self.buffer.bytes_mut(), at)
            };
            if self.transfers.synced && done.is_ok() {
                done = file.sync_data();
            }
            if let Err(error) = done {
                let Target::Block(path) = self.target else {
                    unreachable!("only block targets are read and written")
                };
                let problem = match error.kind() {
                    std::io::ErrorKind::UnexpectedEof => "was truncated while it was read".into(),
                    _ => format!("a transfer of {} bytes at {at} failed: {error}", self.transfers.size),
                };
                return Err(HostError::file(path, problem));
            }
            if self.transfers.judged_by != Judge::Bandwidth {
                samples.push(u32::try_from(clock::now() - before).unwrap_or(u32::MAX));
            }
        }
        Ok(())
    }
}
