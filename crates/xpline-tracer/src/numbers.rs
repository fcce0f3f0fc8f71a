//! Which system calls are of which concern.

use libc::c_long;
use xpline_wire::OpKind;

/// Calls on files, by their first descriptor or both, and on sockets.
const FILE_CALLS: [c_long; 19] = [
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
];

pub fn may_change_mappings(number: c_long) -> bool {
    [libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_msync].contains(&number) || renames(number)
}

fn renames(number: c_long) -> bool {
    [
        libc::SYS_rename,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        libc::SYS_link,
        libc::SYS_linkat,
    ]
    .contains(&number)
}

pub fn concerns(number: c_long) -> bool {
    may_change_mappings(number) || FILE_CALLS.contains(&number)
}

/// Calls in which a thread may stay for long.
pub fn may_wait(number: c_long) -> bool {
    [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_futex,
        libc::SYS_poll,
        libc::SYS_ppoll,
        libc::SYS_select,
        libc::SYS_pselect6,
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_wait4,
        libc::SYS_waitid,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_connect,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_recvmmsg,
        libc::SYS_pause,
        libc::SYS_rt_sigsuspend,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_flock,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_msgrcv,
        libc::SYS_io_getevents,
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_tgkill,
    ]
    .contains(&number)
}

/// What the kernel does to a program's buffer in a call.
pub fn copies(number: c_long) -> Option<OpKind> {
    match number {
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_recvfrom => Some(OpKind::Store),
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_sendto => Some(OpKind::Load),
        _ => None,
    }
}
