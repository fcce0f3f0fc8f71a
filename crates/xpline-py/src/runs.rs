//! Programs on the model: run under the tracer, or from a recording. Requests and results are JSON objects.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use xpline_run::{Changed, Control, Program, Recording, run, run_live, run_sampled};
use xpline_wire::{Session, Tracked};

use crate::platform::Platform;
use crate::{XplineError, bad_input};

/// How often Ctrl-C is looked for, and progress told.
const ATTENTION: Duration = Duration::from_millis(50);

/// What to run under the tracer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    qemu: PathBuf,
    plugin: PathBuf,
    /// A folder of the run's own, for its socket.
    folder: PathBuf,
    everything: bool,
    callers: bool,
    paths: Vec<PathBuf>,
    executable: PathBuf,
    name: String,
    arguments: Vec<String>,
    command: Vec<String>,
    record: Option<PathBuf>,
    most_recorded: u64,
}

/// Run a program on platforms; returns what came of it, and whether Ctrl-C was pressed. `on_progress` hears of the accesses taken.
///
/// At the first Ctrl-C the program is sent it, where the terminal has not done so; at the second it is killed.
#[pyfunction]
#[pyo3(signature = (platforms, request, on_progress = None, forward_interrupt = true))]
pub fn run_program(
    py: Python<'_>,
    platforms: Vec<PyRef<'_, Platform>>,
    request: &str,
    on_progress: Option<Py<PyAny>>,
    forward_interrupt: bool,
) -> PyResult<(String, bool)> {
    let request: Request = serde_json::from_str(request).map_err(bad_input)?;
    let platforms: Vec<xpline_model::Platform> = platforms.iter().map(|platform| platform.0.clone()).collect();
    let tracked = if request.everything {
        Tracked::Everything(request.paths)
    } else {
        Tracked::Files(request.paths)
    };
    let program = Program {
        session: Session {
            socket: request.folder.join("socket"),
            qemu: request.qemu,
            plugin: request.plugin,
            tracked,
            callers: request.callers,
        },
        session_file: request.folder.join("session"),
        executable: request.executable,
        name: request.name.into(),
        arguments: request.arguments.into_iter().map(OsString::from).collect(),
        record: request.record.map(|path| (path, request.most_recorded)),
        command: request.command,
    };
    let control = Control::default();
    let mut interrupted = false;
    let result = attended(
        py,
        || run_live(&program, &platforms, &control),
        |signalled| {
            if signalled {
                if interrupted {
                    control.kill.store(true, Ordering::Relaxed);
                } else if forward_interrupt {
                    control.interrupt.store(true, Ordering::Relaxed);
                }
                interrupted = true;
                return Ok(());
            }
            let done = control.accesses.load(Ordering::Relaxed);
            on_progress
                .as_ref()
                .map_or(Ok(()), |on_progress| on_progress.call1(py, (done,)).map(drop))
        },
    )?;
    Ok((to_json(&result.map_err(bad_input)?), interrupted))
}

/// Run a recording on a platform, with a change made to it, on at most so many cores.
#[pyfunction]
#[pyo3(signature = (platform, path, change = None, cores = None, on_progress = None))]
pub fn run_recorded(
    py: Python<'_>,
    platform: &Platform,
    path: PathBuf,
    change: Option<&str>,
    cores: Option<u32>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Option<String>> {
    let change = change.map(serde_json::from_str).transpose().map_err(bad_input)?;
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut raised = None;
    let outcome = attended(
        py,
        || -> Result<_, xpline_run::RecordError> {
            let mut recording = Recording::open(&path)?;
            let outcome = match change {
                None => run(&platform.0, &mut recording, cores, &stop, &done),
                Some(change) => {
                    let changed = Changed::new(&mut recording, change, &platform.0);
                    run(&platform.0, changed, cores, &stop, &done)
                }
            };
            recording.error.map_or(Ok(outcome), Err)
        },
        |signalled| {
            let told = if signalled {
                Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(()))
            } else {
                on_progress.as_ref().map_or(Ok(()), |on_progress| {
                    on_progress.call1(py, (done.load(Ordering::Relaxed),)).map(drop)
                })
            };
            if let Err(error) = told {
                stop.store(true, Ordering::Relaxed);
                raised.get_or_insert(error);
            }
            Ok(())
        },
    )?;
    if let Some(error) = raised {
        return Err(error);
    }
    Ok(outcome.map_err(bad_input)?.as_ref().map(to_json))
}

