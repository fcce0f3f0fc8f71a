//! The machine on small cases worked out by hand.

use xpline_model::{Counters, Machine, Op, OpKind, Platform, Program, Time};

/// A list of ops; remembers the clock readings.
#[derive(Clone, Default)]
struct List {
    ops: std::collections::VecDeque<Op>,
    stamps: Vec<Time>,
    latencies: Vec<Time>,
}

impl List {
    fn new(ops: impl IntoIterator<Item = Op>) -> Self {
        Self {
            ops: ops.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl Program for List {
    fn next_op(&mut self) -> Option<Op> {
        self.ops.pop_front()
    }

    fn stamp(&mut self, now: Time) {
        self.stamps.push(now);
    }

    fn loaded(&mut self, latency: Time) {
        self.latencies.push(latency);
    }
}

fn op(kind: OpKind, line: u64) -> Op {
    Op::new(kind, line * 64, 64)
}

fn run(platform: &Platform, ops: impl IntoIterator<Item = Op>) -> (Counters, Vec<Time>) {
    let mut programs = [List::new(ops)];
    let counters = Machine::new(platform).run(&mut programs);
    let [program] = programs;
    (counters, program.stamps)
}

fn ni() -> Platform {
    Platform::builtin("optane-ni").unwrap()
}

fn optane(platform: &Platform) -> &xpline_model::platform::Optane {
    match &platform.memory {
        xpline_model::platform::Memory::Optane(optane) => optane,
        _ => panic!("not an Optane platform"),
    }
}

/// Latency of the op between two clock readings.
fn timed(platform: &Platform, before: &[Op], ops: &[Op]) -> Time {
    let stamp = Op::new(OpKind::Stamp, 0, 0);
    let fence = Op::new(OpKind::Mfence, 0, 0);
    let all = [before, &[fence, stamp], ops, &[fence, stamp]].concat();
    let (_, stamps) = run(platform, all);
    stamps[1] - stamps[0]
}

#[test]
fn a_cold_load_pays_every_part_of_the_way_once() {
    let platform = ni();
    let (mesh, optane, core) = (&platform.mesh, optane(&platform), &platform.core);
    let expected = mesh.request
        + optane.ait.miss_latency
        + optane.media.read_latency
        + optane.xpbuffer.hit_latency
        + mesh.response
        + core.fence
        + core.stamp;
    assert_eq!(timed(&platform, &[], &[op(OpKind::Load, 0)]), expected);
}

#[test]
fn the_neighbour_in_the_xpline_is_in_the_xpbuffer() {
    let platform = ni();
    let (mesh, optane, core) = (&platform.mesh, optane(&platform), &platform.core);
    let expected = mesh.request + optane.xpbuffer.hit_latency + mesh.response + core.fence + core.stamp;
    assert_eq!(
        timed(&platform, &[op(OpKind::Load, 0)], &[op(OpKind::Load, 1)]),
        expected
    );
}

#[test]
fn the_same_line_again_is_in_the_l1d() {
    let platform = ni();
    let expected = platform.l1d.hit + platform.core.fence + platform.core.stamp;
    assert_eq!(
        timed(&platform, &[op(OpKind::Load, 0)], &[op(OpKind::Load, 0)]),
        expected
    );
}

#[test]
fn an_ntstore_is_persistent_once_the_write_pending_queue_has_it() {
    let platform = ni();
    let (mesh, core) = (&platform.mesh, &platform.core);
    let way = mesh.request + core.nt_latency + mesh.response;
    // The fence waits for the acceptance, which comes later than the commit engine is free again.
    let cached = timed(&platform, &[op(OpKind::Load, 0)], &[op(OpKind::NtStore, 0)]);
    assert_eq!(cached, way + core.fence + core.stamp);
    let uncached = timed(&platform, &[], &[op(OpKind::NtStore, 0)]);
    assert_eq!(uncached, cached + core.nt_uncached);
}

#[test]
fn four_ntstores_of_an_xpline_are_one_media_write() {
    let (counters, _) = run(&ni(), (0..4).map(|line| op(OpKind::NtStore, line)));
    let dimm = counters.dimms[0];
    assert_eq!((dimm.writes, dimm.media_writes, dimm.media_reads), (4, 1, 0));
    assert_eq!(counters.ewr(), Some(1.0));
}

#[test]
fn partial_lines_are_read_and_written_when_the_buffer_is_full() {
    let platform = ni();
    let lines = u64::from(optane(&platform).xpbuffer.lines);
    // One 64 B piece of each of `lines + 8` XPLines: eight must leave, each read first for the other three pieces.
    let (counters, _) = run(&platform, (0..lines + 8).map(|xpline| op(OpKind::NtStore, 4 * xpline)));
    let dimm = counters.dimms[0];
    assert_eq!((dimm.writes, dimm.media_writes, dimm.media_reads), (lines + 8, 8, 8));
}

#[test]
fn clwb_writes_a_dirty_line_once() {
    let ops = [
        op(OpKind::Store, 0),
        op(OpKind::Clwb, 0),
        op(OpKind::Clwb, 0),
        op(OpKind::Sfence, 0),
    ];
    let (counters, _) = run(&ni(), ops);
    assert_eq!(counters.dimms[0].writes, 1);
    assert_eq!(counters.core.flushes, 2);
}

#[test]
fn whether_clwb_keeps_the_line_is_up_to_the_platform() {
    let ops = [
        op(OpKind::Store, 0),
        op(OpKind::Clwb, 0),
        op(OpKind::Mfence, 0),
        op(OpKind::Load, 0),
    ];
    for (keeps, reads) in [(false, 2), (true, 1)] {
        let mut platform = ni();
        platform.core.clwb_keeps_line = keeps;
        let (counters, _) = run(&platform, ops);
        assert_eq!(counters.dimms[0].reads, reads, "clwb_keeps_line = {keeps}");
    }
}

#[test]
fn clflush_drops_even_a_clean_line() {
    let ops = [
        op(OpKind::Load, 0),
        op(OpKind::Clflush, 0),
        op(OpKind::Mfence, 0),
        op(OpKind::Load, 0),
    ];
    let (counters, _) = run(&ni(), ops);
    assert_eq!((counters.dimms[0].reads, counters.dimms[0].writes), (2, 0));
}

#[test]
fn a_locked_operation_waits_for_what_came_before() {
    let platform = ni();
    let alone = timed(&platform, &[], &[op(OpKind::LockedRmw, 8)]);
    let behind = timed(&platform, &[], &[op(OpKind::Load, 0), op(OpKind::LockedRmw, 8)]);
    assert!(
        behind > alone + optane(&platform).media.read_latency,
        "{behind} after {alone}"
    );
}

#[test]
fn pages_go_round_the_dimms() {
    let platform = Platform::builtin("optane").unwrap();
    let (counters, _) = run(&platform, (0..6 * 64).map(|line| op(OpKind::NtStore, line)));
    assert!(
        counters.dimms.iter().all(|dimm| dimm.writes == 64),
        "{:?}",
        counters.dimms
    );
}

#[test]
fn a_row_of_dram_is_opened_once_for_neighbours() {
    let platform = Platform::builtin("dram").unwrap();
    let xpline_model::platform::Memory::Dram(dram) = &platform.memory else {
        panic!("not DRAM")
    };
    let far = dram.open_span / 64 * 1000;
    let hit = timed(&platform, &[op(OpKind::Load, 0)], &[op(OpKind::Load, 1)]);
    let miss = timed(&platform, &[op(OpKind::Load, 0)], &[op(OpKind::Load, far)]);
    assert_eq!(miss - hit, dram.trp + dram.trcd);
}

#[test]
fn a_flush_takes_the_line_from_a_store_that_asked_early() {
    let ops = [OpKind::Store, OpKind::Clwb, OpKind::Store, OpKind::Clwb, OpKind::Sfence].map(|kind| op(kind, 0));
    let mut platform = ni();
    let fetches = |platform: &Platform| run(platform, ops).0.dimms[0].reads;
    assert_eq!(fetches(&platform), 2);
    platform.core.clwb_keeps_line = true;
    assert_eq!(fetches(&platform), 1);
}

#[test]
fn ntstores_to_lines_under_way_go_one_at_a_time() {
    let platform = ni();
    let turns = |turns: usize| {
        timed(
            &platform,
            &[],
            &[op(OpKind::NtStore, 0), op(OpKind::NtStore, 64)].repeat(turns),
        )
    };
    // The first of them may go at once.
    assert_eq!(turns(2) - turns(1), platform.core.nt_interval + platform.core.nt_again);
    assert_eq!(turns(3) - turns(2), 2 * platform.core.nt_again);
}

#[test]
fn a_wrong_turn_waits_for_data_and_costs_more_behind_a_miss() {
    let platform = ni();
    let core = &platform.core;
    let (load, turn) = (op(OpKind::Load, 0), Op::new(OpKind::Mispredict, 0, 0));
    let nothing_under_way = core.mispredict + core.fence + core.stamp;
    assert_eq!(timed(&platform, &[load], &[turn]), nothing_under_way);
    let missed = timed(&platform, &[], &[load]);
    assert_eq!(timed(&platform, &[], &[load, turn]), missed + core.resume);
}

#[test]
fn a_hint_brings_its_line_and_nothing_waits_for_it() {
    let platform = ni();
    let core = &platform.core;
    let hint = op(OpKind::Prefetch, 0);
    assert_eq!(
        timed(&platform, &[], &[hint]),
        core.op_interval + core.fence + core.stamp
    );
    let later = Op::compute_for(0, 1_000_000);
    let in_the_l1d = platform.l1d.hit + core.fence + core.stamp;
    assert_eq!(timed(&platform, &[hint, later], &[op(OpKind::Load, 0)]), in_the_l1d);
}

#[test]
fn a_hint_is_dropped_where_every_fill_buffer_is_taken() {
    let platform = ni();
    let buffers = u64::from(platform.core.fill_buffers);
    let reads = |loads: u64| {
        let loads = (1..=loads).map(|line| op(OpKind::Load, 4 * line));
        run(&platform, loads.chain([op(OpKind::Prefetch, 0)])).0.dimms[0].reads
    };
    assert_eq!(reads(buffers - 1), buffers);
    assert_eq!(reads(buffers), buffers);
}

#[test]
fn a_line_to_be_written_comes_later_than_one_to_be_read() {
    let mut platform = ni();
    let ownership = platform.core.ownership;
    let store = [op(OpKind::Store, 0)];
    let with = timed(&platform, &[], &store);
    platform.core.ownership = 0;
    assert_eq!(with, timed(&platform, &[], &store) + ownership);
}

#[test]
fn stores_ask_early_for_their_lines_and_fewer_do_behind_a_flush() {
    let mut platform = ni();
    let stores: Vec<Op> = (0..8).map(|line| op(OpKind::Store, 4 * line)).collect();
    let flushed: Vec<Op> = stores
        .iter()
        .flat_map(|&store| {
            [
                store,
                Op {
                    kind: OpKind::Clwb,
                    ..store
                },
            ]
        })
        .collect();
    let early = [&stores, &flushed].map(|ops| timed(&platform, &[], ops));
    platform.core.flush_rfo_depth = 1;
    assert_eq!(timed(&platform, &[], &stores), early[0]);
    assert!(timed(&platform, &[], &flushed) > 2 * early[1]);
    platform.core.store_rfo_depth = 1;
    assert!(timed(&platform, &[], &stores) > 2 * early[0]);
}

/// 4 KiB are 16 spans of 256 B: every bank of a rank once, and 4 of 6 channels further.
#[test]
fn a_stride_of_4_kib_finds_one_bank_on_each_of_three_channels_of_dram() {
    let platform = Platform::builtin("dram").unwrap();
    let xpline_model::platform::Memory::Dram(dram) = &platform.memory else {
        panic!("dram is DRAM")
    };
    let loads: Vec<Op> = (0..24).map(|page| op(OpKind::Load, 64 * page)).collect();
    let (counters, _) = run(&platform, loads.iter().copied());
    let reads: Vec<u64> = counters
        .dimms
        .iter()
        .map(|dimm| dimm.reads)
        .filter(|&reads| reads > 0)
        .collect();
    assert_eq!(reads, [8, 8, 8]);
    // Eight rows of one bank, one after the other.
    assert!(timed(&platform, &[], &loads) > 7 * (dram.tras + dram.trp));
}

#[test]
fn instructions_take_the_time_they_say() {
    let platform = ni();
    let core = &platform.core;
    assert_eq!(
        timed(&platform, &[], &[Op::compute_for(3, 70_000)]),
        70_000 + core.fence + core.stamp
    );
}

#[test]
fn more_programs_than_cores_is_refused() {
    let mut platform = ni();
    platform.core.count = 1;
    let mut machine = Machine::new(&platform);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        machine.run(&mut [List::default(), List::default()])
    }));
    assert!(result.is_err());
}

#[test]
fn a_program_hears_how_long_its_loads_take() {
    let platform = ni();
    let fence = Op::new(OpKind::Mfence, 0, 0);
    let mut programs = [List::new([
        op(OpKind::Load, 0),
        fence,
        op(OpKind::Load, 0),
        op(OpKind::Store, 9),
    ])];
    Machine::new(&platform).run(&mut programs);
    let [from_memory, from_l1d] = programs[0].latencies[..] else {
        panic!("two loads")
    };
    assert_eq!(from_l1d, platform.l1d.hit);
    assert!(from_memory > platform.mesh.request + platform.mesh.response + optane(&platform).media.read_latency);
}
