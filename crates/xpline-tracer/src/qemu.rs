//! The emulator's plugin interface: what the tracer takes of it.

use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::OnceLock;

use qemu_plugin_sys as sys;

use crate::instruction::Segment;

pub use sys::{qemu_info_t, qemu_plugin_id_t, qemu_plugin_insn, qemu_plugin_meminfo_t, qemu_plugin_tb};

// Of glib, in which the interface hands out the values of registers.
unsafe extern "C" {
    fn g_byte_array_new() -> *mut sys::GByteArray;
    fn g_byte_array_set_size(array: *mut sys::GByteArray, size: u32) -> *mut sys::GByteArray;
    fn g_array_free(array: *mut sys::GArray, free_segment: i32) -> *mut i8;
}

/// What xpline's own build of the emulator has beyond the plugin interface (`qemu.patch`): the same for less.
struct Extension {
    on_access: unsafe extern "C" fn(*mut qemu_plugin_insn, MemoryCallback, sys::qemu_plugin_mem_rw, *mut c_void),
    set_bounds: unsafe extern "C" fn(u64, u64),
    count: unsafe extern "C" fn(*mut qemu_plugin_tb, u32),
    counted: unsafe extern "C" fn() -> u64,
}

#[allow(clippy::missing_transmute_annotations, reason = "the fields say them")]
fn extension() -> Option<&'static Extension> {
    static EXTENSION: OnceLock<Option<Extension>> = OnceLock::new();
    let find = |name: &CStr| {
        // SAFETY: a name that ends.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let all = || {
        // SAFETY: the functions' types are those of the patch.
        unsafe {
            Some(Extension {
                on_access: transmute(find(c"qemu_plugin_register_vcpu_bounded_mem_cb")?),
                set_bounds: transmute(find(c"qemu_plugin_set_mem_bounds")?),
                count: transmute(find(c"qemu_plugin_tb_count")?),
                counted: transmute(find(c"qemu_plugin_counted")?),
            })
        }
    };
    EXTENSION.get_or_init(all).as_ref()
}

/// Of accesses from `first` to before `end` bounded callbacks are told.
pub fn set_bounds(first: u64, end: u64) {
    if let Some(extension) = extension() {
        // SAFETY: as the patch has it.
        unsafe { (extension.set_bounds)(first, end) }
    }
}

/// Executed instructions of each virtual processor, that is, thread.
struct Counters(*mut sys::qemu_plugin_scoreboard);

// SAFETY: the emulator guards it.
unsafe impl Send for Counters {}
// SAFETY: likewise.
unsafe impl Sync for Counters {}

/// Bytes from one counter to the next: neighbours in a line would cost a factor of 30 with two threads.
const COUNTER_STRIDE: usize = 256;

fn counters() -> &'static Counters {
    static COUNTERS: OnceLock<Counters> = OnceLock::new();
    // SAFETY: called first at the plugin's installation.
    COUNTERS.get_or_init(|| Counters(unsafe { sys::qemu_plugin_scoreboard_new(COUNTER_STRIDE) }))
}

/// Adds to the count of instructions at the start of a block.
pub fn count_instructions(block: *mut qemu_plugin_tb, instructions: usize) {
    let entry = || sys::qemu_plugin_u64 {
        score: counters().0,
        offset: 0,
    };
    let add = sys::qemu_plugin_op::QEMU_PLUGIN_INLINE_ADD_U64;
    // SAFETY: the emulator hands out the block for the time of its translation.
    unsafe {
        match extension() {
            Some(extension) => (extension.count)(block, instructions as u32),
            None => {
                sys::qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, add, entry(), instructions as u64);
            }
        }
    }
}

/// Instructions counted of the calling thread, with all of the block that it is in.
#[inline]
pub fn counted(vcpu: u32) -> u64 {
    // SAFETY: the slot of a running thread exists.
    unsafe {
        match extension() {
            Some(extension) => (extension.counted)(),
            None => *sys::qemu_plugin_scoreboard_find(counters().0, vcpu).cast::<u64>(),
        }
    }
}

/// Where the registers that addresses are made of can be read.
struct Registers {
    general: [*mut sys::qemu_plugin_register; 16],
    fs: *mut sys::qemu_plugin_register,
    gs: *mut sys::qemu_plugin_register,
}

