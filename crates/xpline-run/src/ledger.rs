//! The books of a run: what each site did, and what of the machine's time and traffic goes to its account.

use std::collections::{BTreeMap, BTreeSet};

use xpline_model::platform::Memory;
use xpline_model::{FetchedFrom, MediaWrite, Modulus, OpKind, Platform, Time};

use crate::access::{LINE, Site};
use crate::facts::{CAUSES, Cause, Facts};
use crate::order::{Order, small};
use crate::place::PAGE;
use crate::shadow::{Shadow, State};

/// Flushed lines one after another from which on ntstores pay: FAST'20, section 5.2, 512 B.
pub const LONG_RUN_LINES: u64 = 8;

/// ntstores one after another below which they do not pay: FAST'20, section 5.2, 256 B.
pub const SHORT_NT_RUN: u64 = 256;

/// Bytes of stores after which a flush comes late: FAST'20, section 5.2, 8 MiB.
const LATE: u64 = 8 << 20;

/// Books of all cores.
pub struct Ledger {
    pub sites: Vec<Facts>,
    /// All time of all threads by cause, in ps.
    pub time_ps: [u64; CAUSES.len()],
    pub dimms: Vec<DimmFacts>,
    /// Pages of 2 MiB of which lines were flushed or written past the caches.
    pub persisted: BTreeSet<u64>,
    shadow: Shadow,
    /// Who flushed lines of whom.
    writers: BTreeMap<(Site, Site), u64>,
    stored_lines: u32,
    order: Order,
    /// There and back, without waiting.
    link: Time,
    /// The least latency of what came from where, beyond the link.
    least: [Time; 3],
    /// Whether the machine tells of media writes; if not, every write reaches the medium as it is.
    told: bool,
    line_bytes: u64,
    /// Chunks of interleaving go round the DIMMs: bytes of one, as a shift.
    chunk_shift: u32,
    by_dimm: Modulus,
}

/// Who wrote to a DIMM, slice by slice.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct DimmFacts {
    /// Slices in which anybody wrote, and the threads that did, summed over them.
    pub slices: u64,
    pub writers: u64,
    #[serde(skip)]
    now: u64,
}

impl Ledger {
    pub fn new(platform: &Platform) -> Self {
        let is_remote = platform.nodes.cpu != platform.nodes.memory;
        let sockets = if is_remote { 2 * platform.link.latency } else { 0 };
        Self {
            sites: Vec::new(),
            time_ps: [0; CAUSES.len()],
            dimms: vec![DimmFacts::default(); platform.interleave.dimms as usize],
            persisted: BTreeSet::new(),
            shadow: Shadow::default(),
            writers: BTreeMap::new(),
            stored_lines: 0,
            order: Order::default(),
            link: platform.mesh.request + platform.mesh.response + sockets,
            least: [Time::MAX; 3],
            told: matches!(platform.memory, Memory::Optane(_)),
            line_bytes: platform.media_line_bytes(),
            chunk_shift: platform.interleave.granularity.trailing_zeros(),
            by_dimm: Modulus::new(platform.interleave.dimms.into()),
        }
    }

    #[inline]
    pub fn site(&mut self, site: Site) -> &mut Facts {
        let index = site as usize;
        if index >= self.sites.len() {
            self.sites.resize_with(index + 1, || Facts {
                lowest: u64::MAX,
                ..Facts::default()
            });
        }
        &mut self.sites[index]
    }

    /// A line will be looked up soon.
    #[inline]
    pub fn expect(&self, address: u64) {
        self.shadow.expect(address);
    }

    /// Who wrote the line of an address last.
    #[inline]
    pub fn writer(&self, address: u64) -> Option<Site> {
        self.shadow.known(address)?.writer()
    }

    /// A site spent time for a cause.
    #[inline]
    pub fn spend(&mut self, site: Site, cause: Cause, time: Time) {
        self.time_ps[cause as usize] += time;
        self.site(site).time_ps[cause as usize] += time;
    }

