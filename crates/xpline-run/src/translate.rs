//! What the tracer says, as accesses to the platform's memory.

use std::collections::HashMap;

use xpline_model::OpKind;
use xpline_wire::{
    AddressSpace, Call, CallKind, Epoch, FileId, Frame, Mapping, OpKind as Traced, Ops, StackId, ThreadId,
};

use crate::access::{Access, Chunk, LINE, Site, Thread};
use crate::place::{Owner, PAGE, Placement};
use crate::sites::{Origin, Sites, Stack};

/// The stream of one process, numbered in the order of their beginnings.
pub type Stream = u32;

/// Mappings up to this size are placed in one piece; larger ones, which are mostly holes, page by page as they are used.
const IN_ONE_PIECE: u64 = 16 << 30;

/// Bytes from which on an access is one of vectors.
const VECTOR: u32 = 16;

/// Turns frames of any number of processes into chunks.
pub struct Translator {
    /// Whether memory that no tracked file is mapped to is on the platform too.
    everything: bool,
    processes: HashMap<Stream, Process>,
    threads: HashMap<(Stream, ThreadId), Running>,
    next_thread: Thread,
    placement: Placement,
    /// Of the files in the totals.
    owners: Vec<Owner>,
    pub sites: Sites,
    pub totals: Totals,
}

/// What was seen, all together.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Totals {
    pub processes: u64,
    pub threads: u64,
    pub instructions: u64,
    pub accesses: u64,
    /// Streams that broke off: their processes were killed.
    pub broken: u64,
    /// Paths of tracked files that were mapped, read or written.
    pub files: Vec<String>,
    /// Pages of 2 MiB of the platform, and the files on them by their places in the list.
    pub pages: Vec<(u64, usize)>,
    /// Bytes placed beyond the 128 GiB that the model's memory has; they share addresses with others.
    pub wrapped_bytes: u64,
}

#[derive(Default)]
struct Process {
    space: AddressSpace,
    files: HashMap<FileId, File>,
    /// Sites by program counter and stack.
    sites: HashMap<(u64, StackId), Site>,
    /// Stacks by their numbers in the stream.
    stacks: HashMap<StackId, Stack>,
    /// Threads that it has had so far.
    threads: u64,
}

struct File {
    tracked: bool,
    owner: Owner,
    path: Vec<u8>,
}

struct Running {
    number: Thread,
    /// Its process began with it.
    first: bool,
    /// Instructions since its last access.
    pending: u64,
    /// When it was heard of last, on the host.
    heard: u64,
}

impl Translator {
    pub fn new(everything: bool) -> Self {
        Self {
            everything,
            processes: HashMap::new(),
            threads: HashMap::new(),
            next_thread: 0,
            placement: Placement::default(),
            owners: Vec::new(),
            sites: Sites::default(),
            totals: Totals::default(),
        }
    }

    /// A frame of a stream; what comes of it goes to `out`.
    pub fn frame(&mut self, stream: Stream, frame: Frame, out: &mut Vec<Chunk>) {
        match frame {
            Frame::Hello(_) => {
                self.totals.processes += 1;
                self.processes.insert(stream, Process::default());
            }
            Frame::File(file) => {
                let process = self.processes.entry(stream).or_default();
                let path = String::from_utf8_lossy(&file.path).into_owned();
                let owner = Owner::File(file.device, file.inode);
                if file.tracked && !self.owners.contains(&owner) {
                    self.owners.push(owner);
                    self.totals.files.push(path);
                }
                let (tracked, path) = (file.tracked, file.path);
                process.files.insert(file.id, File { tracked, owner, path });
            }
            Frame::Map(mapping) => self.map(stream, mapping),
            Frame::Unmap { epoch, address, size } => {
                self.processes
                    .entry(stream)
                    .or_default()
                    .space
                    .unmap(epoch, address, size);
            }
            Frame::ThreadStart { thread, .. } => {
                self.thread(stream, thread);
            }
            Frame::ThreadEnd {
                thread,
                instructions,
                time,
            } => {
                let running = self.thread(stream, thread);
                running.pending += instructions;
                running.heard = running.heard.max(time);
                self.end_thread(stream, thread, out);
            }
            Frame::Stack(stack) => {
                let process = self.processes.entry(stream).or_default();
                let caller = process.stack(stack.caller);
                let call = Origin {
                    stack: caller,
                    ..process.origin(stack.epoch, stack.pc)
                };
                process.stacks.insert(stack.id, self.sites.stack(call));
            }
            Frame::Ops(ops) => self.ops(stream, &ops, out),
            Frame::Call(call) => self.call(stream, &call, out),
            Frame::End { .. } => {}
        }
    }

