//! Places in the program, numbered.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use xpline_wire::CallKind;

use crate::access::Site;

/// A place in the program: an instruction, or a system call made by one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The file that the code is mapped from, and where in it; `None` for code that a program made.
    pub module: Option<Vec<u8>>,
    /// Offset in the file, or the address where there is none.
    pub offset: u64,
    /// The system call that it makes, and the tracked file that it is about.
    pub call: Option<(CallKind, Vec<u8>)>,
    /// The stack that its function is on, where callers are followed; else 0.
    pub stack: Stack,
}

/// A stack of calls: an entry of [`Sites::calls`], counted from 1. That is its innermost call, and its origin has the stack of the
/// function that made it. 0 is none, or one that is not known.
pub type Stack = u32;

#[derive(Default)]
pub struct Sites {
    origins: Numbered,
    calls: Numbered,
}

/// Places in the order in which they were met.
#[derive(Default)]
struct Numbered {
    all: Vec<Origin>,
    numbers: HashMap<Origin, u32>,
}

impl Numbered {
    fn number(&mut self, origin: Origin) -> u32 {
        if let Some(&number) = self.numbers.get(&origin) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(origin.clone());
        self.numbers.insert(origin, number);
        number
    }
}

impl Sites {
    pub fn number(&mut self, origin: Origin) -> Site {
        self.origins.number(origin)
    }

    /// The stack that a call instruction makes.
    pub fn stack(&mut self, call: Origin) -> Stack {
        self.calls.number(call) + 1
    }

    pub fn origins(&self) -> &[Origin] {
        &self.origins.all
    }

    pub fn calls(&self) -> &[Origin] {
        &self.calls.all
    }
}

/// A site as people know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    pub module: Option<String>,
    /// Offset of the code in its module, or its address.
    pub offset: u64,
    /// The system call whose copying this is.
    pub call: Option<String>,
    /// The tracked file that it was about.
    pub target: Option<String>,
    /// The stack that its function is on, or 0.
    pub stack: Stack,
    /// From the innermost inlined function to the one that stands in the symbol table; empty where nothing is known.
    pub frames: Vec<Frame>,
}

/// A function, and a line in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// The name of what the kernel did.
pub fn call_name(call: CallKind) -> &'static str {
    match call {
        CallKind::Read => "read",
        CallKind::Write => "write",
        CallKind::Sync => "fsync",
        CallKind::SyncRange => "msync",
        CallKind::Truncate => "ftruncate",
        CallKind::Allocate => "fallocate",
    }
}
