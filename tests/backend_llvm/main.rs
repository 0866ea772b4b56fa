//! The LLVM backend against the same expectations as the Cranelift backend, and some of its own.
#![cfg(feature = "llvm-codegen")]

#[path = "../backend_cranelift/cases.rs"]
mod cases;
mod generator;
mod limits;
#[path = "../backend_cranelift/memory.rs"]
mod memory;
mod objects;
#[path = "../backend_cranelift/ops.rs"]
mod ops;
#[path = "../backend_cranelift/random.rs"]
mod random;
#[path = "../backend_cranelift/rig.rs"]
mod rig;
#[path = "../backend_cranelift/several.rs"]
mod several;
mod shapes;
#[path = "../backend_cranelift/threads.rs"]
mod threads;