    /// The stream has ended; `complete` if it said so itself.
    pub fn end(&mut self, stream: Stream, complete: bool, out: &mut Vec<Chunk>) {
        self.totals.broken += u64::from(!complete);
        let mut left: Vec<ThreadId> = self
            .threads
            .keys()
            .filter(|key| key.0 == stream)
            .map(|key| key.1)
            .collect();
        left.sort_unstable();
        for thread in left {
            self.end_thread(stream, thread, out);
        }
        self.processes.remove(&stream);
    }

    /// Everything was translated.
    pub fn finish(&mut self) {
        self.totals.wrapped_bytes = self.placement.wrapped();
        let file_of = |owner| self.owners.iter().position(|&known| known == owner);
        let pages = self.placement.pages();
        self.totals.pages = pages
            .filter_map(|(owner, page)| Some((page, file_of(owner)?)))
            .collect();
        self.totals.pages.sort_unstable();
    }

    fn thread(&mut self, stream: Stream, thread: ThreadId) -> &mut Running {
        let next = &mut self.next_thread;
        let threads = &mut self.totals.threads;
        let process = self.processes.entry(stream).or_default();
        self.threads.entry((stream, thread)).or_insert_with(|| {
            *next += 1;
            *threads += 1;
            process.threads += 1;
            Running {
                number: *next - 1,
                first: process.threads == 1,
                pending: 0,
                heard: 0,
            }
        })
    }

    /// What the thread computed after its last access is an access of its own.
    fn end_thread(&mut self, stream: Stream, thread: ThreadId, out: &mut Vec<Chunk>) {
        let Some(mut running) = self.threads.remove(&(stream, thread)) else {
            return;
        };
        let mut accesses = Vec::new();
        self.totals.instructions += running.pending;
        while running.pending > 0 {
            accesses.push(Access {
                kind: OpKind::Compute,
                address: 0,
                size: 0,
                instructions: take_instructions(&mut running.pending),
                site: self.sites.number(Origin {
                    module: None,
                    offset: 0,
                    call: None,
                    stack: 0,
                }),
            });
        }
        out.push(Chunk {
            thread: running.number,
            accesses,
            begin: running.heard,
            end: running.heard,
            first: running.first,
            last: true,
        });
    }

    fn map(&mut self, stream: Stream, mapping: Mapping) {
        let process = self.processes.entry(stream).or_default();
        if mapping.executable {
            process.sites.clear();
        }
        let file = mapping.file.and_then(|file| process.files.get(&file));
        if let Some(file) = file
            && file.tracked
            && mapping.size <= IN_ONE_PIECE
        {
            self.placement.reserve(file.owner, mapping.offset, mapping.size);
        }
        process.space.map(mapping);
    }

