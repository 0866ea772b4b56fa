//! Mappings of the whole process: alone in its binary and one after the other, as other tests map
//! memory at the same time and may get an address that was just given up.

#![cfg(all(feature = "jit", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod common;

use common::maps::{all, protection};
use visa_runtime::{CodeHandle, DeviceMemory, SurfaceTable};

#[test]
fn mappings_end_with_their_last_handle() {
    code_is_unmapped();
    memory_is_unmapped();
    cycles_leave_nothing();
}

fn code_is_unmapped() {
    let code = CodeHandle::install(&[0xC3; 100], 16).unwrap();
    let start = code.entry() as usize as u64;
    let other = code.clone();
    drop(code);
    assert_eq!(protection(start).as_deref(), Some("r-xp"));
    drop(other);
    assert_eq!(protection(start), None);
}

fn memory_is_unmapped() {
    let memory = DeviceMemory::new().unwrap();
    let buffer = memory.alloc(1 << 20).unwrap();
    let mut table = SurfaceTable::new();
    table.bind(3, &buffer).unwrap();
    let address = buffer.address();
    drop((memory, buffer));
    assert_eq!(
        protection(address).as_deref(),
        Some("rw-p"),
        "the table holds it"
    );
    let copy = table.clone();
    table.clear(3).unwrap();
    assert_eq!(table.get(3), None);
    assert_eq!(copy.get(3), Some((address, 1 << 20)));
    drop(copy);
    assert_eq!(protection(address), None);
}

fn cycles_leave_nothing() {
    let cycle = || {
        let code = CodeHandle::install(&[0xC3; 5000], 64).unwrap();
        let memory = DeviceMemory::new().unwrap();
        let buffer = memory.alloc(1 << 20).unwrap();
        buffer.fill(1);
        drop((code, memory.alloc_flush_end(10).unwrap()));
    };
    // The first one builds what stays for the process.
    cycle();
    let before = all().len();
    for _ in 0..1000 {
        cycle();
    }
    assert_eq!(all().len(), before);
}
