//! THE opcode table: one row an opcode.

/// Placeholder until the table lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    Add,
}
/// Form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Alu,
}
/// Info.
pub struct OpcodeInfo;
/// Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Full,
}
