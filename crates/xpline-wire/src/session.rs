//! What the processes of a traced program are to know.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which memory is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// Mappings of files that lie under one of these folders, or are one of these files. Absolute, without symbolic links.
    Files(Vec<PathBuf>),
    /// All memory of the program; files under the same paths are tracked.
    Everything(Vec<PathBuf>),
}

/// What the file says of callers: not followed, and followed.
const CALLERS: [&str; 2] = ["no-callers", "callers"];

/// A traced run: who listens, and what to trace. Every process of the program reads it from a file, whatever its working
/// folder: paths are absolute.
///
/// A listener makes a Unix socket, writes the session, starts the program with [`Session::command`], and accepts a
/// connection for each process (a further one each time a process replaces its program).
///
/// ```
/// use xpline_wire::{Session, Tracked};
///
/// let session = Session {
///     socket: "/tmp/run/socket".into(),
///     qemu: "/opt/xpline/qemu-x86_64".into(),
///     plugin: "/opt/xpline/libxpline_tracer.so".into(),
///     tracked: Tracked::Files(vec!["/mnt/pmem0".into()]),
///     callers: false,
/// };
/// let file = std::env::temp_dir().join(format!("session-{}", std::process::id()));
/// session.write(&file)?;
/// assert_eq!(Session::read(&file)?, session);
///
/// let command = session.command(&file, "/usr/bin/redis-server".as_ref(), "redis-server".as_ref());
/// assert_eq!(command.get_program(), "/opt/xpline/qemu-x86_64");
/// # std::fs::remove_file(file)
/// # ; Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The listener's socket.
    pub socket: PathBuf,
    /// The emulator, and the tracer that it loads.
    pub qemu: PathBuf,
    pub plugin: PathBuf,
    pub tracked: Tracked,
    /// Whether to follow who calls whom.
    pub callers: bool,
}

impl Session {
    /// Writes it whole or not at all.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let (scope, paths) = match &self.tracked {
            Tracked::Files(paths) => ("files", paths),
            Tracked::Everything(paths) => ("everything", paths),
        };
        let fields = [
            self.socket.as_os_str(),
            self.qemu.as_os_str(),
            self.plugin.as_os_str(),
            OsStr::new(scope),
            OsStr::new(if self.callers { CALLERS[1] } else { CALLERS[0] }),
        ];
        let mut bytes = Vec::new();
        for field in fields.into_iter().chain(paths.iter().map(|path| path.as_os_str())) {
            bytes.extend(field.as_bytes());
            bytes.push(0);
        }
        let mut temporary = file.as_os_str().to_owned();
        temporary.push(".part");
        fs::write(&temporary, bytes)?;
        fs::rename(&temporary, file)
    }

    pub fn read(file: &Path) -> io::Result<Self> {
        let bytes = fs::read(file)?;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("{}: is no session", file.display()));
        let text = bytes.strip_suffix(&[0]).ok_or_else(wrong)?;
        let mut fields = text
            .split(|&byte| byte == 0)
            .map(|field| OsString::from_vec(field.to_vec()));
        let mut next = || fields.next().ok_or_else(wrong);
        let (socket, qemu, plugin) = (next()?.into(), next()?.into(), next()?.into());
        let (scope, callers) = (next()?, next()?);
        let callers = CALLERS.iter().position(|&word| callers == word).ok_or_else(wrong)? == 1;
        let paths = fields.map(PathBuf::from).collect();
        let tracked = match scope.to_str() {
            Some("files") => Tracked::Files(paths),
            Some("everything") => Tracked::Everything(paths),
            _ => return Err(wrong()),
        };
        Ok(Self {
            socket,
            qemu,
            plugin,
            tracked,
            callers,
        })
    }

    /// Starts a program under the tracer, once its arguments are added. `file` is where the session was written, `program`
    /// the x86-64 executable, and `name` what it sees as its `argv[0]`.
    pub fn command(&self, file: &Path, program: &Path, name: &OsStr) -> Command {
        let mut command = Command::new(&self.qemu);
        command.args(self.arguments(file, program, name));
        command
    }

    /// What [`Session::command`] hands to the emulator.
    pub fn arguments(&self, file: &Path, program: &Path, name: &OsStr) -> Vec<OsString> {
        let mut plugin = OsString::new();
        plugin.push(escaped(&self.plugin));
        plugin.push(",session=");
        plugin.push(escaped(file));
        vec!["-plugin".into(), plugin, "-0".into(), name.into(), program.into()]
    }
}

/// A comma ends a value of the emulator's options; two stand for one.
fn escaped(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes().iter();
    OsString::from_vec(
        bytes
            .flat_map(|&byte| std::iter::repeat_n(byte, if byte == b',' { 2 } else { 1 }))
            .collect(),
    )
}
