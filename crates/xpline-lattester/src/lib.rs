//! The LATTester experiments as data, their op streams, and the rule by which they are measured.
//!
//! A [`Point`] says what to measure, [`run_point`] measures it on a platform, and a [`Row`] holds what came out:
//!
//! ```
//! use xpline_lattester::{Point, run_point};
//! use xpline_model::Platform;
//!
//! let platform = Platform::builtin("optane-ni").unwrap();
//! let point = Point::parse(r#"{"experiment": "random", "op": "ntstore", "size": 64, "threads": 1}"#).unwrap();
//! point.check(&platform).unwrap();
//! let row = run_point(&platform, &point, &Default::default()).unwrap();
//! assert!(row.traffic.ewr.unwrap() < 0.3, "64 B of each 256 B line that the media write were asked for");
//! ```

#![forbid(unsafe_code)]

mod check;
mod parts;
mod point;
mod rng;
mod row;
mod runner;
mod samples;
mod stats;
mod stream;
mod workload;

pub use check::read_points;
pub use parts::Part;
pub use point::{
    Align, Binding, Buffer, Chase, Experiment, Flush, Latency, Loaded, Mix, Op, Order, Pattern, PersistLatency, Point,
    PointError, Random, Ratio, Replacement, Stride, Tail, Wear, XpBuffer,
};
pub use rng::Rng;
pub use row::{Row, Settings};
pub use runner::{run_point, run_points};
pub use samples::{Mark, Samples};
pub use stream::{Places, Stream, WorkloadThread, streams, workload_threads};
pub use workload::{Group, Mode, Place, Step, StepOp, Workload};
