//! Streams of accesses on the machine: what is booked adds up to what was counted, whatever the stream.

use std::sync::atomic::{AtomicBool, AtomicU64};

use proptest::prelude::*;
use xpline_model::{OpKind, Platform};
use xpline_run::{Access, Change, Changed, Chunk, Outcome, Source, run};

fn access(kind: OpKind, address: u64, size: u32, site: u32) -> Access {
    Access {
        kind,
        address,
        size,
        instructions: 4,
        site,
    }
}

fn one_thread(accesses: Vec<Access>) -> std::vec::IntoIter<Chunk> {
    let chunks: Vec<Chunk> = accesses
        .chunks(1000)
        .map(|part| Chunk {
            thread: 0,
            accesses: part.to_vec(),
            begin: 0,
            end: 0,
            first: false,
            last: false,
        })
        .collect();
    chunks.into_iter()
}

fn run_on(platform: &str, source: impl Source) -> Outcome {
    let platform = Platform::builtin(platform).unwrap();
    let never = AtomicBool::new(false);
    run(&platform, source, None, &never, &AtomicU64::new(0)).expect("accesses")
}

/// Records of 64 B at one place each XPLine: flushed and fenced.
fn sparse(records: u64) -> Vec<Access> {
    let record = |number: u64| {
        let at = number * 4096;
        [
            access(OpKind::Store, at, 32, 0),
            access(OpKind::Store, at + 32, 32, 0),
            access(OpKind::Clwb, at, 1, 1),
            access(OpKind::Sfence, 0, 0, 2),
        ]
    };
    (0..records).flat_map(record).collect()
}

#[test]
fn costs_go_to_those_who_cause_them() {
    let outcome = run_on("optane-ni", one_thread(sparse(1000)));
    let [store, flush, fence] = &outcome.sites[..] else {
        panic!("three sites")
    };
    assert_eq!((store.stores, store.store_bytes), (2000, 64_000));
    assert_eq!((flush.flushes, flush.double_flushes, flush.clean_flushes), (1000, 0, 0));
    assert_eq!((fence.fences, fence.empty_fences), (1000, 0));
    assert_eq!(flush.writers, [(0, 1000)]);
    assert_eq!(store.lines_touched, 1000);
    // The store's line comes from the media, and leaves a quarter full.
    assert_eq!(store.media_read_bytes, 1000 * 256);
    assert!(store.media_written_bytes >= 900 * 256, "{}", store.media_written_bytes);
    assert_eq!(store.partial_written_bytes, store.media_written_bytes);
    assert_eq!(store.evicted_written_bytes, 0);
    assert_eq!(store.media_written_bytes, outcome.counters.traffic.media_written_bytes);
    assert!(store.memory_ps() > 0 && fence.memory_ps() > 0);
}

#[test]
fn pieces_of_a_line_past_the_caches_are_one_write() {
    let pieces = (0..4096).map(|piece| access(OpKind::NtStore, piece * 16, 16, 0));
    let outcome = run_on("optane-ni", one_thread(pieces.collect()));
    assert_eq!(outcome.counters.traffic.imc_written_bytes, 4096 * 16);
    assert_eq!(outcome.sites[0].ntstores, 4096);
    assert_eq!((outcome.sites[0].nt_runs, outcome.sites[0].short_nt_runs), (1, 0));
}

#[test]
fn needless_flushes_and_fences_are_seen() {
    let round = |number: u64| {
        let at = number * 64;
        [
            access(OpKind::Store, at, 8, 0),
            access(OpKind::Clwb, at, 1, 1),
            access(OpKind::Clwb, at, 1, 2),
            access(OpKind::Clwb, at + (1 << 20), 1, 3),
            access(OpKind::Sfence, 0, 0, 4),
            access(OpKind::Sfence, 0, 0, 5),
        ]
    };
    let outcome = run_on("optane-ni", one_thread((0..100).flat_map(round).collect()));
    assert_eq!(outcome.sites[1].double_flushes, 0);
    assert_eq!(outcome.sites[2].double_flushes, 100);
    assert_eq!(outcome.sites[3].clean_flushes, 100);
    assert_eq!(outcome.sites[4].empty_fences, 0);
    assert_eq!(outcome.sites[5].empty_fences, 100);
}

