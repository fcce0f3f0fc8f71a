//! A program that keeps a sample of its requests, with their way through the machine.

use serde::Serialize;

use crate::op::{Op, OpKind};
use crate::program::{Fetch, FetchedFrom, Program, Wait, Write};
use crate::time::Time;
use crate::way::{Follow, Part};

/// Requests of a sample that follow each other.
const BURST: u64 = 128;

/// The first requests are a sample, and those from this one on, from twice as many on, and so forth.
const SECOND: u64 = 1 << 10;

/// Something that took a core's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// What it is, in a word or two.
    pub name: &'static str,
    /// The address of a request.
    pub address: Option<u64>,
    pub from: Time,
    pub until: Time,
    /// What a request passed through or waited for: its time is theirs together, but for that in a [`Part::Dimm`], which is told apart
    /// again by what is in it.
    pub spans: Vec<Span>,
    /// The way of a write in its DIMM, for which its core need not wait.
    pub behind: Vec<Span>,
}

/// A part of the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    pub part: Part,
    pub from: Time,
    pub until: Time,
}

/// A sample of requests: the first 128, and as many from the 1024th, 2048th, 4096th, ... on.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    requests: u64,
    /// The way of the request that is being made.
    spans: Vec<Span>,
    events: Vec<Event>,
}

impl Sample {
    /// What is in it so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    fn is_open(&self) -> bool {
        let burst = match self.requests {
            0..SECOND => 0,
            requests => 1 << requests.ilog2(),
        };
        self.requests - burst < BURST
    }

    /// The request whose way was shown is complete.
    pub(crate) fn request(&mut self, name: &'static str, address: u64, from: Time, until: Time, is_write: bool) {
        let spans = std::mem::take(&mut self.spans);
        if self.is_open() {
            let in_dimm = |span: &Span| span.part.is_in_dimm() || matches!(span.part, Part::Dimm(..));
            let (behind, spans) = spans.into_iter().partition(|span| is_write && in_dimm(span));
            self.events.push(Event {
                name,
                address: Some(address),
                from,
                until,
                spans,
                behind,
            });
        }
        self.requests += 1;
    }

    fn wait(&mut self, name: &'static str, from: Time, until: Time) {
        if self.is_open() && until > from {
            self.events.push(Event {
                name,
                address: None,
                from,
                until,
                spans: Vec::new(),
                behind: Vec::new(),
            });
        }
    }
}

impl Follow for Sample {
    const ON: bool = true;

    fn span(&mut self, part: Part, from: Time, until: Time) {
        if self.is_open() {
            self.spans.push(Span { part, from, until });
        }
    }
}

/// A program with a [`Sample`] of its requests.
///
/// ```
/// use xpline_model::{Machine, Op, OpKind, Platform, Program, Traced};
///
/// struct OneLoad(bool);
/// impl Program for OneLoad {
///     fn next_op(&mut self) -> Option<Op> {
///         std::mem::take(&mut self.0).then(|| Op::new(OpKind::Load, 0, 64))
///     }
/// }
/// let mut programs = [Traced::new(OneLoad(true))];
/// Machine::new(&Platform::builtin("optane-ni")?).run(&mut programs);
/// let [load] = programs[0].events() else { panic!("one request") };
/// assert_eq!(load.name, "load");
/// assert!(load.spans.iter().any(|span| span.part.name() == "media read"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Traced<P> {
    program: P,
    sample: Sample,
}

impl<P> Traced<P> {
    pub fn new(program: P) -> Self {
        Self {
            program,
            sample: Sample::default(),
        }
    }

    /// The sample so far.
    pub fn events(&self) -> &[Event] {
        self.sample.events()
    }
}

impl<P> AsRef<P> for Traced<P> {
    fn as_ref(&self) -> &P {
        &self.program
    }
}

impl<P> AsMut<P> for Traced<P> {
    fn as_mut(&mut self) -> &mut P {
        &mut self.program
    }
}

impl<P: Program> Program for Traced<P> {
    const WATCHED: bool = true;
    const TRACED: bool = true;

    fn next_op(&mut self) -> Option<Op> {
        self.program.next_op()
    }

    fn stamp(&mut self, now: Time) {
        self.program.stamp(now);
    }

    fn loaded(&mut self, latency: Time) {
        self.program.loaded(latency);
    }

    fn fetched(&mut self, fetch: Fetch) {
        let name = match (fetch.for_store, fetch.from) {
            (false, FetchedFrom::Cache) => "load from cache",
            (false, _) => "load",
            (true, FetchedFrom::Cache) => "store's line from cache",
            (true, _) => "store's line",
        };
        self.sample.request(name, fetch.address, fetch.asked, fetch.done, false);
        self.program.fetched(fetch);
    }

    fn committed(&mut self, at: Time) {
        self.program.committed(at);
    }

    fn waited(&mut self, from: Time, until: Time, on: Wait) {
        let name = match on {
            Wait::Window => "wait: an older load",
            Wait::FillBuffer => "wait: fill buffer",
            Wait::StoreBuffer => "wait: store buffer",
            Wait::Drain => "wait: fence",
        };
        self.sample.wait(name, from, until);
        self.program.waited(from, until, on);
    }

    fn passed(&mut self, part: Part, from: Time, until: Time) {
        self.sample.span(part, from, until);
        self.program.passed(part, from, until);
    }

    fn written(&mut self, write: Write) {
        let name = match write.kind {
            OpKind::NtStore => "ntstore",
            OpKind::Clwb => "clwb",
            OpKind::ClflushOpt => "clflushopt",
            _ => "clflush",
        };
        self.sample
            .request(name, write.address, write.sent, write.accepted, true);
        self.program.written(write);
    }
}
