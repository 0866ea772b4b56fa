//! Host references for the kernels under `tests/kernels`.
//!
//! Each function computes what the kernel of the same name must write, from the same inputs, in
//! plain safe Rust and without any code of `visa-jit`. Buffers that a kernel updates in place are
//! taken as slices and returned as new vectors. `half` values are carried as their 16 bits.
//!
//! Where the result is not exact, the reference returns `f64` and the tolerance is stated in
//! `tests/kernels/README.md`; `ulp` measures the distance.

#![allow(dead_code, reason = "each test uses some of the references")]

pub mod arith;
pub mod atomics;
pub mod bits;
pub mod call;
pub mod convert;
pub mod copy;
pub mod divide;
pub mod float;
pub mod fractal;
pub mod gather;
pub mod half;
pub mod histogram;
pub mod image;
pub mod integer;
pub mod linear;
pub mod loops;
pub mod math;
pub mod nbody;
pub mod ndrange;
pub mod options;
pub mod pointers;
pub mod print;
pub mod private;
pub mod reduce;
pub mod scan;
pub mod sha256;
pub mod sort;
pub mod state;
pub mod stencil;
pub mod subgroup;
pub mod switch;
pub mod tables;
pub mod ulp;
