//! The LATTester experiments on the real memory of the host: no root, any Linux on x86-64.
//!
//! ```no_run
//! use xpline_host::{Host, Options};
//!
//! let host = Host::new("host", Options { span: 64 << 20, ..Options::default() })?;
//! let points = host.read_points(&[r#"{"experiment": "random", "op": "load", "size": 256, "threads": 1}"#])?;
//! for row in host.run(&points, &Default::default(), |_, _| {})?.unwrap() {
//!     println!("{:?} MiB/s, {} repeats, {:?}", row.bandwidth_mib_s, row.repeats, row.noise);
//! }
//! # Ok::<(), xpline_host::HostError>(())
//! ```
//!
//! A point becomes a [`plan`](mod@kernel): a [`kernel::Kernel`] that is assembled for the instruction set that was chosen, and the
//! memory of each thread. A team of pinned threads runs it in windows, until the median of the windows is known well enough.

mod block;
mod clock;
mod counters;
mod cpu;
mod dmi;
mod environment;
mod error;
mod faults;
pub mod kernel;
#[cfg(test)]
mod machine_code;
mod memory;
mod native;
mod options;
mod plan;
mod row;
mod run;
mod stats;
mod tally;
mod team;
mod workload;

pub use environment::Environment;
pub use error::HostError;
pub use options::{Options, Pages, Target};
pub use row::Row;
pub use run::Host;
