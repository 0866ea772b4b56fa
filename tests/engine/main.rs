//! Whole programs, from files to results: real kernels, memory at its edges, launches, matrices, limits.

// First, as its macro is used below.
#[macro_use]
#[path = "../support/mod.rs"]
mod support;

#[path = "../checks/mod.rs"]
mod checks;
#[path = "../dpas/mod.rs"]
mod dpas;
#[path = "../edges/mod.rs"]
mod edges;
mod interp;
#[path = "../kernel_runs/mod.rs"]
mod kernels;
#[path = "../launches/mod.rs"]
mod launches;
mod lower_limits;
mod lower_messages;
#[path = "../reference/mod.rs"]
mod reference;
mod smoke;
mod tier;
