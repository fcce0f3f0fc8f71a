//! What a program would have asked, had it been mended: changes to its op streams, to be run again.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use xpline_model::{OpKind, Platform};

use crate::access::{Access, Chunk, LINE, Site, Thread, is_flush};
use crate::feed::Source;
use crate::shadow::{Shadow, State};

/// A change to an op stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// Stores of these sites go past the caches, and the flushes of their lines are gone.
    NtStores {
        stores: HashSet<Site>,
        flushes: HashSet<Site>,
    },
    /// ntstores of these sites go through the caches, and a clwb of each line follows.
    CachedStores { stores: HashSet<Site> },
    /// A line that these sites stored to is flushed as soon as the thread stores to another; the flushes named are gone.
    FlushSoon {
        stores: HashSet<Site>,
        flushes: HashSet<Site>,
    },
    /// clflush and clflushopt of these sites are clwb.
    Clwb { flushes: HashSet<Site> },
    /// Flushes of these sites that send nothing are gone.
    DropNeedlessFlushes { flushes: HashSet<Site> },
    /// Fences of these sites that order nothing are gone.
    DropEmptyFences { fences: HashSet<Site> },
    /// What these sites write goes one line after another into a log, whatever its address was.
    Pack { stores: HashSet<Site> },
    /// The chunks of each stripe over the DIMMs change places, by a hash of the stripe.
    SpreadDimms,
    /// The lines of each 4 KiB page are turned by a hash of the page, 256 B at a time.
    ColourPages,
}

/// A source with a change made to it.
pub struct Changed<S> {
    source: S,
    change: Change,
    dimms: u64,
    granularity: u64,
    shadow: Shadow,
    threads: HashMap<Thread, Remembered>,
    packed: HashMap<u64, u64>,
    next_packed: u64,
}

/// What is remembered of a thread.
#[derive(Default)]
struct Remembered {
    /// The line that was stored to last and has not been flushed: its address, and by whom.
    open: Option<(u64, Site)>,
    last_packed: Option<u64>,
    unordered: bool,
}

/// Where a packed log begins: beyond what placement reaches soon.
const LOG: u64 = 64 << 30;

impl<S: Source> Changed<S> {
    pub fn new(source: S, change: Change, platform: &Platform) -> Self {
        Self {
            source,
            change,
            dimms: u64::from(platform.interleave.dimms),
            granularity: platform.interleave.granularity,
            shadow: Shadow::default(),
            threads: HashMap::new(),
            packed: HashMap::new(),
            next_packed: LOG,
        }
    }

