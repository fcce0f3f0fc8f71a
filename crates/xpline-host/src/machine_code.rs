//! The machine code of kernels, looked at: the instructions that the plan names are in the loop, and nothing else there
//! touches memory. And what they do is what the model's threads do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, Register,
};
use xpline_lattester::{Experiment, Point, streams};
use xpline_model::{OpKind, Platform, Program};

use crate::kernel::{Fence, Flush, Isa, Kernel, LINE, Step, Touch, Walk, assemble};
use crate::memory::Mapping;
use crate::native::{self, Native};
use crate::options::{Options, Target};
use crate::plan::{Plan, plan};
use crate::team::Worker;
use crate::workload;

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
    r#"{"experiment": "mix", "mix": "2:1", "op": "store", "pattern": "sequential", "size": 128, "region": 65536, "threads": 1}"#,
    r#"{"experiment": "mix", "mix": "3:2", "op": "ntstore", "pattern": "sequential", "region": 65536, "threads": 1}"#,
    r#"{"experiment": "mix", "mix": "0:1", "op": "store+clwb", "pattern": "sequential", "region": 65536, "threads": 1}"#,
    r#"{"experiment": "loaded", "mix": "1:1", "op": "ntstore", "pattern": "random", "delay": 500, "region": 65536, "threads": 1}"#,
    r#"{"experiment": "workload", "name": "shared", "groups": [{"name": "a", "threads": 2, "partitions": 1, "range": 1048576,
        "mode": "sequential", "chunk": 4096, "steps": [{"op": "ntstore", "size": 512}]}]}"#,
    r#"{"experiment": "workload", "name": "skewed", "groups": [{"name": "a", "threads": 1, "range": 1048576, "volatile_range": 65536,
        "volatile_share": 0.3, "zipf": 0.9, "mode": "random", "steps": [{"op": "store+clwb", "size": 256}]}]}"#,
    r#"{"experiment": "workload", "name": "chain", "groups": [{"name": "a", "threads": 1, "range": 1048576, "mode": "chain",
        "sample": 3, "steps": [{"op": "load", "size": 512}, {"op": "load", "size": 64}, {"op": "store+clflushopt", "size": 64,
        "offset": 128}, {"op": "store", "size": 2048, "offset": -128}]}]}"#,
];

/// Platform and region of the model's streams, which have 2 GiB a thread.
fn planned(text: &str) -> (Point, Plan) {
    let point = Point::parse(text).unwrap();
    let plan = plan(&point, &Target::Anonymous { node: None }, &Options::default()).unwrap();
    (point, plan)
}

/// The list of places of a workload's first thread; empty for other experiments.
fn places(point: &Point) -> Vec<u32> {
    match &point.experiment {
        Experiment::Workload(asked) => workload::places(asked, point).swap_remove(0),
        _ => vec![],
    }
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
            Step::Goto(_) => *found.entry("Mov".into()).or_default() += 1, // the next of the list
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
    let runs = |steps: &&[Step]| match &kernel.turns {
        Some(turns) if std::ptr::eq(*steps, turns.body.as_slice()) => turns.second > 0,
        Some(turns) => turns.first > 0,
        None => true,
    };
    for steps in kernel.steps().filter(runs) {
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
        let is_listed = kernel.places().is_some() && base == Register::R12;
        let index = if is_listed { Register::R10 } else { Register::None };
        assert!(used.len() == 1 && used[0].index() == index, "{what}, {isa}: {one:?}");
        assert!(
            base == Register::R11 || is_sample || is_listed,
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
                plan.jobs.iter().for_each(|job| check(&job.kernel, isa, flush, text));
            }
        }
    }
}

/// A line op of the model, or of a kernel: its kind and its address.
type Does = (OpKind, u64);

/// What the model's thread does, without making addresses and reading clocks.
fn of_model(point: &Point, count: usize) -> Vec<Does> {
    let is_workload = matches!(point.experiment, Experiment::Workload(_));
    let platform = Platform::builtin(if is_workload { "dram" } else { "optane" }).unwrap();
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
            // What a core does of itself is in no kernel.
            OpKind::Compute | OpKind::Prefetch | OpKind::Mispredict => {}
            kind => done.push((kind, op.addr)),
        }
    }
    done
}

