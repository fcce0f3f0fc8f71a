//! Which core runs a record.

use std::collections::HashMap;

use crate::record::{Record, has_address};

/// How records are dealt out to cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadsMap {
    /// Each thread of the trace has a core, in the order in which they appear.
    Trace,
    /// All on one core.
    One,
    /// So many records in a row on each of so many cores, in turn.
    RoundRobin { cores: u32, records: u64 },
    /// Each range of so many bytes belongs to one of so many cores, in turn.
    Address { cores: u32, bytes: u64 },
}

impl ThreadsMap {
    /// `trace`, `one`, `round-robin:CORES[:RECORDS]` or `address:CORES:SIZE`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}`: write trace, one, round-robin:CORES, round-robin:CORES:RECORDS or address:CORES:SIZE, such \
                 as round-robin:8 or address:6:4KiB"
            )
        };
        let parts: Vec<&str> = text.split(':').collect();
        let count = |text: &str| text.parse().ok().filter(|&count: &u32| count > 0).ok_or_else(wrong);
        Ok(match parts[..] {
            ["trace"] => Self::Trace,
            ["one"] => Self::One,
            ["round-robin", cores] => Self::RoundRobin {
                cores: count(cores)?,
                records: 1,
            },
            ["round-robin", cores, records] => Self::RoundRobin {
                cores: count(cores)?,
                records: u64::from(count(records)?),
            },
            ["address", cores, size] => Self::Address {
                cores: count(cores)?,
                bytes: size_in_bytes(size).ok_or_else(wrong)?,
            },
            _ => return Err(wrong()),
        })
    }

    /// How many cores it takes, where that does not depend on the trace.
    pub fn cores(self) -> Option<u32> {
        match self {
            Self::Trace => None,
            Self::One => Some(1),
            Self::RoundRobin { cores, .. } | Self::Address { cores, .. } => Some(cores),
        }
    }
}

/// A size such as `4096`, `4KiB` or `2GiB`.
fn size_in_bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let number: u64 = text[..digits].parse().ok()?;
    number.checked_mul(unit).filter(|&bytes| bytes > 0)
}

/// Deals records out, in the order of the trace.
pub struct Dealer {
    map: ThreadsMap,
    /// Cores that there are.
    cores: u32,
    dealt: u64,
    /// The core of the access before.
    core: u32,
    threads: HashMap<u32, u32>,
    /// The thread met last, and its core.
    last: Option<(u32, u32)>,
}

impl Dealer {
    /// `cores` is how many the platform has.
    pub fn new(map: ThreadsMap, cores: u32) -> Result<Self, String> {
        if let Some(needed) = map.cores().filter(|&needed| needed > cores) {
            return Err(format!(
                "the threads map takes {needed} cores, and the platform has {cores}"
            ));
        }
        Ok(Self {
            map,
            cores,
            dealt: 0,
            core: 0,
            threads: HashMap::new(),
            last: None,
        })
    }

    /// The core of the next record. Instructions and fences go with the access before them.
    #[inline]
    pub fn deal(&mut self, record: &Record) -> Result<u32, String> {
        self.core = match self.map {
            ThreadsMap::One => 0,
            ThreadsMap::Trace => match self.last {
                Some((thread, core)) if thread == record.thread => core,
                _ => self.core_of(record.thread)?,
            },
            _ if !has_address(record.kind) => self.core,
            ThreadsMap::RoundRobin { cores, records } => {
                self.dealt += 1;
                ((self.dealt - 1) / records % u64::from(cores)) as u32
            }
            ThreadsMap::Address { cores, bytes } => (record.address / bytes % u64::from(cores)) as u32,
        };
        Ok(self.core)
    }

    /// Let the thread of a record have its core before the record is dealt.
    pub fn meet(&mut self, record: &Record) -> Result<(), String> {
        match self.map {
            ThreadsMap::Trace => self.core_of(record.thread).map(drop),
            _ => Ok(()),
        }
    }

    fn core_of(&mut self, thread: u32) -> Result<u32, String> {
        let next = self.threads.len() as u32;
        let core = match self.threads.get(&thread) {
            Some(&core) => core,
            None if next < self.cores => *self.threads.entry(thread).or_insert(next),
            None => {
                return Err(format!(
                    "thread {thread} is one more than the platform's {next} cores; deal the records out with \
                     --threads-map round-robin:{next}"
                ));
            }
        };
        self.last = Some((thread, core));
        Ok(core)
    }

    /// How many cores have been dealt to, or are known to be.
    pub fn cores_in_use(&self) -> u32 {
        self.map.cores().unwrap_or(self.threads.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xpline_model::OpKind;

    fn dealt(map: &str, threads_and_addresses: &[(u32, u64)]) -> Vec<u32> {
        let mut dealer = Dealer::new(ThreadsMap::parse(map).unwrap(), 24).unwrap();
        let records = threads_and_addresses.iter().map(|&(thread, address)| Record {
            thread,
            ..Record::new(OpKind::Load, address, 64)
        });
        records.map(|record| dealer.deal(&record).unwrap()).collect()
    }

    #[test]
    fn every_map_deals_as_it_says() {
        let trace = [(7, 0), (7, 4096), (3, 8192), (7, 12288), (9, 0)];
        assert_eq!(dealt("trace", &trace), [0, 0, 1, 0, 2]);
        assert_eq!(dealt("one", &trace), [0, 0, 0, 0, 0]);
        assert_eq!(dealt("round-robin:2", &trace), [0, 1, 0, 1, 0]);
        assert_eq!(dealt("round-robin:2:2", &trace), [0, 0, 1, 1, 0]);
        assert_eq!(dealt("address:2:4KiB", &trace), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn fences_go_with_the_access_before() {
        let [load, fence] =
            [(OpKind::Load, 4096), (OpKind::Sfence, 0)].map(|(kind, address)| Record::new(kind, address, 64));
        for (map, expected) in [("round-robin:3", [0, 0, 1, 1]), ("address:2:4KiB", [1, 1, 1, 1])] {
            let mut dealer = Dealer::new(ThreadsMap::parse(map).unwrap(), 24).unwrap();
            assert_eq!(
                [load, fence, load, fence].map(|record| dealer.deal(&record).unwrap()),
                expected,
                "{map}"
            );
        }
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for wrong in [
            "",
            "two",
            "round-robin",
            "round-robin:0",
            "round-robin:x",
            "address:2",
            "address:2:0",
            "address:2:4kB",
        ] {
            assert!(
                ThreadsMap::parse(wrong).unwrap_err().contains("such as round-robin:8"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn more_cores_than_there_are_are_refused() {
        let refused = Dealer::new(ThreadsMap::parse("round-robin:25").unwrap(), 24)
            .err()
            .unwrap();
        assert!(refused.contains("takes 25 cores, and the platform has 24"));
        let mut dealer = Dealer::new(ThreadsMap::Trace, 1).unwrap();
        let of = |thread| Record {
            thread,
            ..Record::new(OpKind::Load, 0, 64)
        };
        assert_eq!(dealer.deal(&of(5)), Ok(0));
        assert!(
            dealer
                .deal(&of(6))
                .unwrap_err()
                .contains("thread 6 is one more than the platform's 1 cores")
        );
    }
}
