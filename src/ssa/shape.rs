//! What is known about the addresses and the mask of a memory access; filled in by the pass `shape`,
//! read by backends.
//!
//! The scalar values named here are computed by instructions in front of the access. They have no
//! other use, so that a backend that does not look at shapes drops them as dead code.

use super::func::Value;

/// Affine addresses: lane `i` has `base + i * stride`, in the width of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Scalar of the address's lane type: lane 0.
    pub base: Value,
    /// Bytes from lane to lane; 0 when all lanes have one address.
    pub stride: i64,
    /// Scalar `i1` that must hold, else nothing is known.
    pub guard: Option<Value>,
}

/// Shape of one lane-wise access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The addresses.
    pub addr: Option<Affine>,
    /// Bytes from lane to lane that enabled lanes probably have, where addresses are chosen by masks or on different ways.
    /// Nothing says that it is so.
    pub speculative: Option<i64>,
    /// Scalar `i1`; when it holds every lane of the mask is set, else nothing is known.
    pub mask_all: Option<Value>,
}