/// What a kernel does, by its description.
fn of_kernel(plan: &Plan, places: &[u32], count: usize) -> Vec<Does> {
    let mut done = vec![];
    let mut listed = places.iter().cycle().map(|&line| u64::from(line) * LINE);
    let mut rng = xpline_lattester::Rng::from_state(plan.threads[0].rng);
    let (mut next, mut other) = (0, 0);
    let kernel = &plan.jobs[0].kernel;
    while done.len() < count {
        let mut place = |walk: &Walk, next: &mut u64| match *walk {
            Walk::Random { places, size } => rng.below(places) * size,
            Walk::Masked { lines, mask } => spread(rng.below(lines) * LINE, mask),
            Walk::Ring { stride, last } => {
                let at = *next;
                *next = if at == last { 0 } else { at + stride };
                at
            }
            Walk::Placed(placed) => {
                let dimm = placed.first + placed.step * rng.below(placed.choices);
                let local = placed.base + rng.below(placed.places) * placed.size;
                (local / placed.chunk * placed.dimms + dimm) * placed.chunk + local % placed.chunk
            }
            Walk::Chain => unreachable!("a chain is in memory"),
            Walk::Free => 0,
        };
        let (first, second) = kernel
            .turns
            .as_ref()
            .map_or((1, 0), |turns| (turns.first, turns.second));
        for _ in 0..first {
            let mut at = place(&kernel.walk, &mut next);
            for steps in [&kernel.before, &kernel.body, &kernel.after] {
                follow(steps, &mut at, &mut listed, &mut done);
            }
        }
        for turns in kernel.turns.iter() {
            for _ in 0..second {
                let mut at = place(&turns.walk, &mut other) + turns.base;
                follow(&turns.body, &mut at, &mut listed, &mut done);
            }
        }
    }
    done.truncate(count);
    done
}

fn follow(steps: &[Step], at: &mut u64, listed: &mut dyn Iterator<Item = u64>, done: &mut Vec<Does>) {
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
            Step::Fence(Fence::Mfence) => done.push((OpKind::Mfence, 0)),
            Step::Fence(Fence::Lfence) => done.push((OpKind::Lfence, 0)),
            Step::Repeat(times, steps) => (0..*times).for_each(|_| follow(steps, at, listed, done)),
            Step::Spin(_) => {}
            Step::Goto(_) => *at = listed.next().unwrap(),
        }
    }
}

/// The bits of an offset in the places outside a mask, one by one.
fn spread(offset: u64, mask: u64) -> u64 {
    let outside = (0..64).filter(|bit| mask & 1 << bit == 0);
    outside.enumerate().map(|(from, to)| (offset >> from & 1) << to).sum()
}

/// Walks round the 64 KiB of a mix's buffers as if they began at the start, as the kernels do: the model's threads begin anywhere.
fn rewound(does: Vec<Does>) -> Vec<Does> {
    let mut begun = std::collections::HashMap::new();
    does.into_iter()
        .map(|(kind, address)| {
            let (buffer, place) = (address >> 16, address & 0xffff);
            let start = *begun.entry(buffer).or_insert(place);
            (kind, buffer << 16 | (place.wrapping_sub(start) & 0xffff))
        })
        .collect()
}

#[test]
fn kernels_do_what_the_threads_of_the_model_do() {
    for text in POINTS {
        let (point, plan) = planned(text);
        if plan.chain.is_some() {
            continue; // a chain visits each line once, the model's loads are drawn one by one
        }
        // Single loads end in an mfence on the model; on the host the second reading of the clock waits for them.
        let is_single_load =
            (text.contains("latency") && text.contains("load") || text.contains("loaded")) && !text.contains("persist");
        let model = of_model(&point, 2000).into_iter();
        let model: Vec<Does> = model
            .filter(|(kind, _)| !is_single_load || *kind != OpKind::Mfence)
            .collect();
        // A reading of the clock waits for no store: where the model ends in an sfence, the host has an mfence after it.
        let mut last = None;
        let kernel = of_kernel(&plan, &places(&point), 2 * model.len())
            .into_iter()
            .filter(|&(kind, _)| {
                let before = last.replace(kind);
                kind != OpKind::Mfence || before != Some(OpKind::Sfence)
            });
        let mut kernel: Vec<Does> = kernel.take(model.len()).collect();
        let mut model = model;
        if text.contains("mix") && text.contains("sequential") {
            (kernel, model) = (rewound(kernel), rewound(model));
        }
        assert_eq!(kernel, model, "{text}");
    }
}

/// Threads bound to DIMMs, on a device that is interleaved as the model's platform is.
#[test]
fn bound_threads_go_where_those_of_the_model_go() {
    let text = r#"{"experiment": "align", "op": "ntstore", "size": 256, "binding": "own-dimm", "threads": 1}"#;
    let point = Point::parse(text).unwrap();
    let options = Options {
        dimms: 6,
        ..Options::default()
    };
    let dax = Target::Dax("/dev/dax0.0".into());
    let bound = plan(&point, &dax, &options).unwrap();
    assert_eq!(of_kernel(&bound, &[], 1000), of_model(&point, 1000));
    for isa in Isa::ALL {
        check(&bound.jobs[0].kernel, isa, Flush::Clwb, text);
    }
    let unknown = plan(&point, &dax, &Options::default()).unwrap_err();
    assert!(unknown.to_string().contains("--dimms"), "{unknown}");
}

