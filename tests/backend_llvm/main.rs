//! The LLVM backend against the same expectations as the Cranelift backend, and some of its own.
#![cfg(feature = "llvm-codegen")]

/// Random functions that a code generator does not take, and why.
const LEFT_OUT: &[(u64, &str)] = &[(
    5,
    "LLVM 19 combines nodes of it for ever at codegen=none on processors with AVX-512 and FMA",
)];

#[path = "../backend_cranelift/cases.rs"]
mod cases;
mod generator;
mod limits;
#[path = "../backend_cranelift/memory.rs"]
mod memory;
#[path = "../backend_cranelift/narrow.rs"]
mod narrow;
mod objects;
mod operations;
#[path = "../backend_cranelift/ops.rs"]
mod ops;
#[path = "../backend_cranelift/pointers.rs"]
mod pointers;
#[path = "../backend_cranelift/races.rs"]
mod races;
#[path = "../backend_cranelift/random.rs"]
mod random;
#[path = "../backend_cranelift/rig.rs"]
mod rig;
#[path = "../backend_cranelift/scaled.rs"]
mod scaled;
#[path = "../backend_cranelift/several.rs"]
mod several;
mod shapes;
#[path = "../backend_cranelift/threads.rs"]
mod threads;
#[path = "../backend_cranelift/tile.rs"]
mod tile;
