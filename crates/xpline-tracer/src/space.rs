//! Files and mappings, as the listener is told of them.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use xpline_wire::{AddressSpace, File, FileId, Frame, Mapping, encode};

/// Memory that is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub address: u64,
    pub size: u64,
}

impl Range {
    #[inline]
    pub fn touches(&self, address: u64, size: u64) -> bool {
        address < self.address.saturating_add(self.size) && self.address < address.saturating_add(size)
    }
}

/// What a file is known by. The time of its making tells it from one that had its inode before.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    inode: u64,
    born: (i64, u32),
}

/// A file that a descriptor stands for.
#[derive(Clone, Copy)]
pub struct Known {
    pub id: FileId,
    pub tracked: bool,
}

#[derive(Clone)]
pub struct Space {
    paths: Vec<PathBuf>,
    everything: bool,
    mappings: AddressSpace,
    files: Vec<File>,
    /// Files that were asked after: `None` for what is no file.
    known: HashMap<Identity, Option<Known>>,
}

impl Space {
    /// Nothing mapped yet. Files under `paths` are tracked.
    pub fn new(paths: Vec<PathBuf>, everything: bool) -> Self {
        Self {
            paths,
            everything,
            mappings: AddressSpace::default(),
            files: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// All that stands, for a new stream.
    pub fn repeat(&mut self, epoch: u64, out: &mut Vec<u8>) {
        for file in &self.files {
            encode(&Frame::File(file.clone()), out);
        }
        for mapping in self.mappings.mappings() {
            encode(
                &Frame::Map(Mapping {
                    epoch,
                    ..mapping.clone()
                }),
                out,
            );
        }
    }

    /// What a thread may access and the listener is to be told of, in ascending order.
    pub fn traced(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for mapping in self.mappings.mappings().iter().filter(|mapping| mapping.traced) {
            match ranges.last_mut() {
                Some(last) if last.address + last.size == mapping.address => last.size += mapping.size,
                _ => ranges.push(Range {
                    address: mapping.address,
                    size: mapping.size,
                }),
            }
        }
        ranges
    }

    /// The mapping that an address is in now.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        self.mappings.find(u64::MAX, address)
    }

    /// The mappings that a range touches now.
    pub fn within(&self, address: u64, size: u64) -> impl Iterator<Item = &Mapping> {
        let range = Range { address, size };
        self.mappings
            .mappings()
            .iter()
            .filter(move |mapping| range.touches(mapping.address, mapping.size))
    }

    /// A file is mapped. Of no concern are files that are neither tracked nor code.
    pub fn map(&mut self, mapping: Mapping, out: &mut Vec<u8>) {
        if !mapping.traced && !mapping.executable {
            return self.unmap(mapping.epoch, mapping.address, mapping.size, out);
        }
        encode(&Frame::Map(mapping.clone()), out);
        self.mappings.map(mapping.clone());
        self.mappings.forget(mapping.epoch);
    }

    /// Nothing that concerns us is mapped there any more.
    pub fn unmap(&mut self, epoch: u64, address: u64, size: u64, out: &mut Vec<u8>) {
        if self.within(address, size).next().is_some() {
            encode(&Frame::Unmap { epoch, address, size }, out);
            self.mappings.unmap(epoch, address, size);
            self.mappings.forget(epoch);
        }
    }

    /// Whether no file can be tracked.
    pub fn tracks_nothing(&self) -> bool {
        self.paths.is_empty()
    }

    pub fn everything(&self) -> bool {
        self.everything
    }

    /// Files may have got other names.
    pub fn forget_names(&mut self) {
        self.known.clear();
    }

    /// The file that a descriptor stands for, if it is one; its first mention is written.
    pub fn descriptor(&mut self, descriptor: i32, out: &mut Vec<u8>) -> Option<Known> {
        self.identify(
            descriptor,
            c"",
            libc::AT_EMPTY_PATH,
            || std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok(),
            out,
        )
    }

    /// The file of a name.
    pub fn path(&mut self, path: &Path, out: &mut Vec<u8>) -> Option<Known> {
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        self.identify(libc::AT_FDCWD, &name, 0, || Some(path.to_owned()), out)
    }

    fn identify(
        &mut self,
        descriptor: i32,
        name: &std::ffi::CStr,
        flags: i32,
        path: impl FnOnce() -> Option<PathBuf>,
        out: &mut Vec<u8>,
    ) -> Option<Known> {
        // SAFETY: a structure of ours and a name that ends.
        let status = unsafe {
            let mut status = std::mem::zeroed::<libc::statx>();
            let wanted = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
            if libc::statx(descriptor, name.as_ptr(), flags, wanted, &mut status) != 0 {
                return None;
            }
            status
        };
        let identity = Identity {
            device: libc::makedev(status.stx_dev_major, status.stx_dev_minor),
            inode: status.stx_ino,
            born: (status.stx_btime.tv_sec, status.stx_btime.tv_nsec),
        };
        if let Some(known) = self.known.get(&identity) {
            return *known;
        }
        let kind = u32::from(status.stx_mode) & libc::S_IFMT;
        // Devices too: /dev/dax is memory.
        let is_file = [libc::S_IFREG, libc::S_IFCHR, libc::S_IFBLK].contains(&kind);
        let path = path().filter(|_| is_file);
        let known = path.map(|path| {
            let tracked = self.paths.iter().any(|folder| path.starts_with(folder));
            let id = self.files.len() as FileId;
            let file = File {
                id,
                tracked,
                device: identity.device,
                inode: identity.inode,
                path: path.as_os_str().as_bytes().to_vec(),
            };
            encode(&Frame::File(file.clone()), out);
            self.files.push(file);
            Known { id, tracked }
        });
        self.known.insert(identity, known);
        known
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;

    use super::*;

    const PAGE: u64 = 4096;

    fn mapping(page: u64, pages: u64, traced: bool) -> Mapping {
        Mapping {
            epoch: 1,
            address: page * PAGE,
            size: pages * PAGE,
            file: Some(0),
            offset: 0,
            shared: true,
            executable: !traced,
            traced,
        }
    }

    fn traced(space: &Space) -> Vec<(u64, u64)> {
        space
            .traced()
            .iter()
            .map(|range| (range.address / PAGE, range.size / PAGE))
            .collect()
    }

    #[test]
    fn what_is_traced_follows_the_mappings() {
        let (mut space, mut out) = (Space::new(vec![], false), Vec::new());
        space.map(mapping(10, 4, true), &mut out);
        space.map(mapping(14, 2, true), &mut out);
        space.map(mapping(20, 2, false), &mut out);
        assert_eq!(traced(&space), [(10, 6)], "neighbours are one range, and code is none");
        space.unmap(2, 12 * PAGE, PAGE, &mut out);
        assert_eq!(traced(&space), [(10, 2), (13, 3)]);
        let said = out.len();
        space.unmap(3, 12 * PAGE, PAGE, &mut out);
        assert_eq!(out.len(), said, "nothing was there, and nothing is said");
        // A file that is of no concern takes the place of one that is.
        space.map(
            Mapping {
                executable: false,
                ..mapping(10, 1, false)
            },
            &mut out,
        );
        assert_eq!(traced(&space), [(11, 1), (13, 3)]);
    }

    #[test]
    fn files_are_tracked_by_their_path_and_said_once() {
        let folder = std::env::temp_dir().join(format!("xpline-space-{}", std::process::id()));
        let (within, beside) = (folder.join("pmem"), folder.join("pmem2"));
        fs::create_dir_all(&within).unwrap();
        fs::create_dir_all(&beside).unwrap();
        let folder = folder.canonicalize().unwrap();
        let (mut space, mut out) = (Space::new(vec![folder.join("pmem")], false), Vec::new());
        let file = fs::File::create(within.join("a")).unwrap();
        let known = space.descriptor(file.as_raw_fd(), &mut out).unwrap();
        assert!(known.tracked && known.id == 0);
        let said = out.len();
        let same = fs::File::open(within.join("a")).unwrap();
        assert!(
            space
                .descriptor(same.as_raw_fd(), &mut out)
                .is_some_and(|known| known.id == 0)
        );
        assert_eq!(out.len(), said);
        let other = fs::File::create(beside.join("a")).unwrap();
        assert!(
            space
                .descriptor(other.as_raw_fd(), &mut out)
                .is_some_and(|known| !known.tracked && known.id == 1)
        );
        assert!(space.descriptor(-1, &mut out).is_none());
        let directory = fs::File::open(&within).unwrap();
        assert!(
            space.descriptor(directory.as_raw_fd(), &mut out).is_none(),
            "a folder is no memory"
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
