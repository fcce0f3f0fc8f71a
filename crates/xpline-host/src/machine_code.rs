//! The machine code of kernels, looked at: the instructions that the plan names are in the loop, and nothing else there
//! touches memory. And what they do is what the model's threads do.

use std::collections::BTreeMap;

use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, Register,
};
use xpline_lattester::{Point, streams};
use xpline_model::{OpKind, Platform, Program};

use crate::kernel::{Fence, Flush, Isa, Kernel, LINE, Step, Touch, Walk, assemble};
use crate::options::{Options, Target};
use crate::plan::{Plan, plan};

/// A point of every experiment that runs on mapped memory, in every way that makes another kernel.
const POINTS: &[&str] = &[
    r#"{"experiment": "random", "op": "load", "size": 64, "threads": 1}"#,
    r#"{"experiment": "random", "op": "ntstore", "size": 192, "threads": 2}"#,
    r#"{"experiment": "random", "op": "store+clwb", "size": 4096, "threads": 1}"#,
    r#"{"experiment": "stride", "op": "load", "size": 256, "stride": 256, "fence": 64, "threads": 1}"#,
    r#"{"experiment": "stride", "op": "ntstore", "size": 512, "stride": 4096, "fence": 256, "threads": 1}"#,
    r#"{"experiment": "stride", "op": "store", "size": 3136, "stride": 0, "threads": 1}"#,
    r#"{"experiment": "stride", "op": "store", "size": 128, "stride": 64, "threads": 1}"#,
    r#"{"experiment": "flush", "pattern": "sequential", "size": 256, "clwb": 64, "fence": 256, "threads": 1}"#,
    r#"{"experiment": "flush", "pattern": "random", "size": 8192, "clwb": 4096, "fence": 4096, "threads": 1}"#,
    r#"{"experiment": "align", "op": "ntstore", "size": 256, "binding": "own-all", "threads": 2}"#,
    r#"{"experiment": "align", "op": "load", "size": 256, "binding": "own-all", "fenced": true, "threads": 1}"#,
    r#"{"experiment": "latency", "op": "load", "pattern": "random"}"#,
    r#"{"experiment": "latency", "op": "ntstore", "pattern": "sequential"}"#,
    r#"{"experiment": "latency", "op": "store+clwb", "pattern": "random"}"#,
    r#"{"experiment": "persist-latency", "op": "ntstore", "size": 256}"#,
    r#"{"experiment": "persist-latency", "op": "store+clwb", "size": 4096}"#,
    r#"{"experiment": "xpbuffer", "lines": 16}"#,
    r#"{"experiment": "chase", "region": 65536}"#,
    r#"{"experiment": "chase", "region": 65536, "mask": 4096}"#,
    r#"{"experiment": "chase", "region": 65536, "cached": true}"#,
    r#"{"experiment": "wear", "op": "ntstore", "size": 256}"#,
    r#"{"experiment": "tail", "op": "store+clwb", "region": 4096}"#,
];

/// Platform and region of the model's streams, which have 2 GiB a thread.
fn planned(text: &str) -> (Point, Plan) {
    let point = Point::parse(text).unwrap();
    let plan = plan(&point, &Target::Anonymous { node: None }, &Options::default()).unwrap();
    (point, plan)
}

/// The instructions of the loop over accesses: from where its last jump goes, to that jump.
fn decoded_loop(code: &[u8]) -> Vec<Instruction> {
    let all: Vec<Instruction> = Decoder::with_ip(64, code, 0, DecoderOptions::NONE)
        .into_iter()
        .collect();
    assert!(
        all.iter().all(|one| one.code() != Opcode::INVALID),
        "every byte belongs to an instruction"
    );
    assert_eq!(all.last().unwrap().mnemonic(), Mnemonic::Ret);
    let jump = all
        .iter()
        .rposition(|one| one.flow_control() == FlowControl::ConditionalBranch)
        .unwrap();
    let top = all[jump].near_branch_target();
    all[..=jump].iter().filter(|one| one.ip() >= top).copied().collect()
}

