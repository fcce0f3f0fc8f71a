//! What a watched program is told: every commit, every fetch, and time that adds up; and what the media wrote.

use proptest::prelude::*;
use xpline_model::{Fetch, Machine, Op, OpKind, Platform, Program, Time, Wait};

/// Ops, and what the machine tells of them.
#[derive(Default)]
struct Watched {
    ops: std::vec::IntoIter<Op>,
    buffered: u64,
    committed: Vec<Time>,
    fetches: Vec<Fetch>,
    waited: Time,
    last_wait_end: Time,
    ended_at: Time,
}

impl Watched {
    fn new(mut ops: Vec<Op>) -> Self {
        ops.push(Op::new(OpKind::Mfence, 0, 0));
        ops.push(Op::new(OpKind::Stamp, 0, 0));
        Self {
            ops: ops.into_iter(),
            ..Self::default()
        }
    }
}

impl Program for Watched {
    const WATCHED: bool = true;

    fn next_op(&mut self) -> Option<Op> {
        let op = self.ops.next()?;
        let in_order = [
            OpKind::Store,
            OpKind::NtStore,
            OpKind::Clwb,
            OpKind::ClflushOpt,
            OpKind::Clflush,
            OpKind::Sfence,
        ];
        self.buffered += u64::from(in_order.contains(&op.kind));
        Some(op)
    }

    fn stamp(&mut self, now: Time) {
        self.ended_at = now;
    }

    fn fetched(&mut self, fetch: Fetch) {
        self.fetches.push(fetch);
    }

    fn committed(&mut self, at: Time) {
        self.committed.push(at);
    }

    fn waited(&mut self, from: Time, until: Time, _on: Wait) {
        assert!(from >= self.last_wait_end, "waits do not overlap");
        self.last_wait_end = until;
        self.waited += until - from;
    }
}

/// The same ops, unwatched.
struct Plain(Watched);

impl Program for Plain {
    fn next_op(&mut self) -> Option<Op> {
        self.0.next_op()
    }
}

fn any_op() -> impl Strategy<Value = Op> {
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
    (0..kinds.len(), 0..4096u64).prop_map(move |(kind, line)| match kinds[kind] {
        OpKind::Compute => Op::new(OpKind::Compute, 0, line as u32 % 64),
        kind => Op::new(kind, line * 64, 64),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn watching_changes_nothing_and_leaves_nothing_out(
        threads in proptest::collection::vec(proptest::collection::vec(any_op(), 1..3000), 1..4),
        platform in prop_oneof![Just("optane"), Just("optane-ni"), Just("dram")],
    ) {
        let platform = Platform::builtin(platform).unwrap();
        let mut watched: Vec<Watched> = threads.iter().cloned().map(Watched::new).collect();
        let mut plain: Vec<Plain> = threads.into_iter().map(|ops| Plain(Watched::new(ops))).collect();
        let mut machine = Machine::new(&platform);
        machine.watch_media();
        let counters = machine.run(&mut watched);
        prop_assert_eq!(&counters, &Machine::new(&platform).run(&mut plain));
        for program in &watched {
            prop_assert_eq!(program.committed.len() as u64, program.buffered);
            prop_assert!(program.committed.is_sorted());
            prop_assert!(program.waited <= program.ended_at);
            prop_assert!(program.fetches.iter().all(|fetch| fetch.done > fetch.asked));
        }
        let mut written = 0;
        machine.take_media_writes(|write| {
            assert!(write.address < 4096 * 64 && write.address.is_multiple_of(256) && write.pieces != 0);
            written += 1;
        });
        let is_optane = platform.name != "dram";
        prop_assert_eq!(written, if is_optane { counters.dimm_total().media_writes } else { 0 });
        machine.take_media_writes(|_| panic!("told twice"));
    }
}
