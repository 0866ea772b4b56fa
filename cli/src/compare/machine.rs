//! What machine code is made of.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use serde::Serialize;
use target_lexicon::Architecture;

use visa_jit::backend::{CodeObject, StackUse};

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
    /// Loads and stores of spilled values.
    pub spills: usize,
}

impl Machine {
    /// Counts.
    pub fn of(object: &CodeObject, stack: &StackUse) -> Machine {
        let mut machine = Machine {
            bytes: object.code.len(),
            ..Machine::default()
        };
        if let StackUse::Counted { stores, loads } = stack {
            machine.spills = stores.saturating_add(*loads);
        }
        if object.triple.architecture != Architecture::X86_64 {
            return machine;
        }
        let mut saved = SavedRegisters::default();
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
            let saves = saved.saves(&i);
            if let StackUse::Program(own) = stack {
                let ours = |at: u64| {
                    own.iter()
                        .any(|r| r.contains(&u32::try_from(at).unwrap_or(0)))
                };
                let spill = on_stack(&i) && !saves && !ours(i.memory_displacement64());
                count(spill, &mut machine.spills);
            }
        }
        machine
    }
}

/// The place where a function keeps its caller's registers: it starts by storing them there.
#[derive(Default)]
struct SavedRegisters {
    /// The first instruction that is something else was met.
    started: bool,
    places: Vec<u64>,
}

impl SavedRegisters {
    /// True for instructions that save or restore the caller's registers.
    fn saves(&mut self, i: &Instruction) -> bool {
        const CALLERS: [Register; 6] = [
            Register::RBX,
            Register::RBP,
            Register::R12,
            Register::R13,
            Register::R14,
            Register::R15,
        ];
        let stores = i.op_count() == 2 && i.op0_kind() == OpKind::Memory;
        let loads = i.op_count() == 2 && i.op1_kind() == OpKind::Memory;
        let move_of = |n: u32| {
            i.mnemonic() == Mnemonic::Mov && on_stack(i) && CALLERS.contains(&i.op_register(n))
        };
        let at = i.memory_displacement64();
        if stores && move_of(1) && !self.started {
            self.places.push(at);
            return true;
        }
        let frame = matches!(i.mnemonic(), Mnemonic::Push | Mnemonic::Sub | Mnemonic::Mov);
        self.started |= !frame || has_memory(i);
        loads && move_of(0) && self.places.contains(&at)
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
    fn saved_registers_are_no_spills() {
        let code = [
            &[0x55][..],                     // push rbp
            &[0x48, 0x89, 0xe5],             // mov rbp,rsp
            &[0x48, 0x83, 0xec, 0x20],       // sub rsp,20h
            &[0x48, 0x89, 0x5c, 0x24, 0x10], // mov [rsp+10h],rbx
            &[0x31, 0xc0],                   // xor eax,eax
            &[0x48, 0x89, 0x5c, 0x24, 0x08], // mov [rsp+8],rbx
            &[0x48, 0x8b, 0x5c, 0x24, 0x08], // mov rbx,[rsp+8]
            &[0x48, 0x8b, 0x5c, 0x24, 0x10], // mov rbx,[rsp+10h]
            &[0xc3],
        ]
        .concat();
        let object = CodeObject {
            align: 16,
            lines: Default::default(),
            triple: "x86_64-unknown-linux-gnu".parse().unwrap(),
            backend: "test",
            stack_bytes: 0,
            note: None,
            code,
        };
        let machine = Machine::of(&object, &StackUse::Program(Vec::new()));
        assert_eq!((machine.stack, machine.spills), (4, 2));
    }

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
            lines: Default::default(),
            triple: "x86_64-unknown-linux-gnu".parse().unwrap(),
            backend: "test",
            stack_bytes: 0,
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
            spills: 2,
        };
        let nothing = StackUse::Program(Vec::new());
        assert_eq!(Machine::of(&object, &nothing), expected);
        // The first bytes of the frame are the program's.
        let own = StackUse::Program(std::iter::once(0..8).collect());
        assert_eq!(Machine::of(&object, &own).spills, 1);
        let counted = StackUse::Counted {
            stores: 3,
            loads: 4,
        };
        assert_eq!(Machine::of(&object, &counted).spills, 7);
        let other = CodeObject {
            triple: "aarch64-unknown-linux-gnu".parse().unwrap(),
            ..object
        };
        assert_eq!(Machine::of(&other, &nothing).instructions, 0);
    }
}
