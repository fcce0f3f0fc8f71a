//! Processes and threads come, become others, and go, by themselves or not: the tracer tells of each, and the program
//! does not notice.

#[allow(dead_code, reason = "each test takes what it needs")]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use support::{Bench, Run, Stream};
use xpline_wire::{Call, CallKind, EndReason, Frame, OpKind, Start, Tracked};

struct Lives {
    bench: Bench,
    program: PathBuf,
    file: PathBuf,
}

impl Lives {
    fn new() -> Option<Self> {
        let bench = Bench::new("lives")?;
        let (program, file) = (bench.compile("lives"), bench.file("file", 1 << 20));
        Some(Self { bench, program, file })
    }

    fn run(&self, what: &str) -> Run {
        self.bench.run(&self.program, [self.file.as_os_str(), what.as_ref()])
    }
}

/// The words that were stored, in the order of the stream.
fn words(stream: &Stream) -> Vec<u64> {
    let start = stream.frames.iter().find_map(|frame| match frame {
        Frame::Map(map) if map.traced => Some(map.address),
        _ => None,
    });
    let ops = stream.frames.iter().filter_map(|frame| match frame {
        Frame::Ops(ops) => Some(&ops.ops),
        _ => None,
    });
    let stores = ops.flatten().filter(|op| op.kind == OpKind::Store);
    stores.map(|op| (op.address - start.unwrap()) / 8).collect()
}

fn reason(stream: &Stream) -> Option<EndReason> {
    match stream.frames.last() {
        Some(Frame::End { reason, .. }) => Some(*reason),
        _ => None,
    }
}

fn one(run: &Run) -> &Stream {
    assert_eq!(run.streams.len(), 1, "{:?}", run.output);
    &run.streams[0]
}

#[test]
fn a_program_has_its_own_descriptors_only() {
    let Some(lives) = Lives::new() else { return };
    let run = lives.run("descriptors");
    let native = Command::new(&lives.program)
        .args([lives.file.as_os_str(), "descriptors".as_ref()])
        .output()
        .unwrap();
    // Whoever runs the tests may have left the program more than the three.
    let said = String::from_utf8_lossy(&native.stdout);
    let (file, open) = said.split_once(' ').expect("a descriptor, and those that are open");
    assert!(open.starts_with("0 1 2 ") && open.split_whitespace().any(|one| one == file));
    assert_eq!(run.output.stdout, native.stdout);
    let stream = one(&run);
    assert!(run.output.status.success() && stream.complete);
    assert!(words(stream).into_iter().eq(0..10_000));
}

#[test]
fn a_fork_has_a_stream_of_its_own() {
    let Some(lives) = Lives::new() else { return };
    let run = lives.run("fork");
    assert_eq!(run.output.status.code(), Some(7));
    let [parent, child] = &run.streams[..] else {
        panic!("{} streams", run.streams.len())
    };
    assert_eq!((parent.hello.start, child.hello.start), (Start::Exec, Start::Fork));
    assert_eq!(child.hello.parent, parent.hello.process);
    assert_ne!(child.hello.process, parent.hello.process);
    assert_eq!(
        (words(parent), words(child)),
        (vec![0, 1, 2, 20, 21, 22, 23], vec![10, 11, 12, 13, 14])
    );
    assert!(parent.complete && child.complete);
}

#[test]
fn another_program_is_traced_too() {
    let Some(lives) = Lives::new() else { return };
    let run = lives.run("exec");
    assert_eq!(run.output.status.code(), Some(5), "{:?}", run.output);
    let [before, after] = &run.streams[..] else {
        panic!("{} streams", run.streams.len())
    };
    assert_eq!(
        (reason(before), reason(after)),
        (Some(EndReason::Exec), Some(EndReason::Exit))
    );
    assert_eq!(before.hello.process, after.hello.process);
    assert_eq!((words(before), words(after)), (vec![0, 1], (50..56).collect()));
    assert_eq!(after.hello.arguments[0], b"another name");
    assert_eq!(after.hello.arguments[3], b"a,b");
    assert_eq!(before.hello.executable, after.hello.executable);
}

