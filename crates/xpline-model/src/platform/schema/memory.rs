//! What the address space is made of: Optane DIMMs, DRAM, flash behind DRAM, or Optane behind DRAM.

use super::super::error::PlatformError;
use super::super::key::{Key, Node, Reader, Section, join, section};
use super::super::unit::{
    Any, Bytes, Count, Duration, Factor, Flag, GIB, Grained, KIB, MIB, Power, Scalar, Unit, choice,
};
use crate::time::{MICROSECOND as US, NANOSECOND as NS};

choice! {
    /// A kind of memory.
    pub enum MemoryKind {
        /// Optane DC persistent memory.
        Optane = "optane",
        /// DDR4 DRAM.
        Dram = "dram",
        /// DRAM as a cache in front of NAND flash.
        Hybrid = "hybrid",
        /// Optane behind a cache of the DRAM beside it.
        MemoryMode = "memory-mode",
    }
}

/// The memory that the address space is made of, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Memory {
    Optane(Box<Optane>),
    Dram(Box<Dram>),
    /// Flash, and the DRAM in front of it.
    Hybrid(Box<Hybrid>, Box<Dram>),
    MemoryMode(Box<MemoryMode>),
}

/// Memory Mode: DRAM, which is the platform's volatile memory, as a cache in front of Optane.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryMode {
    pub near: Near,
    pub far: Optane,
}

impl Memory {
    /// The name of the kind, as in `memory = "optane"`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Optane(_) => "optane",
            Self::Dram(_) => "dram",
            Self::Hybrid(..) => "hybrid",
            Self::MemoryMode(_) => "memory-mode",
        }
    }

    /// The Optane DIMMs, where the memory has some.
    pub fn optane(&self) -> Option<&Optane> {
        match self {
            Self::Optane(optane) => Some(optane),
            Self::Dram(_) | Self::Hybrid(..) => None,
            Self::MemoryMode(mode) => Some(&mode.far),
        }
    }
}

/// `memory = "optane"` selects the section `[optane]`, and so on.
impl Node for Memory {
    type Value = Self;
    type Allowed = Section;

    fn read(reader: &mut Reader, path: &str, about: &str, section: &Section) -> Result<Self, PlatformError> {
        Ok(match MemoryKind::read(reader, path, about, &Any)? {
            MemoryKind::Optane => Self::Optane(Box::new(Optane::read(reader, "optane", "", section)?)),
            MemoryKind::Dram => Self::Dram(Box::new(Dram::read(reader, "dram", "", section)?)),
            MemoryKind::Hybrid => Self::Hybrid(
                Box::new(Hybrid::read(reader, "hybrid", "", section)?),
                Box::new(Dram::read(reader, "dram", "", section)?),
            ),
            MemoryKind::MemoryMode => Self::MemoryMode(Box::new(MemoryMode {
                near: Near::read(reader, "near", "", section)?,
                far: Optane::read(reader, "optane", "", section)?,
            })),
        })
    }

    fn list(path: &str, about: &str, section: &Section, keys: &mut Vec<Key>) {
        MemoryKind::list(path, about, &Any, keys);
        Near::list("near", "", section, keys);
        Optane::list("optane", "", section, keys);
        Dram::list("dram", "", section, keys);
        Hybrid::list("hybrid", "", section, keys);
    }
}

section! {
    /// Memory Mode: the DRAM of each channel as a cache in front of its Optane DIMM.
    pub struct Near {
        /// DRAM of a channel.
        size: Bytes in (64 * KIB..=1024 * GIB).multiple_of(4 * KIB),
        /// Bytes that go from Optane to DRAM and back at once.
        line: Bytes in (64..=4 * KIB).power_of_two(),
        /// Where the operating system places pages in the DRAM's frames.
        pages: Pages in Any,
        /// Time that a miss takes in the memory controller, besides the look-up in DRAM and the read of Optane.
        miss: Duration in 0..=10 * US,
        /// Written lines on their way back to Optane, of a channel.
        victims: Count in 1..=1024,
    }
}

choice! {
    /// Where the operating system places pages in the frames of the near memory.
    pub enum Pages {
        /// In the order in which they are first used: pages meet only when there are more of them than frames.
        Contiguous = "contiguous",
        /// Anywhere: some frames have several pages, others none.
        Random = "random",
    }
}

