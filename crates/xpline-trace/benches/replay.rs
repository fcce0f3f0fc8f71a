//! Requests of a trace a second on one core of the host: reading alone, by format, and replay as a whole.
//!
//! Criterion's `thrpt` is the number: 5 Melem/s are 5 million requests a second.

use std::hint::black_box;
use std::io::Cursor;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use xpline_model::{OpKind, Platform};
use xpline_trace::{Format, Header, Input, Level, Options, ReadOptions, Record, Trace, encode, replay_trace};

/// Requests of a trace.
const REQUESTS: u64 = 1 << 18;

/// Reads, and a write for each four, spread over 1 GiB by a linear congruential generator, or in order.
fn requests(random: bool) -> Vec<Record> {
    let mut state = 1u64;
    let request = |number: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let line = if random { state >> 40 } else { number };
        let kind = if number % 5 == 4 { OpKind::Store } else { OpKind::Load };
        Record::new(kind, line * 64, 64)
    };
    (0..REQUESTS).map(request).collect()
}

fn written(records: &[Record], format: Format) -> Vec<u8> {
    let header = Header {
        level: Level::Memory,
        tick_fs: 0,
    };
    encode(records, format, header).expect("requests that the format holds")
}

fn open(bytes: &[u8]) -> Trace {
    let input = Input::new("trace", Box::new(Cursor::new(bytes.to_vec()))).expect("bytes in memory");
    Trace::new(input, &ReadOptions::default()).expect("a trace just written")
}

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .throughput(Throughput::Elements(REQUESTS))
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    group
}

fn read(criterion: &mut Criterion) {
    let records = requests(true);
    let mut group = group(criterion, "trace/read");
    let formats = [
        Format::Xpline,
        Format::Ramulator2,
        Format::Dramsim3,
        Format::Vans,
        Format::Lackey,
    ];
    for format in formats {
        let bytes = written(&records, format);
        group.bench_function(format.name(), |bencher| {
            bencher.iter(|| {
                let (mut trace, mut batch) = (open(&bytes), Vec::new());
                while trace.read(&mut batch).expect("a whole trace") {
                    black_box(&batch);
                }
            });
        });
    }
    group.finish();
}

fn replay(criterion: &mut Criterion) {
    let platform = Platform::builtin("optane").expect("a built-in platform");
    let mut group = group(criterion, "trace/replay");
    for (pattern, random) in [("sequential", false), ("random", true)] {
        let bytes = written(&requests(random), Format::Ramulator2);
        for (level, said) in [("memory", Level::Memory), ("core", Level::Core)] {
            let mut options = Options::default().replay().expect("defaults");
            options.level = Some(said);
            group.bench_function(format!("{pattern}/{level}"), |bencher| {
                bencher.iter(|| replay_trace(&platform, open(&bytes), &options, &AtomicBool::new(false)))
            });
        }
    }
    group.finish();
}

criterion_group!(benches, read, replay);
criterion_main!(benches);
