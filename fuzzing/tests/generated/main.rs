//! Generated programs and damaged files: all engines agree, and none fails.

mod divergence;
mod files;
mod kernels;
mod messages;
mod planted;
mod robustness;
mod sweep;
