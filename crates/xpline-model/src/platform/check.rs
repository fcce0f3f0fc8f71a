//! What must hold between the values of a platform.

use super::error::{BadValue, PlatformError};
use super::schema::{Ait, Dram, Media, Memory, MemoryMode, Optane, Platform};
use super::unit::{Bytes, Duration, Power, render};
use crate::time::Time;

/// Bytes of a line of the caches.
const LINE: u64 = 64;

/// Refuse a platform whose values contradict each other.
pub fn check(platform: &Platform) -> Result<(), PlatformError> {
    let check = Check(platform);
    check.caches()?;
    check.controllers()?;
    match &platform.memory {
        Memory::Optane(optane) => check.optane(optane),
        Memory::Dram(dram) => check.dram(dram),
        Memory::Hybrid(hybrid, dram) => {
            let set = hybrid.page * u64::from(hybrid.ways);
            check.multiple("hybrid.cache", hybrid.cache, set, "hybrid.ways x hybrid.page")?;
            check.dram(dram)
        }
        Memory::MemoryMode(mode) => check.memory_mode(mode),
    }
}

struct Check<'a>(&'a Platform);

impl Check<'_> {
    fn caches(&self) -> Result<(), PlatformError> {
        let Platform { l1d, l2, l3, .. } = self.0;
        let caches = [
            ("l1d.size", l1d.size, l1d.ways, "ways x 64B"),
            ("l2.size", l2.size, l2.ways, "ways x 64B"),
            ("l3.size", l3.size, l3.ways * l3.slices, "ways x slices x 64B"),
        ];
        caches
            .iter()
            .try_for_each(|(key, size, lines, rule)| self.multiple(key, *size, u64::from(*lines) * LINE, rule))
    }

    fn controllers(&self) -> Result<(), PlatformError> {
        let Platform { imc, interleave, .. } = self.0;
        let channels = imc.controllers * imc.channels;
        self.require(
            "interleave.dimms",
            interleave.dimms <= channels,
            "more than there are channels",
            &format!("at most imc.controllers x imc.channels = {channels}"),
        )?;
        self.require(
            "imc.wpq_per_core",
            imc.wpq_per_core <= imc.wpq,
            "more than the queue holds",
            &format!("at most imc.wpq = {}", imc.wpq),
        )
    }

    fn optane(&self, optane: &Optane) -> Result<(), PlatformError> {
        let line = optane.xpbuffer.line;
        let Ait { page, cache, ways, .. } = optane.ait;
        self.multiple(
            "interleave.granularity",
            self.0.interleave.granularity,
            line,
            "optane.xpbuffer.line",
        )?;
        self.multiple("optane.ait.page", page, line, "optane.xpbuffer.line")?;
        self.multiple(
            "optane.ait.cache",
            cache,
            page * u64::from(ways),
            "optane.ait.ways x optane.ait.page",
        )?;
        let Media {
            bank_span, bank_period, ..
        } = optane.media;
        self.multiple("optane.media.bank_span", bank_span, line, "optane.xpbuffer.line")?;
        self.multiple(
            "optane.media.bank_period",
            bank_period,
            bank_span,
            "optane.media.bank_span",
        )?;
        let power = &optane.power;
        [("budget", power.budget), ("reference", power.reference)]
            .iter()
            .try_for_each(|(name, power_at)| {
                self.require(
                    &format!("optane.power.{name}"),
                    *power_at > power.idle,
                    "not above the idle power",
                    &format!("more than optane.power.idle = {}", render::<Power>(power.idle)),
                )
            })
    }

    fn memory_mode(&self, mode: &MemoryMode) -> Result<(), PlatformError> {
        self.require(
            "volatile",
            self.0.volatile.name != "none",
            "no DRAM to cache Optane in",
            "a platform of DRAM",
        )?;
        self.optane(&mode.far)
    }

    fn dram(&self, dram: &Dram) -> Result<(), PlatformError> {
        let banks = dram.ranks * dram.banks;
        self.require(
            "dram.low_banks",
            dram.low_banks <= banks,
            "more than there are banks",
            &format!("at most dram.ranks x dram.banks = {banks}"),
        )?;
        self.at_least("dram.tras", dram.tras, "dram.trcd", dram.trcd)?;
        self.at_least("dram.trefi", dram.trefi, "dram.trfc", dram.trfc)
    }

    fn at_least(&self, key: &str, time: Time, least: &str, least_time: Time) -> Result<(), PlatformError> {
        self.require(
            key,
            time >= least_time,
            &format!("less than {least}"),
            &format!("at least {least} = {}", render::<Duration>(least_time)),
        )
    }

    fn multiple(&self, key: &str, size: u64, of: u64, rule: &str) -> Result<(), PlatformError> {
        let of_text = render::<Bytes>(of);
        self.require(
            key,
            size.is_multiple_of(of),
            &format!("not a multiple of {of_text}"),
            &format!("a multiple of {rule} = {of_text}"),
        )
    }

    fn require(&self, key: &str, holds: bool, problem: &str, allowed: &str) -> Result<(), PlatformError> {
        match self.0.describe().iter().find(|entry| entry.key == key) {
            Some(entry) if !holds => Err(BadValue {
                origin: entry.origin.clone(),
                key: key.into(),
                value: entry.value.clone(),
                problem: problem.into(),
                allowed: allowed.into(),
            }
            .into()),
            _ => Ok(()),
        }
    }
}
