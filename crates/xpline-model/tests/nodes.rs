//! Two sockets: what the link and the directory cost, worked out by hand, and what placement never changes.

use proptest::prelude::*;
use xpline_model::{Counters, Machine, Op, OpKind, Platform, Program, Time};

#[derive(Default)]
struct List {
    ops: std::collections::VecDeque<Op>,
    stamps: Vec<Time>,
}

impl Program for List {
    fn next_op(&mut self) -> Option<Op> {
        self.ops.pop_front()
    }

    fn stamp(&mut self, now: Time) {
        self.stamps.push(now);
    }
}

const STAMP: Op = Op::new(OpKind::Stamp, 0, 0);
const MFENCE: Op = Op::new(OpKind::Mfence, 0, 0);

fn platform(name: &str, sets: &[&str]) -> Platform {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    Platform::load(name, &sets, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap()
}

fn op(kind: OpKind, line: u64) -> Op {
    Op::new(kind, line * 64, 64)
}

fn run(platform: &Platform, threads: &[Vec<Op>]) -> (Counters, Vec<Vec<Time>>) {
    let list = |ops: &Vec<Op>| List {
        ops: ops.iter().copied().collect(),
        stamps: Vec::new(),
    };
    let mut programs: Vec<List> = threads.iter().map(list).collect();
    let counters = Machine::new(platform).run(&mut programs);
    (counters, programs.into_iter().map(|program| program.stamps).collect())
}

/// Time of `ops` between two fenced clock readings, after `before`.
fn timed(platform: &Platform, before: &[Op], ops: &[Op]) -> Time {
    let all = [before, &[MFENCE, STAMP], ops, &[MFENCE, STAMP]].concat();
    let stamps = run(platform, &[all]).1.remove(0);
    stamps[1] - stamps[0]
}

#[test]
fn a_load_crosses_the_link_twice() {
    for (near, far) in [("dram", "dram-remote"), ("optane", "optane-remote")] {
        let (near, far) = (platform(near, &[]), platform(far, &[]));
        let load = [op(OpKind::Load, 5)];
        assert_eq!(timed(&far, &[], &load) - timed(&near, &[], &load), 2 * far.link.latency);
    }
}

#[test]
fn an_ntstore_asks_first_and_then_sends() {
    let (near, far) = (platform("dram", &[]), platform("dram-remote", &[]));
    let store = [op(OpKind::NtStore, 5)];
    let longer = timed(&far, &[], &store) - timed(&near, &[], &store);
    assert_eq!(longer, 4 * far.link.latency + far.link.grant);
}

#[test]
fn a_flush_sends_what_the_core_owns() {
    let (near, far) = (platform("dram", &[]), platform("dram-remote", &[]));
    let store = [op(OpKind::Store, 5), MFENCE];
    let flush = [op(OpKind::Clwb, 5)];
    let longer = timed(&far, &store, &flush) - timed(&near, &store, &flush);
    assert_eq!(longer, 2 * far.link.latency);
}

#[test]
fn the_directory_writes_when_the_other_socket_holds_more_than_before() {
    let far = platform("optane-remote", &[]);
    let writes = |ops: &[Op]| {
        // Loads far away let the directory's writes go.
        let after = [
            MFENCE,
            op(OpKind::Load, 1 << 20),
            MFENCE,
            op(OpKind::Load, 1 << 21),
            MFENCE,
        ];
        run(&far, &[[ops, &after].concat()]).0.dimm_total().writes
    };
    let none = writes(&[]);
    let (load, store, flush) = (op(OpKind::Load, 5), op(OpKind::Store, 5), op(OpKind::Clflush, 5));
    assert_eq!(writes(&[load]) - none, 1);
    assert_eq!(writes(&[store]) - none, 1);
    // The entry says already that the line is read over there, or owned.
    assert_eq!(writes(&[load, flush, MFENCE, load]) - none, 1);
    // The write-back carries the entry along; then the line must be asked for again.
    assert_eq!(writes(&[store, flush, MFENCE]) - none, 2);
    assert_eq!(writes(&[store, flush, MFENCE, load]) - none, 3);
    assert_eq!(writes(&[op(OpKind::NtStore, 5), MFENCE]) - none, 1);
}

#[test]
fn a_run_that_read_everything_before_reads_without_directory_writes() {
    let far = platform("optane-remote", &[]);
    let mut machine = Machine::new(&far);
    machine.presume_read();
    let ops = (0..200).map(|line| op(OpKind::Load, line)).collect();
    let counters = machine.run(&mut [List { ops, stamps: vec![] }]);
    assert_eq!(counters.dimm_total().writes, 0);
}

#[test]
fn without_a_directory_in_memory_nothing_is_written_for_it() {
    let far = platform("optane-remote", &["link.directory=false"]);
    let ops = (0..200).flat_map(|line| [op(OpKind::Load, line), MFENCE]).collect();
    assert_eq!(run(&far, &[ops]).0.dimm_total().writes, 0);
}

#[test]
fn a_directory_write_holds_up_reads_of_its_xpline_only() {
    let (held, free) = (
        platform("optane-remote", &[]),
        platform("optane-remote", &["link.directory_hold=0ns"]),
    );
    let first = [op(OpKind::Load, 0)];
    let (same, next) = ([op(OpKind::Load, 1)], [op(OpKind::Load, 4)]);
    assert!(timed(&held, &first, &same) > timed(&free, &first, &same) + 20_000);
    assert_eq!(timed(&held, &first, &next), timed(&free, &first, &next));
}

#[test]
fn pages_of_memory_on_both_sockets_take_turns() {
    let both = platform("dram", &["nodes.memory=both", "dram.refresh_halts=false"]);
    let latency = |page: u64| timed(&both, &[], &[op(OpKind::Load, page * 64)]);
    assert_eq!(latency(1) - latency(0), 2 * both.link.latency);
    assert_eq!(latency(0), latency(2));
    let (counters, _) = run(&both, &[(0..512).map(|line| op(OpKind::Load, line)).collect()]);
    assert_eq!(counters.dimms.len(), 12);
    let reads = |dimms: &[xpline_model::DimmCounters]| dimms.iter().map(|dimm| dimm.reads).sum::<u64>();
    assert_eq!((reads(&counters.dimms[..6]), reads(&counters.dimms[6..])), (256, 256));
}

#[test]
fn threads_on_both_sockets_take_turns() {
    let both = platform("dram", &["nodes.cpu=both"]);
    let thread = |line| vec![MFENCE, STAMP, op(OpKind::Load, line), MFENCE, STAMP];
    // The second thread starts later, so that it meets an idle memory.
    let second = [vec![Op::compute_for(1, 10_000_000)], thread(1 << 20)].concat();
    let (_, stamps) = run(&both, &[thread(5), second]);
    let latency = |stamps: &[Time]| stamps[1] - stamps[0];
    assert_eq!(latency(&stamps[1]) - latency(&stamps[0]), 2 * both.link.latency);
}

/// What one thread leaves in the L3 is pushed out by another thread of its socket, and not by one of the other socket.
#[test]
fn each_socket_has_an_l3() {
    let again = |cpu: &str| {
        let small = ["l1d.size=4KiB", "l2.size=16KiB", "l3.size=132KiB", cpu];
        let left = (0..512).map(|line| op(OpKind::Load, line));
        let later = [Op::compute_for(1, 1_000_000_000), MFENCE, STAMP];
        let first: Vec<Op> = left.chain(later).chain([op(OpKind::Load, 0), MFENCE, STAMP]).collect();
        let loads = (1 << 20..(1 << 20) + 10_000).map(|line| op(OpKind::Load, line));
        let second = std::iter::once(Op::compute_for(1, 100_000_000)).chain(loads).collect();
        let (_, stamps) = run(&platform("dram", &small), &[first, second]);
        stamps[0][1] - stamps[0][0]
    };
    let (alone, beside) = (again("nodes.cpu=both"), again("nodes.cpu=0"));
    assert!(
        alone + 40_000 < beside,
        "{alone} ps from an L3 of its own, {beside} ps from memory"
    );
}

#[test]
fn a_line_that_the_other_socket_owns_is_asked_back() {
    let both = platform("dram", &["nodes.cpu=both"]);
    // Another line of the row that the writer has opened.
    let (line, other) = (op(OpKind::Load, 5), op(OpKind::Load, 6));
    let reader = |line| vec![Op::compute_for(1, 10_000_000), MFENCE, STAMP, line, MFENCE, STAMP];
    let writer = vec![op(OpKind::Store, 5), MFENCE];
    let latency = |line| {
        let (_, stamps) = run(&both, &[reader(line), writer.clone()]);
        stamps[0][1] - stamps[0][0]
    };
    assert_eq!(latency(line) - latency(other), 2 * both.link.latency);
}

fn any_threads() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let any_op = (prop::sample::select(OpKind::ALL.to_vec()), 0u64..4096)
        .prop_map(|(kind, line)| Op::new(kind, line * 64, if kind == OpKind::Stamp { 0 } else { 64 }));
    prop::collection::vec(prop::collection::vec(any_op, 0..300), 1..5).prop_map(|threads| {
        let own = |(thread, ops): (usize, Vec<Op>)| {
            let own = |op: Op| Op {
                addr: op.addr + ((thread as u64) << 31),
                ..op
            };
            ops.into_iter().map(own).collect()
        };
        threads.into_iter().enumerate().map(own).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Which of the two sockets both are on is only a name.
    #[test]
    fn the_other_socket_is_like_this_one(threads in any_threads()) {
        let here = run(&platform("optane", &[]), &threads);
        let there = run(&platform("optane", &["nodes.cpu=1", "nodes.memory=1"]), &threads);
        prop_assert_eq!(&here, &there);
        let across = run(&platform("optane", &["nodes.memory=1"]), &threads);
        prop_assert_eq!(&across, &run(&platform("optane", &["nodes.cpu=1"]), &threads));
        prop_assert_eq!(across, run(&platform("optane-remote", &[]), &threads));
    }

    /// Placement adds directory writes, one for each line asked for at most, and changes nothing else of what is done.
    #[test]
    fn every_op_is_done_wherever_it_goes(
        threads in any_threads(),
        cpu in prop::sample::select(vec!["0", "1", "both"]),
        memory in prop::sample::select(vec!["0", "1", "both"]),
    ) {
        let sets = [format!("nodes.cpu={cpu}"), format!("nodes.memory={memory}")];
        let placed = platform("optane", &[&sets[0], &sets[1]]);
        let (near, _) = run(&platform("optane", &[]), &threads);
        let (far, _) = run(&placed, &threads);
        prop_assert_eq!(near.core, far.core);
        let (near, far) = (near.dimm_total(), far.dimm_total());
        prop_assert!(far.writes <= near.writes + far.reads);
        prop_assert!(far.media_writes <= far.writes);
    }
}
