//! The way out: a thread that writes to the listener, so that the program's own threads do not.
//!
//! It has a table of open files of its own. The program sees no descriptor that it has not opened, gets the same
//! numbers as ever, and cannot close ours.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Bytes that may wait to be written before threads of the program do.
const WAITING_LIMIT: usize = 8 << 20;

/// Buffers that are kept to be filled again.
const SPARE_LIMIT: usize = 64;

pub struct Sender {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to write.
    filled: Condvar,
    /// Something was written.
    written: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    writing: bool,
    /// The listener has gone: what comes is dropped.
    closed: bool,
    spare: Vec<Vec<u8>>,
}

impl Sender {
    /// Connects to the listener.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (ready, connected) = mpsc::sync_channel(1);
        let (ours, socket) = (Arc::clone(&shared), socket.to_owned());
        let signals = block_signals();
        let started = thread::Builder::new()
            .name("xpline".into())
            .spawn(move || run(&ours, &socket, &ready));
        restore_signals(&signals);
        started?;
        connected
            .recv()
            .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { shared })
    }

    /// Hands bytes over, and waits while there is too much to write. Calls of one thread are written in their order.
    /// Says whether anyone listens.
    pub fn send(&self, bytes: Vec<u8>) -> bool {
        let state = self.shared.state.lock().unwrap();
        let full = |state: &mut State| state.bytes > WAITING_LIMIT && !state.closed;
        let mut state = self.shared.written.wait_while(state, full).unwrap();
        if state.closed {
            return false;
        }
        state.bytes += bytes.len();
        state.waiting.push_back(bytes);
        self.shared.filled.notify_one();
        true
    }

    /// An empty buffer with room for so many bytes.
    pub fn buffer(&self, capacity: usize) -> Vec<u8> {
        let spare = self.shared.state.lock().unwrap().spare.pop();
        let mut buffer = spare.unwrap_or_default();
        buffer.reserve_exact(capacity);
        buffer
    }

    /// Waits until all is written.
    pub fn drain(&self) {
        let state = self.shared.state.lock().unwrap();
        let busy = |state: &mut State| !state.closed && (state.writing || !state.waiting.is_empty());
        drop(self.shared.written.wait_while(state, busy).unwrap());
    }
}

fn run(shared: &Shared, socket: &PathBuf, ready: &SyncSender<io::Result<()>>) {
    let mut stream = match own_files().and_then(|()| UnixStream::connect(socket)) {
        Ok(stream) => stream,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    loop {
        let state = shared.state.lock().unwrap();
        let mut state = shared
            .filled
            .wait_while(state, |state| state.waiting.is_empty())
            .unwrap();
        let mut bytes = state.waiting.pop_front().unwrap();
        state.bytes -= bytes.len();
        state.writing = true;
        drop(state);
        // The library's writes to sockets raise no signal.
        let written = stream.write_all(&bytes);
        let mut state = shared.state.lock().unwrap();
        state.writing = false;
        state.closed |= written.is_err();
        bytes.clear();
        if state.spare.len() < SPARE_LIMIT {
            state.spare.push(bytes);
        }
        let closed = state.closed;
        drop(state);
        shared.written.notify_all();
        if closed {
            return;
        }
    }
}

/// Gives this thread a table of open files of its own, with none in it: a descriptor kept here would keep the program's
/// pipes open.
fn own_files() -> io::Result<()> {
    const UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: the thread has no file open that it uses.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, UNSHARE) == 0 {
            return Ok(());
        }
        // Before Linux 5.9.
        if libc::unshare(libc::CLONE_FILES) != 0 {
            return Err(io::Error::last_os_error());
        }
        let files = std::fs::read_dir("/proc/thread-self/fd")?;
        let files: Vec<i32> = files
            .flatten()
            .filter_map(|file| file.file_name().to_str()?.parse().ok())
            .collect();
        for file in files {
            libc::close(file);
        }
    }
    Ok(())
}

/// Signals are for the program's threads. What was blocked before is to be restored.
fn block_signals() -> libc::sigset_t {
    // SAFETY: sets of our own.
    unsafe {
        let (mut all, mut before) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: as `block_signals` left it.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut());
    }
}
