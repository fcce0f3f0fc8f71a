//! Every parameter of a platform, a line each: what it means, its name, its type, and what is allowed.
//!
//! To add a parameter, add its line here and its value, with its source, to the files in `platforms/`.
//! The field, the reader, the error messages and the key table all come from the line.

mod memory;

pub use memory::{
    Ait, BufferReplacement, Ddrt, Dram, Hybrid, Media, Memory, MemoryKind, MemoryMode, Near, Optane, Pages,
    PowerBudget, Wear, XpBuffer,
};

use super::error::PlatformError;
use super::key::{Key, Node, Provenance, Reader, Section, join, section};
use super::unit::{
    Any, Bytes, Count, Duration, Factor, Flag, Frequency, GIB, Grained, KIB, MIB, Scalar, Sockets, Text, Unit, choice,
};
use crate::time::MICROSECOND as US;

section! {
    /// A memory system: everything that a platform file holds, in typed form.
    ///
    /// Times are in picoseconds, sizes in bytes, powers in milliwatts, clocks in GHz.
    pub struct Platform {
        /// Name in tables and figures.
        name: Text in Any,
        /// What the platform is, in a line.
        description: Text in Any,
        /// What the address space is made of.
        memory: Memory in Section,
        /// The platform whose memory is the volatile memory beside this one, for programs that use both; or none.
        volatile: Volatile in Section,
        /// The cores of the socket.
        core: Core in Section,
        /// The prefetchers of each core.
        prefetch: Prefetch in Section,
        /// First-level data cache of each core.
        l1d: PrivateCache in Section,
        /// Second-level cache of each core.
        l2: PrivateCache in Section,
        /// Third-level cache, shared and non-inclusive.
        l3: SharedCache in Section,
        /// The way between the cores and the memory controllers.
        mesh: Mesh in Section,
        /// Which of two sockets the cores and the memory belong to.
        nodes: Nodes in Section,
        /// The link between two sockets.
        link: Link in Section,
        /// The integrated memory controllers.
        imc: Imc in Section,
        /// How addresses are spread over the DIMMs.
        interleave: Interleave in Section,
        /// Where each value comes from.
        provenance: Provenance in Section,
    }
}

/// The volatile memory beside a platform's own: another platform's memory, with its interleaving and its queues.
#[derive(Clone, Debug, PartialEq)]
pub struct Volatile {
    /// A built-in platform, a path relative to the file that names it, or "none".
    pub name: String,
    pub platform: Option<Box<Platform>>,
}

/// `volatile = "dram"` names a platform; loading it is the loader's business.
impl Node for Volatile {
    type Value = Self;
    type Allowed = Section;

    fn read(reader: &mut Reader, path: &str, about: &str, _: &Section) -> Result<Self, PlatformError> {
        Ok(Self {
            name: <Text as Node>::read(reader, path, about, &Any)?,
            platform: None,
        })
    }

    fn list(path: &str, about: &str, _: &Section, keys: &mut Vec<Key>) {
        <Text as Node>::list(path, about, &Any, keys);
    }
}

