//! Prefetchers, eADR, memory speeds, and the platforms that are estimates.

use xpline_model::{Counters, Machine, Op, OpKind, Platform, Program};

struct List(std::vec::IntoIter<Op>);

impl Program for List {
    fn next_op(&mut self) -> Option<Op> {
        self.0.next()
    }
}

fn run(name: &str, overrides: &[&str], ops: Vec<Op>) -> Counters {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let platform = Platform::load(name, &overrides, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
    Machine::new(&platform).run(&mut [List(ops.into_iter())])
}

fn loads(lines: impl Iterator<Item = u64>) -> Vec<Op> {
    let each = |line| [Op::new(OpKind::Load, line * 64, 64), Op::new(OpKind::Lfence, 0, 0)];
    lines.flat_map(each).collect()
}

/// Lines far apart, no two of them of the same 128 B or page.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 7919 % count * 194)
}

const STREAM: &str = "prefetch.stream=true";
const ADJACENT: &str = "prefetch.adjacent=true";

#[test]
fn a_stream_prefetcher_hides_the_latency_of_lines_in_order_and_of_no_others() {
    for name in ["dram", "optane"] {
        let time = |overrides: &[&str], ops| run(name, overrides, ops).time;
        let (off, on) = (time(&[], loads(0..20_000)), time(&[STREAM], loads(0..20_000)));
        assert!(on * 3 < off * 2, "{name}: {on} ps with, {off} without");
        let (off, on) = (
            time(&[], loads(scattered(9973))),
            time(&[STREAM], loads(scattered(9973))),
        );
        assert_eq!(on, off, "{name}");
    }
}

fn stores(lines: impl Iterator<Item = u64>) -> Vec<Op> {
    let each = |line| [Op::new(OpKind::Store, line * 64, 64), Op::new(OpKind::Mfence, 0, 0)];
    lines.flat_map(each).collect()
}

/// Runs of 32 lines, each in a page of its own: too short for a stream that begins with the 40th line.
#[test]
fn a_stream_takes_as_many_steps_as_the_platform_says_of_loads_and_of_stores() {
    let lines = || (0..200).flat_map(|page| (0..32).map(move |line| page * 64 + line));
    let time = |overrides: &[&str], ops| run("dram", overrides, ops).time;
    let off = [time(&[], loads(lines())), time(&[], stores(lines()))];
    let late = ["prefetch.steps=40", "prefetch.store_steps=40"];
    for (number, early) in [(0, "prefetch.steps=2"), (1, "prefetch.store_steps=2")] {
        let on = |kind| {
            let ops = if kind == 0 { loads(lines()) } else { stores(lines()) };
            time(&[STREAM, late[0], late[1], early], ops)
        };
        assert!(
            on(number) * 10 < off[number] * 8,
            "{early}: {} ps, {}",
            on(number),
            off[number]
        );
        assert_eq!(on(1 - number), off[1 - number], "{early} is not of the others");
    }
}

#[test]
fn a_stream_goes_on_to_the_end_of_its_region() {
    let time = |region: &str| run("dram", &[STREAM, "prefetch.steps=60", region], loads(0..6400)).time;
    assert!(time("prefetch.region=2MiB") * 3 < time("prefetch.region=4KiB") * 2);
}

/// Fill buffers that loads have taken do not hold up ntstores that have buffers of their own.
#[test]
fn ntstores_wait_for_their_own_buffers() {
    let writes = || {
        (0..10_000)
            .map(|line| Op::new(OpKind::NtStore, line * 64, 64))
            .collect()
    };
    let time = |overrides: &[&str]| run("dram", overrides, writes()).time;
    let shared = time(&["core.fill_buffers=4"]);
    assert_eq!(time(&["core.fill_buffers=64", "core.combining_buffers=4"]), shared);
    assert!(time(&["core.fill_buffers=4", "core.combining_buffers=16"]) * 2 < shared);
}

#[test]
fn an_adjacent_line_prefetcher_reads_twice_what_is_asked_for_at_random() {
    let off = run("optane", &[], loads(scattered(9973))).dimm_total();
    let on = run("optane", &[ADJACENT], loads(scattered(9973))).dimm_total();
    assert_eq!((off.reads, on.reads), (9973, 2 * 9973));
    assert_eq!(on.media_reads, off.media_reads, "the buddy is of the same XPLine");
}

