//! What machine code is made of.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use serde::Serialize;
use target_lexicon::Architecture;

use crate::backend::CodeObject;

/// Counts of a kernel's machine code; zero where the architecture is not one that is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Bytes, constants included.
    pub bytes: usize,
    /// Instructions.
    pub instructions: usize,
    /// Those that read or write the stack: spilled values, and what calls pass.
    pub stack: usize,
    /// Loads of whole vectors from elsewhere.
    pub vector_loads: usize,
    /// Gathers and scatters.
    pub gathers: usize,
    /// Calls of the runtime.
    pub calls: usize,
}

impl Machine {
    /// Counts.
    pub fn of(object: &CodeObject) -> Machine {
        let mut machine = Machine {
            bytes: object.code.len(),
            ..Machine::default()
        };
        if object.triple.architecture != Architecture::X86_64 {
            return machine;
        }
        for i in &mut Decoder::with_ip(64, &object.code, 0, DecoderOptions::NONE) {
            let count = |yes: bool, n: &mut usize| *n = n.saturating_add(usize::from(yes));
            let name = format!("{:?}", i.mnemonic());
            let gather = ["Vgather", "Vpgather", "Vscatter", "Vpscatter"];
            count(true, &mut machine.instructions);
            count(on_stack(&i), &mut machine.stack);
            count(loads_vector(&i), &mut machine.vector_loads);
            let gathers = gather.iter().any(|g| name.starts_with(g));
            count(gathers, &mut machine.gathers);
            count(i.mnemonic() == Mnemonic::Call, &mut machine.calls);
        }
        machine
    }
}

fn has_memory(i: &Instruction) -> bool {
    (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory)
}

fn on_stack(i: &Instruction) -> bool {
    has_memory(i) && matches!(i.memory_base(), Register::RSP | Register::RBP)
}

fn loads_vector(i: &Instruction) -> bool {
    let vectors = Register::XMM0 as u32..=Register::ZMM31 as u32;
    let to_vector = i.op_count() > 0
        && i.op_kind(0) == OpKind::Register
        && vectors.contains(&(i.op0_register() as u32));
    let size = format!("{:?}", i.memory_size());
    let whole = ["128", "256", "512"].iter().any(|bits| size.contains(bits));
    to_vector && whole && has_memory(i) && !on_stack(i) && !i.is_ip_rel_memory_operand()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let code = [
            &[0x48, 0x8b, 0x44, 0x24, 0x08][..],   // mov rax,[rsp+8]
            &[0x0f, 0x10, 0x07],                   // movups xmm0,[rdi]
            &[0x0f, 0x10, 0x04, 0x24],             // movups xmm0,[rsp]
            &[0xf3, 0x0f, 0x10, 0x07],             // movss xmm0,[rdi]
            &[0xff, 0xd0],                         // call rax
            &[0xc4, 0xe2, 0x69, 0x92, 0x04, 0x8f], // vgatherdps xmm0,[rdi+xmm1*4],xmm2
            &[0xc3],
        ]
        .concat();
        let object = CodeObject {
            align: 16,
            lines: Vec::new(),
            triple: "x86_64-unknown-linux-gnu".parse().unwrap(),
            backend: "test",
            note: None,
            code,
        };
        let expected = Machine {
            bytes: 25,
            instructions: 7,
            stack: 2,
            vector_loads: 1,
            gathers: 1,
            calls: 1,
        };
        assert_eq!(Machine::of(&object), expected);
        let other = CodeObject {
            triple: "aarch64-unknown-linux-gnu".parse().unwrap(),
            ..object
        };
        assert_eq!(Machine::of(&other).instructions, 0);
    }
}