    fn apply(&mut self, thread: Thread, access: Access, out: &mut Vec<Access>) {
        let state = self.threads.entry(thread).or_default();
        let site = access.site;
        let is_write = matches!(access.kind, OpKind::Store | OpKind::NtStore);
        let flush = is_flush(access.kind);
        let gone = Access {
            kind: OpKind::Compute,
            address: 0,
            size: 0,
            ..access
        };
        match &self.change {
            Change::NtStores { stores, flushes } => {
                out.push(if access.kind == OpKind::Store && stores.contains(&site) {
                    Access {
                        kind: OpKind::NtStore,
                        ..access
                    }
                } else if flush && flushes.contains(&site) {
                    gone
                } else {
                    access
                })
            }
            Change::CachedStores { stores } if access.kind == OpKind::NtStore && stores.contains(&site) => {
                close(state, access.address, out);
                out.push(Access {
                    kind: OpKind::Store,
                    ..access
                });
                // One line at a time: the last piece may go on in the next access.
                for (address, _) in access.pieces() {
                    close(state, address, out);
                    state.open = Some((address & !(LINE - 1), site));
                }
            }
            Change::FlushSoon { stores, flushes } => {
                if is_write {
                    close(state, access.address, out);
                }
                out.push(if flush && flushes.contains(&site) { gone } else { access });
                if access.kind == OpKind::Store && stores.contains(&site) {
                    for (address, _) in access.pieces() {
                        close(state, address, out);
                        state.open = Some((address & !(LINE - 1), site));
                    }
                } else if !flush && !is_write && access.kind != OpKind::Load {
                    close(state, u64::MAX, out);
                }
            }
            Change::CachedStores { .. } => {
                if access.kind != OpKind::Load {
                    close(state, u64::MAX, out);
                }
                out.push(access);
            }
            Change::Clwb { flushes } => out.push(if flush && flushes.contains(&site) {
                Access {
                    kind: OpKind::Clwb,
                    ..access
                }
            } else {
                access
            }),
            Change::DropNeedlessFlushes { flushes } => {
                let mut sends = false;
                for (address, _) in access.pieces() {
                    if is_write || access.kind == OpKind::LockedRmw {
                        self.shadow.line(address).state = if access.kind == OpKind::NtStore {
                            State::Past
                        } else {
                            State::Dirty
                        };
                    } else if flush {
                        let line = self.shadow.line(address);
                        sends |= line.state == State::Dirty;
                        line.state = State::Flushed;
                    }
                }
                out.push(if flush && !sends && flushes.contains(&site) {
                    gone
                } else {
                    access
                });
            }
            Change::DropEmptyFences { fences } => {
                let empty = access.kind == OpKind::Sfence && !state.unordered;
                if flush || access.kind == OpKind::NtStore {
                    state.unordered = true;
                } else if matches!(access.kind, OpKind::Sfence | OpKind::Mfence) {
                    state.unordered = false;
                }
                out.push(if empty && fences.contains(&site) { gone } else { access });
            }
            Change::Pack { stores } => {
                if !(is_write && stores.contains(&site) || flush) {
                    out.push(access);
                    return;
                }
                let mut instructions = access.instructions;
                for (address, size) in access.pieces() {
                    let line = address & !(LINE - 1);
                    let place = if is_write && state.last_packed != Some(line) {
                        state.last_packed = Some(line);
                        self.next_packed += LINE;
                        self.packed.insert(line, self.next_packed - LINE);
                        self.next_packed - LINE
                    } else {
                        self.packed.get(&line).copied().unwrap_or(line)
                    };
                    out.push(Access {
                        address: place + address % LINE,
                        size,
                        instructions: std::mem::take(&mut instructions),
                        ..access
                    });
                }
            }
            Change::SpreadDimms => self.moved(
                access,
                |changed, address| {
                    let chunk = address / changed.granularity;
                    let (stripe, place) = (chunk / changed.dimms, chunk % changed.dimms);
                    let chunk = stripe * changed.dimms + (place + spread(stripe)) % changed.dimms;
                    chunk * changed.granularity + address % changed.granularity
                },
                out,
            ),
            Change::ColourPages => self.moved(
                access,
                |_, address| {
                    let page = address / 4096;
                    page * 4096 + (address + 256 * spread(page)) % 4096
                },
                out,
            ),
        }
    }

    /// Move an access line by line.
    fn moved(&self, access: Access, place: impl Fn(&Self, u64) -> u64, out: &mut Vec<Access>) {
        if access.address == 0 && access.size == 0 {
            out.push(access);
            return;
        }
        let mut instructions = access.instructions;
        for (address, size) in access.pieces() {
            out.push(Access {
                address: place(self, address),
                size,
                instructions: std::mem::take(&mut instructions),
                ..access
            });
        }
    }
}

/// Flush the open line of a thread if `address` is in another.
fn close(state: &mut Remembered, address: u64, out: &mut Vec<Access>) {
    if let Some((line, site)) = state.open
        && line != address & !(LINE - 1)
    {
        state.open = None;
        out.push(Access {
            kind: OpKind::Clwb,
            address: line,
            size: 1,
            instructions: 1,
            site,
        });
    }
}

/// A number that looks random and is the same for the same input.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

impl<S: Source> Iterator for Changed<S> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let chunk = self.source.next()?;
        let mut accesses = Vec::with_capacity(chunk.accesses.len());
        for access in chunk.accesses {
            self.apply(chunk.thread, access, &mut accesses);
        }
        if chunk.last
            && let Some(mut state) = self.threads.remove(&chunk.thread)
        {
            close(&mut state, u64::MAX, &mut accesses);
        }
        Some(Chunk { accesses, ..chunk })
    }
}
