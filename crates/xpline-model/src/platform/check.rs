//! What must hold between the values of a platform.

use super::error::{BadValue, PlatformError};
use super::schema::{Ait, Memory, Optane, Platform};
use super::unit::{Bytes, Duration, Power, render};

/// Bytes of a line of the caches.
const LINE: u64 = 64;

/// Refuse a platform whose values contradict each other.
pub fn check(platform: &Platform) -> Result<(), PlatformError> {
    let check = Check(platform);
    check.caches()?;
    check.controllers()?;
    match &platform.memory {
        Memory::Optane(optane) => check.optane(optane),
        Memory::Dram(dram) => check.require(
            "dram.tras",
            dram.tras >= dram.trcd,
            "less than dram.trcd",
            &format!("at least {}", render::<Duration>(dram.trcd)),
        ),
    }
}

struct Check<'a>(&'a Platform);

impl Check<'_> {
    fn caches(&self) -> Result<(), PlatformError> {
        let Platform { l1d, l2, l3, .. } = self.0;
        let caches = [
            ("l1d.size", l1d.size, u64::from(l1d.ways), "ways x 64B"),
            ("l2.size", l2.size, u64::from(l2.ways), "ways x 64B"),
            (
                "l3.size",
                l3.size,
                u64::from(l3.ways),
                "ways x 64B",
            ),
        ];
        caches
            .iter()
            .try_for_each(|(key, size, lines, rule)| self.multiple(key, *size, lines * LINE, rule))
    }

    fn controllers(&self) -> Result<(), PlatformError> {
        let Platform {
            imc, interleave, ..
        } = self.0;
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
        let Ait { page, cache, .. } = optane.ait;
        self.multiple(
            "interleave.granularity",
            self.0.interleave.granularity,
            line,
            "optane.xpbuffer.line",
        )?;
        self.multiple("optane.ait.page", page, line, "optane.xpbuffer.line")?;
        self.multiple("optane.ait.cache", cache, page, "optane.ait.page")?;
        self.require(
            "optane.power.idle",
            optane.power.idle < optane.power.budget,
            "not below the budget",
            &format!(
                "less than optane.power.budget = {}",
                render::<Power>(optane.power.budget)
            ),
        )
    }

    fn multiple(&self, key: &str, size: u64, of: u64, rule: &str) -> Result<(), PlatformError> {
        let of_text = render::<Bytes>(of);
        self.require(
            key,
            size % of == 0,
            &format!("not a multiple of {of_text}"),
            &format!("a multiple of {rule} = {of_text}"),
        )
    }

    fn require(
        &self,
        key: &str,
        holds: bool,
        problem: &str,
        allowed: &str,
    ) -> Result<(), PlatformError> {
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
