//! Constant vectors near their uses.
//!
//! Cranelift makes each constant once, outside of all loops. Register allocation carries it from there to its uses, mostly on the
//! stack. A reload costs as much as loading the constant itself, so such long lives gain nothing. They take time to allocate, and
//! leave fewer registers for others. Cranelift itself makes scalar constants anew in each block.

use rustc_hash::FxHashMap;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Constant, Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value,
};

/// Instructions after a use that a constant is kept in its register for the next one.
const NEAR: usize = 16;

/// Makes constant vectors anew in each block, in front of the first use there, and of uses far behind the one before. It runs after
/// Cranelift's own passes, which would undo it.
pub(super) fn bring_near(func: &mut Function) {
    let mut pos = FuncCursor::new(func);
    while pos.next_block().is_some() {
        // What it is here, and where that was used last.
        let mut here: FxHashMap<Value, (Value, usize)> = FxHashMap::default();
        let mut at = 0;
        while let Some(inst) = pos.next_inst() {
            at += 1;
            if constant(pos.func, inst).is_some() {
                let made = pos.func.dfg.first_result(inst);
                here.insert(made, (made, at));
                continue;
            }
            let values = pos.func.dfg.inst_values(inst);
            let used = values.filter_map(|v| Some((v, vector(pos.func, v)?)));
            let used: Vec<(Value, (Constant, Type))> = used.collect();
            for &(value, (handle, ty)) in &used {
                let near = here.get(&value).filter(|(_, last)| at - last <= NEAR);
                let near = near.map(|&(near, _)| near);
                let near = near.unwrap_or_else(|| pos.ins().vconst(ty, handle));
                here.insert(value, (near, at));
            }
            if !used.is_empty() {
                let near = |value| here.get(&value).map_or(value, |&(near, _)| near);
                pos.func.dfg.map_inst_values(inst, near);
            }
        }
    }
}

/// The constant vector that a value is.
fn vector(func: &Function, value: Value) -> Option<(Constant, Type)> {
    let inst = func.dfg.value_def(value).inst()?;
    Some((constant(func, inst)?, func.dfg.value_type(value)))
}

/// The constant vector that an instruction makes.
fn constant(func: &Function, inst: Inst) -> Option<Constant> {
    match func.dfg.insts[inst] {
        InstructionData::UnaryConst {
            opcode: Opcode::Vconst,
            constant_handle,
        } => Some(constant_handle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::{ConstantData, InstBuilder, types};

    #[test]
    fn each_block_has_its_own() {
        let mut func = Function::new();
        let blocks = [0; 3].map(|_| func.dfg.make_block());
        let handle = [1, 2].map(|byte| {
            let data = [byte; 16];
            func.dfg.constants.insert(ConstantData::from(&data[..]))
        });
        let mut pos = FuncCursor::new(&mut func);
        for block in blocks {
            pos.insert_block(block);
        }
        pos.goto_bottom(blocks[0]);
        let [a, b] = handle.map(|handle| pos.ins().vconst(types::I32X4, handle));
        let first = pos.ins().iadd(a, b);
        pos.ins().jump(blocks[1], &[]);
        pos.goto_bottom(blocks[1]);
        let second = pos.ins().iadd(a, first);
        let third = pos.ins().iadd(second, a);
        pos.ins().jump(blocks[2], &[]);
        pos.goto_bottom(blocks[2]);
        let fourth = pos.ins().iadd(third, b);
        pos.ins().return_(&[]);

        bring_near(&mut func);
        let args = |v| {
            let inst = func.dfg.value_def(v).unwrap_inst();
            let args = func.dfg.inst_args(inst);
            (args[0], args[1])
        };
        let block_of = |v| func.layout.inst_block(func.dfg.value_def(v).unwrap_inst());
        assert_eq!(args(first), (a, b), "what is there already stays");
        let (again, kept) = args(second);
        assert_eq!((block_of(again), kept), (Some(blocks[1]), first));
        assert_eq!(args(third), (second, again), "made once in a block");
        let (kept, other) = args(fourth);
        assert_eq!((kept, block_of(other)), (third, Some(blocks[2])));
        let constants = [again, other].map(|v| vector(&func, v).map(|(c, _)| c));
        assert_eq!(constants, handle.map(Some));
    }

    #[test]
    fn far_uses_have_their_own() {
        let uses = |apart: usize| {
            let mut func = Function::new();
            let block = func.dfg.make_block();
            let handle = func.dfg.constants.insert(ConstantData::from(&[1; 16][..]));
            let mut pos = FuncCursor::new(&mut func);
            pos.insert_block(block);
            let constant = pos.ins().vconst(types::I32X4, handle);
            let mut sum = pos.ins().iadd(constant, constant);
            for _ in 1..apart {
                sum = pos.ins().iadd(sum, sum);
            }
            let last = pos.ins().iadd(sum, constant);
            pos.ins().return_(&[]);
            bring_near(&mut func);
            func.dfg.inst_args(func.dfg.value_def(last).unwrap_inst())[1] == constant
        };
        assert!(uses(1) && uses(NEAR));
        assert!(!uses(NEAR + 1));
    }
}
