//! What a launch's code was made from: for tools that show it, and counts of it.
//!
//! Everything here is made anew, by the same steps as the code that runs, and is neither taken from a cache nor put there.

use super::error::Error;
use super::kernel::Kernel;
use super::launch::Launch;
use crate::backend::CodeObject;
use crate::ssa::{self, Line};

/// The code that a launch runs, and the IR that it was made from.
#[derive(Clone, Debug)]
pub struct Specialised {
    launches: &'static str,
    ssa: ssa::Function,
    object: CodeObject,
}

impl Kernel {
    /// Makes the code that a launch runs once more, together with what it is made from.
    ///
    /// # Errors
    /// When the kernel cannot be lowered or compiled.
    pub fn specialised(&self, launch: &Launch) -> Result<Specialised, Error> {
        let (_, shape) = self.groups_of(launch);
        let ssa = self.optimised(shape)?;
        let codegen = self.codegen(launch.policy());
        let object = self.parts().engine.0.backend.compile(&ssa, &codegen)?;
        Ok(Specialised {
            launches: shape.launches(),
            ssa,
            object,
        })
    }
}

impl Specialised {
    /// The launches that this code is for.
    pub fn launches(&self) -> &'static str {
        self.launches
    }

    /// The IR after the passes.
    pub fn ssa(&self) -> &ssa::Function {
        &self.ssa
    }

    /// The IR after the passes, line by line, with the lines of vISA that they came from.
    pub fn ssa_lines(&self) -> Vec<Line> {
        self.ssa.lines()
    }

    /// Instructions of the IR.
    pub fn instructions(&self) -> usize {
        let blocks = self.ssa.order.iter();
        blocks.map(|&b| self.ssa.block(b).insts.len()).sum()
    }

    /// Machine code with its line table.
    pub fn object(&self) -> &CodeObject {
        &self.object
    }
}
