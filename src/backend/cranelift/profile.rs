//! Cranelift's passes as steps of compilation.

use std::any::Any;

use cranelift_codegen::timing::{Pass, Profiler, set_thread_profiler};

use super::NAME;
use crate::steps::{is_measuring, step};

/// Enters each pass as a step.
struct AsSteps;

impl Profiler for AsSteps {
    fn start_pass(&self, pass: Pass) -> Box<dyn Any> {
        Box::new(step(NAME, pass.description()))
    }
}

/// While this lives, Cranelift's passes on the current thread are steps, if steps are measured.
pub(super) struct Steps(Option<Box<dyn Profiler>>);

impl Steps {
    pub(super) fn begin() -> Steps {
        Steps(is_measuring().then(|| set_thread_profiler(Box::new(AsSteps))))
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            drop(set_thread_profiler(before));
        }
    }
}
