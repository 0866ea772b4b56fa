//! The instruction set: data types, regions, execution masks, opcodes and platforms.
//!
//! Everything here is a fact of the ISA (VISA spec, `documentation/visa`) and independent of how a
//! program is written down (text or binary) and of how it is executed. The opcode table in
//! [`table`] is the only list of opcodes in the project.

pub mod atomic;
pub mod columns;
pub mod device_name;
pub mod doc;
pub mod dpas;
pub mod exec;
mod legal;
pub mod lsc;
pub mod platform;
pub mod region;
pub mod sampler;
pub mod send;
pub mod table;
pub mod types;
pub mod versions;

pub use atomic::AtomicOp;
pub use columns::{
    Classes, Effect, Family, Form, Modifiers, Platforms, PredKind, Status, TypeClass, disagreement,
};
pub use device_name::DeviceName;
pub use exec::{Exec, ExecMask, ExecSize};
pub use platform::Platform;
pub use region::{DstRegion, SrcRegion};
pub use table::{Opcode, OpcodeInfo};
pub use types::{CmpCond, SrcModifier, Type};
pub use versions::Versions;

/// The table's copy of an opcode's name as fault records have it.
pub fn known_opcode(text: &str) -> Option<&'static str> {
    let lsc = || lsc::LscOp::from_mnemonic(text)?.spelling().map(|s| s.0);
    Opcode::known_mnemonic(text).or_else(lsc)
}