    /// A site went through instructions, which took so long.
    #[inline]
    pub fn compute(&mut self, site: Site, instructions: u32, time: Time) {
        self.time_ps[Cause::Compute as usize] += time;
        let facts = self.site(site);
        facts.instructions += u64::from(instructions);
        facts.time_ps[Cause::Compute as usize] += time;
    }

    /// A site waited for a line that took `latency` to come: the wait goes to the causes in the proportions of the latency.
    ///
    /// What is above the least latency seen so far of lines from there is time in queues.
    pub fn spend_on_fetch(&mut self, site: Site, from: FetchedFrom, latency: Time, wait: Time) {
        let cause = match from {
            FetchedFrom::Cache => return self.spend(site, Cause::Cache, wait),
            FetchedFrom::Buffer => Cause::Buffer,
            FetchedFrom::Media => Cause::Media,
        };
        let beyond = latency.saturating_sub(self.link);
        let least = &mut self.least[from as usize];
        *least = beyond.min(*least);
        let device = *least;
        let whole = latency.max(1);
        let part = |time: Time| match wait.checked_mul(time) {
            Some(product) => product / whole,
            None => (u128::from(wait) * u128::from(time) / u128::from(whole)) as Time,
        };
        let (link, device) = (part(self.link.min(latency)), part(device));
        self.spend(site, Cause::Link, link);
        self.spend(site, cause, device);
        self.spend(site, Cause::Queue, wait - link - device);
    }

    /// A site fetched a line from the medium.
    #[inline]
    pub fn fetched(&mut self, site: Site) {
        let bytes = self.line_bytes;
        self.site(site).media_read_bytes += bytes;
    }

    pub fn load(&mut self, site: Site, bytes: u32) {
        let facts = self.site(site);
        facts.loads += 1;
        facts.load_bytes += u64::from(bytes);
    }

    /// A piece of a store, ntstore or locked op, inside one line.
    pub fn write(&mut self, thread: u32, site: Site, kind: OpKind, address: u64, bytes: u32) {
        let dimm = self.by_dimm.of(address >> self.chunk_shift) as usize;
        self.dimms[dimm].now |= 1 << (thread % 64);
        // Nothing of the medium's line was written before.
        let first = self
            .shadow
            .is_untouched(address & !(self.line_bytes - 1), self.line_bytes);
        let stored_lines = &mut self.stored_lines;
        let line = self.shadow.line(address);
        if kind == OpKind::NtStore {
            line.state = State::Past;
        } else if line.state != State::Dirty {
            line.state = State::Dirty;
            line.stored_at = *stored_lines;
            line.written = 0;
            *stored_lines = stored_lines.wrapping_add(1);
        }
        line.stores = self.order.stored();
        line.thread = small(thread);
        line.mark(address, bytes);
        line.set_writer(site);
        line.locked = kind == OpKind::LockedRmw;
        if kind == OpKind::NtStore {
            self.order.flushed(line.thread, line.stores, site);
        }
        let facts = self.site(site);
        match kind {
            OpKind::NtStore => {
                facts.ntstores += 1;
                facts.ntstore_bytes += u64::from(bytes);
            }
            OpKind::LockedRmw => facts.locked += 1,
            _ => {
                facts.stores += 1;
                facts.store_bytes += u64::from(bytes);
            }
        }
        facts.page_slots[(address % 4096 / 256) as usize] += 1;
        facts.lines_touched += u64::from(first);
        facts.lowest = facts.lowest.min(address);
        facts.highest = facts.highest.max(address + u64::from(bytes));
    }

    /// An ntstore left its core.
    pub fn combined(&mut self, site: Site) {
        self.written_as_is(site);
    }

    fn written_as_is(&mut self, site: Site) {
        if !self.told {
            let facts = self.site(site);
            facts.media_written_bytes += LINE;
            facts.pieces_written += 1;
        }
    }

