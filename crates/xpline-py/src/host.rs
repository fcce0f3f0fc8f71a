//! The memory of the host: points in, rows out, as for a platform.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use pyo3::prelude::*;
use xpline_host::{Environment, Options};

use crate::bad_input;
use crate::points::listen;

/// A target on this machine, with the options that it is measured with; both checked.
#[pyclass(frozen, module = "xpline._native")]
pub struct Host(xpline_host::Host);

#[pymethods]
impl Host {
    #[new]
    #[pyo3(signature = (target, options = "{}"))]
    fn new(target: &str, options: &str) -> PyResult<Self> {
        let options: Options = serde_json::from_str(options).map_err(bad_input)?;
        xpline_host::Host::new(target, options).map(Self).map_err(bad_input)
    }

    #[getter]
    fn cpus(&self) -> u32 {
        self.0.cpus()
    }

    fn check_points(&self, points: Vec<String>) -> PyResult<()> {
        self.0.read_points(&points).map(drop).map_err(bad_input)
    }

    /// The measurement runs on other threads; this one hands finished rows to `on_done`, and looks for Ctrl-C.
    #[pyo3(signature = (points, on_done = None))]
    fn run_points(&self, py: Python<'_>, points: Vec<String>, on_done: Option<Py<PyAny>>) -> PyResult<Vec<String>> {
        let points = self.0.read_points(&points).map_err(bad_input)?;
        let stop = AtomicBool::new(false);
        let (done, mut finished) = mpsc::channel();
        thread::scope(|scope| {
            let stop = &stop;
            let sweep = scope.spawn(move || {
                let done = move |index, row: &_| drop(done.send((index, to_json(row))));
                self.0.run(&points, stop, done)
            });
            let heard = listen(py, &mut finished, on_done.as_ref());
            stop.store(heard.is_err(), Ordering::Relaxed);
            let rows = py
                .detach(|| sweep.join())
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            heard?;
            let rows = rows.map_err(bad_input)?;
            Ok(rows.iter().flatten().map(to_json).collect())
        })
    }

    /// This machine, as a JSON object.
    #[staticmethod]
    fn environment() -> String {
        Environment::read().to_json()
    }
}

fn to_json(row: &xpline_host::Row) -> String {
    serde_json::to_string(row).expect("a row is plain data")
}
