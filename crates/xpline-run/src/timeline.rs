//! Traffic over time, in bounded memory: bins that double their width when there are too many.

use serde::Serialize;
use xpline_model::{Counters, MICROSECOND, Time};

use crate::access::LINE;

/// The most bins; half of them are left when there are more.
const MOST: usize = 512;

/// Traffic of a span of time, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bin {
    pub imc_read: u64,
    pub imc_written: u64,
    pub media_read: u64,
    pub media_written: u64,
    /// Of each DIMM: what its controllers read and wrote.
    pub dimms: Vec<u64>,
}

impl Bin {
    fn of(counters: &Counters) -> Self {
        let total = counters.dimm_total();
        Self {
            imc_read: total.reads * LINE,
            imc_written: total.writes * LINE,
            media_read: total.media_reads * counters.media_line_bytes,
            media_written: total.media_writes * counters.media_line_bytes,
            dimms: counters
                .dimms
                .iter()
                .map(|dimm| (dimm.reads + dimm.writes) * LINE)
                .collect(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.imc_read += other.imc_read;
        self.imc_written += other.imc_written;
        self.media_read += other.media_read;
        self.media_written += other.media_written;
        for (mine, theirs) in self.dimms.iter_mut().zip(&other.dimms) {
            *mine += theirs;
        }
    }
}

pub struct Timeline {
    bins: Vec<Bin>,
    width: Time,
    last: Counters,
}

impl Timeline {
    pub fn new(start: Counters) -> Self {
        Self {
            bins: Vec::new(),
            width: 10 * MICROSECOND,
            last: start,
        }
    }

    /// Whether a bin is over.
    pub fn is_due(&self, now: Time) -> bool {
        now - self.last.time >= self.width
    }

    /// The bin that ends at these counters.
    pub fn add(&mut self, now: Counters) {
        let bin = Bin::of(&now.since(&self.last));
        self.last = now;
        self.bins.push(bin);
        if self.bins.len() > MOST {
            let (pairs, rest) = self.bins.as_chunks::<2>();
            let halved = pairs.iter().map(|[first, second]| {
                let mut both = first.clone();
                both.add(second);
                both
            });
            self.bins = halved.chain(rest.iter().cloned()).collect();
            self.width *= 2;
        }
    }

    pub fn finish(self) -> (Vec<Bin>, Time) {
        (self.bins, self.width)
    }
}
