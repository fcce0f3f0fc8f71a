//! Mapped memory: where it comes from, with what pages, and that there is enough of it.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cpu;
use crate::error::HostError;
use crate::faults::Guard;
use crate::options::{Options, Pages, Target};

/// What stays free for everybody else.
const RESERVE: u64 = 256 << 20;

/// Bytes that are touched between two looks at whether to stop.
const ATTENTION: u64 = 64 << 20;

/// Memory under test, every page of it there.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    length: u64,
    /// How it is mapped, for the table: `anonymous`, `MAP_SYNC`, `page cache`, `device DAX`.
    pub how: &'static str,
    /// Bytes on pages of 2 MiB or more, where the kernel tells.
    pub huge: Option<u64>,
    guard: Option<Guard>,
    file: Option<PathBuf>,
    _created: Option<Created>,
}

// SAFETY: the memory belongs to the mapping alone; which thread touches what is the business of kernels, which are unsafe to run.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Map `length` bytes of the target and touch every page; `None` if `stop` was set meanwhile.
    pub fn new(target: &Target, length: u64, options: &Options, stop: &AtomicBool) -> Result<Option<Self>, HostError> {
        let mut mapping = match target {
            Target::Anonymous { node } => anonymous(length, *node, options.pages)?,
            Target::File(path) => file(path, length, options.keep)?,
            Target::Dax(path) => dax(path, length, options.destroy)?,
            Target::Block(_) => return Err(HostError::option(target.to_string(), "is read and written, not mapped")),
        };
        if !mapping.touch(stop)? {
            return Ok(None);
        }
        mapping.huge = mapping.huge_bytes();
        Ok(Some(mapping))
    }

    pub fn base(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether what stood behind the mapping is gone.
    pub fn check(&self) -> Result<(), HostError> {
        match &self.guard {
            Some(guard) if guard.is_lost() => Err(HostError::Truncated(self.file.clone().unwrap_or_default())),
            _ => Ok(()),
        }
    }

    /// Write to every page, so that none is missing later. False if `stop` was set.
    fn touch(&self, stop: &AtomicBool) -> Result<bool, HostError> {
        let mut done = 0;
        while done < self.length {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let end = (done + ATTENTION).min(self.length);
            for page in (done..end).step_by(4096) {
                // SAFETY: the page is within the mapping, and nobody else has it yet.
                unsafe {
                    self.at
                        .as_ptr()
                        .add(page as usize)
                        .cast::<u64>()
                        .write_volatile(0x5851_f42d_4c95_7f2d)
                };
            }
            self.check()?;
            done = end;
        }
        Ok(true)
    }

    /// Bytes on huge pages, by the kernel's account of this mapping.
    fn huge_bytes(&self) -> Option<u64> {
        let all = fs::read_to_string("/proc/self/smaps").ok()?;
        let (start, end) = (self.at.as_ptr() as u64, self.at.as_ptr() as u64 + self.length);
        let mut inside = false;
        let mut kilobytes = 0;
        for line in all.lines() {
            if let Some((from, to)) = address_range(line) {
                inside = from < end && to > start;
            } else if inside {
                let huge = [
                    "AnonHugePages:",
                    "ShmemPmdMapped:",
                    "FilePmdMapped:",
                    "Private_Hugetlb:",
                    "Shared_Hugetlb:",
                ];
                if huge.iter().any(|name| line.starts_with(name)) {
                    kilobytes += line.split_whitespace().nth(1)?.parse::<u64>().ok()?;
                }
            }
        }
        Some((kilobytes << 10).min(self.length))
    }
}

/// The addresses of a mapping, if this line of `smaps` begins one.
fn address_range(line: &str) -> Option<(u64, u64)> {
    let (from, to) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: the mapping is ours, and no kernel runs on it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.length as usize) };
    }
}

fn anonymous(length: u64, node: Option<u32>, pages: Pages) -> Result<Mapping, HostError> {
    if let Some(node) = node {
        let nodes = cpu::memory_nodes();
        if !nodes.contains(&node) {
            let known = cpu::ranges(&nodes);
            return Err(HostError::option(
                format!("target host:node={node}"),
                format!("there is no memory on such a NUMA node; nodes with memory: {known}"),
            ));
        }
    }
    let huge = match pages {
        Pages::Huge | Pages::Giant => {
            enough_huge_pages(length, pages, node)?;
            libc::MAP_HUGETLB | (pages.bytes().trailing_zeros() as i32) << libc::MAP_HUGE_SHIFT
        }
        Pages::Small | Pages::Transparent => {
            enough_memory(length, node)?;
            0
        }
    };
    let aligned = length.next_multiple_of(pages.bytes());
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | huge;
    // A page more, so that the start can be put on a boundary of huge pages.
    let spare = if huge == 0 { pages.bytes() } else { 0 };
    let at = map(ptr::null_mut(), aligned + spare, flags, None).map_err(|error| HostError::System {
        what: format!("mapping {}", crate::error::bytes(aligned)),
        error,
    })?;
    let at = trim(at, aligned, spare, pages.bytes());
    let mapping = Mapping {
        at,
        length: aligned,
        how: "anonymous",
        huge: None,
        guard: None,
        file: None,
        _created: None,
    };
    let advice = match pages {
        Pages::Transparent => Some(libc::MADV_HUGEPAGE),
        Pages::Small => Some(libc::MADV_NOHUGEPAGE),
        Pages::Huge | Pages::Giant => None,
    };
    if let Some(advice) = advice {
        // SAFETY: the range is the mapping's own. A kernel without transparent huge pages refuses, and the table tells what came of it.
        unsafe { libc::madvise(at.as_ptr().cast(), aligned as usize, advice) };
    }
    if let Some(node) = node {
        bind(&mapping, node)?;
    }
    Ok(mapping)
}