section! {
    /// The cores of a socket: how fast they issue memory ops, and how many they keep in flight.
    pub struct Core {
        /// Cores of the socket.
        count: Count in 1..=256,
        /// Core clock.
        clock: Frequency in 0.1..=10.0,
        /// Instructions a clock of plain code between memory ops.
        ipc: Factor in 0.1..=16.0,
        /// Micro-ops that one memory op takes in the reorder buffer, with the loop around it.
        op_micro_ops: Count in 1..=1_000,
        /// Instructions that a benchmark spends on a random access besides its memory ops: the address, the loop.
        random_overhead: Count in 0..=10_000,
        /// Instructions that a benchmark spends on a strided access besides its memory ops.
        stride_overhead: Count in 0..=10_000,
        /// Time that each line of a strided access takes a benchmark besides, where it stores to more than 4 lines and to less than
        /// `stride_exit`.
        stride_store: Duration in 0..=US,
        /// Lines of a strided access from which on the end of its loop is mispredicted.
        stride_exit: Count in 1..=4_294_967_295,
        /// Time that a mispredicted branch takes the core.
        mispredict: Duration in 0..=US,
        /// Time that LATTester's DIMM-bound accesses spend on drawing each place: divisions, in few instructions.
        align_time: Duration in 0..=100 * US,
        /// Reorder buffer, in micro-ops.
        window: Count in 1..=4096,
        /// Line fill buffers: L1d misses, and lines that ntstores and flushes send to memory, in flight.
        fill_buffers: Count in 1..=256,
        /// Write-combining buffers: lines of ntstores in flight. 0 where they are in fill buffers.
        combining_buffers: Count in 0..=256,
        /// Store buffer: stores that wait after they retire.
        store_buffer: Count in 1..=1024,
        /// Stores at the head of the store buffer that may ask for their line early.
        store_rfo_depth: Count in 0..=1024,
        /// The same where a flush is among them.
        flush_rfo_depth: Count in 0..=1024,
        /// Time by which a line asked for to be written comes from memory later than one asked for to be read.
        ownership: Duration in 0..=US,
        /// Time to issue one memory op of up to 64 B.
        op_interval: Duration in 1..=US,
        /// Time in which one write-combining buffer drains.
        nt_interval: Duration in 1..=US,
        /// The same where the line was in a cache of the core.
        nt_cached_interval: Duration in 1..=US,
        /// Time by which an ntstore reaches memory later than a write-back does: its buffer is closed first.
        nt_latency: Duration in 0..=US,
        /// Time that an ntstore takes longer when the line is in no cache of its core.
        nt_uncached: Duration in 0..=US,
        /// Time between two ntstores to lines that ntstores of the core are still under way to.
        nt_again: Duration in 0..=US,
        /// Lines flushed by clwb or clflush that wait for the return of their entry in a write pending queue.
        flushes: Count in 1..=256,
        /// Time in which one clwb or clflush of a dirty line commits.
        flush_interval: Duration in 1..=US,
        /// Time until a flush of a line that is not dirty is known to be done: it has to ask the other caches.
        flush_clean: Duration in 0..=US,
        /// Whether the caches are inside the persistence domain (eADR): what is stored is persistent, and flushes are left out, as PMDK
        /// leaves them out on such a host.
        eadr: Flag in Any,
        /// Whether clwb keeps the line in the caches; the architecture allows both.
        clwb_keeps_line: Flag in Any,
        /// Time that an sfence takes once memory has accepted all that it waits for. By then flushed lines have left the queues.
        sfence: Duration in 0..=US,
        /// The same where loads from beyond the L1d were under way, from their end on.
        resume: Duration in 0..=US,
        /// Cost of a full fence on its own.
        fence: Duration in 0..=US,
        /// Cost of a serialising clock reading.
        stamp: Duration in 0..=US,
    }
}

section! {
    /// The prefetchers of a core, which bring lines into its L2.
    pub struct Prefetch {
        /// Whether lines in order, up or down, bring those that follow.
        stream: Flag in Any,
        /// Steps in one direction after which loads have a stream.
        steps: Count in 1..=4096,
        /// The same for lines fetched to be written.
        store_steps: Count in 1..=4096,
        /// Aligned bytes that a stream stays in.
        region: Bytes in (KIB..=GIB).power_of_two(),
        /// Whether a line that the L2 has not brings the other of its 128 B.
        adjacent: Flag in Any,
        /// Lines by which a stream may be ahead.
        distance: Count in 1..=63,
        /// Lines that the prefetchers of a core may have on their way.
        queue: Count in 1..=256,
    }
}

section! {
    /// A cache that belongs to one core.
    pub struct PrivateCache {
        /// Capacity.
        size: Bytes in (KIB..=64 * MIB).multiple_of(64),
        /// Associativity.
        ways: Count in 1..=64,
        /// Load-to-use latency of a hit.
        hit: Duration in 1..=US,
    }
}