section! {
    /// An Optane DC persistent memory DIMM.
    pub struct Optane {
        /// The DDR-T link.
        ddrt: Ddrt in Section,
        /// The on-DIMM buffer of XPLines.
        xpbuffer: XpBuffer in Section,
        /// The address indirection table.
        ait: Ait in Section,
        /// The 3D XPoint media.
        media: Media in Section,
        /// Wear levelling.
        wear: Wear in Section,
        /// The power budget.
        power: PowerBudget in Section,
    }
}

section! {
    /// The DDR-T link between a memory controller and an Optane DIMM.
    pub struct Ddrt {
        /// Million transfers a second of the channel.
        speed: Count in 100..=20_000,
        /// Transfers a second at which the times below hold.
        reference: Count in 100..=20_000,
        /// Time on the link of 64 B read.
        read_transfer: Duration in 1..=US,
        /// Time on the link of 64 B written.
        write_transfer: Duration in 1..=US,
        /// The same where the buffer still holds the line from when it was whole.
        rewrite_transfer: Duration in 1..=US,
    }
}

section! {
    /// The on-DIMM buffer, shared by reads and writes, in which small writes combine.
    pub struct XpBuffer {
        /// Lines that the XPBuffer holds.
        lines: Count in 1..=32_768,
        /// Bytes of a line, which the media read and write at once (the XPLine).
        line: Bytes in (64..=512).power_of_two(),
        /// Time from a request's arrival at the DIMM to its data when the line is buffered.
        hit_latency: Duration in 1..=10 * US,
        /// Which line makes room for another.
        replacement: BufferReplacement in Any,
        /// Lines on their way from the buffer to the media.
        write_back_queue: Count in 1..=65_536,
        /// Reads in flight at a DIMM above which lines are lost before they are used up.
        contention_reads: Factor in 1.0..=4096.0,
        /// Extra reads of a line each time the requests in flight double past that.
        contention_slope: Factor in 0.0..=16.0,
        /// Waiting in the queue that costs a write nothing.
        contention_spared: Duration in 0..=1_000_000 * US,
        /// Further waiting that costs one more write of a line, for lines are written back before they are full.
        contention_wait: Duration in 1..=1_000_000 * US,
    }
}

choice! {
    /// Which line of the XPBuffer makes room for another.
    pub enum BufferReplacement {
        /// The one that came first.
        Fifo = "fifo",
        /// The least recently used.
        Lru = "lru",
    }
}

section! {
    /// The address indirection table, which maps addresses to media for wear levelling, and its cache.
    pub struct Ait {
        /// Bytes that one entry of the table maps.
        page: Bytes in (256..=MIB).power_of_two(),
        /// Bytes that the cached entries of the table map together.
        cache: Bytes in (256..=4 * GIB).multiple_of(256),
        /// Entries that a page may be cached in.
        ways: Count in 1..=64,
        /// Time that a look-up outside the table's cache adds.
        miss_latency: Duration in 0..=100 * US,
    }
}

section! {
    /// The 3D XPoint media of a DIMM.
    pub struct Media {
        /// Media banks that work side by side.
        banks: Count in 1..=4096,
        /// Bytes in which a line's bank follows from its place alone; the next span is turned against it.
        bank_span: Bytes in (64..=GIB).power_of_two(),
        /// Bytes after which the banks repeat themselves.
        bank_period: Bytes in (64..=1024 * GIB).power_of_two(),
        /// Time in which the media read one line.
        read_latency: Duration in 1..=100 * US,
        /// Time from when a bank takes a line to the end of its write; the line is not written again meanwhile.
        write_latency: Duration in 0..=100 * US,
        /// The first part of that time, in which the line can still be read.
        write_delay: Duration in 0..=100 * US,
        /// Time for which one line read keeps its bank from the next read.
        read_busy: Duration in 1..=100 * US,
        /// Time for which one line write keeps its bank from the next write, at the reference power.
        write_busy: Duration in 1..=100 * US,
        /// Time for which a line write keeps reads from its bank.
        write_blocks: Duration in 0..=100 * US,
        /// Time between two line reads of a DIMM at the reference power.
        read_interval: Duration in 1..=100 * US,
        /// Time between two line writes of a DIMM at the reference power.
        write_interval: Duration in 1..=100 * US,
        /// Time that one 64 B read takes from the writes.
        read_cost_on_writes: Duration in 0..=100 * US,
    }
}