#[test]
fn every_line_is_read_once_whoever_asks_for_it() {
    let reads = run("dram", &[STREAM, ADJACENT], loads(0..64 * 300)).dimm_total().reads;
    assert_eq!(reads, 64 * 300);
}

#[test]
fn with_eadr_flushes_are_left_out() {
    let ops = || -> Vec<Op> {
        let each = |line: u64| {
            [
                Op::new(OpKind::Store, line * 64, 64),
                Op::new(OpKind::Clwb, line * 64, 64),
                Op::new(OpKind::Sfence, 0, 0),
            ]
        };
        (0..1000).flat_map(each).collect()
    };
    let adr = run("optane", &[], ops());
    let eadr = run("optane", &["core.eadr=true"], ops());
    assert_eq!((adr.dimm_total().writes, eadr.dimm_total().writes), (1000, 0));
    assert_eq!(adr.core.flushes, eadr.core.flushes);
    assert!(eadr.time < adr.time);
}

/// A burst goes at the rate of the peak power until it is as far ahead as the window allows; in the long run the average holds.
#[test]
fn a_burst_of_writes_draws_up_to_the_peak_power() {
    let stores = |count: u64| {
        (0..4 * count)
            .map(|line| Op::new(OpKind::NtStore, line * 64, 64))
            .collect::<Vec<_>>()
    };
    let fast = [
        "core.nt_uncached=0ns",
        "core.nt_latency=0ns",
        "imc.wpq_per_core=64",
        "core.fill_buffers=64",
    ];
    let time = |window: &str, count| {
        let set = [&fast[..], &["optane.power.budget=12W", "optane.power.peak=20W", window]].concat();
        run("optane-ni", &set, stores(count)).time
    };
    let (none, window) = ("optane.power.window=0ns", "optane.power.window=200us");
    assert!(time(window, 1_000) * 10 < time(none, 1_000) * 9);
    let (long, average) = (time(window, 50_000), time(none, 50_000));
    assert!(
        long < average && long * 100 > average * 95,
        "{long} ps, {average} at the average"
    );
}

#[test]
fn a_slower_memory_takes_longer() {
    let stores = || {
        (0..50_000)
            .map(|line| Op::new(OpKind::NtStore, line % 16 * 64, 64))
            .collect()
    };
    let speeds =
        [2133, 2666, 3200].map(|speed| run("optane-ni", &[&format!("optane.ddrt.speed={speed}")], stores()).time);
    assert!(speeds.is_sorted_by(|slow, fast| slow > fast), "{speeds:?}");
    let loads = || (0..50_000).map(|line| Op::new(OpKind::Load, line * 64, 64)).collect();
    let speeds = [2133, 2666, 3200]
        .map(|speed| run("dram", &["interleave.dimms=1", &format!("dram.speed={speed}")], loads()).time);
    assert!(speeds.is_sorted_by(|slow, fast| slow > fast), "{speeds:?}");
}

#[test]
fn a_page_of_flash_takes_its_time_once() {
    let far = (0..64).map(|line| (20 << 30 >> 6) + line);
    let counters = run("cxl-hybrid", &[], loads(far));
    assert_eq!(counters.dimm_total().media_reads, 1);
    assert!((60_000_000..100_000_000).contains(&counters.time), "{}", counters.time);
}

/// What the product briefs and papers say of them, one to another.
#[test]
fn generations_and_far_memory_stand_in_their_order() {
    let idle = |name| run(name, &[], loads(scattered(4001))).time / 4001;
    let (ddr5, cxl, optane) = (idle("ddr5"), idle("cxl-dram"), idle("optane"));
    assert!(cxl * 10 > ddr5 * 15 && cxl < ddr5 * 35 / 10, "{cxl} ps, local {ddr5}");
    assert!(ddr5 < optane && idle("hbm") > ddr5);
    let hybrid = idle("cxl-hybrid");
    assert!(
        hybrid >= cxl && hybrid < 2 * cxl,
        "in its DRAM: {hybrid} ps, the expander {cxl}"
    );
    let written = |name| {
        let lines = (0..40_000)
            .map(|line| Op::new(OpKind::NtStore, line * 64, 64))
            .collect();
        run(
            name,
            &["interleave.dimms=1", "core.nt_uncached=0ns", "core.fill_buffers=64"],
            lines,
        )
        .time
    };
    let [small, middle, large, second] = ["optane-128", "optane", "optane-512", "optane-200"].map(written);
    assert!(
        second < middle && middle < large && large < small,
        "{second} {middle} {large} {small}"
    );
}
