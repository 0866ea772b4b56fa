//! Offsets that are affine in the lane, as compilers know them for most accesses of real kernels: such
//! accesses take other code than arbitrary offsets, with one test for all lanes.

use visa_jit::Engine;
use visa_jit::isa::Platform;

use super::kernel::{Guard, Shape};
use super::legacy::{ALL, Lanes, gather_scaled, gather4};
use super::lsc::{D16C32, D32, D64, Message};
use super::machine::Space;
use super::rig::{Effort, Rig};
use super::svm;

const LESS: Effort = Effort {
    policies: false,
    ..ALL
};

/// Strides for accesses of a given number of bytes a lane, in whole `unit`s.
fn strides(bytes: i64, unit: i64, store: bool) -> Vec<i64> {
    let mut all = vec![bytes, bytes + unit, -bytes, 4 * bytes];
    if !store {
        // Lanes that overlap.
        all.extend([0, unit]);
    }
    all.dedup();
    all
}

#[test]
fn affine_offsets() {
    let mut rig = Rig::new(21);
    let mut n = 0;
    let mut run = |mut shape: Shape, unit: i64| {
        for stride in strides(shape.reach.bytes as i64, unit, shape.access == "write") {
            n += 1;
            shape.stride = Some(stride);
            rig.run(&shape, if n % 4 == 0 { ALL } else { LESS });
        }
    };
    let guards = [Guard::None, Guard::Predicate, Guard::Flow];
    for store in [false, true] {
        for (k, guard) in guards.into_iter().enumerate() {
            let l = Lanes::new(16, 0, 16, guard);
            let eight = Lanes::new(16, 8, 8, guard);
            let p = Platform::Skl;
            for size in [1, 2, 4] {
                let space = if size == 2 {
                    Space::Slm
                } else {
                    Space::Surface
                };
                run(gather_scaled(p, l, space, size, store), 1);
            }
            for set in [1, 2, 3, 7, 13, 15] {
                run(
                    gather4(
                        p,
                        if set == 7 { eight } else { l },
                        Space::Surface,
                        set,
                        store,
                    ),
                    4,
                );
            }
            let p = Platform::Pvc;
            for (bytes, blocks) in [(1, 1), (1, 4), (4, 1), (4, 2), (8, 1), (8, 4)] {
                let l = if k == blocks as usize % 3 { eight } else { l };
                run(svm::gather(p, l, bytes, blocks, store), 1);
            }
            for (size, length) in [(D32, 1), (D32, 3), (D32, 4), (D64, 2), (D16C32, 1)] {
                for space in [Space::Surface, Space::Flat] {
                    run(Message::new(p, l, space, store).vector(size, length), 1);
                }
            }
        }
    }
    rig.finish("affine offsets");
}

#[test]
fn affine_offsets_are_recognised() {
    let l = Lanes::new(16, 0, 16, Guard::Flow);
    let mut shape = gather_scaled(Platform::Skl, l, Space::Surface, 4, true);
    shape.stride = Some(4);
    let program = Engine::new()
        .unwrap()
        .program_from_text("affine", &shape.kernel(0), shape.platform)
        .unwrap();
    let f = program.kernels()[0].ssa(true).unwrap();
    let strides: Vec<i64> = f
        .shapes
        .values()
        .filter_map(|s| s.addr)
        .map(|a| a.stride)
        .collect();
    assert_eq!(strides, [4]);
}
