//! The durations that cores and caches need on the hot path, in one cache line.

use crate::platform::Platform;
use crate::time::Time;

pub struct Timing {
    pub op_interval: Time,
    pub op_micro_ops: u64,
    pub nt_interval: Time,
    pub nt_latency: Time,
    pub nt_uncached: Time,
    pub nt_again: Time,
    pub nt_cached_interval: Time,
    pub flush_interval: Time,
    pub flush_clean: Time,
    pub clwb_keeps_line: bool,
    pub eadr: bool,
    pub prefetches: bool,
    pub flush_return: Time,
    pub sfence: Time,
    pub resume: Time,
    pub mispredict: Time,
    pub ownership: Time,
    pub evict_interval: Time,
    pub fence: Time,
    pub stamp: Time,
    pub instruction: Time,
    pub l1d_hit: Time,
    pub l2_hit: Time,
    pub l3_hit: Time,
    pub request: Time,
    pub response: Time,
    pub rfo_depth: usize,
    pub flush_rfo_depth: usize,
    pub store_buffer: usize,
}

impl Timing {
    pub fn new(platform: &Platform) -> Self {
        let core = &platform.core;
        Self {
            op_interval: core.op_interval,
            op_micro_ops: u64::from(core.op_micro_ops),
            nt_interval: core.nt_interval,
            nt_latency: core.nt_latency,
            nt_uncached: core.nt_uncached,
            nt_again: core.nt_again,
            nt_cached_interval: core.nt_cached_interval,
            flush_interval: core.flush_interval,
            flush_clean: core.flush_clean,
            clwb_keeps_line: core.clwb_keeps_line,
            eadr: core.eadr,
            prefetches: platform.prefetch.stream || platform.prefetch.adjacent,
            flush_return: platform.imc.flush_return,
            sfence: core.sfence,
            resume: core.resume,
            mispredict: core.mispredict,
            ownership: core.ownership,
            evict_interval: platform.imc.evict_interval,
            fence: core.fence,
            stamp: core.stamp,
            instruction: (1e3 / (core.clock * core.ipc)) as Time,
            l1d_hit: platform.l1d.hit,
            l2_hit: platform.l2.hit,
            l3_hit: platform.l3.hit,
            request: platform.mesh.request,
            response: platform.mesh.response,
            rfo_depth: core.store_rfo_depth as usize,
            flush_rfo_depth: core.flush_rfo_depth as usize,
            store_buffer: core.store_buffer as usize,
        }
    }
}
