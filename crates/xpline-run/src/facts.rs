//! What is known of each site at the end: what it did, what it cost, and what the rules want to know.

use serde::Serialize;

use crate::access::Site;

/// What a thread's time went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Cause {
    /// Instructions between memory ops, and the issue of ops.
    Compute = 0,
    /// Hits in the caches that came too late.
    Cache = 1,
    /// The way between core and memory controller.
    Link = 2,
    /// Data in a buffer of the DIMM.
    Buffer = 3,
    /// Data on the medium.
    Media = 4,
    /// Waiting behind other requests: for buffers of the core, for pending queues.
    Queue = 5,
    /// Waiting at a fence, or for the order that a locked op demands.
    Fence = 6,
}

/// Names of the causes, in their order.
pub const CAUSES: [&str; 7] = ["compute", "cache", "link", "buffer", "media", "queue", "fence"];

macro_rules! facts {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
            /// Time by cause, in ps.
            pub time_ps: [u64; CAUSES.len()],
            /// 64 B writes by the quarter KiB of their 4 KiB page.
            pub page_slots: [u64; 16],
            /// Lines that this site wrote last and nobody flushed before the end, by 2 MiB page of the platform; without those last
            /// written by a locked operation, which are locks and counters.
            pub unflushed: Vec<(u64, u64)>,
            /// Who wrote the lines that this site flushed: (site, lines), the one with the most first.
            pub writers: Vec<(Site, u64)>,
            /// Lines that this site wrote last, and that were flushed only when lines stored to later had been made persistent: by
            /// whose store they were overtaken first, how often by that alone, and how often by more.
            pub overtaken: Vec<(Site, u64, u64)>,
        }
    };
}

facts! {
    /// One site.
    pub struct Facts {
        instructions,
        loads,
        load_bytes,
        stores,
        store_bytes,
        ntstores,
        ntstore_bytes,
        flushes,
        /// Flushes by clflush, which waits for each line, or clflushopt, which drops it.
        clflushes,
        clflushopts,
        fences,
        locked,
        /// Fences with nothing of tracked memory flushed or written past the caches since the one before.
        empty_fences,
        /// Flushes of lines that were flushed already and not written since.
        double_flushes,
        /// Flushes of lines that were never written while traced, or were last written past the caches.
        clean_flushes,
        /// Flushed lines whose stores covered every byte, in runs of at least 8 lines one after another.
        long_run_lines,
        /// Runs of flushed lines.
        flush_runs,
        /// Lines that this site wrote last and somebody flushed.
        lines_flushed,
        /// Flushed lines that were stored to at least 8 MiB of stores before.
        late_lines,
        /// Runs of ntstores one after another, and those of less than 256 B.
        nt_runs,
        short_nt_runs,
        /// Lines of 256 B (64 B on DRAM) that loads and stores of this site fetched from the medium, in bytes.
        media_read_bytes,
        /// Bytes written to the medium for what this site had stored.
        media_written_bytes,
        /// Of these, for lines written with pieces missing.
        partial_written_bytes,
        /// Of these, for lines that nobody had flushed: the caches gave them up.
        evicted_written_bytes,
        /// 64 B pieces of this site's data that reached the medium.
        pieces_written,
        /// XPLines that this site wrote to first.
        lines_touched,
        /// Lowest and highest address that this site wrote.
        lowest,
        highest,
    }
}

impl Facts {
    /// All time of the site but computing, in ps.
    pub fn memory_ps(&self) -> u64 {
        self.time_ps[1..].iter().sum()
    }
}
