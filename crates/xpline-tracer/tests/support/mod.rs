//! Programs in C, run under the tracer as it was just built, and what it says of them.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use xpline_wire::{Decoder, Frame, Hello, Op, Session, Tracked};

/// The emulator that `xpline tracer install` built last; `None`, with the reason on standard error, where there is none.
fn qemu() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let folders = fs::read_dir(base.join("xpline/tracer")).into_iter().flatten().flatten();
    let built = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    let found = folders
        .map(|folder| folder.path().join("qemu-x86_64"))
        .filter(|path| path.is_file())
        .max_by_key(built);
    if found.is_none() {
        // Past what the test runner keeps to itself of tests that pass.
        let _ = writeln!(
            io::stderr(),
            "skipped: the tracer's emulator is not installed; run `xpline tracer install`"
        );
    }
    found
}

/// The plugin of this build.
fn plugin() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let plugin = test.parent().unwrap().join("libxpline_tracer.so");
    assert!(
        plugin.is_file(),
        "{}: cargo builds it before the tests",
        plugin.display()
    );
    plugin
}

/// A place for the files of a test, and one program in C.
pub struct Bench {
    qemu: PathBuf,
    pub folder: PathBuf,
    /// What is tracked.
    pub tracked: PathBuf,
    /// Whether callers are followed.
    pub callers: bool,
}

/// What was said of a run.
pub struct Run {
    pub output: Output,
    /// One for each stream, in the order of their beginnings.
    pub streams: Vec<Stream>,
}

pub struct Stream {
    pub hello: Hello,
    /// All but the first.
    pub frames: Vec<Frame>,
    pub complete: bool,
}

impl Bench {
    pub fn new(name: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let qemu = qemu()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("xpline-{name}-{}-{number}", std::process::id()));
        let tracked = folder.join("tracked, memory");
        fs::create_dir_all(&tracked).unwrap();
        let folder = folder.canonicalize().unwrap();
        Some(Self {
            qemu,
            tracked: folder.join("tracked, memory"),
            callers: false,
            folder,
        })
    }

    /// Compiles a program of `tests/programs`.
    pub fn compile(&self, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs")
            .join(name)
            .with_extension("c");
        let program = self.folder.join(name);
        let mut cc = Command::new("cc");
        let status = cc.args(["-O1", "-g", "-pthread", "-mno-red-zone", "-o"]);
        assert!(status.arg(&program).arg(source).status().unwrap().success());
        program
    }

    /// A tracked file of so many bytes.
    pub fn file(&self, name: &str, size: u64) -> PathBuf {
        let path = self.tracked.join(name);
        fs::File::create(&path).unwrap().set_len(size).unwrap();
        path
    }

    pub fn run<T: AsRef<OsStr>>(&self, program: &Path, arguments: impl IntoIterator<Item = T>) -> Run {
        let tracked = Tracked::Files(vec![self.tracked.clone()]);
        self.run_tracking(tracked, program, |command| {
            command.args(arguments);
        })
    }

    pub fn run_tracking(&self, tracked: Tracked, program: &Path, prepare: impl FnOnce(&mut Command)) -> Run {
        let session = Session {
            socket: self.folder.join("socket"),
            qemu: self.qemu.clone(),
            plugin: plugin(),
            tracked,
            callers: self.callers,
        };
        let file = self.folder.join("session");
        session.write(&file).unwrap();
        let _ = fs::remove_file(&session.socket);
        let listener = UnixListener::bind(&session.socket).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let listening = {
            let (ended, streams) = (Arc::clone(&ended), Arc::clone(&streams));
            thread::spawn(move || {
                let mut readers = Vec::new();
                // Once the program has ended, those that wait to be accepted are all there will be.
                for stream in listener.incoming() {
                    let Ok(stream) = stream else { break };
                    listener.set_nonblocking(ended.load(Ordering::Acquire)).unwrap();
                    let streams = Arc::clone(&streams);
                    readers.push(thread::spawn(move || {
                        let stream = read(stream);
                        streams.lock().unwrap().extend(stream);
                    }));
                }
                readers.into_iter().for_each(|reader| reader.join().unwrap());
            })
        };
        let mut command = session.command(&file, program, program.as_os_str());
        prepare(&mut command);
        let output = command.stdin(Stdio::null()).output().unwrap();
        // The first is behind all of the program's, however late they are accepted; the second ends the waiting for more where the
        // first was accepted before the end was told.
        if UnixStream::connect(&session.socket).is_ok() {
            ended.store(true, Ordering::Release);
            drop(UnixStream::connect(&session.socket));
            listening.join().unwrap();
        }
        let mut streams = std::mem::take(&mut *streams.lock().unwrap());
        streams.sort_by_key(|stream: &Stream| stream.hello.time);
        Run { output, streams }
    }
}

fn read(stream: UnixStream) -> Option<Stream> {
    let mut decoder = Decoder::new(stream).ok()?;
    let Some(Frame::Hello(hello)) = decoder.next_frame().unwrap() else {
        panic!("a stream without a beginning")
    };
    let mut frames = Vec::new();
    while let Some(frame) = decoder.next_frame().unwrap() {
        frames.push(frame);
    }
    Some(Stream {
        hello,
        frames,
        complete: decoder.complete(),
    })
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Stream {
    /// The ops of a thread.
    pub fn ops(&self, thread: u32) -> Vec<Op> {
        let frames = self.frames.iter().filter_map(|frame| match frame {
            Frame::Ops(ops) if ops.thread == thread => Some(&ops.ops),
            _ => None,
        });
        frames.flatten().copied().collect()
    }

    /// Whether an instruction is the program's own, and not of a library.
    pub fn is_own(&self, pc: u64) -> bool {
        let own = |id: u32| {
            self.frames
                .iter()
                .any(|frame| matches!(frame, Frame::File(file) if file.id == id && file.path == self.hello.executable))
        };
        self.frames.iter().any(|frame| match frame {
            Frame::Map(map) => map.file.is_some_and(own) && (map.address..map.address + map.size).contains(&pc),
            _ => false,
        })
    }
}
