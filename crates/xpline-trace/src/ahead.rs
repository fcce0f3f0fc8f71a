//! A trace that another thread reads ahead, so that reading costs no time of whoever uses it, and can be given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use crate::error::TraceError;
use crate::format::Format;
use crate::input::Progress;
use crate::record::{Header, Record};
use crate::trace::{ReadOptions, Trace};

/// Batches that may wait to be used.
const BATCHES: usize = 4;

/// How often a reader that has nothing looks whether to stop.
const ATTENTION: Duration = Duration::from_millis(50);

/// What the thread says: what the trace is, then its batches, then that it has ended; or what is wrong.
enum Said {
    Opened(About),
    Batch(Vec<Record>),
    Ended,
}

/// What is known of a trace before its records.
struct About {
    path: String,
    format: Format,
    header: Header,
    compressed: bool,
}

impl About {
    fn of(trace: &Trace) -> Self {
        Self {
            path: trace.path().to_owned(),
            format: trace.format(),
            header: trace.header(),
            compressed: trace.compressed(),
        }
    }
}

/// A trace read ahead. When it is dropped the thread ends at its next batch.
pub struct Ahead {
    about: About,
    said: Receiver<Result<Said, TraceError>>,
    /// Batches to fill again.
    used: Sender<Vec<Record>>,
    ended: bool,
}

impl Ahead {
    /// Open a file. `None` if `stop` was set before its format was known.
    pub fn open(
        path: &str,
        options: &ReadOptions,
        progress: &Arc<Progress>,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, TraceError> {
        let (path, options, progress) = (path.to_owned(), options.clone(), Arc::clone(progress));
        Self::start(move || Trace::open(&path, &options, &progress), stop)
    }

    /// Read ahead in an open trace. `None` if `stop` is set.
    pub fn of(trace: Trace, stop: &AtomicBool) -> Result<Option<Self>, TraceError> {
        Self::start(move || Ok(trace), stop)
    }

    fn start(
        open: impl FnOnce() -> Result<Trace, TraceError> + Send + 'static,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, TraceError> {
        let (say, said) = mpsc::sync_channel(BATCHES);
        let (used, unused) = mpsc::channel();
        thread::spawn(move || read(open, &say, &unused));
        Ok(match hear(&said, stop)? {
            Some(Said::Opened(about)) => Some(Self {
                about,
                said,
                used,
                ended: false,
            }),
            _ => None,
        })
    }

    pub fn path(&self) -> &str {
        &self.about.path
    }

    pub fn format(&self) -> Format {
        self.about.format
    }

    pub fn header(&self) -> Header {
        self.about.header
    }

    /// Whether the file is compressed.
    pub fn compressed(&self) -> bool {
        self.about.compressed
    }

    /// Put the next records in place of those given; false when none are left, or `stop` is set.
    pub fn read(&mut self, records: &mut Vec<Record>, stop: &AtomicBool) -> Result<bool, TraceError> {
        if !self.ended
            && let Some(Said::Batch(batch)) = hear(&self.said, stop)?
        {
            // Where the thread has ended it needs none.
            _ = self.used.send(std::mem::replace(records, batch));
            return Ok(true);
        }
        self.ended = true;
        records.clear();
        Ok(false)
    }
}

/// The next thing that the thread says; `None` if `stop` is set.
fn hear(said: &Receiver<Result<Said, TraceError>>, stop: &AtomicBool) -> Result<Option<Said>, TraceError> {
    while !stop.load(Ordering::Relaxed) {
        match said.recv_timeout(ATTENTION) {
            Ok(said) => return said.map(Some),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("the thread that reads the trace is gone"),
        }
    }
    Ok(None)
}

/// Read a trace to its end, or until nobody listens.
fn read(
    open: impl FnOnce() -> Result<Trace, TraceError>,
    say: &SyncSender<Result<Said, TraceError>>,
    unused: &Receiver<Vec<Record>>,
) {
    let opened = open();
    let about = opened.as_ref().map(About::of).map_err(Clone::clone);
    let mut listening = say.send(about.map(Said::Opened)).is_ok();
    let Ok(mut trace) = opened else { return };
    while listening {
        let mut batch = unused.try_recv().unwrap_or_default();
        let read = trace.read(&mut batch);
        let last = !matches!(read, Ok(true));
        listening = say
            .send(read.map(|more| if more { Said::Batch(batch) } else { Said::Ended }))
            .is_ok()
            && !last;
    }
}