/// The instruction of a touch, and how many of it a line takes.
fn instruction(touch: Touch, isa: Isa, flush: Flush) -> (Mnemonic, u64) {
    let pieces = LINE / isa.bytes();
    match (touch, isa) {
        (Touch::Load | Touch::Store, Isa::Avx512) => (Mnemonic::Vmovdqa64, pieces),
        (Touch::Load | Touch::Store, Isa::Avx2) => (Mnemonic::Vmovdqa, pieces),
        (Touch::Load | Touch::Store, Isa::Sse2) => (Mnemonic::Movdqa, pieces),
        (Touch::NtStore, Isa::Avx512 | Isa::Avx2) => (Mnemonic::Vmovntdq, pieces),
        (Touch::NtStore, Isa::Sse2) => (Mnemonic::Movntdq, pieces),
        (Touch::Flush, _) => match flush {
            Flush::Clwb => (Mnemonic::Clwb, 1),
            Flush::ClflushOpt => (Mnemonic::Clflushopt, 1),
            Flush::Clflush => (Mnemonic::Clflush, 1),
        },
        (Touch::Evict, _) => (Mnemonic::Clflushopt, 1),
        (Touch::LoadWord | Touch::StoreWord, _) => (Mnemonic::Mov, 1),
        (Touch::NtStoreWord, _) => (Mnemonic::Movnti, 1),
    }
}

/// Add up the instructions of steps that touch memory, as often as they stand in the code.
fn expected(steps: &[Step], isa: Isa, flush: Flush, found: &mut BTreeMap<String, u64>) {
    for step in steps {
        match step {
            Step::Lines { touches, count } => {
                let standing = if *count >= 32 { 32 } else { 0 } + count % 32;
                for &touch in touches {
                    let (mnemonic, pieces) = instruction(touch, isa, flush);
                    *found.entry(format!("{mnemonic:?}")).or_default() += standing * pieces;
                }
            }
            Step::Repeat(times, steps) if *times > 0 => expected(steps, isa, flush, found),
            _ => {}
        }
    }
}

fn fences(steps: &[Step], found: &mut BTreeMap<String, u64>) {
    for step in steps {
        match step {
            Step::Fence(fence) => *found.entry(format!("{fence:?}")).or_default() += 1,
            Step::Repeat(times, steps) if *times > 0 => fences(steps, found),
            _ => {}
        }
    }
}

/// Compare the loop of a kernel with its description.
fn check(kernel: &Kernel, isa: Isa, flush: Flush, what: &str) {
    let code = decoded_loop(&assemble(kernel, isa, flush));
    let (mut wanted, mut wanted_fences) = (BTreeMap::new(), BTreeMap::new());
    for steps in [&kernel.before, &kernel.body, &kernel.after] {
        expected(steps, isa, flush, &mut wanted);
        fences(steps, &mut wanted_fences);
    }
    if kernel.timed {
        *wanted.entry("Mov".into()).or_default() += 1; // the sample
        *wanted_fences.entry("Lfence".into()).or_default() += 3;
    }
    if kernel.walk == Walk::Chain {
        *wanted.entry("Mov".into()).or_default() += 1; // the next link
    }
    let mut factory = InstructionInfoFactory::new();
    let (mut touching, mut fencing) = (BTreeMap::new(), BTreeMap::new());
    for one in &code {
        let mnemonic = format!("{:?}", one.mnemonic());
        if matches!(one.mnemonic(), Mnemonic::Lfence | Mnemonic::Sfence | Mnemonic::Mfence) {
            *fencing.entry(mnemonic.clone()).or_default() += 1;
        }
        let used = factory.info(one).used_memory().to_vec();
        if used.is_empty() || one.mnemonic() == Mnemonic::Lea {
            continue;
        }
        *touching.entry(mnemonic).or_default() += 1;
        let base = used[0].base();
        let is_sample = kernel.timed && base == Register::RBX;
        assert!(
            used.len() == 1 && used[0].index() == Register::None,
            "{what}, {isa}: {one:?}"
        );
        assert!(
            base == Register::R11 || is_sample,
            "{what}, {isa}: {one:?} touches memory elsewhere"
        );
    }
    assert_eq!(
        touching,
        wanted,
        "{what}, {isa}, {}: instructions that touch memory",
        flush.name()
    );
    assert_eq!(fencing, wanted_fences, "{what}, {isa}: fences");
    let calls = code
        .iter()
        .filter(|one| !matches!(one.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch));
    assert_eq!(calls.count(), 0, "{what}: the loop stays within itself");
}

