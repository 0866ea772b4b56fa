//! Messages on 64-bit addresses, `svm_*`.

use visa_jit::isa::Platform;

use super::kernel::{Guard, Reach, Scalar, Shape};
use super::layout::{Layout, Start};
use super::legacy::{ALL, Lanes, access, channel_layout, letters};
use super::machine::Space;
use super::rig::{Effort, Rig};

/// `svm_block_ld` and `svm_block_st`.
pub fn block(platform: Platform, owords: u32, store: bool) -> Shape {
    let opcode = if store {
        "svm_block_st"
    } else {
        "svm_block_ld"
    };
    let layout = Layout {
        start: Start::Block64,
        memory: 4,
        register: 4,
        upper: false,
        elements: (0..4 * owords).collect(),
        stride: 4,
        block: true,
    };
    let reach = Reach {
        scalar: Scalar::Alone,
        ..Reach::default()
    };
    let text = format!("{opcode} ({owords}) WIDE(0,0)<0;1,0> DATA.0");
    let l = Lanes::new(16, 0, 1, Guard::None);
    access(platform, l, Space::Flat, text, opcode, layout, store, reach)
}

/// `svm_gather` and `svm_scatter`. Bytes are packed into a dword or a qword a lane.
pub fn gather(platform: Platform, l: Lanes, bytes: u32, blocks: u32, store: bool) -> Shape {
    let opcode = if store { "svm_scatter" } else { "svm_gather" };
    let text = format!("{opcode}.{bytes}.{blocks} {{x}} OFF.0 DATA.0");
    let packed = bytes == 1;
    let layout = Layout {
        start: Start::Address,
        memory: if packed { blocks } else { bytes },
        register: if packed { blocks.max(4) } else { bytes },
        upper: false,
        elements: if packed {
            vec![0]
        } else {
            (0..blocks).collect()
        },
        stride: (l.lanes * bytes).next_multiple_of(platform.grf_bytes()),
        block: false,
    };
    access(
        platform,
        l,
        Space::Flat,
        text,
        opcode,
        layout,
        store,
        Reach::default(),
    )
}

/// `svm_gather4scaled` and `svm_scatter4scaled`.
pub fn gather4(platform: Platform, l: Lanes, set: u32, store: bool, wide: bool) -> Shape {
    let opcode = if store {
        "svm_scatter4scaled"
    } else {
        "svm_gather4scaled"
    };
    let text = format!(
        "{opcode}.{} {{x}} WIDE(0,0)<0;1,0> OFF.0 DATA.0",
        letters(set)
    );
    let start = Start::BasePlus(if wide { u64::MAX } else { 0xffff_ffff });
    let layout = channel_layout(platform, l, set, start);
    let reach = Reach {
        scalar: Scalar::Added,
        ..Reach::default()
    };
    let mut shape = access(platform, l, Space::Flat, text, opcode, layout, store, reach);
    if wide {
        shape.offset_bytes = 8;
    }
    shape
}

/// Channels at 64-bit addresses, which messages have in place of a base and offsets.
pub fn channels_at(platform: Platform, l: Lanes, set: u32, store: bool) -> Shape {
    let layout = channel_layout(platform, l, set, Start::Address);
    let (text, reach) = (String::new(), Reach::default());
    access(platform, l, Space::Flat, text, "", layout, store, reach)
}

pub fn flat(rig: &mut Rig) {
    for store in [false, true] {
        for owords in [1, 2, 4, 8] {
            rig.run(&block(Platform::Skl, owords, store), ALL);
        }
        for (k, bytes) in [1, 4, 8].into_iter().enumerate() {
            for (i, blocks) in [1, 2, 4, 8].into_iter().enumerate() {
                let guards = [Guard::Flow, Guard::Predicate, Guard::Inverted];
                let guard = guards[(i + k) % 3];
                let l = Lanes::new(32, 8, 8, guard);
                rig.run(&gather(Platform::Skl, l, bytes, blocks, store), ALL);
                let l = Lanes::new(32, 16, 16, guard);
                rig.run(&gather(Platform::Pvc, l, bytes, blocks, store), ALL);
                let l = Lanes::new(16, 4, 1, Guard::Predicate);
                let less = Effort {
                    policies: false,
                    ..ALL
                };
                rig.run(&gather(Platform::Tgllp, l, bytes, blocks, store), less);
            }
        }
        for set in [1, 2, 3, 5, 8, 14, 15] {
            let l = Lanes::new(16, 0, 16, Guard::Flow);
            rig.run(&gather4(Platform::Skl, l, set, store, false), ALL);
            let l = Lanes::new(16, 8, 8, Guard::Predicate);
            rig.run(&gather4(Platform::Pvc, l, set, store, false), ALL);
        }
        for set in [3, 10, 15] {
            let l = Lanes::new(16, 0, 16, Guard::Inverted);
            rig.run(&gather4(Platform::Pvc, l, set, store, true), ALL);
        }
    }
}

#[test]
fn device_memory() {
    let mut rig = Rig::new(2);
    flat(&mut rig);
    rig.finish("messages on device memory");
}
