//! Why a kernel cannot be interpreted, or had to stop.

use crate::module::Pos;

/// Error of the interpreter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpError {
    /// An instruction, or a form of one, that is not interpreted.
    #[error("line {}: unsupported: `{opcode}`: {why}", pos.line)]
    Unsupported {
        /// Where.
        pos: Pos,
        /// Mnemonic.
        opcode: &'static str,
        /// Which form.
        why: String,
    },
    /// The program breaks a rule that validation does not know.
    #[error("line {}: malformed: `{opcode}`: {why}", pos.line)]
    Malformed {
        /// Where.
        pos: Pos,
        /// Mnemonic.
        opcode: &'static str,
        /// Which rule.
        why: String,
    },
    /// A thread at `dpasw` whose fused thread does not come there.
    #[error("line {}: malformed: `dpasw`: the fused thread, which has half of the matrix, does not come here", pos.line)]
    Alone {
        /// Where.
        pos: Pos,
    },
    /// A hardware thread executed as many instructions as it may.
    #[error("line {}: out of fuel: a hardware thread executed {limit} instructions", pos.line)]
    Fuel {
        /// Next instruction.
        pos: Pos,
        /// Instructions.
        limit: u64,
    },
    /// The kernel exceeds a fixed limit.
    #[error("kernel is too large: {what}")]
    TooLarge {
        /// Which limit.
        what: String,
    },
    /// Threads wait at barriers, and no other thread runs that could let them go on.
    #[error("threads wait at named barriers that no other thread will come to")]
    Deadlock,
    /// The trace could not be written.
    #[error("trace: {what}")]
    Trace {
        /// What the system said.
        what: String,
    },
}

/// What ends an instruction early; the driver adds position and opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// See [`InterpError::Unsupported`].
    Unsupported(String),
    /// See [`InterpError::Malformed`].
    Malformed(String),
    /// An access was out of bounds and the launch stops at the first.
    Fault,
}

impl Halt {
    /// An unsupported form.
    pub(super) fn unsupported<T>(why: impl Into<String>) -> Result<T, Halt> {
        Err(Halt::Unsupported(why.into()))
    }

    /// A broken rule.
    pub(super) fn malformed<T>(why: impl Into<String>) -> Result<T, Halt> {
        Err(Halt::Malformed(why.into()))
    }

    /// Adds where it happened; `None` for a fault, which is no error.
    pub(super) fn at(self, pos: Pos, opcode: &'static str) -> Option<InterpError> {
        Some(match self {
            Halt::Unsupported(why) => InterpError::Unsupported { pos, opcode, why },
            Halt::Malformed(why) => InterpError::Malformed { pos, opcode, why },
            Halt::Fault => return None,
        })
    }
}