/// Run a recording on a platform; returns a sample of the requests of each of its cores, or nothing where there are none.
#[pyfunction]
pub fn sample_recorded(py: Python<'_>, platform: &Platform, path: PathBuf) -> PyResult<Option<String>> {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let sampled = attended(
        py,
        || -> Result<_, xpline_run::RecordError> {
            let mut recording = Recording::open(&path)?;
            let sampled = run_sampled(&platform.0, &mut recording, &stop, &done);
            recording.error.map_or(Ok(sampled), Err)
        },
        |signalled| {
            if signalled {
                stop.store(true, Ordering::Relaxed);
                return Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(()));
            }
            Ok(())
        },
    )?;
    Ok(sampled.map_err(bad_input)?.map(|(_, events)| to_json(&events)))
}

/// What a recording is of.
#[pyfunction]
pub fn recorded_about(path: PathBuf) -> PyResult<String> {
    Ok(to_json(&Recording::about(Path::new(&path)).map_err(bad_input)?))
}

/// Work on another thread; this one calls `attend` every so often, with whether Ctrl-C came. What `attend` raises is raised in the end.
fn attended<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
    mut attend: impl FnMut(bool) -> PyResult<()>,
) -> PyResult<T> {
    let (working, mut done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let _working = working; // dropped, and so heard, when the work ends however it does
            work()
        });
        let mut raised = Ok(());
        loop {
            let done = &mut done; // a receiver may move to another thread, but not be shared with one
            if py.detach(move || done.recv_timeout(ATTENTION)) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            let told = match py.check_signals() {
                Ok(()) => attend(false),
                Err(error) if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => attend(true),
                Err(error) => Err(error),
            };
            if raised.is_ok() {
                raised = told;
            }
        }
        let result = py
            .detach(|| worker.join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        raised.map(|()| result)
    })
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

/// Write a recording of accesses: thread, kind, address, bytes, instructions before it, site.
#[pyfunction]
pub fn write_recording(path: PathBuf, about: &str, accesses: Vec<(u32, String, u64, u32, u32, u32)>) -> PyResult<()> {
    let about = serde_json::from_str(about).map_err(bad_input)?;
    let mut recorder = xpline_run::Recorder::create(&path).map_err(bad_input)?;
    let mut chunk: Option<xpline_run::Chunk> = None;
    for (thread, kind, address, size, instructions, site) in accesses {
        let kind = xpline_model::OpKind::ALL
            .into_iter()
            .find(|&known| xpline_trace::kind_name(known) == kind)
            .ok_or_else(|| XplineError::new_err(format!("no kind of op `{kind}`")))?;
        let access = xpline_run::Access {
            kind,
            address,
            size,
            instructions,
            site,
        };
        match &mut chunk {
            Some(chunk) if chunk.thread == thread && chunk.accesses.len() < 4096 => chunk.accesses.push(access),
            _ => {
                let next = xpline_run::Chunk {
                    thread,
                    accesses: vec![access],
                    begin: 0,
                    end: 0,
                    first: false,
                    last: false,
                };
                if let Some(full) = chunk.replace(next) {
                    recorder.write(&full).map_err(bad_input)?;
                }
            }
        }
    }
    if let Some(full) = chunk {
        recorder.write(&full).map_err(bad_input)?;
    }
    recorder.finish(&about).map_err(bad_input)
}
