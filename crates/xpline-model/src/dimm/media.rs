//! The 3D XPoint media behind one DIMM's controller: banks, and the rates that the port and the power budget allow.

use crate::modulus::Modulus;
use crate::platform::Optane;
use crate::time::Time;
use crate::way::{Follow, Part};

pub struct Media {
    banks: Vec<Bank>,
    by_bank: Modulus,
    read_port: Time,
    write_port: Time,
    read_interval: Time,
    read_latency: Time,
    read_busy: Time,
    write_interval: Time,
    /// Between two line writes of a burst, which the peak power allows.
    peak_interval: Time,
    /// By how much a burst may be ahead of the rate that the average power allows.
    burst: Time,
    /// When the line write before may be followed by another at the peak rate.
    write_peak: Time,
    write_busy: Time,
    write_blocks: Time,
    /// What one 64 B read takes from the write port (power and command slots are shared).
    read_cost_on_writes: Time,
    /// Lines of a span, and spans of a period, as powers of two: see the platform's `bank_span` and `bank_period`.
    span_shift: u32,
    span_mask: u64,
    pub reads: u64,
    pub writes: u64,
}

/// Writes of a bank that a read may meet: a controller's queue holds few for one bank.
const RECALLED: usize = 4;

#[derive(Clone, Copy, Default)]
struct Bank {
    free_for_reads: Time,
    free_for_writes: Time,
    /// Its last writes: from when to when each keeps reads away.
    writes: [(Time, Time); RECALLED],
}

impl Media {
    pub fn new(optane: &Optane) -> Self {
        let media = &optane.media;
        let (read_interval, write_interval) = intervals(optane, optane.power.budget);
        let (_, peak_interval) = intervals(optane, optane.power.peak.max(optane.power.budget));
        let ahead = 1.0 - peak_interval as f64 / write_interval as f64;
        Self {
            banks: vec![Bank::default(); media.banks as usize],
            by_bank: Modulus::new(media.banks.into()),
            read_port: 0,
            write_port: 0,
            read_interval,
            read_latency: media.read_latency,
            read_busy: media.read_busy,
            write_interval,
            peak_interval,
            burst: (optane.power.window as f64 * ahead) as Time,
            write_peak: 0,
            write_busy: (media.write_busy as f64 * write_interval as f64 / media.write_interval as f64) as Time,
            write_blocks: media.write_blocks,
            read_cost_on_writes: media.read_cost_on_writes,
            span_shift: (media.bank_span / optane.xpbuffer.line).trailing_zeros(),
            span_mask: media.bank_period / media.bank_span - 1,
            reads: 0,
            writes: 0,
        }
    }

    /// The bank of an XPLine: its number, turned by the number of its span in the period.
    #[inline]
    fn bank(&self, xpline: u64) -> usize {
        let span = (xpline >> self.span_shift) & self.span_mask;
        let turned = xpline ^ (span.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60);
        self.by_bank.of(turned) as usize
    }

    /// Read one XPLine not before `at`; returns when its data are in the controller.
    #[inline]
    pub fn read<F: Follow>(&mut self, xpline: u64, at: Time, follow: &mut F) -> Time {
        self.reads += 1;
        let slot = self.read_port.max(at);
        self.read_port = slot + self.read_interval;
        let bank = self.bank(xpline);
        let bank = &mut self.banks[bank];
        let mut start = slot.max(bank.free_for_reads);
        for (from, until) in bank.writes.into_iter().rev() {
            if (from..until).contains(&start) {
                start = until;
            }
        }
        bank.free_for_reads = start + self.read_busy;
        follow.passes(Part::Port, at, slot);
        follow.passes(Part::Bank, slot, start);
        follow.passes(Part::Media, start, start + self.read_latency);
        start + self.read_latency
    }

    /// A 64 B read passes the controller `at`, whether it needs the media or not: writes give way.
    #[inline]
    pub fn read_passes(&mut self, at: Time) {
        self.write_port = self.write_port.max(at) + self.read_cost_on_writes;
    }

    /// Count the read of a read-modify-write: the sweep shows that it costs the write nothing.
    #[inline]
    pub fn read_for_merge(&mut self) {
        self.reads += 1;
    }

