//! The ranges of the schema are honest: whatever platform loads, the machine runs on it to the end.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use xpline_model::platform::Key;
use xpline_model::{Machine, Op, OpKind, Platform, Program};

const OPS: u64 = 400;

/// Every kind of op, over few lines and many, from a generator of its own.
struct Mixture {
    left: u64,
    state: u64,
}

impl Program for Mixture {
    fn next_op(&mut self) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = self.state >> 32;
        let kinds = OpKind::ALL;
        let line = if random.is_multiple_of(2) {
            random / 2 % 64
        } else {
            random % (1 << 30)
        };
        Some(Op::new(kinds[(self.left % kinds.len() as u64) as usize], line * 64, 64))
    }
}

/// Both ends of a key's range, as its rule puts them in words.
fn ends(key: &Key) -> Option<[String; 2]> {
    let (_, range) = key.allowed.split_once(" from ")?;
    let (min, max) = range.split(',').next()?.split_once(" to ")?;
    Some([min.into(), max.into()])
}

/// Run every kind of op on a few cores: whether all ended, none with a panic.
fn runs(platform: &Platform) -> bool {
    let threads = platform.core.count.min(3);
    let programs = (0..threads).map(|thread| Mixture {
        left: OPS,
        state: thread.into(),
    });
    let mut programs: Vec<_> = programs.collect();
    let counters = catch_unwind(AssertUnwindSafe(|| Machine::new(platform).run(&mut programs)));
    programs.iter().all(|program| program.left == 0)
        && counters.is_ok_and(|counters| counters.core.loads >= u64::from(threads) * (OPS / 11))
}

#[test]
fn the_machine_runs_at_both_ends_of_every_range() {
    let mut broken = Vec::new();
    for name in ["optane", "dram", "memory-mode"] {
        let own = Platform::builtin(name).unwrap();
        let keys = Platform::keys();
        let keys = keys
            .iter()
            .filter(|key| own.describe().iter().any(|entry| entry.key == key.path));
        for (key, ends) in keys.filter_map(|key| Some((key, ends(key)?))) {
            // One end may contradict the other values, which is then said; both ends never do.
            let mut loaded = 0;
            for set in ends.map(|end| format!("{}={end}", key.path)) {
                // A size at the end of its range fits numbers of ways and slices that are powers of two.
                let sets = ["l3.ways=16".into(), "l3.slices=16".into(), set.clone()];
                let platform = Platform::load(name, &sets, &|_| Err(ErrorKind::NotFound.into()));
                let Ok(platform) = platform else { continue };
                loaded += 1;
                if !runs(&platform) {
                    broken.push(format!("{name} with {set}"));
                }
            }
            assert!(loaded > 0, "{name}: {} loads at neither end", key.path);
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
