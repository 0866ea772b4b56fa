//! visa-jit.
