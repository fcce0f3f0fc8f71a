//! A core at work: accesses become ops of the machine, and the machine's word on its time goes to the books.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use xpline_model::{Fetch, FetchedFrom, NANOSECOND, Op, OpKind, Program, Time, Wait};

use crate::access::{Access, LINE, Site, Thread, has_address, is_flush};
use crate::combine::{Combined, Combiner};
use crate::facts::Cause;
use crate::feed::{Feed, Next, Source};
use crate::ledger::{LONG_RUN_LINES, Ledger, SHORT_NT_RUN};
use crate::recent::Recent;

/// Time that a waiting core lets pass until it asks again: from the first, doubled up to the second.
const IDLE: (Time, Time) = (200 * NANOSECOND, 20_000 * NANOSECOND);

/// Accesses whose lines are looked up ahead: as many as a core of the host has misses under way.
const AHEAD: usize = 16;

/// How far a core is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Fenced,
    Stamped,
}

#[derive(Clone, Copy)]
struct Committed {
    site: Site,
    kind: OpKind,
    at: Time,
}

/// What is remembered of a fetch.
#[derive(Clone, Copy)]
struct Fetched {
    asked: Time,
    done: Time,
    site: Site,
    from: FetchedFrom,
    for_store: bool,
}

/// Rates of the platform that the books need.
#[derive(Clone, Copy)]
pub struct Rates {
    pub instruction: Time,
    pub op: Time,
    pub fill_buffers: u32,
}

pub struct CoreStream<S> {
    core: usize,
    feed: Rc<RefCell<Feed<S>>>,
    ledger: Rc<RefCell<Ledger>>,
    rates: Rates,
    batch: Vec<Access>,
    next: usize,
    /// Accesses of the batch whose lines were looked up ahead.
    foretold: usize,
    thread: Thread,
    /// Ops that the last access takes, and how many of them were given to the machine.
    ready: Vec<(Op, Site)>,
    given: usize,
    combiner: Combiner,
    stage: Stage,
    /// The site of the op pulled last.
    current: Site,
    /// Sites of ops that have not committed, oldest first.
    buffered: VecDeque<(Site, OpKind)>,
    commits: Recent<Committed>,
    fetches: Recent<Fetched>,
    wait: Time,
    /// Flushes or ntstores since the last fence.
    unordered: bool,
    flush_run: Run,
    nt_run: Run,
    pub accesses: u64,
    pub idle: Time,
    pub ended_at: Time,
}

/// Accesses of one site, one after another in memory.
#[derive(Clone, Copy, Default)]
struct Run {
    site: Site,
    end: u64,
    bytes: u64,
}

impl Run {
    /// Add a piece; returns the run that it ends, if it is not its continuation.
    fn add(&mut self, site: Site, address: u64, bytes: u64) -> Option<Self> {
        if self.bytes > 0 && self.end == address && self.site == site {
            self.end += bytes;
            self.bytes += bytes;
            return None;
        }
        let ended = std::mem::replace(
            self,
            Self {
                site,
                end: address + bytes,
                bytes,
            },
        );
        (ended.bytes > 0).then_some(ended)
    }

    fn take(&mut self) -> Option<Self> {
        let ended = std::mem::take(self);
        (ended.bytes > 0).then_some(ended)
    }
}

impl<S: Source> CoreStream<S> {
    pub fn new(core: usize, feed: &Rc<RefCell<Feed<S>>>, ledger: &Rc<RefCell<Ledger>>, rates: Rates) -> Self {
        Self {
            core,
            feed: Rc::clone(feed),
            ledger: Rc::clone(ledger),
            rates,
            batch: Vec::new(),
            next: 0,
            foretold: 0,
            thread: 0,
            ready: Vec::new(),
            given: 0,
            combiner: Combiner::new(rates.fill_buffers),
            stage: Stage::Running,
            current: 0,
            buffered: VecDeque::new(),
            commits: Recent::new(),
            fetches: Recent::new(),
            wait: IDLE.0,
            unordered: false,
            flush_run: Run::default(),
            nt_run: Run::default(),
            accesses: 0,
            idle: 0,
            ended_at: 0,
        }
    }

    /// Make ready the ops that an access takes; those before it, which touch no memory, are handed over as one op.
    fn expand(&mut self, access: Access) -> Option<Op> {
        let site = access.site;
        self.accesses += 1;
        // The instruction of the access itself is its op.
        let own = u32::from(access.kind != OpKind::Compute);
        let others = access.instructions.saturating_sub(own);
        let time = Time::from(others) * self.rates.instruction + Time::from(own) * self.rates.op;
        self.ledger.borrow_mut().compute(site, access.instructions, time);
        if access.kind != OpKind::Compute {
            self.expand_access(access);
        }
        (others > 0).then_some(Op::new(OpKind::Compute, 0, others))
    }

