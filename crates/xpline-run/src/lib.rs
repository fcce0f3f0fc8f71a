//! Programs on the modelled memory: their op streams drive the machine, and costs go to source lines.

#![forbid(unsafe_code)]

mod access;
pub mod change;
mod combine;
mod core;
mod facts;
mod feed;
mod ledger;
mod live;
mod order;
mod place;
mod recent;
mod record;
mod run;
mod shadow;
mod sites;
mod symbols;
mod timeline;
mod translate;

pub use access::{Access, Chunk, LINE, Site, Thread};
pub use change::{Change, Changed};
pub use facts::{CAUSES, Cause, Facts};
pub use feed::Source;
pub use live::{Control, Ended, Live, LiveError, Program, run_live};
pub use record::{About, RecordError, Recorder, Recording};
pub use run::{CounterTotals, DimmOutcome, Outcome, run, run_sampled};
pub use sites::{Frame, Named, Origin, Sites, Stack};
pub use symbols::name_sites;
pub use translate::{Totals, Translator};
