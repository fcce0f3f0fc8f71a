//! Requests simulated a second on one core of the host: sequential and random reads and writes, of one and eight threads on one
//! DIMM and of 24 threads on six.
//!
//! Criterion's `thrpt` is the number: 5 Melem/s are 5 million requests simulated a second.

use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use xpline_lattester::{Point, Stream, streams};
use xpline_model::{Machine, Op, OpKind, Platform, Program};

/// Requests of a run, all threads together: enough to fill the caches and leave the start behind.
const REQUESTS: u64 = 3 << 19;

/// Platform, threads and bytes of an access.
const CASES: [(&str, u64, u64); 4] = [
    ("optane-ni", 1, 64),
    ("optane-ni", 8, 64),
    ("optane", 24, 64),
    ("optane", 24, 256),
];

/// A stream that ends after so many requests.
struct Bounded {
    stream: Stream,
    left: u64,
}

impl Program for Bounded {
    #[inline]
    fn next_op(&mut self) -> Option<Op> {
        let op = (self.left > 0).then(|| self.stream.next_op())??;
        self.left -= u64::from(matches!(op.kind, OpKind::Load | OpKind::NtStore));
        Some(op)
    }

    #[inline]
    fn foretell(&mut self, name: impl FnMut(u64)) {
        self.stream.foretell(name);
    }
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("requests");
    group.throughput(Throughput::Elements(REQUESTS));
    group
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    for (name, threads, size) in CASES {
        let platform = Platform::builtin(name).expect("a built-in platform");
        let sequential = format!(r#""stride", "stride": {size}"#);
        for (pattern, experiment) in [("sequential", sequential.as_str()), ("random", r#""random""#)] {
            for op in ["load", "ntstore"] {
                let json =
                    format!(r#"{{"experiment": {experiment}, "op": "{op}", "size": {size}, "threads": {threads}}}"#);
                let point = Point::parse(&json).expect("a point");
                let start = || {
                    let bounded = |stream| Bounded {
                        stream,
                        left: REQUESTS / threads,
                    };
                    let programs: Vec<_> = streams(&platform, &point).into_iter().map(bounded).collect();
                    (Machine::new(&platform), programs)
                };
                group.bench_function(format!("{threads}x{size}/{pattern}/{op}"), |bencher| {
                    bencher.iter_batched_ref(
                        start,
                        |(machine, programs)| machine.run(programs),
                        BatchSize::PerIteration,
                    )
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
