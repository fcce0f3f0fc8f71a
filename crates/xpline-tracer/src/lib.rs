//! The tracer: a plugin of QEMU's user-mode emulator that sends what the threads of a program do to memory to a listener.
//!
//! The emulator loads it into each process of the program, with the file of the [`Session`] as its argument. What it sends is
//! described in `xpline-wire`. An access costs a comparison with the bounds of traced memory; one within goes into
//! the thread's own buffer without a lock. Full buffers go to a thread that writes them out, and the program waits if
//! the listener does not keep up.

mod callers;
mod calls;
mod exec;
mod image;
mod instruction;
mod numbers;
mod process;
mod qemu;
mod sender;
mod space;
mod thread;
mod translate;

use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once};

use xpline_wire::{EndReason, Session, Start, Tracked};

use crate::process::{Process, SESSION};
use crate::qemu::{Hooks, qemu_info_t, qemu_plugin_id_t, qemu_plugin_tb};
use crate::space::Space;

/// The version of the interface that this is written for: the first that has registers in callbacks with names.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: i32 = qemu_plugin_sys::QEMU_PLUGIN_VERSION as i32;

/// The files that were mapped before the program was.
static BEFORE: Mutex<Vec<image::Line>> = Mutex::new(Vec::new());

/// Called by the emulator once in each process that starts a program.
///
/// # Safety
///
/// To be called by the emulator only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu_plugin_id_t,
    _info: *const qemu_info_t,
    count: i32,
    arguments: *const *const c_char,
) -> i32 {
    // SAFETY: so many strings, says the emulator.
    let arguments = (0..count.max(0) as usize).map(|index| unsafe { CStr::from_ptr(*arguments.add(index)) });
    match install(id, arguments) {
        Ok(()) => 0,
        Err(what) => {
            eprintln!("xpline: {what}");
            1
        }
    }
}

fn install<'a>(id: qemu_plugin_id_t, mut arguments: impl Iterator<Item = &'a CStr>) -> Result<(), String> {
    use std::os::unix::ffi::OsStrExt;
    let file = arguments.find_map(|argument| argument.to_bytes().strip_prefix(b"session="));
    let file = PathBuf::from(std::ffi::OsStr::from_bytes(
        file.ok_or("the tracer needs session=FILE")?,
    ));
    // Programs that the process becomes read it too, wherever they are then.
    let file = std::path::absolute(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let session = Session::read(&file).map_err(|error| format!("the session cannot be read: {error}"))?;
    let (paths, everything) = match &session.tracked {
        Tracked::Files(paths) => (paths.clone(), false),
        Tracked::Everything(paths) => (paths.clone(), true),
    };
    let socket = session.socket.clone();
    SESSION.set((file, session)).map_err(|_| "the tracer is loaded twice")?;
    *BEFORE.lock().unwrap() = image::mapped_files();
    Process::begin(Start::Exec, Space::new(paths, everything)).map_err(|error| nobody(&socket, &error))?;
    qemu::register_hooks(id, &HOOKS);
    Ok(())
}

fn nobody(socket: &Path, error: &std::io::Error) -> String {
    format!("{}: nobody listens to the tracer there ({error})", socket.display())
}

const HOOKS: Hooks = Hooks {
    translate,
    thread_start,
    thread_end,
    call,
    returned,
    exit,
};

unsafe extern "C" fn translate(_id: qemu_plugin_id_t, block: *mut qemu_plugin_tb) {
    static IMAGE: Once = Once::new();
    IMAGE.call_once(|| {
        if let Some(first) = qemu::instructions(block).next() {
            process::GUEST_BASE.store(qemu::guest_base(first), std::sync::atomic::Ordering::Relaxed);
        }
        image::announce(&BEFORE.lock().unwrap());
    });
    translate::block(block);
}

unsafe extern "C" fn thread_start(_id: qemu_plugin_id_t, vcpu: u32) {
    qemu::find_registers();
    thread::begin(vcpu);
}

unsafe extern "C" fn thread_end(_id: qemu_plugin_id_t, vcpu: u32) {
    thread::end(vcpu);
}

#[allow(clippy::too_many_arguments, reason = "as the interface has it")]
unsafe extern "C" fn call(
    _id: qemu_plugin_id_t,
    vcpu: u32,
    number: i64,
    first: u64,
    second: u64,
    third: u64,
    fourth: u64,
    fifth: u64,
    sixth: u64,
    _seventh: u64,
    _eighth: u64,
) {
    let arguments = [first, second, third, fourth, fifth, sixth];
    thread::with_calling(vcpu, |thread| calls::enter(thread, number, arguments));
}

unsafe extern "C" fn returned(_id: qemu_plugin_id_t, vcpu: u32, number: i64, result: i64) {
    thread::with_calling(vcpu, |thread| calls::leave(thread, number, result));
}

unsafe extern "C" fn exit(_id: qemu_plugin_id_t, _data: *mut c_void) {
    thread::end_all();
    process::current().end(EndReason::Exit);
}
