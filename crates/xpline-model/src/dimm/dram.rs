//! One channel of DDR4 DRAM: banks with row buffers behind one data bus.

use super::Place;
use super::refresh::Refresh;
use crate::counters::DimmCounters;
use crate::modulus::Modulus;
use crate::platform::Dram;
use crate::time::Time;
use crate::way::{Follow, Part};

pub struct DramDimm {
    banks: Vec<Bank>,
    bus: Bus,
    refresh: Refresh,
    /// Bytes of the channel's address space that find one row open (see the platform file).
    span_shift: u32,
    low_banks: Modulus,
    low_shift: u32,
    high_banks: Modulus,
    high_shift: u32,
    /// Bus time of a read and of a write.
    read_slot: Time,
    write_slot: Time,
    /// What a read waits for when another row was open.
    row_miss: Time,
    /// From a column command to the next of the row.
    column_cycle: Time,
    /// Column command to data in the memory controller.
    latency: Time,
    /// How long a new row keeps its bank from the next.
    read_cycle: Time,
    write_cycle: Time,
    write_lookahead: Time,
    pub counters: DimmCounters,
}

/// The data bus: booked up to a time, but for a few gaps before that.
///
/// A write is booked when it leaves its core, for when it will arrive; what comes from nearer by may well pass before it.
#[derive(Default)]
struct Bus {
    booked: Time,
    gaps: [(Time, Time); GAPS],
    next_gap: usize,
}

/// Gaps that are remembered.
const GAPS: usize = 8;

impl Bus {
    /// The start of the first slot of this length that is free from `at` on.
    #[inline]
    fn book(&mut self, at: Time, length: Time) -> Time {
        if at < self.booked {
            for (from, until) in &mut self.gaps {
                let start = at.max(*from);
                if start + length <= *until {
                    *from = start + length;
                    return start;
                }
            }
        }
        let start = self.booked.max(at);
        if start > self.booked {
            self.gaps[self.next_gap] = (self.booked, start);
            self.next_gap = (self.next_gap + 1) % GAPS;
        }
        self.booked = start + length;
        start
    }
}

/// Spans opened last on a bank: the controller gathers the requests to an open row before it opens another, so requests that
/// alternate between a few rows do not open each row again.
const GATHERED: usize = 4;

#[derive(Clone, Copy)]
struct Bank {
    opened: [Row; GATHERED],
    free: Time,
}

/// A span whose row was opened, and when the row is ready for the next column command.
#[derive(Clone, Copy)]
struct Row {
    span: u64,
    ready: Time,
}

const CLOSED: Row = Row {
    span: u64::MAX,
    ready: 0,
};

impl DramDimm {
    pub fn new(dram: &Dram, place: Place) -> Self {
        let banks = dram.ranks * dram.banks;
        // A burst moves 64 B over 8 B; refreshes take their share of the time from what does not wait for them.
        let burst = 8e6 / f64::from(dram.speed);
        let shared = (burst * (1.0 + dram.trfc as f64 / dram.trefi as f64)) as Time;
        let burst = if dram.refresh_halts { burst as Time } else { shared };
        Self {
            banks: vec![
                Bank {
                    opened: [CLOSED; GATHERED],
                    free: 0
                };
                banks as usize
            ],
            bus: Bus::default(),
            refresh: Refresh::new(dram, place),
            span_shift: dram.open_span.trailing_zeros(),
            low_banks: Modulus::new(dram.low_banks.into()),
            low_shift: dram.low_bank_span.trailing_zeros(),
            high_banks: Modulus::new((banks / dram.low_banks).max(1).into()),
            high_shift: dram.high_bank_span.trailing_zeros(),
            read_slot: burst + dram.read_gap,
            write_slot: shared + dram.write_gap,
            row_miss: dram.trp + dram.trcd,
            column_cycle: dram.tccd,
            latency: dram.tcl + burst + dram.controller,
            read_cycle: dram.tras + dram.trp,
            write_cycle: dram.trcd + dram.tcwl + burst + dram.twr + dram.trp,
            write_lookahead: dram.write_lookahead,
            counters: DimmCounters::default(),
        }
    }

    /// Read 64 B at an address; returns when the data are in the memory controller.
    #[inline]
    pub fn read<F: Follow>(&mut self, address: u64, at: Time, follow: &mut F) -> Time {
        self.counters.reads += 1;
        self.counters.media_reads += 1;
        let slot = self.book_read(at);
        let open = self.open(address, slot, self.read_cycle);
        let done = open + self.latency;
        follow.passes(Part::Bus, at, slot);
        follow.passes(Part::Row, slot, open);
        follow.passes(Part::Column, open, done);
        done
    }

