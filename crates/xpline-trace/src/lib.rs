//! Memory traces: formats in and out, and their replay on the model.
//!
//! A [`Trace`] reads any [`Format`], plain or compressed, batch by batch; [`convert`] writes another; [`replay`] runs
//! the trace on a platform. Memory stays bounded however long the trace is.
//!
//! ```
//! use xpline_model::Platform;
//! use xpline_trace::{Input, Options, Trace, replay_trace};
//!
//! let lines = std::io::Cursor::new("0x1000 READ 0\n0x2000 WRITE 4\n");
//! let options = Options::default().replay()?;
//! let trace = Trace::new(Input::new("two.trace", Box::new(lines))?, &options.read)?;
//! let platform = Platform::builtin("optane").unwrap();
//! let row = replay_trace(&platform, trace, &options, &Default::default())?.unwrap();
//! assert_eq!((row.settings.format, row.reads, row.writes), ("dramsim3", 1, 1));
//! assert!(row.time_ns > 100.0, "a read of the media takes over 100 ns");
//! # Ok::<(), xpline_trace::TraceError>(())
//! ```

#![forbid(unsafe_code)]

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
pub use replay::{ADDRESSES, IN_FLIGHT, ReplayOptions, ReplayRow, ReplaySettings, ThreadsMap, replay, replay_trace};
pub use trace::{ReadOptions, Trace};
