//! A program at work under the tracer, and the machines that take its streams meanwhile.
//!
//! Readers, one a process, hand frames to a translator; it hands chunks to a machine for each platform, and to the recorder. Every
//! channel is bounded: when a machine cannot keep up, the program waits.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use thiserror::Error;
use xpline_model::Platform;
use xpline_wire::{Decoder, Frame, Session, Tracked};

use crate::access::Chunk;
use crate::record::{About, RecordError, Recorder};
use crate::run::{Outcome, run};
use crate::sites::Named;
use crate::symbols::name_sites;
use crate::translate::{Stream, Totals, Translator};

/// Frames, and chunks of a machine, that may wait.
const FRAMES: usize = 64;
const CHUNKS: usize = 64;

/// How often the program and its connections are looked after.
const ATTENTION: Duration = Duration::from_millis(5);

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Program {
    pub session: Session,
    /// Where the session is written.
    pub session_file: PathBuf,
    /// The x86-64 executable, the name that it sees of itself, and its arguments.
    pub executable: PathBuf,
    pub name: OsString,
    pub arguments: Vec<OsString>,
    /// Where streams are recorded, and the most accesses that are.
    pub record: Option<(PathBuf, u64)>,
    /// The command as the user knows it.
    pub command: Vec<String>,
}

/// What the one who waits for a run may tell it, and be told.
#[derive(Default)]
pub struct Control {
    /// Send the program an interrupt (SIGINT).
    pub interrupt: AtomicBool,
    /// End the program at once (SIGKILL).
    pub kill: AtomicBool,
    /// Accesses that the first machine has taken.
    pub accesses: AtomicU64,
}

#[derive(Debug, Error)]
pub enum LiveError {
    #[error("{what}: {error}")]
    System { what: String, error: io::Error },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(
        "the program did not come up under the tracer ({status}); what it printed says why, and `xpline tracer status` whether \
         the tracer is whole"
    )]
    NotTraced { status: String },
}

/// How the program ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Live {
    pub ended: Ended,
    pub totals: Totals,
    pub sites: Vec<Named>,
    /// Calls that functions of the sites were entered by, where callers were followed.
    pub calls: Vec<Named>,
    /// One a platform; none where the program never touched tracked memory.
    pub outcomes: Vec<Outcome>,
    /// Streams that could not be read on, and why.
    pub stream_errors: Vec<String>,
    /// Why nothing was recorded, where that was asked for.
    pub record_error: Option<String>,
    /// The recording has but the beginning.
    pub cut: bool,
}

/// What a reader says of its stream.
enum Said {
    Frame(Frame),
    Ended { complete: bool, error: Option<String> },
}

