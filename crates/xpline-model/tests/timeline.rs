//! Timelines: what requests pass through adds up, and to look at them changes nothing.

use std::collections::BTreeSet;

use proptest::prelude::*;
use xpline_model::{Counters, Event, Machine, Op, OpKind, Part, Platform, Program, Span, Traced};

struct List(std::vec::IntoIter<Op>);

impl Program for List {
    fn next_op(&mut self) -> Option<Op> {
        self.0.next()
    }
}

fn run<P: Program>(platform: &Platform, threads: &[Vec<Op>], wrap: impl Fn(List) -> P) -> (Counters, Vec<P>) {
    let mut programs: Vec<P> = threads.iter().map(|ops| wrap(List(ops.clone().into_iter()))).collect();
    let counters = Machine::new(platform).run(&mut programs);
    (counters, programs)
}

/// Spans that follow each other without a gap from one moment to another.
fn tile(mut spans: Vec<Span>, from: u64, until: u64) {
    spans.sort_by_key(|span| (span.from, span.until));
    let end = spans.iter().fold(from, |end, span| {
        assert_eq!(span.from, end, "{spans:?}");
        span.until
    });
    assert_eq!(end, until, "{spans:?}");
}

/// The time of a request is that of the parts outside of DIMMs and of the DIMM, and that of the DIMM is that of the parts inside.
fn adds_up(event: &Event) {
    let all: Vec<Span> = event.spans.iter().chain(&event.behind).copied().collect();
    let outside = |spans: &[Span]| spans.iter().copied().filter(|span| !span.part.is_in_dimm()).collect();
    if !event.spans.is_empty() {
        tile(outside(&event.spans), event.from, event.until);
    }
    let dimms: Vec<&Span> = all.iter().filter(|span| matches!(span.part, Part::Dimm(..))).collect();
    assert!(dimms.len() <= 1);
    for dimm in dimms {
        tile(
            all.iter().copied().filter(|span| span.part.is_in_dimm()).collect(),
            dimm.from,
            dimm.until,
        );
    }
}

fn any_op() -> impl Strategy<Value = Op> {
    (0..OpKind::ALL.len(), 0..1u64 << 14).prop_map(|(kind, line)| {
        let size = if OpKind::ALL[kind] == OpKind::Compute { 10 } else { 64 };
        let addr = if OpKind::ALL[kind] == OpKind::Compute {
            0
        } else {
            line * 64
        };
        Op::new(OpKind::ALL[kind], addr, size)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn parts_add_up_and_looking_changes_nothing(
        threads in prop::collection::vec(prop::collection::vec(any_op(), 0..300), 1..5),
        name in prop::sample::select(vec!["optane", "optane-ni", "dram", "optane-remote"]),
    ) {
        let platform = Platform::builtin(name).unwrap();
        let own = |(thread, ops): (usize, &Vec<Op>)| -> Vec<Op> {
            let moved = |op: &Op| if op.kind == OpKind::Compute { *op } else {
                Op { addr: op.addr + ((thread as u64) << 31), ..*op }
            };
            ops.iter().map(moved).collect()
        };
        let threads: Vec<Vec<Op>> = threads.iter().enumerate().map(own).collect();
        let (usual, _) = run(&platform, &threads, |list| list);
        let (traced, programs) = run(&platform, &threads, Traced::new);
        prop_assert_eq!(usual, traced);
        programs.iter().flat_map(Traced::events).for_each(adds_up);
    }
}

#[test]
fn a_sample_is_bursts_ever_further_apart() {
    let loads = (0..5000).map(|line| Op::new(OpKind::Load, line * 4096, 64)).collect();
    let (_, programs) = run(&Platform::builtin("dram").unwrap(), &[loads], Traced::new);
    let events = programs[0].events().iter();
    let requests: Vec<u64> = events.filter_map(|event| Some(event.address? / 4096)).collect();
    let bursts = [0, 1024, 2048, 4096].map(|start| start..start + 128);
    assert_eq!(requests, bursts.into_iter().flatten().collect::<Vec<u64>>());
}

#[test]
fn every_part_of_an_optane_dimm_is_seen_at_work() {
    let mixed = |thread: u64| -> Vec<Op> {
        let line = |number: u64| (thread << 31) + number * 7919 * 64 % (1 << 30);
        (0..2000)
            .map(|number| {
                let kind = if number % 3 == 0 { OpKind::NtStore } else { OpKind::Load };
                Op::new(kind, line(number), 64)
            })
            .collect()
    };
    let threads: Vec<Vec<Op>> = (0..8).map(mixed).collect();
    let (_, programs) = run(&Platform::builtin("optane-ni").unwrap(), &threads, Traced::new);
    let events = programs.iter().flat_map(Traced::events);
    let seen: BTreeSet<String> = events
        .flat_map(|event| event.spans.iter().chain(&event.behind))
        .map(|span| span.part.name())
        .collect();
    for part in [
        "mesh",
        "optane DIMM 0",
        "AIT miss",
        "media read",
        "wait: media port",
        "wait: room in write pending queue",
        "wait: earlier writes",
        "wait: XPBuffer line to be emptied",
        "XPBuffer and controller",
    ] {
        assert!(seen.contains(part), "{part} is not in {seen:?}");
    }
}
