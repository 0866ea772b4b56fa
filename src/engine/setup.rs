//! What launches are prepared from: code with room to run it, and arguments laid out.

use std::sync::Arc;

use super::cache::{Compiled, Origin};
use super::error::Error;
use super::kernel::{Interpreted, Kernel};
use super::names::Names;
use crate::backend::OobPolicy;
use crate::lines::SourceLine;
use visa_runtime::linked::LaunchMemory;
use visa_runtime::{Arguments, LaunchShape, PreparedLaunch};

/// What runs.
pub(super) enum Code {
    Compiled { code: Arc<Compiled>, origin: Origin },
    Interpreted(Interpreted),
}

impl Code {
    pub(super) fn kernel(&self) -> &visa_runtime::Kernel {
        match self {
            Code::Compiled { code, .. } => &code.kernel,
            Code::Interpreted(code) => &code.kernel,
        }
    }

    /// Line of the source that a line of vISA came from.
    pub(super) fn source(&self, kernel: &Kernel, line: u32) -> Option<SourceLine> {
        match self {
            Code::Compiled { code, .. } => code.object.lines.source().line_at(line),
            Code::Interpreted(_) => kernel.valid()?.module().source_map().line_at(line),
        }
    }
}

/// Code with what depends on it and on the launch's shape.
pub(super) struct Ready {
    pub code: Code,
    pub launch: PreparedLaunch,
}

impl Ready {
    pub(super) fn new(code: Code, shape: LaunchShape) -> Result<Ready, Error> {
        let launch = PreparedLaunch::new(code.kernel(), shape)?;
        Ok(Ready { code, launch })
    }
}

/// A prepared launch without its code.
pub(super) struct Setup {
    pub kernel: Kernel,
    pub arguments: Arguments,
    /// What the arguments hold addresses of.
    pub own: LaunchMemory,
    /// What buffers are called, where accesses are checked against them.
    pub names: Option<Names>,
    pub oob: OobPolicy,
    pub shape: LaunchShape,
}
