//! The Python extension of xpline; thin.

mod host;
mod platform;
mod points;
mod runs;
mod traces;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pyo3::create_exception!(
    xpline,
    XplineError,
    PyValueError,
    "Bad input: what was wrong, where, and what is allowed."
);

/// An error that the user can mend.
fn bad_input(error: impl std::error::Error) -> PyErr {
    XplineError::new_err(error.to_string())
}

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::XplineError;
    #[pymodule_export]
    use super::host::Host;
    #[pymodule_export]
    use super::platform::Platform;
    #[pymodule_export]
    use super::points::{check_points, run_points};
    #[pymodule_export]
    use super::runs::{recorded_about, run_program, run_recorded, sample_recorded, write_recording};
    #[pymodule_export]
    use super::traces::{convert_trace, replay_trace, trace_info};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
