//! From a decoded [`Module`] to a [`ValidKernel`]: the only way into lowering and the interpreter.
//!
//! After validation every instruction keeps to its row of the opcode table on the target platform, every
//! variable id, label and predicate resolves, aliases end in storage roots without cycles, and every register
//! operand lies inside its root's storage, so that later stages index without asking again. What validation does
//! *not* decide is whether an opcode is supported; that is an `Unsupported` error of the stage that meets it.
//! Hardware messages that are memory messages are the instructions of vISA that make them from here on.

mod check;
mod flow;
pub mod place;
mod rules;
mod shapes;

pub use place::{Root, RootId, RootOffset};

use crate::isa::Platform;
use crate::module::{Body, Module, Pos, VarId};

/// What a kernel was compiled for; never guessed from the text (docs/visa.md, "Devices").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Platform.
    pub platform: Platform,
}

impl Target {
    /// Bytes of a general register.
    pub const fn grf(self) -> u32 {
        self.platform.grf_bytes()
    }
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {message}", pos.line, pos.col)]
pub struct ValidError {
    /// Where.
    pub pos: Pos,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Every broken rule of a module (at most 100).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.lines())]
pub struct ValidErrors(pub Vec<ValidError>);

impl ValidErrors {
    fn lines(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}

/// A checked kernel or function.
#[derive(Clone, Debug)]
pub struct ValidKernel {
    module: Module,
    target: Target,
    simd: u32,
    places: place::Places,
}

impl ValidKernel {
    /// The program.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Its target.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Lanes of a hardware thread.
    pub fn simd(&self) -> u32 {
        self.simd
    }

    /// Where a general variable's first byte is stored.
    pub fn root_offset(&self, var: VarId) -> RootOffset {
        self.places.root_offset(var)
    }

    /// Storage roots.
    pub fn roots(&self) -> &[Root] {
        self.places.roots()
    }
}

/// Checks a module for a target.
///
/// # Errors
/// All rules it breaks, in textual order.
pub fn validate(mut module: Module, target: Target) -> Result<ValidKernel, ValidErrors> {
    let mut errors = Vec::new();
    let simd = check::simd(&module, &mut errors);
    let mut places = place::Places::resolve(&module, target, &mut errors);
    check::labels(&module, &mut errors);
    flow::branches(&module, &mut errors);
    check::inputs(&module, &places, &mut errors);
    for inst in &module.insts {
        if errors.len() >= 100 {
            break;
        }
        check::inst(&module, &places, target, simd, inst, &mut errors);
    }
    if errors.is_empty() {
        messages(&mut module, &mut places, target, &mut errors);
    }
    if errors.is_empty() {
        Ok(ValidKernel {
            module,
            target,
            simd,
            places,
        })
    } else {
        Err(ValidErrors(errors))
    }
}

/// Reads hardware messages as the instructions that they are.
fn messages(
    module: &mut Module,
    places: &mut place::Places,
    target: Target,
    errors: &mut Vec<ValidError>,
) {
    if !module
        .insts
        .iter()
        .any(|i| matches!(i.body, Body::RawSend(_)))
    {
        return;
    }
    module.decode_sends(target.platform);
    *places = place::Places::resolve(module, target, errors);
    for inst in module.insts.iter().filter(|i| i.written.is_some()) {
        check::message(module, places, target, inst, errors);
    }
}