#[test]
fn what_nobody_flushed_is_known_by_page() {
    let mut accesses = sparse(10);
    accesses.push(access(OpKind::Store, 5 << 20, 8, 3));
    accesses.push(access(OpKind::LockedRmw, 6 << 20, 8, 4));
    let outcome = run_on("optane-ni", one_thread(accesses));
    assert_eq!(outcome.sites[3].unflushed, [(2, 1)]);
    assert!(outcome.sites[4].unflushed.is_empty(), "a lock need not be flushed");
    assert!(outcome.sites[0].unflushed.is_empty());
    assert_eq!(outcome.persisted_pages, [0]);
}

#[test]
fn computing_takes_the_stated_rate() {
    let mut accesses = vec![access(OpKind::Load, 0, 8, 0)];
    accesses.push(Access {
        instructions: 44_000_000,
        ..access(OpKind::Compute, 0, 0, 1)
    });
    let outcome = run_on("dram", one_thread(accesses));
    // 2.2 GHz and two instructions a clock, to the picosecond that the model counts in.
    let expected = 44_000_000 * 227;
    assert!(
        (outcome.time_ps as i64 - expected).abs() < 1_000_000,
        "{}",
        outcome.time_ps
    );
}

#[test]
fn a_thousand_threads_share_the_cores() {
    let chunks = (0..1000).map(|thread| Chunk {
        thread,
        accesses: sparse(3),
        begin: 0,
        end: 0,
        first: false,
        last: thread % 2 == 0,
    });
    let outcome = run_on("optane", chunks);
    assert_eq!(outcome.accesses, 12_000);
    assert!(outcome.cores <= 24);
}

fn changed(change: Change, accesses: Vec<Access>) -> Outcome {
    let platform = Platform::builtin("optane-ni").unwrap();
    run_on("optane-ni", Changed::new(one_thread(accesses), change, &platform))
}

#[test]
fn packed_stores_fill_their_lines() {
    let change = Change::Pack { stores: [0].into() };
    let outcome = changed(change, sparse(1000));
    assert!(
        outcome.counters.traffic.ewr.unwrap() > 0.9,
        "{:?}",
        outcome.counters.traffic.ewr
    );
    assert_eq!(outcome.counters.bytes_stored, 64_000);
    assert_eq!(outcome.sites[1].flushes, 1000);
    assert_eq!(outcome.sites[1].clean_flushes, 0, "flushes follow their stores");
}

#[test]
fn stores_past_the_caches_read_nothing() {
    let change = Change::NtStores {
        stores: [0].into(),
        flushes: [1].into(),
    };
    let outcome = changed(change, sparse(1000));
    assert_eq!(outcome.counters.traffic.imc_read_bytes, 0);
    assert_eq!(outcome.sites[1].flushes, 0);
    assert_eq!(outcome.counters.traffic.imc_written_bytes, 64_000);
}

#[test]
fn cached_stores_are_flushed_each() {
    let stores = (0..1000).flat_map(|number| {
        let pieces = (0..4).map(move |piece| access(OpKind::NtStore, number * 4096 + piece * 16, 16, 0));
        pieces.chain([access(OpKind::Sfence, 0, 0, 1)])
    });
    let change = Change::CachedStores { stores: [0].into() };
    let outcome = changed(change, stores.collect());
    assert_eq!(outcome.sites[0].stores, 4000);
    assert_eq!(outcome.sites[0].flushes, 1000);
    assert!(outcome.sites.iter().all(|site| site.unflushed.is_empty()));
}

#[test]
fn needless_flushes_and_fences_go() {
    let round = |number: u64| {
        let at = number * 64;
        [
            access(OpKind::Sfence, 0, 0, 0),
            access(OpKind::Store, at, 64, 1),
            access(OpKind::Clwb, at, 1, 2),
            access(OpKind::Clwb, at, 1, 2),
            access(OpKind::Sfence, 0, 0, 3),
        ]
    };
    let rounds: Vec<Access> = (0..100).flat_map(round).collect();
    let flushes = [2].into();
    let outcome = changed(Change::DropNeedlessFlushes { flushes }, rounds.clone());
    assert_eq!((outcome.sites[2].flushes, outcome.sites[2].double_flushes), (100, 0));
    let fences = [0].into();
    let outcome = changed(Change::DropEmptyFences { fences }, rounds);
    assert_eq!((outcome.sites[0].fences, outcome.sites[3].fences), (0, 100));
}

