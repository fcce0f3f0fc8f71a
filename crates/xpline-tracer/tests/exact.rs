//! What the tracer says of a program is what the program did: op by op, in each of its threads.

#[allow(dead_code, reason = "each test takes what it needs")]
mod support;

use std::collections::BTreeMap;
use std::fs;

use support::Bench;
use xpline_wire::{Op, OpKind};

/// An op as the program wrote it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    kind: OpKind,
    string: bool,
    address: u64,
    size: u16,
}

#[test]
fn every_op_of_four_threads() {
    let Some(bench) = Bench::new("exact") else { return };
    let program = bench.compile("exact");
    let file = bench.file("file", 512 << 10);
    let log = bench.folder.join("log");
    let run = bench.run(&program, [file.as_os_str(), log.as_os_str(), "400".as_ref()]);
    assert!(run.output.status.success(), "{:?}", run.output);
    let [stream] = &run.streams[..] else {
        panic!("{} streams", run.streams.len())
    };
    assert!(stream.complete);

    let mut threads: BTreeMap<u32, Vec<(Known, u32)>> = BTreeMap::new();
    let log = fs::read(log).unwrap();
    for record in log.as_chunks::<32>().0 {
        let address = u64::from_le_bytes(record[..8].try_into().unwrap());
        let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        let kind = OpKind::ALL[word(16) as usize];
        let known = Known {
            kind,
            string: word(20) != 0,
            address,
            size: word(12) as u16,
        };
        threads.entry(word(8)).or_default().push((known, word(24)));
    }
    assert_eq!(threads.len(), 5);
    let mut kinds = BTreeMap::<&str, u32>::new();
    for (thread, known) in threads {
        let mut traced = stream.ops(thread);
        // The C library's locks order the program's stores too.
        traced.retain(|op| op.kind != OpKind::Locked || stream.is_own(op.pc));
        for (place, (op, (known, instructions))) in traced.iter().zip(&known).enumerate() {
            let Op {
                kind,
                string,
                address,
                size,
                ..
            } = *op;
            let found = Known {
                kind,
                string,
                address,
                size,
            };
            let after = place.checked_sub(1).map(|before| traced[before]);
            assert_eq!(
                found,
                *known,
                "op {place} of thread {thread}, {:#x?} after {after:x?}",
                &traced[place..traced.len().min(place + 6)]
            );
            let counts = *instructions == 0 || *instructions == op.instructions;
            assert!(
                counts,
                "op {place} of thread {thread}: {} instructions, not {instructions}",
                op.instructions
            );
            *kinds.entry(kind.name()).or_default() += 1;
        }
        assert_eq!(traced.len(), known.len(), "ops of thread {thread}");
    }
    assert_eq!(kinds.len(), 10, "{kinds:?}");
    assert!(kinds.values().all(|&count| count > 100), "{kinds:?}");
}