    /// Write one XPLine not before `at`; returns when its turn at the port came, and when its bank takes it.
    #[inline]
    pub fn write(&mut self, xpline: u64, at: Time) -> WriteTurn {
        self.writes += 1;
        let port = self.write_port.saturating_sub(self.burst).max(self.write_peak).max(at);
        self.write_port = self.write_port.max(port) + self.write_interval;
        self.write_peak = port + self.peak_interval;
        let bank = self.bank(xpline);
        let bank = &mut self.banks[bank];
        let taken = port.max(bank.free_for_writes);
        bank.free_for_writes = taken + self.write_busy;
        bank.writes.copy_within(..RECALLED - 1, 1);
        bank.writes[0] = (taken, taken + self.write_blocks);
        WriteTurn { port, taken }
    }
}

/// When a line write got through.
#[derive(Clone, Copy, Debug)]
pub struct WriteTurn {
    pub port: Time,
    pub taken: Time,
}

/// Times between two line reads and between two line writes that the power budget allows, but no less than the media's own.
///
/// Law: the power above `idle` goes into reads or writes, so their rates are proportional to (budget - idle).
/// A budget below the least that the firmware takes leaves the reference in force.
fn intervals(optane: &Optane, budget: u32) -> (Time, Time) {
    let power = &optane.power;
    let media = &optane.media;
    let budget = if budget < power.least { power.reference } else { budget };
    let nominal = f64::from(power.reference.saturating_sub(power.idle));
    let granted = f64::from(budget.saturating_sub(power.idle).max(1));
    let scaled = |interval: Time| (interval as f64 * nominal / granted) as Time;
    (
        scaled(media.read_interval).max(power.read_floor),
        scaled(media.write_interval).max(power.write_floor),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dimm::of_tests::optane;
    use crate::way::Nobody;

    #[test]
    fn banks_repeat_after_a_period_and_turn_from_span_to_span() {
        let optane = optane(&[]);
        let (media, line) = (Media::new(&optane), optane.xpbuffer.line);
        let (span, period) = (optane.media.bank_span / line, optane.media.bank_period / line);
        let order = |first: u64| -> Vec<usize> { (first..first + span).map(|xpline| media.bank(xpline)).collect() };
        assert_eq!(order(0), order(period));
        assert_ne!(order(0), order(span));
        // Within a span the lines go round all banks.
        let banks = optane.media.banks as usize;
        assert_eq!(order(span)[..banks], order(span)[banks..2 * banks]);
    }

    #[test]
    fn a_line_write_keeps_reads_from_its_own_bank_for_a_time() {
        let optane = optane(&[]);
        let banks = u64::from(optane.media.banks);
        let read_beside_a_write = |xpline: u64, at: Time| {
            let mut media = Media::new(&optane);
            let taken = media.write(0, 1000).taken;
            assert_eq!(taken, 1000);
            media.read(xpline, at, &mut Nobody) - optane.media.read_latency
        };
        let free_again = 1000 + optane.media.write_blocks;
        assert_eq!(read_beside_a_write(banks, 2000), free_again);
        assert_eq!(read_beside_a_write(banks, free_again), free_again);
        assert_eq!(read_beside_a_write(banks, 999), 999);
        assert_eq!(read_beside_a_write(1, 2000), 2000);
    }

    #[test]
    fn a_smaller_power_budget_keeps_a_bank_for_longer() {
        let second_write_taken = |budget: &str| {
            let mut media = Media::new(&optane(&[budget]));
            media.write(0, 0);
            media.write(0, 0).taken
        };
        // The rates go with the power above the 6 W of an idle DIMM: 9 W of 15, 6 W of 12.
        let (at_15, at_12) = (
            second_write_taken("optane.power.budget=15W"),
            second_write_taken("optane.power.budget=12W"),
        );
        assert_eq!(at_12 / 1000, at_15 * 9 / 6 / 1000);
        // The firmware takes no 10 W, and stays at 15.
        assert_eq!(second_write_taken("optane.power.budget=10W"), at_15);
    }
}