    /// A flush; returns whether it sent a line every byte of which had been stored.
    pub fn flush(&mut self, thread: u32, site: Site, kind: OpKind, address: u64) -> bool {
        let stored_lines = self.stored_lines;
        let line = self.shadow.line(address);
        let (state, whole) = (line.state, line.is_whole());
        let age = u64::from(stored_lines.wrapping_sub(line.stored_at)) * LINE;
        let writer = line.writer();
        if let (State::Dirty, Some(writer), false) = (state, writer, line.locked)
            && line.thread == small(thread)
        {
            self.order.judge(line.thread, line.stores, writer);
            self.order.flushed(line.thread, line.stores, writer);
        }
        line.state = if state == State::Untouched {
            state
        } else {
            State::Flushed
        };
        line.written = 0;
        let facts = self.site(site);
        facts.flushes += 1;
        facts.clflushes += u64::from(kind == OpKind::Clflush);
        facts.clflushopts += u64::from(kind == OpKind::ClflushOpt);
        match state {
            State::Untouched | State::Past => facts.clean_flushes += 1,
            State::Flushed => facts.double_flushes += 1,
            State::Dirty => {
                facts.late_lines += u64::from(age >= LATE);
                if let Some(writer) = writer {
                    self.site(writer).lines_flushed += 1;
                    *self.writers.entry((site, writer)).or_default() += 1;
                    self.written_as_is(writer);
                }
            }
        }
        state == State::Dirty && whole
    }

    /// A thread's fence, or locked operation.
    #[inline]
    pub fn fence(&mut self, thread: u32) {
        self.order.fenced(small(thread));
    }

    /// What the media wrote goes to those who wrote it last.
    pub fn media_wrote(&mut self, write: MediaWrite) {
        let pieces = u64::from(write.pieces.count_ones());
        let whole = pieces * LINE == self.line_bytes;
        let mut left = write.pieces;
        while left != 0 {
            let piece = u64::from(left.trailing_zeros());
            left &= left - 1;
            let Some(line) = self.shadow.known(write.address + piece * LINE) else {
                continue;
            };
            let (writer, evicted) = (line.writer(), line.state == State::Dirty);
            let bytes = self.line_bytes / pieces;
            if let Some(writer) = writer {
                let facts = self.site(writer);
                facts.pieces_written += 1;
                facts.media_written_bytes += bytes;
                facts.partial_written_bytes += if whole { 0 } else { bytes };
                facts.evicted_written_bytes += if evicted { bytes } else { 0 };
            }
        }
    }

    /// A slice of time is over.
    pub fn end_slice(&mut self) {
        for dimm in &mut self.dimms {
            let writers = std::mem::take(&mut dimm.now).count_ones();
            dimm.slices += u64::from(writers > 0);
            dimm.writers += u64::from(writers);
        }
    }

    /// The run is over: what nobody flushed is known.
    pub fn close(&mut self) {
        let mut unflushed: BTreeMap<(Site, u64), u64> = BTreeMap::new();
        for (address, lines) in self.shadow.pages() {
            let page = address / PAGE;
            let mut add = |(writer, lines)| {
                if let (Some(writer), 1..) = (writer, lines) {
                    *unflushed.entry((writer, page)).or_default() += lines;
                }
            };
            let mut persisted = false;
            let mut in_a_row = (None, 0);
            for line in lines {
                persisted |= matches!(line.state, State::Flushed | State::Past);
                // Which lines are dirty is up to chance, who wrote them seldom changes: one branch, for the latter.
                let dirty = (line.state == State::Dirty) & !line.locked;
                let goes_on = line.writer() == in_a_row.0;
                if dirty & !goes_on {
                    add(in_a_row);
                    in_a_row = (line.writer(), 0);
                }
                in_a_row.1 += u64::from(dirty);
            }
            add(in_a_row);
            if persisted {
                self.persisted.insert(page);
            }
        }
        for ((site, page), lines) in unflushed {
            self.site(site).unflushed.push((page, lines));
        }
        for ((flusher, writer), lines) in std::mem::take(&mut self.writers) {
            self.site(flusher).writers.push((writer, lines));
        }
        for ((site, by), overtaken) in std::mem::take(&mut self.order.overtaken) {
            self.site(site).overtaken.push((by, overtaken.once, overtaken.more));
        }
        for facts in &mut self.sites {
            facts
                .writers
                .sort_by_key(|&(site, lines)| (std::cmp::Reverse(lines), site));
            facts.writers.truncate(8);
            if facts.highest == 0 {
                facts.lowest = 0;
            }
        }
    }
}
