//! What the emulator has mapped of the program before it runs: its executable, and the loader of its libraries.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use xpline_wire::Mapping;

use crate::process;
use crate::space::Space;

/// A line of the process's table of mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    begin: u64,
    end: u64,
    executable: bool,
    shared: bool,
    offset: u64,
    path: Vec<u8>,
}

/// The files that are mapped.
pub fn mapped_files() -> Vec<Line> {
    let table = std::fs::read("/proc/self/maps").unwrap_or_default();
    table.split(|&byte| byte == b'\n').filter_map(line).collect()
}

fn line(line: &[u8]) -> Option<Line> {
    let path = line.iter().position(|&byte| byte == b'/')?;
    let (fields, path) = line.split_at(path);
    let mut fields = std::str::from_utf8(fields).ok()?.split_ascii_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let protection = fields.next()?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Line {
        begin: number(begin)?,
        end: number(end)?,
        executable: protection.contains('x'),
        shared: protection.contains('s'),
        offset: number(fields.next()?)?,
        path: path.to_vec(),
    })
}

/// Takes what was mapped since then for the program's; the emulator's own libraries were before.
pub fn announce(before: &[Line]) {
    process::current().change(|space: &mut Space, epoch, out| {
        let base = process::GUEST_BASE.load(std::sync::atomic::Ordering::Relaxed);
        // The emulator makes a program's code writable or not as it needs, but not executable: all of the file counts.
        for line in mapped_files().into_iter().filter(|line| !before.contains(line)) {
            let path = Path::new(std::ffi::OsStr::from_bytes(&line.path));
            let Some(known) = space.path(path, out) else { continue };
            let mapping = Mapping {
                epoch,
                address: line.begin.wrapping_sub(base),
                size: line.end - line.begin,
                file: Some(known.id),
                offset: line.offset,
                shared: line.shared,
                executable: true,
                traced: known.tracked || space.everything(),
            };
            space.map(mapping, out);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_files_are_read_and_others_passed_over() {
        let text = b"7f00a000-7f00c000 r-xp 00002000 08:01 123                        /usr/lib/a b.so";
        let wanted = Line {
            begin: 0x7f00_a000,
            end: 0x7f00_c000,
            executable: true,
            shared: false,
            offset: 0x2000,
            path: b"/usr/lib/a b.so".to_vec(),
        };
        assert_eq!(line(text), Some(wanted));
        assert_eq!(
            line(b"7ffd1000-7ffd2000 rw-p 00000000 00:00 0                          [stack]"),
            None
        );
        assert_eq!(line(b"7f00a000-7f00c000 rw-p 00000000 00:00 0 "), None);
        assert_eq!(line(b"x /y"), None);
        assert_eq!(line(b""), None);
        assert!(mapped_files().iter().any(|line| line.executable), "the test's own code");
    }
}
