//! Instruction sets, and whether this CPU has them.

use std::arch::is_x86_feature_detected;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Kernel, Step, Touch, Walk};

/// The widest vectors that a kernel may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isa {
    /// 64 B at a time.
    Avx512,
    /// 32 B at a time.
    Avx2,
    /// 16 B at a time.
    Sse2,
}

/// The instruction that writes a line back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flush {
    #[default]
    Clwb,
    ClflushOpt,
    Clflush,
}

/// An instruction that was asked for and that this CPU lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this CPU has no {instruction}, which {wanted_by}; {instead}")]
pub struct MissingInstruction {
    pub instruction: &'static str,
    pub wanted_by: String,
    pub instead: String,
}

impl Isa {
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Sse2];

    /// The widest that this CPU has.
    pub fn best() -> Self {
        Self::ALL.into_iter().find(|isa| isa.is_here()).unwrap_or(Self::Sse2)
    }

    pub fn is_here(self) -> bool {
        match self {
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            Self::Sse2 => true,
        }
    }

    /// Bytes that one instruction moves.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Avx512 => 64,
            Self::Avx2 => 32,
            Self::Sse2 => 16,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Sse2 => "sse2",
        }
    }

    /// The instruction set that was asked for, or the widest.
    pub fn choose(asked: Option<Self>) -> Result<Self, MissingInstruction> {
        let isa = asked.unwrap_or_else(Self::best);
        if isa.is_here() {
            return Ok(isa);
        }
        let here: Vec<&str> = Self::ALL
            .iter()
            .filter(|isa| isa.is_here())
            .map(|isa| isa.name())
            .collect();
        Err(MissingInstruction {
            instruction: match isa {
                Self::Avx512 => "AVX-512F",
                Self::Avx2 => "AVX2",
                Self::Sse2 => "SSE2",
            },
            wanted_by: format!("isa = {} needs", isa.name()),
            instead: format!("it has {}", here.join(", ")),
        })
    }
}

impl Flush {
    pub const ALL: [Self; 3] = [Self::Clwb, Self::ClflushOpt, Self::Clflush];

    /// By the feature bits of CPUID leaves 1 and 7.
    pub fn is_here(self) -> bool {
        // Leaf 7 exists on every CPU with AVX2; on older ones the highest leaf is below 7.
        let leaf7 = if std::arch::x86_64::__cpuid(0).eax >= 7 {
            std::arch::x86_64::__cpuid_count(7, 0).ebx
        } else {
            0
        };
        match self {
            Self::Clwb => leaf7 & 1 << 24 != 0,
            Self::ClflushOpt => leaf7 & 1 << 23 != 0,
            Self::Clflush => std::arch::x86_64::__cpuid(1).edx & 1 << 19 != 0,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Clwb => "clwb",
            Self::ClflushOpt => "clflushopt",
            Self::Clflush => "clflush",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Kernel {
    /// Whether it writes lines back with the instruction that is chosen.
    pub fn flushes(&self) -> bool {
        self.does(Touch::Flush)
    }

    fn does(&self, touch: Touch) -> bool {
        self.steps().any(|steps| has(steps, touch))
    }

    /// Whether this CPU has every instruction of the kernel; never a substitute for one that it lacks.
    pub fn check_instructions(&self, flush: Flush) -> Result<(), MissingInstruction> {
        if self.does(Touch::Evict) && !Flush::ClflushOpt.is_here() {
            return Err(MissingInstruction {
                instruction: Flush::ClflushOpt.name(),
                wanted_by: "the experiment needs to throw lines out of the caches".into(),
                instead: "run another experiment".into(),
            });
        }
        if !flush.is_here() && self.flushes() {
            let here: Vec<&str> = Flush::ALL
                .iter()
                .filter(|one| one.is_here())
                .map(|one| one.name())
                .collect();
            return Err(MissingInstruction {
                instruction: flush.name(),
                wanted_by: "the experiment needs to write lines back".into(),
                instead: format!("choose another with --flush: {}", here.join(", ")),
            });
        }
        if matches!(self.walk, Walk::Masked { mask, .. } if mask != 0) && !is_x86_feature_detected!("bmi2") {
            return Err(MissingInstruction {
                instruction: "pdep (BMI2)",
                wanted_by: "a mask of address bits needs".into(),
                instead: "leave mask at 0".into(),
            });
        }
        Ok(())
    }
}

fn has(steps: &[Step], touch: Touch) -> bool {
    steps.iter().any(|step| match step {
        Step::Lines { touches, .. } => touches.contains(&touch),
        Step::Repeat(_, steps) => has(steps, touch),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_never_replaced() {
        for isa in Isa::ALL {
            match Isa::choose(Some(isa)) {
                Ok(chosen) => assert_eq!(chosen, isa),
                Err(missing) => assert!(!isa.is_here() && missing.to_string().contains(isa.name())),
            }
        }
        assert!(Isa::best().is_here());
    }

    #[test]
    fn a_missing_flush_is_named() {
        let walk = Walk::Ring { stride: 64, last: 0 };
        let kernel = Kernel::untimed(walk, vec![Step::Repeat(2, vec![Step::lines(&[Touch::Flush], 1)])]);
        for flush in Flush::ALL {
            match kernel.check_instructions(flush) {
                Ok(()) => assert!(flush.is_here()),
                Err(missing) => assert!(!flush.is_here() && missing.to_string().contains(flush.name())),
            }
        }
    }
}
