//! Dirty lines that the caches give up: which of them leave together, and how fast.

use xpline_model::{Machine, Op, OpKind, Platform, Program};

/// Stores to 64 B lines, in blocks that follow each other or are scattered.
struct Stores {
    next: u64,
    end: u64,
    block: u64,
    scattered: bool,
}

impl Stores {
    fn new(lines: u64, block: u64, scattered: bool) -> Self {
        Self {
            next: 0,
            end: lines,
            block,
            scattered,
        }
    }
}

impl Program for Stores {
    fn next_op(&mut self) -> Option<Op> {
        if self.next == self.end {
            return None;
        }
        let (block, within) = (self.next / self.block, self.next % self.block);
        self.next += 1;
        let block = if self.scattered {
            block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44
        } else {
            block
        };
        Some(Op::new(OpKind::Store, (block * self.block + within) * 64, 64))
    }
}

fn platform(overrides: &[&str]) -> Platform {
    let mut all = vec!["l3.size=1056KiB".to_owned()];
    all.extend(overrides.iter().map(ToString::to_string));
    Platform::load("optane", &all, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap()
}

/// 64 B pieces that reach the DIMMs for each line that their media write, times a quarter.
fn ewr(platform: &Platform, stores: Stores) -> f64 {
    let counters = Machine::new(platform).run(&mut [stores]);
    let (pieces, lines) = counters
        .dimms
        .iter()
        .fold((0, 0), |sum, dimm| (sum.0 + dimm.writes, sum.1 + dimm.media_writes));
    pieces as f64 / (4 * lines) as f64
}

#[test]
fn neighbours_leave_together_where_stores_come_in_order() {
    let in_order = ewr(&platform(&[]), Stores::new(200_000, 4, false));
    let scattered = ewr(&platform(&[]), Stores::new(200_000, 4, true));
    let out_of_step = ewr(&platform(&["l3.in_step=0"]), Stores::new(200_000, 4, false));
    assert!(in_order > 0.45, "{in_order}");
    assert!((0.24..0.32).contains(&scattered), "{scattered}");
    assert!((0.24..0.32).contains(&out_of_step), "{out_of_step}");
}

#[test]
fn a_core_pushes_out_one_dirty_line_at_a_time() {
    let machine = |interval: &str| Machine::new(&platform(&[interval])).run(&mut [Stores::new(100_000, 4, false)]);
    let (slow, fast) = (machine("imc.evict_interval=1us"), machine("imc.evict_interval=0ns"));
    let pushed_out = slow.l3.dirty_evictions;
    assert!(pushed_out > 50_000);
    assert!(slow.time >= pushed_out * 1_000_000);
    assert!(fast.time < fast.l3.dirty_evictions * 100_000);
}