// SAFETY: handles are numbers in the guise of pointers, the same for all threads.
unsafe impl Send for Registers {}
// SAFETY: likewise.
unsafe impl Sync for Registers {}

static REGISTERS: OnceLock<Registers> = OnceLock::new();

const GENERAL: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
];

/// Finds the registers. To be called by a thread of the program; panics if the emulator lacks one.
pub fn find_registers() {
    REGISTERS.get_or_init(|| {
        // SAFETY: the array holds descriptors, and is ours to free; names are strings that stay.
        unsafe {
            let array = sys::qemu_plugin_get_registers();
            let descriptors = (*array).data.cast::<sys::qemu_plugin_reg_descriptor>();
            let descriptors = std::slice::from_raw_parts(descriptors, (*array).len as usize);
            let find = |name: &str| {
                let found = descriptors
                    .iter()
                    .find(|one| CStr::from_ptr(one.name).to_str() == Ok(name));
                found
                    .unwrap_or_else(|| panic!("the emulator has no register {name}"))
                    .handle
            };
            let registers = Registers {
                general: GENERAL.map(find),
                fs: find("fs_base"),
                gs: find("gs_base"),
            };
            g_array_free(array, 1);
            registers
        }
    });
}

/// An array of this thread's, for what the interface hands out.
fn with_bytes<T>(act: impl FnOnce(*mut sys::GByteArray) -> T) -> T {
    struct Bytes(*mut sys::GByteArray);
    thread_local! {
        // SAFETY: as glib has it; kept as long as the thread lives.
        static BYTES: Bytes = Bytes(unsafe { g_byte_array_new() });
    }
    BYTES.with(|bytes| act(bytes.0))
}

/// The value of a register of this thread, within a callback that may read them.
fn read(handle: *mut sys::qemu_plugin_register) -> u64 {
    with_bytes(|bytes| {
        // SAFETY: the array is of this thread, and holds as many bytes as it says.
        unsafe {
            g_byte_array_set_size(bytes, 0);
            sys::qemu_plugin_read_register(handle, bytes);
            let mut value = [0; 8];
            let found = std::slice::from_raw_parts((*bytes).data, (*bytes).len as usize);
            let size = found.len().min(8);
            value[..size].copy_from_slice(&found[..size]);
            u64::from_le_bytes(value)
        }
    })
}

/// A general register, by its number in the instruction set.
pub fn register(number: u8) -> u64 {
    REGISTERS
        .get()
        .map_or(0, |registers| read(registers.general[usize::from(number)]))
}

/// The stack pointer of this thread.
pub fn stack_pointer() -> u64 {
    const RSP: u8 = 4;
    register(RSP)
}

pub fn segment_base(segment: Segment) -> u64 {
    REGISTERS.get().map_or(0, |registers| {
        read(match segment {
            Segment::Fs => registers.fs,
            Segment::Gs => registers.gs,
        })
    })
}

/// Bytes of the program's memory; `None` where it has none there.
pub fn memory(address: u64, size: usize) -> Option<Vec<u8>> {
    with_bytes(|bytes| {
        // SAFETY: as in `read`; the emulator checks the address.
        unsafe {
            g_byte_array_set_size(bytes, 0);
            if !sys::qemu_plugin_read_memory_vaddr(address, bytes, size) || (*bytes).len as usize != size {
                return None;
            }
            Some(std::slice::from_raw_parts((*bytes).data, size).to_vec())
        }
    })
}

pub type MemoryCallback = unsafe extern "C" fn(u32, qemu_plugin_meminfo_t, u64, *mut c_void);
pub type ExecuteCallback = unsafe extern "C" fn(u32, *mut c_void);

/// Which accesses of an instruction to be told of.
#[derive(Clone, Copy)]
pub enum Accesses {
    /// Those within bounds, and maybe others.
    Bounded,
    BoundedStores,
    /// Stores wherever they go.
    Stores,
}