    fn ops(&mut self, stream: Stream, ops: &Ops, out: &mut Vec<Chunk>) {
        let running = self.thread(stream, ops.thread);
        let (number, first, mut pending) = (running.number, running.first, running.pending);
        let process = self.processes.entry(stream).or_default();
        let mut accesses = Vec::with_capacity(ops.ops.len());
        let mut region: Option<Region> = None;
        let mut last_site: Option<(u64, StackId, Site)> = None;
        for op in &ops.ops {
            pending += u64::from(op.instructions);
            let Some((kind, placed)) = kind_of(op.kind) else {
                continue;
            };
            let mut place = None;
            if placed {
                if region.as_ref().is_none_or(|region| !region.contains(op.address)) {
                    region = process.region(stream, ops.epoch, op.address, self.everything);
                }
                let writes = matches!(kind, OpKind::Store | OpKind::NtStore | OpKind::LockedRmw);
                match region.as_ref().and_then(|region| region.owner) {
                    Some((owner, shared)) if shared || !writes => place = Some(owner),
                    _ => continue,
                }
            }
            let site = match last_site {
                Some((pc, stack, site)) if pc == op.pc && stack == op.stack => site,
                _ => process.site(&mut self.sites, ops.epoch, (op.pc, op.stack), None),
            };
            last_site = Some((op.pc, op.stack, site));
            let (Some(owner), Some(region)) = (place, &region) else {
                accesses.push(Access {
                    kind,
                    address: 0,
                    size: 0,
                    instructions: take_instructions(&mut pending),
                    site,
                });
                continue;
            };
            let offset = region.offset_of(op.address);
            if matches!(kind, OpKind::Store | OpKind::LockedRmw) {
                self.placement.stored(owner, offset);
                self.placement.stored(owner, offset + u64::from(op.size.max(1)) - 1);
            }
            let pushed = |address, size| {
                let access = Access {
                    kind,
                    address,
                    size,
                    instructions: take_instructions(&mut pending),
                    site,
                };
                match accesses.last_mut() {
                    Some(last) if goes_on(last, &access) => {
                        last.size += access.size;
                        // What moves the whole line at once is one instruction.
                        last.instructions = last.instructions.saturating_add(access.instructions.saturating_sub(1));
                    }
                    _ => accesses.push(access),
                }
            };
            placed_pieces(&mut self.placement, owner, offset, u64::from(op.size.max(1)), pushed);
        }
        let running = self.thread(stream, ops.thread);
        running.pending = pending;
        running.heard = ops.end;
        self.send((number, first), accesses, (ops.begin, ops.end), out);
    }

    /// The kernel's work on a tracked file: copies past the caches in, loads out, and write-backs of what a synchronising call finds
    /// stored to.
    fn call(&mut self, stream: Stream, call: &Call, out: &mut Vec<Chunk>) {
        let running = self.thread(stream, call.thread);
        running.pending += call.instructions;
        let (number, first, mut pending) = (running.number, running.first, running.pending);
        let process = self.processes.entry(stream).or_default();
        let Some(file) = process.files.get(&call.file).filter(|file| file.tracked) else {
            self.thread(stream, call.thread).pending = pending;
            return;
        };
        let (owner, target) = (file.owner, file.path.clone());
        let site = process.site(
            &mut self.sites,
            call.epoch,
            (call.pc, call.stack),
            Some((call.kind, target)),
        );
        let mut accesses = Vec::new();
        let mut push = |kind, address, size| {
            accesses.push(Access {
                kind,
                address,
                size,
                instructions: take_instructions(&mut pending),
                site,
            });
        };
        match call.kind {
            CallKind::Read | CallKind::Write => {
                let kind = if call.kind == CallKind::Read {
                    OpKind::Load
                } else {
                    OpKind::NtStore
                };
                placed_pieces(&mut self.placement, owner, call.offset, call.size, |address, size| {
                    push(kind, address, size);
                });
            }
            CallKind::Sync | CallKind::SyncRange => {
                let size = if call.kind == CallKind::Sync {
                    u64::MAX
                } else {
                    call.size
                };
                let offset = if call.kind == CallKind::Sync { 0 } else { call.offset };
                for (offset, size) in self.placement.take_dirty(owner, offset, size) {
                    push(OpKind::Clwb, self.placement.place(owner, offset), size);
                }
                push(OpKind::Sfence, 0, 0);
            }
            CallKind::Truncate => {
                self.placement.take_dirty(owner, call.size, u64::MAX);
            }
            CallKind::Allocate => {}
        }
        let running = self.thread(stream, call.thread);
        running.pending = pending;
        running.heard = call.end;
        self.send((number, first), accesses, (call.begin, call.end), out);
    }

    fn send(
        &mut self,
        (thread, first): (Thread, bool),
        accesses: Vec<Access>,
        (begin, end): (u64, u64),
        out: &mut Vec<Chunk>,
    ) {
        if accesses.is_empty() {
            return;
        }
        self.totals.accesses += accesses.len() as u64;
        self.totals.instructions += accesses
            .iter()
            .map(|access| u64::from(access.instructions))
            .sum::<u64>();
        out.push(Chunk {
            thread,
            accesses,
            begin,
            end,
            first,
            last: false,
        });
    }
}

/// A range of the address space, and whose memory it is: the owner, and whether stores reach it.
struct Region {
    address: u64,
    size: u64,
    offset: u64,
    owner: Option<(Owner, bool)>,
}