    fn expand_access(&mut self, access: Access) {
        let ledger = Rc::clone(&self.ledger);
        let mut ledger = ledger.borrow_mut();
        let site = access.site;
        if !has_address(access.kind) || access.kind == OpKind::LockedRmw {
            self.drain(&mut ledger);
            self.end_runs(&mut ledger);
            ledger.fence(self.thread);
        }
        match access.kind {
            OpKind::Sfence | OpKind::Mfence => {
                let facts = ledger.site(site);
                facts.fences += 1;
                facts.empty_fences += u64::from(access.kind == OpKind::Sfence && !self.unordered);
                self.unordered = false;
                self.ready.push((Op::new(access.kind, 0, 0), site));
            }
            OpKind::NtStore => {
                self.unordered = true;
                for (address, bytes) in access.pieces() {
                    ledger.write(self.thread, site, OpKind::NtStore, address, bytes);
                    if let Some(ended) = self.nt_run.add(site, address, u64::from(bytes)) {
                        end_nt_run(&mut ledger, ended);
                    }
                    if let Some(left) = self.combiner.add(address, bytes, site) {
                        self.send(&mut ledger, left);
                    }
                }
            }
            kind if is_flush(kind) => {
                self.unordered = true;
                for (address, _) in access.pieces() {
                    let line = address & !(LINE - 1);
                    if self.combiner.holds(line / LINE) {
                        self.drain(&mut ledger);
                    }
                    let whole = ledger.flush(self.thread, site, kind, line);
                    let ended = if whole {
                        self.flush_run.add(site, line, LINE)
                    } else {
                        self.flush_run.take()
                    };
                    if let Some(ended) = ended {
                        end_flush_run(&mut ledger, ended);
                    }
                    self.ready.push((Op::new(kind, line, LINE as u32), site));
                }
            }
            kind => {
                for (address, bytes) in access.pieces() {
                    if !self.combiner.is_empty() && self.combiner.holds(address / LINE) {
                        self.drain(&mut ledger);
                    }
                    if kind == OpKind::Load {
                        ledger.load(site, bytes);
                    } else {
                        ledger.write(self.thread, site, kind, address, bytes);
                    }
                    self.ready.push((Op::new(kind, address, bytes), site));
                }
            }
        }
    }

    fn send(&mut self, ledger: &mut Ledger, left: Combined) {
        ledger.combined(left.site);
        self.ready
            .push((Op::new(OpKind::NtStore, left.address, left.bytes), left.site));
    }

    /// Everything in the write-combining buffers goes.
    fn drain(&mut self, ledger: &mut Ledger) {
        if self.combiner.is_empty() {
            return;
        }
        let left: Vec<Combined> = self.combiner.drain().collect();
        left.into_iter().for_each(|left| self.send(ledger, left));
    }

    fn end_runs(&mut self, ledger: &mut Ledger) {
        if let Some(ended) = self.nt_run.take() {
            end_nt_run(ledger, ended);
        }
        if let Some(ended) = self.flush_run.take() {
            end_flush_run(ledger, ended);
        }
    }

    /// The next batch of accesses, or an op that lets time pass; `None` at the end.
    fn ask(&mut self) -> Option<Op> {
        let next = self.feed.borrow_mut().next(self.core);
        match next {
            Next::Accesses(thread, batch) => {
                self.thread = thread;
                self.batch = batch;
                self.next = 0;
                self.foretold = 0;
                self.wait = IDLE.0;
                None
            }
            Next::Wait => {
                let wait = self.wait;
                self.wait = (2 * wait).min(IDLE.1);
                self.idle += wait;
                Some(Op::compute_for(1, wait))
            }
            Next::End => {
                let ledger = Rc::clone(&self.ledger);
                let mut ledger = ledger.borrow_mut();
                self.drain(&mut ledger);
                self.end_runs(&mut ledger);
                self.ready.push((Op::new(OpKind::Mfence, 0, 0), self.current));
                self.ready.push((Op::new(OpKind::Stamp, 0, 0), self.current));
                self.stage = Stage::Fenced;
                None
            }
        }
    }