/// Run a program under the tracer, on every platform at once.
pub fn run_live(program: &Program, platforms: &[Platform], control: &Control) -> Result<Live, LiveError> {
    let system = |what: &str| {
        let what = what.to_owned();
        move |error| LiveError::System { what, error }
    };
    let socket = &program.session.socket;
    let listener = UnixListener::bind(socket).map_err(system(&format!("{}", socket.display())))?;
    listener.set_nonblocking(true).map_err(system("the listening socket"))?;
    program
        .session
        .write(&program.session_file)
        .map_err(system(&format!("{}", program.session_file.display())))?;
    let recorder = program.record.as_ref().map(|(path, most)| {
        let recorder = Recorder::create(path)?;
        Ok::<_, RecordError>(Recording {
            recorder: Some(recorder),
            left: *most,
            cut: false,
            error: None,
        })
    });
    let mut recording = recorder.transpose()?.unwrap_or_default();
    let mut command = program
        .session
        .command(&program.session_file, &program.executable, &program.name);
    let child = command
        .args(&program.arguments)
        .spawn()
        .map_err(system(&format!("{}", program.session.qemu.display())))?;
    let (say, said) = sync_channel(FRAMES);
    let streams = AtomicU32::new(0);
    let never = AtomicBool::new(false);
    let uncounted = AtomicU64::new(0);
    let (status, translated, outcomes) = thread::scope(|scope| {
        let mut inputs: Vec<SyncSender<Chunk>> = Vec::new();
        let mut machines = Vec::new();
        for (number, platform) in platforms.iter().enumerate() {
            let (give, take) = sync_channel(CHUNKS);
            let done = if number == 0 { &control.accesses } else { &uncounted };
            let never = &never;
            inputs.push(give);
            machines.push(scope.spawn(move || run(platform, take.into_iter(), None, never, done)));
        }
        let everything = matches!(program.session.tracked, Tracked::Everything(_));
        let recording = &mut recording;
        let translator = scope.spawn(move || translate(&said, everything, &inputs, recording));
        let status = attend(child, &listener, &say, &streams, control);
        drop(say);
        let translated = translator
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let outcomes = machines.into_iter().filter_map(|machine| {
            let outcome = machine.join();
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        (status, translated, outcomes.collect())
    });
    _ = fs::remove_file(socket);
    let status = status.map_err(system("the program"))?;
    if streams.load(Ordering::Relaxed) == 0 {
        return Err(LiveError::NotTraced {
            status: status.to_string(),
        });
    }
    let (translator, stream_errors) = translated;
    let sites = name_sites(translator.sites.origins());
    let calls = name_sites(translator.sites.calls());
    let about = About {
        command: program.command.clone(),
        sites: sites.clone(),
        calls: calls.clone(),
        totals: serde_json::to_value(&translator.totals).expect("plain data"),
        cut: recording.cut,
    };
    recording.finish(&about);
    Ok(Live {
        ended: Ended {
            code: status.code(),
            signal: status.signal(),
        },
        totals: translator.totals,
        sites,
        calls,
        outcomes,
        stream_errors,
        record_error: recording.error.map(|error| error.to_string()),
        cut: about.cut,
    })
}

/// A recorder that gives up where it must.
#[derive(Default)]
struct Recording {
    recorder: Option<Recorder>,
    /// Accesses that there is room for.
    left: u64,
    cut: bool,
    error: Option<RecordError>,
}

impl Recording {
    fn write(&mut self, chunk: &Chunk) {
        let Some(recorder) = &mut self.recorder else { return };
        if (chunk.accesses.len() as u64) > self.left {
            self.cut = true;
            self.left = 0;
            return;
        }
        self.left -= chunk.accesses.len() as u64;
        if let Err(error) = recorder.write(chunk) {
            self.fail(error);
        }
    }

    fn finish(&mut self, about: &About) {
        if let Some(recorder) = self.recorder.take()
            && let Err(error) = recorder.finish(about)
        {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: RecordError) {
        self.recorder = None;
        self.error = Some(error);
    }
}

/// Accept connections until the program has ended and the last of them is closed.
fn attend(
    mut child: Child,
    listener: &UnixListener,
    say: &SyncSender<(Stream, Said)>,
    streams: &AtomicU32,
    control: &Control,
) -> io::Result<ExitStatus> {
    let mut status = None;
    let mut readers: Vec<thread::JoinHandle<()>> = Vec::new();
    loop {
        if control.kill.load(Ordering::Relaxed) {
            _ = child.kill();
        } else if control.interrupt.swap(false, Ordering::Relaxed) && status.is_none() {
            // It has not been waited for, so its number is its own; if it has ended meanwhile, nobody is to be stopped.
            _ = kill_process(Pid::from_child(&child), Signal::INT);
        }
        // The program's end is looked for first: whoever connected before it is then still accepted.
        if status.is_none() {
            status = child.try_wait()?;
        }
        match listener.accept() {
            Ok((connection, _)) => {
                connection.set_nonblocking(false)?;
                let stream = streams.fetch_add(1, Ordering::Relaxed);
                let say = say.clone();
                readers.push(thread::spawn(move || read(stream, connection, &say)));
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        readers.retain(|reader| !reader.is_finished());
        match status {
            Some(status) if readers.is_empty() || control.kill.load(Ordering::Relaxed) => return Ok(status),
            _ => thread::sleep(ATTENTION),
        }
    }
}

/// Read a stream to its end.
fn read(stream: Stream, connection: UnixStream, say: &SyncSender<(Stream, Said)>) {
    let failed = |error: xpline_wire::WireError| Said::Ended {
        complete: false,
        error: Some(error.to_string()),
    };
    let ended = match Decoder::new(connection) {
        Err(error) => failed(error),
        Ok(mut decoder) => loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    if say.send((stream, Said::Frame(frame))).is_err() {
                        return;
                    }
                }
                Ok(None) => {
                    break Said::Ended {
                        complete: decoder.complete(),
                        error: None,
                    };
                }
                Err(error) => break failed(error),
            }
        },
    };
    _ = say.send((stream, ended));
}

/// Hand chunks on until every reader has ended.
fn translate(
    said: &Receiver<(Stream, Said)>,
    everything: bool,
    machines: &[SyncSender<Chunk>],
    recording: &mut Recording,
) -> (Translator, Vec<String>) {
    let mut translator = Translator::new(everything);
    let mut errors = Vec::new();
    let mut chunks = Vec::new();
    for (stream, said) in said {
        match said {
            Said::Frame(frame) => translator.frame(stream, frame, &mut chunks),
            Said::Ended { complete, error } => {
                errors.extend(error);
                translator.end(stream, complete, &mut chunks);
            }
        }
        for chunk in chunks.drain(..) {
            recording.write(&chunk);
            let (last, others) = machines.split_last().expect("at least one platform");
            for machine in others {
                _ = machine.send(chunk.clone());
            }
            _ = last.send(chunk);
        }
    }
    translator.finish();
    (translator, errors)
}