section! {
    /// Wear levelling: pages that are written over and over move to another place of the media.
    pub struct Wear {
        /// Writes of one line after which its page moves.
        interval: Count in 1..=100_000_000,
        /// Time that a move takes, in which the page can be neither read nor written.
        stall: Duration in 0..=1_000 * US,
    }
}

section! {
    /// The power that a DIMM may draw, which bounds its write rate.
    pub struct PowerBudget {
        /// Average power that a DIMM may draw, as set in its firmware.
        budget: Power in 1_000..=100_000,
        /// Power that a DIMM may draw for a while, as long as the average keeps to the budget.
        peak: Power in 1_000..=100_000,
        /// Time over which the average is taken; 0 where the budget holds at every moment.
        window: Duration in 0..=10_000 * US,
        /// Budget at which the media's write interval holds.
        reference: Power in 1_000..=100_000,
        /// Power that a DIMM draws without writing.
        idle: Power in 0..=100_000,
        /// Least budget that the firmware takes; below it the reference stays in force.
        least: Power in 1_000..=100_000,
        /// Shortest time between two line reads, whatever the budget.
        read_floor: Duration in 1..=100 * US,
        /// Shortest time between two line writes, whatever the budget.
        write_floor: Duration in 1..=100 * US,
    }
}

section! {
    /// A channel of DDR4 DRAM.
    pub struct Dram {
        /// Ranks of a channel.
        ranks: Count in 1..=16,
        /// Banks of a rank.
        banks: Count in (1..=256).power_of_two(),
        /// Million transfers of 8 B a second.
        speed: Count in 100..=20_000,
        /// Read command to first data (CL).
        tcl: Duration in 1..=US,
        /// Row activation to a column command.
        trcd: Duration in 1..=US,
        /// Precharge to activation.
        trp: Duration in 1..=US,
        /// Activation to precharge.
        tras: Duration in 1..=US,
        /// Write command to first data (CWL).
        tcwl: Duration in 1..=US,
        /// End of write data to precharge.
        twr: Duration in 1..=US,
        /// From a column command to the next of the same bank group (tCCD_L).
        tccd: Duration in 0..=US,
        /// Time between two refreshes.
        trefi: Duration in NS..=1_000 * US,
        /// Time that one refresh takes.
        trfc: Duration in 1..=100 * US,
        /// Whether reads wait for a refresh of their channel, which the channels do in turn; if not, it takes its share of the bus.
        refresh_halts: Flag in Any,
        /// Bus time lost a read, on average, to gaps and to changes of direction.
        read_gap: Duration in 0..=US,
        /// Bus time lost a write.
        write_gap: Duration in 0..=US,
        /// Time for which other writes may pass one whose bank is busy.
        write_lookahead: Duration in 0..=100 * US,
        /// Bytes of addresses that find one row open.
        open_span: Bytes in (64..=64 * KIB).power_of_two(),
        /// Banks that neighbouring spans take turns on.
        low_banks: Count in (1..=256).power_of_two(),
        /// Bytes of addresses after which the next of them takes its turn.
        low_bank_span: Bytes in (64..=64 * KIB).power_of_two(),
        /// Bytes of addresses after which the other banks take their turn.
        high_bank_span: Bytes in (4 * KIB..=64 * GIB).power_of_two(),
        /// Time in the memory controller, both ways together.
        controller: Duration in 0..=US,
    }
}

section! {
    /// NAND flash behind the DRAM of the section `[dram]`, which holds pages of it.
    pub struct Hybrid {
        /// Bytes of a page, which the flash reads and writes at once.
        page: Bytes in (KIB..=64 * KIB).power_of_two(),
        /// Bytes of pages that the DRAM of a module holds.
        cache: Bytes in (MIB..=64 * GIB).multiple_of(1024),
        /// Pages of the DRAM that a page may be put in.
        ways: Count in 1..=64,
        /// Dies of flash that work side by side.
        dies: Count in 1..=4096,
        /// Time in which a die reads a page and hands it over.
        read: Duration in 1..=1_000 * US,
        /// Time for which a die is busy with a page that is written.
        program: Duration in 1..=10_000 * US,
        /// Pages that may be on their way from the flash.
        fills: Count in 1..=4096,
        /// Pages that may be on their way to the flash.
        write_buffer: Count in 1..=65_536,
    }
}