    /// The wait of an op behind the store buffer goes to those that committed meanwhile.
    fn blame_commits(&self, ledger: &mut Ledger, from: Time, until: Time) {
        let mut since = from;
        for commit in self.commits.row(|commit| commit.at > from) {
            let time = commit.at.min(until).saturating_sub(since);
            since = since.max(commit.at.min(until));
            match commit.kind {
                OpKind::Store => match self.fetch_done(commit.at, true) {
                    Some(fetch) => ledger.spend_on_fetch(commit.site, fetch.from, fetch.done - fetch.asked, time),
                    None => ledger.spend(commit.site, Cause::Cache, time),
                },
                OpKind::Sfence => ledger.spend(commit.site, Cause::Fence, time),
                _ => ledger.spend(commit.site, Cause::Queue, time),
            }
        }
        ledger.spend(self.current, Cause::Queue, until - since);
    }

    fn fetch_done(&self, at: Time, for_store: bool) -> Option<Fetched> {
        let mut fetches = self.fetches.backwards();
        fetches
            .find(|fetch| fetch.done == at && fetch.for_store == for_store)
            .copied()
    }
}

fn end_nt_run(ledger: &mut Ledger, run: Run) {
    let facts = ledger.site(run.site);
    facts.nt_runs += 1;
    facts.short_nt_runs += u64::from(run.bytes < SHORT_NT_RUN);
}

fn end_flush_run(ledger: &mut Ledger, run: Run) {
    let lines = run.bytes / LINE;
    let facts = ledger.site(run.site);
    facts.flush_runs += 1;
    facts.long_run_lines += if lines >= LONG_RUN_LINES { lines } else { 0 };
}

impl<S> AsRef<CoreStream<S>> for CoreStream<S> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<S: Source> Program for CoreStream<S> {
    const WATCHED: bool = true;

    #[inline]
    fn next_op(&mut self) -> Option<Op> {
        loop {
            if let Some(&(op, site)) = self.ready.get(self.given) {
                self.given += 1;
                self.current = site;
                if is_flush(op.kind) || matches!(op.kind, OpKind::Store | OpKind::NtStore | OpKind::Sfence) {
                    self.buffered.push_back((site, op.kind));
                }
                return Some(op);
            }
            self.ready.clear();
            self.given = 0;
            if self.stage != Stage::Running {
                self.stage = Stage::Stamped;
                return None;
            }
            if self.next == self.batch.len() {
                match self.ask() {
                    Some(op) => return Some(op),
                    None => continue,
                }
            }
            let access = self.batch[self.next];
            self.next += 1;
            if let Some(op) = self.expand(access) {
                self.current = access.site;
                return Some(op);
            }
        }
    }

    #[inline]
    fn foretell(&mut self, mut name: impl FnMut(u64)) {
        if self.next < self.foretold || self.next == self.batch.len() {
            return;
        }
        let soon = self.next..self.batch.len().min(self.next + AHEAD);
        self.foretold = soon.end;
        let ledger = self.ledger.borrow();
        for access in &self.batch[soon] {
            // The books know nothing of lines that are only loaded.
            if access.kind != OpKind::Load {
                ledger.expect(access.address);
            }
            name(access.address);
        }
    }

    fn stamp(&mut self, now: Time) {
        self.ended_at = now;
    }

    fn fetched(&mut self, fetch: Fetch) {
        let mut ledger = self.ledger.borrow_mut();
        let site = if fetch.for_store {
            ledger.writer(fetch.address).unwrap_or(self.current)
        } else {
            self.current
        };
        if fetch.from == FetchedFrom::Media {
            ledger.fetched(site);
        }
        drop(ledger);
        let fetched = Fetched {
            asked: fetch.asked,
            done: fetch.done,
            site,
            from: fetch.from,
            for_store: fetch.for_store,
        };
        self.fetches.push(fetched);
    }

    #[inline]
    fn committed(&mut self, at: Time) {
        let (site, kind) = self.buffered.pop_front().expect("what commits was issued");
        self.commits.push(Committed { site, kind, at });
    }

    fn waited(&mut self, from: Time, until: Time, on: Wait) {
        let ledger = Rc::clone(&self.ledger);
        let mut ledger = ledger.borrow_mut();
        match on {
            Wait::Window => match self.fetch_done(until, false) {
                Some(fetch) => ledger.spend_on_fetch(fetch.site, fetch.from, fetch.done - fetch.asked, until - from),
                None => ledger.spend(self.current, Cause::Cache, until - from),
            },
            Wait::FillBuffer => ledger.spend(self.current, Cause::Queue, until - from),
            Wait::StoreBuffer => self.blame_commits(&mut ledger, from, until),
            Wait::Drain => ledger.spend(self.current, Cause::Fence, until - from),
        }
    }
}
