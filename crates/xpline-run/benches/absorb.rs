//! Accesses of traced programs that a machine absorbs a second, attribution and books included.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use xpline_model::{OpKind, Platform};
use xpline_run::{Access, Chunk, run};

const ACCESSES: u64 = 1 << 20;

type Make = fn(u64) -> Access;

fn access(kind: OpKind, address: u64, size: u32) -> Access {
    Access {
        kind,
        address,
        size,
        instructions: 6,
        site: (kind as u32) % 5,
    }
}

/// Log appends: eight stores of 8 B, a flush, and a fence every 256 B.
fn log(number: u64) -> Access {
    let (line, step) = (number / 10, number % 10);
    match step {
        0..8 => access(OpKind::Store, line * 64 + step * 8, 8),
        8 => access(OpKind::Clwb, line * 64, 1),
        _ if line % 4 == 3 => access(OpKind::Sfence, 0, 0),
        _ => access(OpKind::Load, line * 64, 8),
    }
}

/// Loads and stores of 8 B at random places of 64 MiB.
fn random(number: u64) -> Access {
    let place = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 38 & !7;
    access(
        if number.is_multiple_of(4) {
            OpKind::Store
        } else {
            OpKind::Load
        },
        place,
        8,
    )
}

/// Copies past the caches, 16 B at a time.
fn copy(number: u64) -> Access {
    access(OpKind::NtStore, number * 16, 16)
}

/// Lines at random places of 64 MiB, past the caches, 16 B at a time.
fn scattered(number: u64) -> Access {
    let line = (number / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    access(OpKind::NtStore, line * 64 + number % 4 * 16, 16)
}

/// A hot structure: loads and stores in 64 KiB.
fn cached(number: u64) -> Access {
    let place = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48 & !7;
    access(
        if number.is_multiple_of(4) {
            OpKind::Store
        } else {
            OpKind::Load
        },
        place,
        8,
    )
}

fn absorb(criterion: &mut Criterion) {
    let platform = Platform::builtin("optane").expect("a built-in platform");
    let mut group = criterion.benchmark_group("absorb");
    group.sample_size(10);
    group.throughput(Throughput::Elements(ACCESSES));
    let kinds: [(&str, Make); 5] = [
        ("log", log),
        ("random", random),
        ("copy", copy),
        ("scattered", scattered),
        ("cached", cached),
    ];
    for (name, make) in kinds {
        let chunks: Vec<Chunk> = (0..ACCESSES / 4096)
            .map(|chunk| Chunk {
                thread: 0,
                accesses: (chunk * 4096..(chunk + 1) * 4096).map(make).collect(),
                begin: 0,
                end: 0,
                first: false,
                last: false,
            })
            .collect();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let source = chunks.iter().cloned();
                black_box(run(
                    &platform,
                    source,
                    None,
                    &AtomicBool::new(false),
                    &AtomicU64::new(0),
                ))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, absorb);
criterion_main!(benches);
