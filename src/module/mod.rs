//! A decoded program: arenas of variables, labels and instructions with source positions.
//!
//! Both front ends (text and binary) build a [`Module`]; the printer, the validator and the
//! encoder read it. A module is *decoded*, not *checked*: operands may be out of range until
//! `valid` has turned a kernel into a `ValidKernel`.

pub mod inst;
pub mod link;
pub mod operand;
mod operands;
mod raw_send;
mod source;
pub mod vars;

use crate::isa::{Exec, Opcode};

pub use inst::*;
pub use link::{LinkedFunction, link};
pub use operand::*;
pub use operands::{Operand, OperandMut};
pub use vars::*;

/// A program file: one kernel, or one stack-call function, with its declarations.
///
/// A zebin holds one module for each kernel and each function.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// `.version major.minor`.
    pub version: (u32, u32),
    /// Name after `.kernel` or `.global_function`.
    pub name: String,
    /// Which of the two it is.
    pub kind: ModuleKind,
    /// `.funcdecl` names.
    pub funcdecls: Vec<String>,
    /// Variables of every class.
    pub vars: Vars,
    /// `.input` and `.implicit_*` lines in order.
    pub inputs: Vec<Input>,
    /// `.kernel_attr` lines in order.
    pub attrs: Vec<Attr>,
    /// Labels, in order of first appearance.
    pub labels: Vec<Label>,
    /// Instructions in textual order, with `label:` and `.function` as instructions.
    pub insts: Vec<Inst>,
    /// Stack-call functions that [`link()`] appended; empty in a module as decoded.
    pub functions: Vec<LinkedFunction>,
}

impl Module {
    /// A kernel without name and instructions, for readers to fill.
    pub(crate) fn empty() -> Module {
        Module {
            version: (0, 0),
            name: String::new(),
            kind: ModuleKind::Kernel,
            funcdecls: Vec::new(),
            vars: Vars::default(),
            inputs: Vec::new(),
            attrs: Vec::new(),
            labels: Vec::new(),
            insts: Vec::new(),
            functions: Vec::new(),
        }
    }
}

/// What a module defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleKind {
    /// `.kernel`.
    Kernel,
    /// `.global_function`.
    Function,
}

/// `.kernel_attr NAME[=value]` or an `attrs={…}` entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Attr {
    /// Name as written.
    pub name: String,
    /// Value, if any.
    pub value: AttrValue,
}

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// Name alone.
    Flag,
    /// Integer.
    Int(i64),
    /// String.
    Str(String),
}

/// A line and a column, both counted from 1; 0 when the program did not come from text.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Pos {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub col: u32,
}

/// Positions never make two programs different.
impl PartialEq for Pos {
    fn eq(&self, _: &Pos) -> bool {
        true
    }
}

/// Equal values hash alike, so positions add nothing.
impl std::hash::Hash for Pos {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Module {
    /// Looks an integer kernel attribute up (`SimdSize`, …), ignoring case.
    pub fn int_attr(&self, name: &str) -> Option<i64> {
        self.attrs.iter().find_map(|a| match a.value {
            AttrValue::Int(v) if a.name.eq_ignore_ascii_case(name) => Some(v),
            _ => None,
        })
    }

    /// Whether anything is executed: there is more than labels and other marks.
    pub fn has_instructions(&self) -> bool {
        let mark = |body: &Body| {
            let lifetime = matches!(body, Body::Lifetime { .. });
            lifetime || matches!(body, Body::Label(_) | Body::File(_) | Body::Loc(_))
        };
        self.insts.iter().any(|inst| !mark(&inst.body))
    }

    /// First instruction of each subroutine, in textual order, that of the kernel's own body first. The first
    /// `.function` names that body, whatever precedes it, unless it is a linked function's.
    pub fn subroutine_starts(&self) -> Vec<usize> {
        let linked = self.functions.first().and_then(|f| {
            let label = self.labels.get(f.entry.0 as usize)?;
            Some(label.def? as usize)
        });
        let insts = self.insts.iter().enumerate();
        let marks = insts.filter(|(_, i)| i.op == Opcode::Subroutine);
        let mut marks = marks.map(|(at, _)| at).peekable();
        marks.next_if(|&at| linked.is_none_or(|linked| at < linked));
        std::iter::once(0).chain(marks).collect()
    }
}