/// Give back what lies before the first boundary and after the end.
fn trim(at: NonNull<u8>, length: u64, spare: u64, boundary: u64) -> NonNull<u8> {
    if spare == 0 {
        return at;
    }
    let start = at.as_ptr() as u64;
    let before = start.next_multiple_of(boundary) - start;
    // SAFETY: both ranges are parts of the mapping that was just made, and unused.
    unsafe {
        if before > 0 {
            libc::munmap(at.as_ptr().cast(), before as usize);
        }
        if before < spare {
            libc::munmap(
                at.as_ptr().add((before + length) as usize).cast(),
                (spare - before) as usize,
            );
        }
        at.add(before as usize)
    }
}

/// Let all pages of a mapping come from a NUMA node.
fn bind(mapping: &Mapping, node: u32) -> Result<(), HostError> {
    const MPOL_BIND: libc::c_int = 2;
    let mut mask = [0u64; 16];
    let word = mask
        .get_mut(node as usize / 64)
        .ok_or_else(|| HostError::option(format!("target host:node={node}"), "must be below 1024"))?;
    *word = 1 << (node % 64);
    // SAFETY: the range is the mapping's own, and the mask as long as it is said to be.
    let bound = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            mapping.at.as_ptr(),
            mapping.length,
            MPOL_BIND,
            mask.as_ptr(),
            mask.len() * 64,
            0,
        )
    };
    match bound {
        0 => Ok(()),
        _ => Err(HostError::last(format!("binding memory to NUMA node {node}"))),
    }
}

/// Refuse where the system would have to take memory from others.
fn enough_memory(needed: u64, node: Option<u32>) -> Result<(), HostError> {
    let (kind, available) = match node {
        Some(node) => (
            format!("memory on NUMA node {node}"),
            kilobytes(&format!("/sys/devices/system/node/node{node}/meminfo"), "MemFree:"),
        ),
        None => ("memory".into(), kilobytes("/proc/meminfo", "MemAvailable:")),
    };
    let Some(available) = available.map(|free| free.saturating_sub(RESERVE)) else {
        return Ok(()); // a system that does not tell decides for itself
    };
    let available = cgroup_room().map_or(available, |room| room.min(available));
    if needed <= available {
        return Ok(());
    }
    Err(HostError::Room {
        kind,
        needed,
        available,
        advice: "give each thread less with --span, or run fewer threads".into(),
    })
}

/// What the control group of this process may still take.
fn cgroup_room() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let number = |file: &str| {
        fs::read_to_string(format!("/sys/fs/cgroup{path}/{file}"))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

/// A value of `meminfo`, in bytes.
fn kilobytes(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.contains(name))?;
    let value = line.split(name).nth(1)?.split_whitespace().next()?;
    Some(value.parse::<u64>().ok()? << 10)
}

fn enough_huge_pages(length: u64, pages: Pages, node: Option<u32>) -> Result<(), HostError> {
    let kilobytes = pages.bytes() >> 10;
    let pool = match node {
        Some(node) => format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{kilobytes}kB"),
        None => format!("/sys/kernel/mm/hugepages/hugepages-{kilobytes}kB"),
    };
    let needed = length.div_ceil(pages.bytes());
    let free = fs::read_to_string(format!("{pool}/free_hugepages")).ok();
    let free = free.and_then(|text| text.trim().parse::<u64>().ok());
    let what = format!("pages = {}", pages.name());
    match free {
        None => Err(HostError::option(
            what,
            "this system has no pages of this size; use transparent or 4KiB",
        )),
        Some(free) if free < needed => Err(HostError::option(
            what,
            format!(
                "needs {needed} free pages, and there are {free}; set them aside with \
                 `echo {needed} | sudo tee {pool}/nr_hugepages`, or use transparent or 4KiB"
            ),
        )),
        Some(_) => Ok(()),
    }
}

fn map(at: *mut libc::c_void, length: u64, flags: i32, file: Option<&File>) -> io::Result<NonNull<u8>> {
    // SAFETY: without MAP_FIXED a mapping never replaces another.
    let found = unsafe {
        libc::mmap(
            at,
            length as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            file.map_or(-1, AsRawFd::as_raw_fd),
            0,
        )
    };
    if found == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(found.cast()).expect("a mapping is not at address 0"))
}

