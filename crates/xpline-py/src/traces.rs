//! Traces: replayed, converted, looked at. Options and results are JSON objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use serde::Serialize;
use xpline_trace::{Options, Progress, TraceError};

use crate::bad_input;
use crate::platform::Platform;

/// How often Ctrl-C is looked for, and progress told.
const ATTENTION: Duration = Duration::from_millis(50);

#[pyfunction]
#[pyo3(signature = (platform, path, options = "{}", on_progress = None))]
pub fn replay_trace(
    py: Python<'_>,
    platform: &Platform,
    path: &str,
    options: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = read(options)?.replay().map_err(bad_input)?;
    watched(py, on_progress, |progress, stop| {
        xpline_trace::replay(&platform.0, path, &options, progress, stop)
    })
}

#[pyfunction]
#[pyo3(signature = (source, target, options = "{}", on_progress = None))]
pub fn convert_trace(
    py: Python<'_>,
    source: &str,
    target: &str,
    options: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = read(options)?.convert().map_err(bad_input)?;
    watched(py, on_progress, |progress, stop| {
        xpline_trace::convert(source, target, &options, progress, stop)
    })
}

#[pyfunction]
#[pyo3(signature = (path, options = "{}", on_progress = None))]
pub fn trace_info(py: Python<'_>, path: &str, options: &str, on_progress: Option<Py<PyAny>>) -> PyResult<String> {
    let options = read(options)?.read().map_err(bad_input)?;
    watched(py, on_progress, |progress, stop| {
        xpline_trace::info(path, &options, progress, stop)
    })
}

fn read(options: &str) -> PyResult<Options> {
    serde_json::from_str(options).map_err(bad_input)
}

/// Work on another thread; this one tells `on_progress` how much of the file has been read, and looks for Ctrl-C.
fn watched<T: Serialize + Send>(
    py: Python<'_>,
    on_progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Arc<Progress>, &AtomicBool) -> Result<Option<T>, TraceError> + Send,
) -> PyResult<String> {
    let progress = Arc::new(Progress::default());
    let stop = AtomicBool::new(false);
    let (working, mut done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let (progress, stop) = (&progress, &stop);
        let worker = scope.spawn(move || {
            let _working = working; // dropped, and so heard, when the work ends however it does
            work(progress, stop)
        });
        let heard = loop {
            let done = &mut done; // a receiver may move to another thread, but not be shared with one
            if py.detach(move || done.recv_timeout(ATTENTION)) != Err(RecvTimeoutError::Timeout) {
                break Ok(());
            }
            let told = on_progress.as_ref().map_or(Ok(()), |on_progress| {
                on_progress.call1(py, (progress.read(), progress.total())).map(drop)
            });
            if let Err(error) = told.and_then(|()| py.check_signals()) {
                break Err(error);
            }
        };
        stop.store(heard.is_err(), Ordering::Relaxed);
        let result = py
            .detach(|| worker.join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        heard?;
        let result = result.map_err(bad_input)?.expect("only an error here stops the work");
        Ok(serde_json::to_string(&result).expect("a result is plain data"))
    })
}
