//! Memory traces: formats in and out, and their replay on the model.
//!
//! A [`Trace`] reads any [`Format`], plain or compressed, batch by batch; [`convert`] writes another; [`replay`] runs
//! the trace on a platform. Memory stays bounded however long the trace is.

mod ahead;
mod convert;
mod error;
mod format;
mod info;
mod input;
mod options;
mod record;
mod replay;
mod text;
mod trace;

pub use convert::{ConvertOptions, Converted, convert, encode};
pub use error::{Place, TraceError};
pub use format::{Format, Geometry};
pub use info::{TraceInfo, info};
pub use input::{Input, Progress};
pub use options::Options;
pub use record::{Header, LINE, Level, Record, has_address, kind_name};
pub use replay::{ADDRESSES, IN_FLIGHT, ReplayOptions, ReplayRow, ThreadsMap, replay, replay_trace};
pub use trace::{ReadOptions, Trace};