impl Region {
    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.size
    }

    fn offset_of(&self, address: u64) -> u64 {
        self.offset.wrapping_add(address.wrapping_sub(self.address))
    }
}

impl Process {
    fn region(&self, stream: Stream, epoch: Epoch, address: u64, everything: bool) -> Option<Region> {
        let mapping = self.space.find(epoch, address);
        let file = mapping.and_then(|mapping| self.files.get(&mapping.file?));
        if let (Some(mapping), Some(file)) = (mapping, file)
            && file.tracked
        {
            return Some(Region {
                address: mapping.address,
                size: mapping.size,
                offset: mapping.offset,
                owner: Some((file.owner, mapping.shared)),
            });
        }
        // Other memory is placed by its address, page by page.
        everything.then_some(Region {
            address: address & !4095,
            size: 4096,
            offset: address & !4095,
            owner: Some((Owner::Process(stream), true)),
        })
    }

    /// The site of an instruction on a stack, and of the system call that it makes.
    fn site(&mut self, sites: &mut Sites, epoch: Epoch, at: (u64, StackId), call: Option<(CallKind, Vec<u8>)>) -> Site {
        if call.is_none()
            && let Some(&site) = self.sites.get(&at)
        {
            return site;
        }
        let is_call = call.is_some();
        let origin = Origin {
            call,
            stack: self.stack(at.1),
            ..self.origin(epoch, at.0)
        };
        let site = sites.number(origin);
        if !is_call {
            self.sites.insert(at, site);
        }
        site
    }

    /// A stack that the stream told of.
    fn stack(&self, id: StackId) -> Stack {
        self.stacks.get(&id).copied().unwrap_or(0)
    }

    /// Where an instruction is.
    fn origin(&self, epoch: Epoch, pc: u64) -> Origin {
        let mapping = self.space.find(epoch, pc);
        let module = mapping.and_then(|mapping| Some((mapping, self.files.get(&mapping.file?)?)));
        let (module, offset) = match module {
            Some((mapping, file)) => (Some(file.path.clone()), mapping.offset_of(pc)),
            None => (None, pc),
        };
        Origin {
            module,
            offset,
            call: None,
            stack: 0,
        }
    }
}

/// The kind of a traced op, and whether it has an address; `None` for those that take nothing but their instructions.
fn kind_of(kind: Traced) -> Option<(OpKind, bool)> {
    Some(match kind {
        Traced::Load => (OpKind::Load, true),
        Traced::Store => (OpKind::Store, true),
        Traced::NtStore => (OpKind::NtStore, true),
        Traced::Clwb => (OpKind::Clwb, true),
        Traced::ClflushOpt => (OpKind::ClflushOpt, true),
        Traced::Clflush => (OpKind::Clflush, true),
        Traced::Locked => (OpKind::LockedRmw, true),
        Traced::Sfence => (OpKind::Sfence, false),
        Traced::Mfence => (OpKind::Mfence, false),
        Traced::Lfence | Traced::Instructions => return None,
    })
}

/// Whether an access is but the next part of the vector that the last one began: the tracer sees 16 B at a time, and the cores of
/// the model move up to a line at once.
fn goes_on(last: &Access, next: &Access) -> bool {
    let in_line = !next.address.is_multiple_of(LINE) && next.address % LINE + u64::from(next.size) <= LINE;
    let vectors = last.size >= VECTOR && next.size >= VECTOR;
    matches!(next.kind, OpKind::Load | OpKind::Store)
        && last.kind == next.kind
        && in_line
        && last.address + u64::from(last.size) == next.address
        && vectors
}

fn take_instructions(pending: &mut u64) -> u32 {
    let taken = u32::try_from(*pending).unwrap_or(u32::MAX);
    *pending -= u64::from(taken);
    taken
}

/// Cut a range where what follows may lie elsewhere on the platform.
fn placed_pieces(placement: &mut Placement, owner: Owner, offset: u64, size: u64, mut push: impl FnMut(u64, u32)) {
    let (mut at, mut left) = (offset, size);
    while left > 0 {
        let here = left.min(PAGE - at % PAGE);
        push(placement.place(owner, at), here as u32);
        at = at.wrapping_add(here);
        left -= here;
    }
}
