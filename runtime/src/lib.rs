//! Runtime of visa-jit.
