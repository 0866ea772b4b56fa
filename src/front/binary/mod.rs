//! The binary form of vISA (`.isa`), as the vendor's compiler wrote it up to 2023 and its assembler reads it.
//!
//! [`read`] makes the modules of which a file consists, kernels first, as [`super::text::parse_all`] makes them of text;
//! [`write()`] is the way back. Each field is described once, for both directions (`codec.rs`), so that what is written is
//! what is read.
//!
//! The format has less room than the text: fields of 8 and 16 bits, no messages of later hardware, one version. What it cannot
//! carry is an error that names the instruction. Native code that a file may hold beside its vISA is not looked at.
//!
//! A module that was read is decoded, not checked: `valid` decides whether it makes sense. Names are made such that
//! [`super::text::print()`] gives text which parses to the same module.

mod alu;
mod codec;
mod error;
mod flow;
mod lsc;
mod messages;
mod names;
mod operands;
mod reader;
mod sampler;
mod tables;
#[cfg(test)]
mod tests;
mod walk;
mod writer;

pub use error::{BinaryError, Fault};
pub use reader::{read, read_with};
pub use writer::write;

use crate::isa::{Platform, Versions};

/// First bytes of every file.
pub const MAGIC: [u8; 4] = *b"CISA";

/// Versions that are read, the first and the last.
pub const VERSIONS: [(u8, u8); 2] = [(3, 4), (4, 1)];

/// The version that is written: the last one that there was.
pub const WRITTEN: (u8, u8) = (4, 1);

/// The highest number of an opcode that the last version has. Later ones exist in text only.
const LAST_OPCODE: u8 = 0x92;

/// The text of a file's modules, as [`super::text::parse_all`] reads it.
///
/// # Errors
/// Those of [`read_with`].
pub fn to_text(
    bytes: &[u8],
    platform: Option<Platform>,
    versions: Versions,
) -> Result<String, BinaryError> {
    let modules = read_with(bytes, platform, versions)?;
    let texts: Vec<String> = modules.iter().map(super::text::print).collect();
    Ok(texts.join("\n"))
}

/// True for a file that starts like binary vISA.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// What differs between versions.
#[derive(Clone, Copy, Debug)]
struct Format {
    version: (u8, u8),
    /// Bytes of a register, for offsets that are written as rows of registers, if the device is known.
    grf: Option<u32>,
}

impl Format {
    /// Lengths of names have 16 bits, not 8.
    fn long_names(self) -> bool {
        self.version >= (3, 7)
    }

    /// Inputs are counted in 32 bits, not 8.
    fn many_inputs(self) -> bool {
        self.version >= (3, 5)
    }

    /// Split messages say their shared function.
    fn names_functions(self) -> bool {
        self.version > (3, 5)
    }

    /// Sampler messages have 16 bits for operation and flags, not 8.
    fn wide_samples(self) -> bool {
        self.version >= (4, 0)
    }
}
