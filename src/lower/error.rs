//! Why a valid kernel could not be lowered.

use crate::module::Pos;

/// Lowering error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// An instruction, or a form of one, that is not lowered yet.
    #[error("line {}: unsupported: `{opcode}`: {why}", pos.line)]
    Unsupported {
        /// Where.
        pos: Pos,
        /// Mnemonic.
        opcode: &'static str,
        /// Which form.
        why: String,
    },
    /// The program breaks a rule that only shows when a message's payload is laid out.
    #[error("line {}: malformed: `{opcode}`: {why}", pos.line)]
    Malformed {
        /// Where.
        pos: Pos,
        /// Mnemonic.
        opcode: &'static str,
        /// Which rule.
        why: String,
    },
    /// The kernel exceeds a fixed limit.
    #[error("kernel is too large: {what}")]
    TooLarge {
        /// Which limit.
        what: String,
    },
}

/// What goes wrong inside one instruction; the driver adds position and opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fail {
    /// See [`LowerError::Unsupported`].
    Unsupported(String),
    /// See [`LowerError::Malformed`].
    Malformed(String),
}

impl Fail {
    /// An unsupported form.
    pub(crate) fn unsupported<T>(why: impl Into<String>) -> Result<T, Fail> {
        Err(Fail::Unsupported(why.into()))
    }

    /// A broken rule.
    pub(crate) fn malformed<T>(why: impl Into<String>) -> Result<T, Fail> {
        Err(Fail::Malformed(why.into()))
    }

    /// Adds where it happened.
    pub(crate) fn at(self, pos: Pos, opcode: &'static str) -> LowerError {
        match self {
            Fail::Unsupported(why) => LowerError::Unsupported { pos, opcode, why },
            Fail::Malformed(why) => LowerError::Malformed { pos, opcode, why },
        }
    }
}
