//! What holds for any op stream on any platform: it ends, no byte is lost, and it is the same every time.

use std::collections::HashSet;

use proptest::prelude::*;
use xpline_model::{Counters, Machine, MemorySystem, Op, OpKind, Platform, Program, Request, RequestKind};

struct List(std::vec::IntoIter<Op>);

impl Program for List {
    fn next_op(&mut self) -> Option<Op> {
        self.0.next()
    }
}

fn any_op() -> impl Strategy<Value = Op> {
    // Few lines close together, so that rewriting, combining and conflicts happen; and some far away.
    let line = prop_oneof![4 => 0u64..64, 1 => 0u64..1 << 24];
    (prop::sample::select(OpKind::ALL.to_vec()), line).prop_map(|(kind, line)| Op::new(kind, line * 64, 64))
}

/// Threads on memory of their own: the model keeps no coherence between cores.
fn any_threads() -> impl Strategy<Value = Vec<Vec<Op>>> {
    prop::collection::vec(prop::collection::vec(any_op(), 0..400), 1..6).prop_map(|threads| {
        let own = |(thread, ops): (usize, Vec<Op>)| {
            ops.into_iter()
                .map(|op| Op {
                    addr: op.addr + ((thread as u64) << 31),
                    ..op
                })
                .collect()
        };
        threads.into_iter().enumerate().map(own).collect()
    })
}

fn run(platform: &Platform, threads: &[Vec<Op>]) -> (Counters, u64) {
    let mut machine = Machine::new(platform);
    let mut programs: Vec<_> = threads.iter().map(|ops| List(ops.clone().into_iter())).collect();
    let counters = machine.run(&mut programs);
    (counters, machine.unwritten_pieces())
}

fn count(threads: &[Vec<Op>], kinds: &[OpKind]) -> u64 {
    threads.iter().flatten().filter(|op| kinds.contains(&op.kind)).count() as u64
}