/// Instructions of a block, one by one.
pub fn instructions(block: *mut qemu_plugin_tb) -> impl ExactSizeIterator<Item = *mut qemu_plugin_insn> {
    // SAFETY: the block is the emulator's, for the time of its translation.
    let count = unsafe { sys::qemu_plugin_tb_n_insns(block) };
    // SAFETY: an index below the count of the same block.
    (0..count).map(move |index| unsafe { sys::qemu_plugin_tb_get_insn(block, index) })
}

/// The bytes of an instruction, and its address.
pub fn bytes_of(instruction: *mut qemu_plugin_insn, bytes: &mut [u8; 16]) -> (usize, u64) {
    // SAFETY: the instruction is the emulator's; it writes no more than it is told there is room for.
    unsafe {
        let size = sys::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), bytes.len());
        (size, sys::qemu_plugin_insn_vaddr(instruction))
    }
}

/// Where the emulator keeps the program's memory: what to add to one of its addresses.
pub fn guest_base(instruction: *mut qemu_plugin_insn) -> u64 {
    // SAFETY: as in `bytes_of`.
    unsafe { (sys::qemu_plugin_insn_haddr(instruction) as u64).wrapping_sub(sys::qemu_plugin_insn_vaddr(instruction)) }
}

pub fn on_access(instruction: *mut qemu_plugin_insn, which: Accesses, callback: MemoryCallback, data: *mut c_void) {
    let stores = match which {
        Accesses::Bounded => sys::qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_RW,
        Accesses::BoundedStores | Accesses::Stores => sys::qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_W,
    };
    let flags = sys::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
    // SAFETY: as in `bytes_of`; the callback is ours and takes what it is given here.
    unsafe {
        match extension() {
            Some(extension) if !matches!(which, Accesses::Stores) => {
                (extension.on_access)(instruction, callback, stores, data);
            }
            _ => sys::qemu_plugin_register_vcpu_mem_cb(instruction, Some(callback), flags, stores, data),
        }
    }
}

/// `registers` if the callback reads them.
pub fn on_execution(instruction: *mut qemu_plugin_insn, registers: bool, callback: ExecuteCallback, data: *mut c_void) {
    let flags = if registers {
        sys::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_R_REGS
    } else {
        sys::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS
    };
    // SAFETY: as in `on_access`.
    unsafe { sys::qemu_plugin_register_vcpu_insn_exec_cb(instruction, Some(callback), flags, data) }
}

/// Bytes of an access, and whether it is a store.
#[inline]
pub fn access(info: qemu_plugin_meminfo_t) -> (u16, bool) {
    // SAFETY: pure functions of the number.
    unsafe {
        (
            1 << sys::qemu_plugin_mem_size_shift(info),
            sys::qemu_plugin_mem_is_store(info),
        )
    }
}

/// The callbacks of a whole process.
pub struct Hooks {
    pub translate: unsafe extern "C" fn(qemu_plugin_id_t, *mut qemu_plugin_tb),
    pub thread_start: unsafe extern "C" fn(qemu_plugin_id_t, u32),
    pub thread_end: unsafe extern "C" fn(qemu_plugin_id_t, u32),
    #[allow(clippy::type_complexity, reason = "as the interface has it")]
    pub call: unsafe extern "C" fn(qemu_plugin_id_t, u32, i64, u64, u64, u64, u64, u64, u64, u64, u64),
    pub returned: unsafe extern "C" fn(qemu_plugin_id_t, u32, i64, i64),
    pub exit: unsafe extern "C" fn(qemu_plugin_id_t, *mut c_void),
}

pub fn register_hooks(id: qemu_plugin_id_t, hooks: &Hooks) {
    counters();
    // SAFETY: called at installation, with functions that live as long as the process.
    unsafe {
        sys::qemu_plugin_register_vcpu_tb_trans_cb(id, Some(hooks.translate));
        sys::qemu_plugin_register_vcpu_init_cb(id, Some(hooks.thread_start));
        sys::qemu_plugin_register_vcpu_exit_cb(id, Some(hooks.thread_end));
        sys::qemu_plugin_register_vcpu_syscall_cb(id, Some(hooks.call));
        sys::qemu_plugin_register_vcpu_syscall_ret_cb(id, Some(hooks.returned));
        sys::qemu_plugin_register_atexit_cb(id, Some(hooks.exit), null_mut());
    }
}