#[test]
fn the_instructions_named_are_there_and_nothing_else_touches_memory() {
    for text in POINTS {
        let (_, plan) = planned(text);
        for isa in Isa::ALL {
            for flush in Flush::ALL {
                check(&plan.kernel, isa, flush, text);
            }
        }
    }
}

/// A line op of the model, or of a kernel: its kind and its address.
type Does = (OpKind, u64);

/// What the model's thread does, without making addresses and reading clocks.
fn of_model(point: &Point, count: usize) -> Vec<Does> {
    let platform = Platform::builtin("optane").unwrap();
    let mut stream = streams(&platform, point).swap_remove(0);
    let mut time = 0;
    let mut done = vec![];
    while done.len() < count {
        let op = stream.next_op().unwrap();
        match op.kind {
            OpKind::Stamp => {
                time += 1;
                stream.stamp(time);
            }
            OpKind::Compute => {}
            kind => done.push((kind, op.addr)),
        }
    }
    done
}

/// What a kernel does, by its description.
fn of_kernel(plan: &Plan, count: usize) -> Vec<Does> {
    let mut done = vec![];
    let mut rng = xpline_lattester::Rng::from_state(plan.threads[0].rng);
    let mut next = 0;
    while done.len() < count {
        let mut at = match plan.kernel.walk {
            Walk::Random { places, size } => rng.below(places) * size,
            Walk::Masked { lines, mask } => spread(rng.below(lines) * LINE, mask),
            Walk::Ring { stride, last } => {
                let at = next;
                next = if next == last { 0 } else { next + stride };
                at
            }
            ref other => unreachable!("{other:?}"),
        };
        for steps in [&plan.kernel.before, &plan.kernel.body, &plan.kernel.after] {
            follow(steps, &mut at, &mut done);
        }
    }
    done.truncate(count);
    done
}

fn follow(steps: &[Step], at: &mut u64, done: &mut Vec<Does>) {
    for step in steps {
        match step {
            Step::Lines { touches, count } => {
                for _ in 0..*count {
                    done.extend(touches.iter().map(|touch| {
                        let kind = match touch {
                            Touch::Load | Touch::LoadWord => OpKind::Load,
                            Touch::NtStore | Touch::NtStoreWord => OpKind::NtStore,
                            Touch::Store | Touch::StoreWord => OpKind::Store,
                            Touch::Flush => OpKind::Clwb,
                            Touch::Evict => OpKind::ClflushOpt,
                        };
                        (kind, *at)
                    }));
                    *at += LINE;
                }
            }
            Step::Move(bytes) => *at = at.wrapping_add_signed(*bytes),
            Step::Fence(Fence::Sfence) => done.push((OpKind::Sfence, 0)),
            Step::Fence(_) => done.push((OpKind::Mfence, 0)),
            Step::Repeat(times, steps) => (0..*times).for_each(|_| follow(steps, at, done)),
            Step::Spin(_) => {}
        }
    }
}

/// The bits of an offset in the places outside a mask, one by one.
fn spread(offset: u64, mask: u64) -> u64 {
    let outside = (0..64).filter(|bit| mask & 1 << bit == 0);
    outside.enumerate().map(|(from, to)| (offset >> from & 1) << to).sum()
}

#[test]
fn kernels_do_what_the_threads_of_the_model_do() {
    for text in POINTS {
        let (point, plan) = planned(text);
        if plan.chain.is_some() {
            continue; // a chain visits each line once, the model's loads are drawn one by one
        }
        // Single loads end in an mfence on the model; on the host the second reading of the clock waits for them.
        let is_single_load = text.contains("latency") && text.contains("load") && !text.contains("persist");
        let model = of_model(&point, 2000).into_iter();
        let model: Vec<Does> = model
            .filter(|(kind, _)| !is_single_load || *kind != OpKind::Mfence)
            .collect();
        // A reading of the clock waits for no store: where the model ends in an sfence, the host has an mfence after it.
        let mut last = None;
        let kernel = of_kernel(&plan, 2 * model.len()).into_iter().filter(|&(kind, _)| {
            let before = last.replace(kind);
            kind != OpKind::Mfence || before != Some(OpKind::Sfence)
        });
        assert_eq!(kernel.take(model.len()).collect::<Vec<_>>(), model, "{text}");
    }
}
