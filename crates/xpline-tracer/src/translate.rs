//! Blocks of the program, as they are translated: which instruction calls which recorder.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{LazyLock, Mutex};

use xpline_wire::OpKind;

use crate::instruction::{Address, Class, Flow, classify, flow};
use crate::process::{self, BOUNDS, GUEST_BASE};
use crate::qemu::{self, Accesses, qemu_plugin_meminfo_t, qemu_plugin_tb};
use crate::thread::{self, Join};

/// Where an op is made, in the bits of a pointer: its program counter, and how many instructions of its block come after it.
#[derive(Clone, Copy)]
struct Site(u64);

impl Site {
    fn new(pc: u64, rest: usize) -> Self {
        Self(pc << 16 | rest as u64)
    }

    fn data(self) -> *mut c_void {
        self.0 as *mut c_void
    }

    fn of(data: *mut c_void) -> Self {
        Self(data as u64)
    }

    fn pc(self) -> u64 {
        self.0 >> 16
    }

    fn rest(self) -> u64 {
        self.0 & 0xffff
    }
}

/// An op at an address that is to be computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Computed {
    site: u64,
    kind: OpKind,
    size: u16,
    address: Address,
}

/// Those that were met; blocks are translated anew now and then, and their data must outlive them.
static COMPUTED: LazyLock<Mutex<HashMap<Computed, &'static Computed>>> = LazyLock::new(Mutex::default);

impl Computed {
    fn data(self) -> *mut c_void {
        let mut all = COMPUTED.lock().unwrap();
        let kept = all.entry(self).or_insert_with(|| Box::leak(Box::new(self)));
        std::ptr::from_ref(*kept).cast_mut().cast()
    }
}

/// A block is translated.
pub fn block(block: *mut qemu_plugin_tb) {
    let instructions = qemu::instructions(block);
    let count = instructions.len();
    qemu::count_instructions(block, count);
    for (index, instruction) in instructions.enumerate() {
        if index == 0 {
            GUEST_BASE.store(qemu::guest_base(instruction), Ordering::Relaxed);
        }
        let mut bytes = [0; 16];
        let (size, pc) = qemu::bytes_of(instruction, &mut bytes);
        let site = Site::new(pc, count - index - 1);
        if process::follows_callers() {
            match flow(&bytes[..size], pc) {
                Some(Flow::Call) => qemu::on_execution(instruction, true, called, site.data()),
                Some(Flow::Return(taken)) => {
                    qemu::on_execution(instruction, true, returned, usize::from(taken) as *mut c_void);
                }
                None => {}
            }
        }
        match classify(&bytes[..size], pc) {
            Class::Plain => qemu::on_access(instruction, Accesses::Bounded, plain, site.data()),
            Class::Pieces => qemu::on_access(instruction, Accesses::Bounded, pieces, site.data()),
            Class::String => qemu::on_access(instruction, Accesses::Bounded, string, site.data()),
            Class::NonTemporal => qemu::on_access(instruction, Accesses::BoundedStores, non_temporal, site.data()),
            Class::Locked => qemu::on_access(instruction, Accesses::Stores, locked, site.data()),
            Class::Computed(kind, size, address) => {
                let op = Computed {
                    site: site.0,
                    kind,
                    size,
                    address,
                };
                qemu::on_execution(instruction, true, computed, op.data());
            }
            Class::Fence(kind) => {
                let callback = match kind {
                    OpKind::Sfence => sfence,
                    OpKind::Mfence => mfence,
                    _ => lfence,
                };
                qemu::on_execution(instruction, false, callback, site.data());
            }
            Class::SystemCall => qemu::on_execution(instruction, false, system_call, site.data()),
        }
    }
}

#[inline(always)]
fn access(vcpu: u32, info: qemu_plugin_meminfo_t, address: u64, data: *mut c_void, store: OpKind, join: Join) {
    if BOUNDS.may_hold(address) {
        record(vcpu, info, address, data, store, join);
    }
}

fn record(vcpu: u32, info: qemu_plugin_meminfo_t, address: u64, data: *mut c_void, store: OpKind, join: Join) {
    let site = Site::of(data);
    let (size, stores) = qemu::access(info);
    let kind = if stores { store } else { OpKind::Load };
    thread::running(vcpu).access(kind, join, address, size, site.pc(), site.rest());
}

unsafe extern "C" fn plain(vcpu: u32, info: qemu_plugin_meminfo_t, address: u64, data: *mut c_void) {
    access(vcpu, info, address, data, OpKind::Store, Join::Never);
}

unsafe extern "C" fn pieces(vcpu: u32, info: qemu_plugin_meminfo_t, address: u64, data: *mut c_void) {
    access(vcpu, info, address, data, OpKind::Store, Join::Pieces);
}

unsafe extern "C" fn string(vcpu: u32, info: qemu_plugin_meminfo_t, address: u64, data: *mut c_void) {
    access(vcpu, info, address, data, OpKind::Store, Join::String);
}

unsafe extern "C" fn non_temporal(vcpu: u32, info: qemu_plugin_meminfo_t, address: u64, data: *mut c_void) {
    access(vcpu, info, address, data, OpKind::NtStore, Join::Pieces);
}

unsafe extern "C" fn locked(vcpu: u32, info: qemu_plugin_meminfo_t, address: u64, data: *mut c_void) {
    if BOUNDS.is_empty() {
        return;
    }
    let site = Site::of(data);
    let (size, _) = qemu::access(info);
    thread::running(vcpu).locked(address, size, site.pc(), site.rest());
}

unsafe extern "C" fn computed(vcpu: u32, data: *mut c_void) {
    if BOUNDS.is_empty() {
        return;
    }
    // SAFETY: `Computed::data` made it, for good.
    let op = unsafe { &*data.cast::<Computed>() };
    let address = op.address.compute(qemu::register, qemu::segment_base);
    if BOUNDS.may_hold(address) {
        let site = Site(op.site);
        thread::running(vcpu).access(op.kind, Join::Never, address, op.size, site.pc(), site.rest());
    }
}

fn fence(vcpu: u32, data: *mut c_void, kind: OpKind) {
    if !BOUNDS.is_empty() {
        let site = Site::of(data);
        thread::running(vcpu).fence(kind, site.pc(), site.rest());
    }
}

unsafe extern "C" fn sfence(vcpu: u32, data: *mut c_void) {
    fence(vcpu, data, OpKind::Sfence);
}

unsafe extern "C" fn mfence(vcpu: u32, data: *mut c_void) {
    fence(vcpu, data, OpKind::Mfence);
}

unsafe extern "C" fn lfence(vcpu: u32, data: *mut c_void) {
    fence(vcpu, data, OpKind::Lfence);
}

unsafe extern "C" fn called(vcpu: u32, data: *mut c_void) {
    let pc = Site::of(data).pc();
    thread::running(vcpu).callers.call(pc, qemu::stack_pointer());
}

unsafe extern "C" fn returned(vcpu: u32, data: *mut c_void) {
    let pointer = qemu::stack_pointer().wrapping_add(data as u64);
    thread::running(vcpu).callers.returned(pointer);
}

unsafe extern "C" fn system_call(vcpu: u32, data: *mut c_void) {
    thread::running(vcpu).call_pc = Site::of(data).pc();
}