    /// Write 64 B at an address; returns when the DIMM takes them from the write pending queue.
    #[inline]
    pub fn write<F: Follow>(&mut self, address: u64, at: Time, follow: &mut F) -> Time {
        self.counters.writes += 1;
        self.counters.media_writes += 1;
        let slot = self.bus.book(at, self.write_slot);
        let start = self.open(address, slot, self.write_cycle);
        // The controller sends other writes first while this one's bank is busy, but not for ever.
        let taken = slot.max(start.saturating_sub(self.write_lookahead));
        follow.passes(Part::Bus, at, slot);
        follow.passes(Part::Row, slot, taken);
        taken
    }

    /// The start of a read's time on the bus. Reads wait for a refresh; writes lie in their queue meanwhile, where it holds up nobody.
    #[inline]
    fn book_read(&mut self, at: Time) -> Time {
        let slot = self.bus.book(self.refresh.over(at), self.read_slot);
        let over = self.refresh.over(slot);
        if over > slot {
            self.bus.book(over, self.read_slot)
        } else {
            slot
        }
    }

    /// Have the row of an address open; returns when its column command can go. A new row keeps its bank busy for `cycle`.
    #[inline]
    fn open(&mut self, address: u64, at: Time, cycle: Time) -> Time {
        let span = address >> self.span_shift;
        let low = self.low_banks.of(address >> self.low_shift);
        let bank = low + self.low_banks.get() * self.high_banks.of(address >> self.high_shift);
        let bank = &mut self.banks[bank as usize];
        if let Some(row) = bank.opened.iter_mut().find(|row| row.span == span) {
            self.counters.buffer_hits += 1;
            let column = row.ready.max(at);
            row.ready = column + self.column_cycle;
            return column;
        }
        self.counters.buffer_misses += 1;
        let start = self.refresh.over(at.max(bank.free));
        let ready = start + self.row_miss;
        bank.opened.copy_within(..GATHERED - 1, 1);
        bank.opened[0] = Row {
            span,
            ready: ready + self.column_cycle,
        };
        bank.free = start + cycle;
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimm::of_tests::ALONE;
    use crate::platform::{Memory, Platform};
    use crate::time::MICROSECOND;
    use crate::way::Nobody;

    fn channel() -> DramDimm {
        let Memory::Dram(dram) = Platform::builtin("dram").unwrap().memory else {
            unreachable!("dram is made of DRAM")
        };
        DramDimm::new(&dram, ALONE)
    }

    /// How much later the second of two reads comes that are asked for together, between two refreshes.
    fn second_of_two(apart: u64) -> Time {
        let mut channel = channel();
        let [first, second] = [0, apart].map(|address| channel.read(address, MICROSECOND, &mut Nobody));
        second - first
    }

    #[test]
    fn strides_of_4_kib_stay_on_one_bank_and_others_do_not() {
        let row_cycle = 46_250;
        assert_eq!([4 << 10, 12 << 10, 2 << 30].map(second_of_two), [row_cycle; 3]);
        let column_cycle = 5_250;
        assert_eq!(second_of_two(64), column_cycle);
        assert!([512, 16 << 30].iter().all(|&apart| second_of_two(apart) < column_cycle));
    }

    #[test]
    fn reads_wait_for_a_refresh_and_writes_do_not() {
        let mut channel = channel();
        let refresh = 350_000;
        assert_eq!(channel.write(0, 10, &mut Nobody), 10);
        let first = channel.read(512, 10, &mut Nobody);
        assert!(first > refresh && first < refresh + 100_000, "{first}");
        assert!(channel.read(512, 2 * refresh, &mut Nobody) < 2 * refresh + 100_000);
    }

    #[test]
    fn what_comes_in_order_waits_in_order() {
        let mut bus = Bus::default();
        assert_eq!([10, 10, 12, 40].map(|at| bus.book(at, 5)), [10, 15, 20, 40]);
    }

    #[test]
    fn what_comes_early_passes_what_is_booked_for_later() {
        let mut bus = Bus::default();
        assert_eq!(bus.book(100, 5), 100);
        assert_eq!([20, 21, 94, 96].map(|at| bus.book(at, 5)), [20, 25, 94, 105]);
        assert_eq!(bus.book(30, 80), 110, "no gap is long enough");
    }
}