fn any_accesses() -> impl Strategy<Value = Vec<Access>> {
    let kinds = [
        OpKind::Load,
        OpKind::Store,
        OpKind::NtStore,
        OpKind::Clwb,
        OpKind::ClflushOpt,
        OpKind::Clflush,
        OpKind::Sfence,
        OpKind::Mfence,
        OpKind::LockedRmw,
        OpKind::Compute,
    ];
    let one = (0..kinds.len(), 0..1u64 << 16, 1..200u32, 0..4u32, 0..50u32);
    let one = one.prop_map(move |(kind, address, size, site, instructions)| {
        let fence = matches!(kinds[kind], OpKind::Sfence | OpKind::Mfence | OpKind::Compute);
        Access {
            kind: kinds[kind],
            address: if fence { 0 } else { address },
            size: if fence { 0 } else { size },
            instructions,
            site,
        }
    });
    proptest::collection::vec(one, 1..2000)
}

fn any_change() -> impl Strategy<Value = Option<Change>> {
    let sites = || proptest::collection::hash_set(0..4u32, 0..4);
    prop_oneof![
        Just(None),
        (sites(), sites()).prop_map(|(stores, flushes)| Some(Change::NtStores { stores, flushes })),
        (sites(), sites()).prop_map(|(stores, flushes)| Some(Change::FlushSoon { stores, flushes })),
        sites().prop_map(|stores| Some(Change::CachedStores { stores })),
        sites().prop_map(|stores| Some(Change::Pack { stores })),
        sites().prop_map(|flushes| Some(Change::DropNeedlessFlushes { flushes })),
        Just(Some(Change::SpreadDimms)),
        Just(Some(Change::ColourPages)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn books_add_up(threads in proptest::collection::vec(any_accesses(), 1..4), change in any_change()) {
        let platform = Platform::builtin("optane").unwrap();
        let stored: u64 = threads.iter().flatten().map(|access| match access.kind {
            OpKind::Store | OpKind::LockedRmw => u64::from(access.size),
            _ => 0,
        }).sum();
        let instructions: u64 = threads.iter().flatten().map(|access| u64::from(access.instructions)).sum();
        let chunks: Vec<Chunk> = (0..).zip(threads).map(|(thread, accesses)| Chunk { thread, accesses, begin: 0, end: 0, first: false, last: true }).collect();
        let outcome = match change.clone() {
            None => run_on("optane", chunks.into_iter()),
            Some(change) => run_on("optane", Changed::new(chunks.into_iter(), change, &platform)),
        };
        let sum = |field: fn(&xpline_run::Facts) -> u64| outcome.sites.iter().map(field).sum::<u64>();
        let total = &outcome.counters;
        prop_assert_eq!(sum(|facts| facts.media_written_bytes) <= total.traffic.media_written_bytes, true);
        // A line of three pieces is shared out in whole bytes.
        prop_assert!(sum(|facts| facts.media_written_bytes) * 100 >= total.traffic.media_written_bytes * 99);
        prop_assert!(sum(|facts| facts.media_read_bytes) <= total.traffic.media_read_bytes);
        for (number, &time) in outcome.time_by_cause_ps.iter().enumerate() {
            prop_assert_eq!(outcome.sites.iter().map(|facts| facts.time_ps[number]).sum::<u64>(), time);
        }
        let busy: u64 = outcome.time_by_cause_ps.iter().sum();
        prop_assert!(busy <= u64::from(outcome.cores) * outcome.time_ps * 21 / 20 + 1_000_000, "{} {}", busy, outcome.time_ps);
        if change.is_none() {
            prop_assert!(total.bytes_stored >= stored);
            prop_assert_eq!(sum(|facts| facts.instructions), instructions);
        }
    }
}