section! {
    /// The cache that all cores share.
    pub struct SharedCache {
        /// Capacity of all slices together.
        size: Bytes in (KIB..=GIB).multiple_of(64),
        /// Associativity.
        ways: Count in 1..=64,
        /// Slices that a hash of the address spreads lines over.
        slices: Count in 1..=256,
        /// Load-to-use latency of a hit.
        hit: Duration in 1..=US,
        /// Which line of a full set makes room.
        replacement: Replacement in Any,
        /// Chance that two lines of the same 256 B leave together, for each time that the run of stores they came with doubles; with
        /// random replacement.
        in_step: Factor in 0.0..=1.0,
        /// The most that this chance becomes.
        in_step_most: Factor in 0.0..=1.0,
        /// Entries of the write pending queue above which each line leaves on its own.
        in_step_queue: Count in 0..=1024,
    }
}

choice! {
    /// Which line of a full set makes room for a new one.
    pub enum Replacement {
        /// Any, chosen by a seeded generator.
        Random = "random",
        /// The least recently used.
        Lru = "lru",
    }
}

section! {
    /// The way between the cores and the memory controllers.
    pub struct Mesh {
        /// From a core to a memory controller.
        request: Duration in 0..=US,
        /// From a memory controller back to a core.
        response: Duration in 0..=US,
    }
}

section! {
    /// Which of two sockets the cores and the memory belong to; where they differ, the link is in between.
    pub struct Nodes {
        /// Socket of the cores; with both, they take turns.
        cpu: Sockets in Any,
        /// Socket of the memory; with both, pages of 4 KiB take turns.
        memory: Sockets in Any,
    }
}

section! {
    /// The link between two sockets, and the directory by which the home of a line knows who else may hold it.
    pub struct Link {
        /// Time on the link, one way.
        latency: Duration in 0..=10 * US,
        /// Time that 64 B read take of the link's way back.
        read_transfer: Duration in 0..=US,
        /// Time that 64 B written take of the link's way there.
        write_transfer: Duration in 0..=US,
        /// Time in which the home grants a line to an ntstore, besides the way there and back.
        grant: Duration in 0..=10 * US,
        /// Whether the directory is kept in the memory itself: to change an entry is one more write. Without it the near side is the
        /// home of the far lines, as it is of CXL memory: no ntstore has to ask for its line.
        directory: Flag in Any,
        /// Time for which such a write keeps reads of the same line of the medium waiting.
        directory_hold: Duration in 0..=10 * US,
        /// Requests under way over the link above which a change of the directory holds up those behind it.
        crowd: Factor in 1.0..=65_536.0,
        /// Time for which it does, each time that the requests under way double past that number.
        crowding: Duration in 0..=100 * US,
        /// Lines that came over the link and that the write pending queue of a channel takes before the next has to wait.
        writes: Count in 1..=1024,
    }
}

section! {
    /// The integrated memory controllers.
    pub struct Imc {
        /// Controllers of the socket.
        controllers: Count in 1..=16,
        /// Channels of each controller, a DIMM each.
        channels: Count in 1..=16,
        /// Entries of the write pending queue of a channel.
        wpq: Count in 1..=1024,
        /// Time between two dirty lines that the misses of one core push out of the caches.
        evict_interval: Duration in 0..=10 * US,
        /// Time for which a flushed line keeps its entry of a write pending queue while its core fetches lines: reads go first.
        flush_return: Duration in 0..=10 * US,
        /// Lines that one core may hold in the write pending queue of a channel.
        wpq_per_core: Count in 1..=1024,
        /// Of the last lines of a core there, so many take newer data along until they leave.
        wpq_combining: Count in 0..=1024,
        /// Writes of cores on their way into a controller, of whichever channel, that wait for those before them.
        ingress: Count in 1..=65_536,
    }
}

section! {
    /// How addresses are spread over the DIMMs.
    pub struct Interleave {
        /// DIMMs that the address space covers.
        dimms: Count in 1..=256,
        /// Bytes on one DIMM before the next takes over.
        granularity: Bytes in (256..=GIB).power_of_two(),
        /// Whether each round begins with another DIMM, as the bits above say.
        hashed: Flag in Any,
    }
}