/// A file that this process created, and removes unless it is to stay.
#[derive(Debug)]
pub struct Created {
    path: PathBuf,
    keep: bool,
}

impl Drop for Created {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Create a file of `length` bytes, each with its place on the device. Never one that exists.
pub fn create(path: &Path, length: u64, keep: bool, flags: i32) -> Result<(File, Created), HostError> {
    let mut how = OpenOptions::new();
    let file = how
        .read(true)
        .write(true)
        .create_new(true)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| {
            let problem = match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    "exists already; xpline overwrites no file that it did not create: name another, or remove it"
                        .into()
                }
                io::ErrorKind::NotFound => "its folder does not exist; create it first".into(),
                io::ErrorKind::InvalidInput if flags & libc::O_DIRECT != 0 => "its file system has no O_DIRECT".into(),
                _ => format!("cannot be created: {error}"),
            };
            HostError::file(path, problem)
        })?;
    let created = Created {
        path: path.into(),
        keep,
    };
    if let Err(error) = enough_space(path, length) {
        return Err(discard(created, error));
    }
    // SAFETY: the descriptor is open for as long as `file` lives.
    let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length as i64) };
    if error != 0 {
        let error = io::Error::from_raw_os_error(error);
        let problem = format!(
            "no room for {} could be set aside: {error}",
            crate::error::bytes(length)
        );
        return Err(discard(created, HostError::file(path, problem)));
    }
    Ok((file, created))
}

/// A file that came to nothing goes, whether it was to stay or not.
fn discard(mut created: Created, error: HostError) -> HostError {
    created.keep = false;
    error
}

fn enough_space(path: &Path, needed: u64) -> Result<(), HostError> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| HostError::file(path, "is no name of a file"))?;
    // SAFETY: zeros are a valid value of the structure.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends in a zero byte, and the structure is ours.
    if unsafe { libc::statvfs(name.as_ptr(), &mut found) } != 0 {
        return Err(HostError::last(format!(
            "asking for the free space of {}",
            path.display()
        )));
    }
    let available = found.f_bavail * found.f_frsize;
    if needed <= available {
        return Ok(());
    }
    Err(HostError::Room {
        kind: format!("space for {}", path.display()),
        needed,
        available,
        advice: "give each thread less with --span, run fewer threads, or name a file on another file system".into(),
    })
}

fn file(path: &Path, length: u64, keep: bool) -> Result<Mapping, HostError> {
    let (file, created) = create(path, length, keep, 0)?;
    let sync = libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC;
    let (at, how) = match map(ptr::null_mut(), length, sync, Some(&file)) {
        Ok(at) => (at, "MAP_SYNC"),
        Err(_) => {
            let at = map(ptr::null_mut(), length, libc::MAP_SHARED, Some(&file));
            (
                at.map_err(|error| HostError::file(path, format!("cannot be mapped: {error}")))?,
                "page cache",
            )
        }
    };
    guarded(at, length, how, path, Some(created))
}

fn dax(path: &Path, length: u64, destroy: bool) -> Result<Mapping, HostError> {
    let about = fs::metadata(path).map_err(|error| HostError::file(path, format!("cannot be opened: {error}")))?;
    if !about.file_type().is_char_device() {
        return Err(HostError::file(
            path,
            "is no device-DAX device, such as /dev/dax0.0; use host:file for a file",
        ));
    }
    if !destroy {
        return Err(HostError::file(
            path,
            "everything on the device would be overwritten; say so with --destroy",
        ));
    }
    let device = about.rdev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let described = |name: &str| {
        let text = fs::read_to_string(format!("/sys/dev/char/{major}:{minor}/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let Some(size) = described("size") else {
        return Err(HostError::file(
            path,
            "is no device-DAX device: the kernel names no size for it",
        ));
    };
    let length = length.next_multiple_of(described("align").unwrap_or(2 << 20));
    if length > size {
        return Err(HostError::Room {
            kind: format!("space on {}", path.display()),
            needed: length,
            available: size,
            advice: "give each thread less with --span, or run fewer threads".into(),
        });
    }
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|error| HostError::file(path, format!("cannot be opened: {error}")))?;
    let at = map(ptr::null_mut(), length, libc::MAP_SHARED, Some(&file))
        .map_err(|error| HostError::file(path, format!("cannot be mapped: {error}")))?;
    guarded(at, length, "device DAX", path, None)
}

fn guarded(
    at: NonNull<u8>,
    length: u64,
    how: &'static str,
    path: &Path,
    created: Option<Created>,
) -> Result<Mapping, HostError> {
    let guard = Guard::new(at.as_ptr() as usize, length as usize);
    let mut mapping = Mapping {
        at,
        length,
        how,
        huge: None,
        guard: None,
        file: Some(path.into()),
        _created: created,
    };
    mapping.guard = Some(guard.map_err(|error| HostError::System {
        what: "watching for SIGBUS".into(),
        error,
    })?);
    Ok(mapping)
}