#[test]
fn a_script_is_run_by_its_traced_interpreter() {
    let Some(lives) = Lives::new() else { return };
    let script = lives.bench.folder.join("script");
    fs::write(
        &script,
        format!("#!/bin/sh -e\n{} \"$1\" fork\nexit 3\n", lives.program.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = [lives.file.as_os_str(), "script".as_ref(), script.as_os_str()];
    let run = lives.bench.run(&lives.program, arguments);
    // The shell ends at the first command that fails, which has status 7: it had its -e.
    assert_eq!(run.output.status.code(), Some(7), "{:?}", run.output);
    let mut all: Vec<_> = run.streams.iter().flat_map(words).collect();
    all.sort_unstable();
    assert_eq!(all, [0, 0, 1, 2, 10, 11, 12, 13, 14, 20, 21, 22, 23]);
    assert!(run.streams.iter().all(|stream| stream.complete));
}

#[test]
fn an_exec_that_fails_leaves_the_program_traced() {
    let Some(lives) = Lives::new() else { return };
    let run = lives.run("no-exec");
    assert_eq!(run.output.status.code(), Some(4), "{:?}", run.output);
    assert_eq!(run.streams.iter().map(words).collect::<Vec<_>>(), [[0], [1]]);
    assert!(run.streams.iter().all(|stream| stream.complete));
}

#[test]
fn threads_by_the_thousand() {
    let Some(lives) = Lives::new() else { return };
    let run = lives.run("threads");
    let stream = one(&run);
    assert!(run.output.status.success() && stream.complete);
    let mut all = words(stream);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..2000));
    let starts = stream
        .frames
        .iter()
        .filter(|frame| matches!(frame, Frame::ThreadStart { .. }))
        .count();
    let ends = stream
        .frames
        .iter()
        .filter(|frame| matches!(frame, Frame::ThreadEnd { .. }))
        .count();
    assert_eq!((starts, ends), (2001, 2001));
}

#[test]
fn signals_are_taken_in_their_place() {
    let Some(lives) = Lives::new() else { return };
    let run = lives.run("signals");
    assert!(run.output.status.success(), "{:?}", run.output);
    assert!(
        words(one(&run))
            .into_iter()
            .eq((0..50).flat_map(|word| [word, 100 + word]))
    );
}

#[test]
fn a_crash_keeps_what_ran_and_passes_its_signal_on() {
    let Some(lives) = Lives::new() else { return };
    for (what, signal) in [("crash", 11), ("abort", 6)] {
        let run = lives.run(what);
        assert_eq!(run.output.status.signal(), Some(signal), "{:?}", run.output);
        let stream = one(&run);
        assert!(words(stream).into_iter().eq(0..12) && stream.complete);
    }
    // Nobody is told of this one, but all was handed over before the call.
    let run = lives.run("kill");
    assert_eq!(run.output.status.signal(), Some(9));
    assert!(!one(&run).complete);
}

#[test]
fn an_exit_takes_the_other_threads_along() {
    let Some(lives) = Lives::new() else { return };
    for _ in 0..5 {
        let run = lives.run("exit");
        assert_eq!(run.output.status.code(), Some(11), "{:?}", run.output);
        let stream = one(&run);
        let found = words(stream).into_iter().filter(|&word| word < 1000);
        assert!(found.eq(0..7) && stream.complete);
    }
}