/// The lines that a kernel has written, when it has run, are those that its description names.
#[test]
fn code_goes_where_its_description_says() {
    const SPAN: u64 = 2 << 20;
    let options = Options {
        span: SPAN,
        dimms: 6,
        ..Options::default()
    };
    let dax = Target::Dax("/dev/dax0.0".into());
    let dram = Target::Anonymous { node: None };
    let memory = Mapping::new(&dram, SPAN, &options, &AtomicBool::new(false));
    let memory = memory.unwrap().unwrap();
    for (text, accesses) in [
        (
            r#"{"experiment": "random", "op": "ntstore", "size": 192, "threads": 1}"#,
            50,
        ),
        (
            r#"{"experiment": "random", "op": "store", "size": 4160, "threads": 1}"#,
            7,
        ),
        (
            r#"{"experiment": "stride", "op": "store", "size": 256, "stride": 65536, "threads": 1}"#,
            40,
        ),
        (
            r#"{"experiment": "flush", "pattern": "random", "size": 512, "clwb": 256, "fence": 512, "threads": 1}"#,
            9,
        ),
        (
            r#"{"experiment": "align", "op": "ntstore", "size": 256, "binding": "own-dimm", "threads": 1}"#,
            60,
        ),
        (r#"{"experiment": "persist-latency", "op": "ntstore", "size": 128}"#, 30),
        (
            r#"{"experiment": "mix", "mix": "1:2", "op": "ntstore", "pattern": "random", "region": 65536, "threads": 1}"#,
            20,
        ),
        (r#"{"experiment": "tail", "op": "ntstore", "region": 512}"#, 5),
        (r#"{"experiment": "xpbuffer", "lines": 7}"#, 1),
        (
            r#"{"experiment": "workload", "name": "chain", "groups": [{"name": "a", "threads": 1, "range": 1048576,
                "volatile_range": 65536, "mode": "chain", "sample": 2, "steps": [{"op": "load", "memory": "volatile",
                "size": 4096}, {"op": "load", "size": 64}, {"op": "ntstore", "size": 2560, "offset": -128}]}]}"#,
            40,
        ),
    ] {
        let point = Point::parse(text).unwrap();
        let plan = plan(&point, if text.contains("workload") { &dram } else { &dax }, &options).unwrap();
        let places = places(&point);
        let kernel = &plan.jobs[0].kernel;
        let flush = Flush::ALL.into_iter().find(|flush| flush.is_here()).unwrap();
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_here()) {
            // SAFETY: the mapping is this test's own, and so long.
            unsafe { std::ptr::write_bytes(memory.base(), 0, SPAN as usize) };
            let code = Arc::new(native::code(kernel, isa, flush).unwrap());
            let mut worker = Native::new(&code, kernel, &plan.threads[0], &memory);
            worker.go_to(places.clone());
            let mut samples = vec![];
            for _ in 0..accesses {
                worker.run(1, &mut samples).unwrap(); // one by one: a state is kept from call to call
            }
            assert_eq!(samples.len(), if kernel.timed { accesses } else { 0 }, "{text}");
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(memory.base(), SPAN as usize) };
            let lines = bytes.chunks(LINE as usize).enumerate();
            let whole = |line: &[u8]| line.iter().any(|&byte| byte != 0);
            let written: BTreeSet<u64> = lines
                .filter(|(_, line)| whole(line))
                .map(|(at, _)| at as u64 * LINE)
                .collect();
            let stores = [OpKind::Store, OpKind::NtStore];
            let wanted = of_kernel(&plan, &places, ops(kernel) * accesses).into_iter();
            let wanted: BTreeSet<u64> = wanted
                .filter(|(kind, _)| stores.contains(kind))
                .map(|(_, at)| at)
                .collect();
            assert_eq!(written, wanted, "{text}, {isa}");
        }
    }
}

/// What a turn of a kernel's loop does, fences counted.
fn ops(kernel: &Kernel) -> usize {
    let count = |steps: &[Step]| {
        let mut done = vec![];
        follow(steps, &mut (1 << 30), &mut std::iter::repeat(0), &mut done);
        done.len()
    };
    let (first, second) = kernel
        .turns
        .as_ref()
        .map_or((1, 0), |turns| (turns.first, turns.second));
    let own: usize = [&kernel.before, &kernel.body, &kernel.after]
        .into_iter()
        .map(|steps| count(steps))
        .sum();
    own * first as usize + kernel.turns.as_ref().map_or(0, |turns| count(&turns.body)) * second as usize
}
