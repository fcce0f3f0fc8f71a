//! Platforms, loaded and checked.

use pyo3::prelude::*;

use crate::bad_input;

/// A memory system, loaded and checked.
#[pyclass(frozen, module = "xpline._native")]
pub struct Platform(pub xpline_model::Platform);

/// Key, value, source, origin, meaning.
type Entry = (String, String, Option<String>, String, String);

#[pymethods]
impl Platform {
    #[staticmethod]
    #[pyo3(signature = (name_or_path, overrides = vec![]))]
    fn load(name_or_path: &str, overrides: Vec<String>) -> PyResult<Self> {
        let read = |path: &str| std::fs::read_to_string(path);
        xpline_model::Platform::load(name_or_path, &overrides, &read)
            .map(Self)
            .map_err(bad_input)
    }

    #[staticmethod]
    fn names() -> Vec<String> {
        xpline_model::Platform::builtin_names()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.0.description
    }

    #[getter]
    fn cores(&self) -> u32 {
        self.0.core.count
    }

    fn show(&self) -> Vec<Entry> {
        let entries = self.0.describe().iter().cloned();
        entries
            .map(|entry| {
                (
                    entry.key,
                    entry.value,
                    entry.source,
                    entry.origin.to_string(),
                    entry.about,
                )
            })
            .collect()
    }
}