/// Lines that are written, each counted once.
fn written_lines(threads: &[Vec<Op>]) -> u64 {
    let writes = |op: &&Op| matches!(op.kind, OpKind::Store | OpKind::NtStore | OpKind::LockedRmw);
    let lines: HashSet<u64> = threads.iter().flatten().filter(writes).map(|op| op.addr / 64).collect();
    lines.len() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_op_is_done(threads in any_threads(), name in prop::sample::select(vec!["optane", "optane-ni", "dram", "dram-remote"])) {
        let (counters, _) = run(&Platform::builtin(name).unwrap(), &threads);
        let core = counters.core;
        prop_assert_eq!(core.loads, count(&threads, &[OpKind::Load, OpKind::LockedRmw]));
        prop_assert_eq!(core.stores, count(&threads, &[OpKind::Store, OpKind::LockedRmw]));
        prop_assert_eq!(core.nt_stores, count(&threads, &[OpKind::NtStore]));
        prop_assert_eq!(core.flushes, count(&threads, &[OpKind::Clwb, OpKind::ClflushOpt, OpKind::Clflush]));
        prop_assert_eq!(core.fences, count(&threads, &[OpKind::Sfence, OpKind::Mfence, OpKind::Lfence, OpKind::LockedRmw]));
        prop_assert_eq!(core.bytes_loaded, 64 * core.loads);
        prop_assert_eq!(core.bytes_stored, 64 * (core.stores + core.nt_stores));
    }

    /// What is written is in a cache, in a buffer or on the media, and the media write nothing that no one wrote.
    #[test]
    fn no_written_line_is_lost(threads in any_threads(), name in prop::sample::select(vec!["optane", "optane-ni", "dram", "dram-remote"])) {
        let platform = Platform::builtin(name).unwrap();
        let (counters, unwritten) = run(&platform, &threads);
        let total = counters.dimm_total();
        let pieces = counters.media_line_bytes / 64;
        prop_assert!(total.media_writes * pieces + unwritten >= written_lines(&threads));
        // On another socket, a line that is read may have its directory entry written.
        let entries = if name.ends_with("remote") { total.reads } else { 0 };
        prop_assert!(total.writes <= counters.core.stores + counters.core.nt_stores + entries);
        prop_assert!(total.media_writes <= total.writes);
        // The media are read for reads that miss the buffer and for the merging of partial lines, never more.
        prop_assert!(total.media_reads <= total.reads + total.media_writes);
        prop_assert_eq!(total.reads + total.writes, total.buffer_hits + total.buffer_misses);
    }

    /// In Memory Mode what is written is in a cache, in DRAM, in a buffer or on the media, and Optane gets back what was in DRAM, whole.
    #[test]
    fn no_written_line_is_lost_in_memory_mode(
        threads in any_threads(),
        (line, pieces_of_line) in prop::sample::select(vec![("64B", 1), ("256B", 4), ("4KiB", 64)]),
        pages in prop::sample::select(vec!["contiguous", "random"]),
    ) {
        let sets = [format!("near.line={line}"), format!("near.pages={pages}"), "near.size=64KiB".into()];
        let platform = Platform::load("memory-mode", &sets, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
        let (counters, unwritten) = run(&platform, &threads);
        let total = counters.dimm_total();
        prop_assert_eq!(total.writes, total.near_write_backs * pieces_of_line);
        let pieces = counters.media_line_bytes / 64;
        prop_assert!(total.media_writes * pieces + unwritten >= written_lines(&threads));
        prop_assert!(total.near_write_backs <= total.near_misses);
    }

    #[test]
    fn the_same_ops_give_the_same_counts(threads in any_threads()) {
        let platform = Platform::builtin("optane").unwrap();
        prop_assert_eq!(run(&platform, &threads), run(&platform, &threads));
    }

    /// Stopping and going on changes nothing.
    #[test]
    fn a_run_in_pieces_is_the_run(threads in any_threads(), piece in 1u64..2_000_000) {
        let platform = Platform::builtin("optane-ni").unwrap();
        let whole = run(&platform, &threads).0;
        let mut machine = Machine::new(&platform);
        let mut programs: Vec<_> = threads.iter().map(|ops| List(ops.clone().into_iter())).collect();
        while machine.advance(&mut programs, machine.now() + piece) {}
        let pieces = machine.counters();
        prop_assert_eq!(pieces.core, whole.core);
        prop_assert_eq!(pieces.dimms, whole.dimms);
    }

    /// One thread on one DIMM knows nothing of the other cores, of the power left over, or of DIMMs that are not there.
    #[test]
    fn one_thread_does_not_feel_what_it_does_not_use(ops in prop::collection::vec(any_op(), 1..400)) {
        let base = Platform::builtin("optane-ni").unwrap();
        let mut other = base.clone();
        other.core.count = 3;
        other.imc.controllers = 7;
        other.imc.wpq += 17;
        let threads = [ops];
        prop_assert_eq!(run(&base, &threads), run(&other, &threads));
    }

    #[test]
    fn every_request_completes_once_and_in_order(
        requests in prop::collection::vec((any::<bool>(), 0u64..1 << 20, 0u64..500_000, 0u32..24), 1..300),
        name in prop::sample::select(vec!["optane", "optane-ni", "dram", "dram-remote"]),
    ) {
        let mut memory = MemorySystem::new(&Platform::builtin(name).unwrap());
        let mut at = 0;
        let mut submitted = Vec::new();
        for (write, line, gap, source) in requests {
            at += gap;
            let kind = if write { RequestKind::Write } else { RequestKind::Read };
            let ticket = memory.submit(Request { kind, address: line * 64, at, source }).unwrap();
            submitted.push((ticket, at));
        }
        let mut completed = Vec::new();
        let mut last = 0;
        while let Some(completion) = memory.poll(u64::MAX) {
            prop_assert!(completion.at >= last);
            prop_assert!(completion.at >= submitted[completion.ticket as usize].1);
            last = completion.at;
            completed.push(completion.ticket);
        }
        completed.sort_unstable();
        prop_assert_eq!(completed, submitted.iter().map(|s| s.0).collect::<Vec<_>>());
    }
}
