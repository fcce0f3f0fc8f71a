//! Programs that a traced process becomes: traced too.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use xpline_wire::{EndReason, Start};

use crate::calls;
use crate::process::{self, SESSION};
use crate::qemu;
use crate::thread::Thread;

/// Scripts whose interpreters are scripts, as deep as the kernel goes.
const DEPTH: usize = 4;

/// Replaces the program by another, in the emulator. Returns where that cannot be, and the call is to go on as it is: the
/// file is missing, or not for this machine.
pub fn wrap(thread: &mut Thread, folder: i32, path: u64, arguments: u64, environment: u64, flags: i32) {
    let Some(mut arguments) = strings(arguments) else {
        return;
    };
    let Some(environment) = strings(environment) else {
        return;
    };
    let Some(path) = string(path).and_then(|path| resolve(folder, &path, flags)) else {
        return;
    };
    let Some(program) = program(path, &mut arguments) else {
        return;
    };
    let Some((file, session)) = SESSION.get() else { return };

    let name = arguments.first().cloned().unwrap_or_default();
    let mut command: Vec<OsString> = vec![session.qemu.clone().into()];
    command.extend(session.arguments(file, &program, &name));
    command.extend(arguments.into_iter().skip(1));
    let texts = |all: Vec<OsString>| all.into_iter().map(|text| CString::new(text.into_vec())).collect();
    let (Ok(command), Ok(environment)): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (texts(command), texts(environment))
    else {
        return;
    };
    let pointers = |all: &[CString]| {
        let ends = std::iter::once(std::ptr::null());
        all.iter().map(|text| text.as_ptr()).chain(ends).collect::<Vec<_>>()
    };

    thread.hand_over();
    let process = process::current();
    process.end(EndReason::Exec);
    let space = process.space().clone();
    // SAFETY: lists that end with null, of strings that end.
    unsafe {
        libc::execve(
            command[0].as_ptr(),
            pointers(&command).as_ptr(),
            pointers(&environment).as_ptr(),
        );
    }
    // It did not come to that: the program goes on, in a new stream.
    calls::born(thread, Start::Fork, space);
}

/// The program that runs in this process.
pub struct Program {
    pub file: PathBuf,
    pub arguments: Vec<Vec<u8>>,
}

pub fn running() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let all = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let all: Vec<&[u8]> = all
            .strip_suffix(&[0])
            .unwrap_or(&all)
            .split(|&byte| byte == 0)
            .collect();
        // As the session has it: the emulator, -plugin X -0 NAME PROGRAM ARGUMENTS.
        let (file, arguments) = match &all[..] {
            [_, _, _, _, name, file, rest @ ..] => (*file, [&[*name], rest].concat()),
            _ => (&b""[..], all),
        };
        let file = Path::new(OsStr::from_bytes(file));
        Program {
            file: file.canonicalize().unwrap_or_else(|_| file.to_owned()),
            arguments: arguments.into_iter().map(<[u8]>::to_vec).collect(),
        }
    })
}

/// The x86-64 executable that a file is or asks for; a script's interpreter gets the script as its argument.
fn program(mut path: PathBuf, arguments: &mut Vec<OsString>) -> Option<PathBuf> {
    for _ in 0..DEPTH {
        let mut start = [0; 256];
        rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).ok()?;
        let size = File::open(&path).ok()?.read(&mut start).ok()?;
        let start = &start[..size];
        if is_program(start) {
            return Some(path);
        }
        let line = start
            .strip_prefix(b"#!")?
            .split(|&byte| byte == b'\n')
            .next()?
            .trim_ascii();
        let (interpreter, argument) = match line.iter().position(u8::is_ascii_whitespace) {
            Some(place) => (&line[..place], Some(line[place..].trim_ascii())),
            None => (line, None),
        };
        let interpreter = PathBuf::from(OsStr::from_bytes(interpreter));
        let mut before: Vec<OsString> = vec![interpreter.clone().into()];
        before.extend(argument.map(|argument| OsStr::from_bytes(argument).to_owned()));
        before.push(path.into());
        arguments.splice(..arguments.len().min(1), before);
        path = interpreter;
    }
    None
}

/// Whether a file begins as a 64-bit x86 executable does.
fn is_program(start: &[u8]) -> bool {
    const X86_64: [u8; 2] = [62, 0];
    start.len() >= 20 && start[..5] == *b"\x7fELF\x02" && start[18..20] == X86_64
}

fn resolve(folder: i32, path: &OsStr, flags: i32) -> Option<PathBuf> {
    if path == "/proc/self/exe" {
        return Some(running().file.clone());
    }
    let path = Path::new(path);
    if path.as_os_str().is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
        return Some(format!("/proc/self/fd/{folder}").into()).and_then(|path: PathBuf| std::fs::read_link(path).ok());
    }
    if path.is_absolute() || folder == libc::AT_FDCWD {
        return Some(path.to_owned());
    }
    Some(std::fs::read_link(format!("/proc/self/fd/{folder}")).ok()?.join(path))
}

/// A string of the program; `None` where there is no such memory, or no end within what the kernel takes.
fn string(address: u64) -> Option<OsString> {
    const LIMIT: usize = 128 << 10;
    const PIECE: u64 = 256;
    let mut text = Vec::new();
    while text.len() <= LIMIT {
        // No further than the next page, which may not be there.
        let at = address.checked_add(text.len() as u64)?;
        let piece = qemu::memory(at, (PIECE - at % PIECE) as usize)?;
        let end = piece.iter().position(|&byte| byte == 0);
        text.extend(&piece[..end.unwrap_or(piece.len())]);
        if end.is_some() {
            return Some(OsString::from_vec(text));
        }
    }
    None
}

/// A list of strings of the program, which ends with null; none where there is no list.
fn strings(address: u64) -> Option<Vec<OsString>> {
    let mut all = Vec::new();
    if address == 0 {
        return Some(all);
    }
    loop {
        let entry = qemu::memory(address.checked_add(8 * all.len() as u64)?, 8)?;
        match u64::from_le_bytes(entry.try_into().ok()?) {
            0 => return Some(all),
            entry => all.push(string(entry)?),
        }
    }
}
