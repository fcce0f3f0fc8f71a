//! A crowd at one DIMM holds up writes to its neighbours behind the same memory controller, and to no other.

use xpline_model::{MemorySystem, Platform, Request, RequestKind};

const PAGE: u64 = 4096;

/// When a write to a DIMM is accepted behind more writes to DIMM 0 than its queue and the way into the controller hold.
fn behind_a_crowd(ingress: &str, dimm: u64) -> u64 {
    let platform = Platform::load("optane", &[ingress.to_owned()], &|_| {
        Err(std::io::ErrorKind::NotFound.into())
    })
    .unwrap();
    let mut memory = MemorySystem::new(&platform);
    let mut write = |source: u32, address: u64| {
        let request = Request {
            kind: RequestKind::Write,
            address,
            at: 1000,
            source,
        };
        memory.serve(request).unwrap()
    };
    let held = u64::from(platform.imc.wpq + 8);
    let crowd = held.div_ceil(u64::from(platform.imc.wpq_per_core)) as u32;
    assert!(crowd < platform.core.count);
    for line in 0..platform.imc.wpq_per_core {
        for source in 0..crowd {
            write(source, 6 * PAGE * u64::from(source) + 64 * u64::from(line));
        }
    }
    write(platform.core.count - 1, dimm * PAGE)
}

#[test]
fn writes_wait_behind_those_for_a_full_queue_of_their_controller() {
    for neighbour in [1, 2] {
        assert!(behind_a_crowd("imc.ingress=4", neighbour) > 1000);
        assert_eq!(behind_a_crowd("imc.ingress=16", neighbour), 1000);
    }
    assert_eq!(behind_a_crowd("imc.ingress=4", 3), 1000, "another controller");
}