#[test]
fn calls_on_tracked_files() {
    let Some(lives) = Lives::new() else { return };
    let run = lives.run("calls");
    assert!(run.output.status.success(), "{:?}", run.output);
    let stream = one(&run);
    let file = stream.frames.iter().find_map(|frame| match frame {
        Frame::File(file) if file.tracked => Some(file.id),
        _ => None,
    });
    let mut seen = Vec::new();
    for frame in &stream.frames {
        match frame {
            Frame::Call(Call {
                kind,
                file: id,
                offset,
                size,
                ..
            }) => {
                assert_eq!(Some(*id), file);
                seen.push(format!("{kind:?} {offset} {size}"));
            }
            // The C library's locks may be in others.
            Frame::Ops(ops) if ops.ops[0].kind == OpKind::Store => seen.push("ops".into()),
            _ => {}
        }
    }
    let wanted = [
        "Write 4096 100",
        "Read 8192 50",
        "Write 1000 20",
        "Read 1020 30",
        "Write 1050 10",
        "Write 1060 30",
        "Read 64 10",
        "Read 74 30",
        "ops",
        "SyncRange 0 8192",
        "Sync 0 0",
        "Sync 0 0",
        "Truncate 0 1048576",
        "Write 0 5",
    ];
    assert_eq!(seen, wanted);
    let sums: u64 = stream
        .frames
        .iter()
        .map(|frame| match frame {
            Frame::Call(call) => call.instructions,
            Frame::Ops(ops) => ops.ops.iter().map(|op| u64::from(op.instructions)).sum(),
            Frame::ThreadEnd { instructions, .. } => *instructions,
            _ => 0,
        })
        .sum();
    assert!((10_000..10_000_000).contains(&sums), "{sums} instructions");
    let address = stream.frames.iter().find_map(|frame| match frame {
        Frame::Call(call) if call.kind == CallKind::SyncRange => Some(call.address),
        _ => None,
    });
    assert!(address.is_some_and(|address| address > 0));
}

#[test]
fn the_kernel_copies_from_and_to_tracked_memory() {
    let Some(lives) = Lives::new() else { return };
    let run = lives.run("copies");
    assert!(run.output.status.success(), "{:?}", run.output);
    let stream = one(&run);
    let start = stream.frames.iter().find_map(|frame| match frame {
        Frame::Map(map) if map.traced => Some(map.address),
        _ => None,
    });
    let mut seen = Vec::new();
    for frame in &stream.frames {
        match frame {
            Frame::Ops(ops) => seen.extend(ops.ops.iter().filter(|op| op.kind != OpKind::Locked).map(|op| {
                assert!(op.string && op.pc != 0);
                format!("{} {} {}", op.kind.name(), op.address - start.unwrap(), op.size)
            })),
            Frame::Call(call) => seen.push(format!("{:?} {} {}", call.kind, call.offset, call.size)),
            _ => {}
        }
    }
    let wanted = [
        "store 60 4",
        "store 64 64",
        "store 128 32",
        "load 60 4",
        "load 64 6",
        "store 60 4",
        "store 64 6",
        "load 60 4",
        "Write 4096 4",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn everything_may_be_traced() {
    let Some(lives) = Lives::new() else { return };
    let tracked = Tracked::Everything(vec![lives.bench.tracked.clone()]);
    let run = lives.bench.run_tracking(tracked, &lives.program, |command| {
        command.args([lives.file.as_os_str(), "fork".as_ref()]);
    });
    assert_eq!(run.output.status.code(), Some(7), "{:?}", run.output);
    let ops: usize = run
        .streams
        .iter()
        .flat_map(|stream| &stream.frames)
        .map(|frame| match frame {
            Frame::Ops(ops) => ops.ops.len(),
            _ => 0,
        })
        .sum();
    assert!(ops > 20_000, "{ops} ops");
}

#[test]
fn a_listener_that_is_not_there_is_told() {
    let Some(lives) = Lives::new() else { return };
    let run = lives
        .bench
        .run_tracking(Tracked::Files(vec![]), &lives.program, |command| {
            fs::remove_file(lives.bench.folder.join("socket")).unwrap();
            command.arg("x");
        });
    let said = String::from_utf8_lossy(&run.output.stderr).into_owned();
    assert!(
        !run.output.status.success() && said.contains("nobody listens"),
        "{said}"
    );
}
