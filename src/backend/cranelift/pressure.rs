//! An estimate of how much work register allocation will be, made before it runs.
//!
//! The backtracking allocator tries each register for a value, over all instructions that the value lives across, and again after
//! the value was evicted or split. That takes minutes if more than a thousand vectors live across some ten thousand instructions.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Value};

/// Sum over all values of the instructions from the first to the last one that has to do with it, in the order of the layout.
pub(super) fn lengths(func: &Function) -> u64 {
    let mut lives: SecondaryMap<Value, Option<(u32, u32)>> = SecondaryMap::new();
    let mut at = 0;
    for block in func.layout.blocks() {
        for &v in func.dfg.block_params(block) {
            lives[v] = Some((at, at));
        }
        for inst in func.layout.block_insts(block) {
            at += 1;
            for &v in func.dfg.inst_results(inst) {
                lives[v] = Some((at, at));
            }
            for v in func.dfg.inst_values(inst) {
                let life = &mut lives[func.dfg.resolve_aliases(v)];
                *life = Some((life.map_or(at, |(from, _)| from), at));
            }
        }
    }
    lives
        .values()
        .flatten()
        .map(|(from, to)| u64::from(to - from))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::cursor::{Cursor, FuncCursor};
    use cranelift_codegen::ir::{InstBuilder, types};

    #[test]
    fn lives_are_added_up_through_blocks() {
        let mut func = Function::new();
        let blocks = [0; 2].map(|_| func.dfg.make_block());
        let mut pos = FuncCursor::new(&mut func);
        pos.insert_block(blocks[0]);
        let param = pos.func.dfg.append_block_param(blocks[0], types::I32);
        let first = pos.ins().ineg(param);
        let _unused = pos.ins().ineg(first);
        pos.ins().jump(blocks[1], &[]);
        pos.insert_block(blocks[1]);
        pos.ins().iadd(first, param);
        pos.ins().return_(&[]);
        // `param` to the fourth instruction, `first` from the first one to it.
        assert_eq!(lengths(&func), 4 + 3);
    }
}
