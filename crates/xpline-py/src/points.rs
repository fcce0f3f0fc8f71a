//! Points in, rows out; both as JSON objects.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use xpline_lattester::{Row, read_points};

use crate::platform::Platform;
use crate::{XplineError, bad_input};

/// How often Ctrl-C is looked for.
const ATTENTION: Duration = Duration::from_millis(50);

#[pyfunction]
pub fn check_points(platform: &Platform, points: Vec<String>) -> PyResult<()> {
    read_points(&platform.0, &points).map(drop).map_err(bad_input)
}

/// The sweep runs on other threads; this one hands finished rows to `on_done`, and looks for Ctrl-C.
#[pyfunction]
#[pyo3(signature = (platform, points, jobs = None, on_done = None))]
pub fn run_points(
    py: Python<'_>,
    platform: &Platform,
    points: Vec<String>,
    jobs: Option<usize>,
    on_done: Option<Py<PyAny>>,
) -> PyResult<Vec<String>> {
    let points = read_points(&platform.0, &points).map_err(bad_input)?;
    let jobs = match jobs {
        None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
        Some(0) => return Err(XplineError::new_err("jobs = 0: must be at least 1")),
        Some(jobs) => jobs.min(points.len().max(1)),
    };
    let stop = AtomicBool::new(false);
    let (done, mut finished) = mpsc::channel();
    thread::scope(|scope| {
        let sweep = scope.spawn(|| {
            let done = move |index, row: &Row| drop(done.send((index, to_json(row))));
            xpline_lattester::run_points(&platform.0, &points, jobs, &stop, done)
        });
        let heard = listen(py, &mut finished, on_done.as_ref());
        stop.store(heard.is_err(), Ordering::Relaxed);
        let rows = py
            .detach(|| sweep.join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        heard?;
        Ok(rows.iter().flatten().map(to_json).collect())
    })
}

/// Hand over rows as they come, until no more can come; stop early on Ctrl-C or when `on_done` raises.
pub fn listen(py: Python<'_>, finished: &mut Receiver<(usize, String)>, on_done: Option<&Py<PyAny>>) -> PyResult<()> {
    loop {
        let finished = &mut *finished; // a receiver may move to another thread, but not be shared with one
        match py.detach(move || finished.recv_timeout(ATTENTION)) {
            Ok(row) => on_done.map_or(Ok(()), |on_done| on_done.call1(py, row).map(drop))?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        py.check_signals()?;
    }
}

fn to_json(row: &Row) -> String {
    serde_json::to_string(row).expect("a row is plain data")
}
