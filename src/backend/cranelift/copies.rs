//! Values that Cranelift's optimiser would compute again and again: they are computed once.
//!
//! The optimiser places an operation without effects where its result is used. If the uses are in several blocks, and none of
//! these dominates the others, each of them gets a copy of everything that leads to the value. That made 245,000 instructions of
//! 8,000, for 1,000 sums of 32 lanes on 32 variables, each stored under a condition of its own.
//!
//! The copies are counted by going through the blocks as the optimiser does. If they would make a function much larger, the
//! values at the roots of the copied computations are stored where their uses part. Such a store is a use that dominates the
//! others.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    Block, Function, Inst, InstBuilder, Opcode, StackSlotData, StackSlotKind, Value, ValueDef,
    types,
};

use super::emit::DATA;

/// A function with fewer copies is left alone. So is one with fewer copies than instructions: SHA-256 has half as many copies as
/// instructions, and is 3 % faster with them.
const MANY: usize = 2_000;
/// A store is worth this number of copied instructions.
const DEAR: usize = 8;
/// Values that the stack slot has room for. Further values overwrite earlier ones: nothing reads the slot, a store only keeps a
/// value where it was computed.
const SLOTS: usize = 64;
/// Bytes of the largest value.
const VALUE_BYTES: usize = 16;
/// Copies that are followed before the count is given up, about 0.1 s.
const FOLLOWED: usize = 2_000_000;
/// How often to count again what the stores so far leave.
const ROUNDS: usize = 8;

/// Stores what would be computed too often. Returns whether the optimiser may be run: not if it would still make more than twice
/// the instructions that there are.
pub(super) fn compute_once(func: &mut Function) -> bool {
    let insts = func.dfg.num_insts();
    for _ in 0..ROUNDS {
        let found = Copies::count(func, FOLLOWED);
        if found.extra < MANY.max(insts) || found.roots.is_empty() {
            break;
        }
        store(func, &found.roots);
    }
    Copies::count(func, 2 * insts + MANY).extra <= insts + MANY
}

/// Uses values at the ends of blocks.
fn store(func: &mut Function, roots: &[(Value, Block)]) {
    let bytes = (SLOTS * VALUE_BYTES) as u32;
    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
    let slot = func.create_sized_stack_slot(slot);
    for (n, &(value, block)) in roots.iter().enumerate() {
        let Some(last) = func.layout.last_inst(block) else {
            continue;
        };
        let mut pos = FuncCursor::new(func).at_inst(last);
        let at = (n % SLOTS * VALUE_BYTES) as i32;
        let to = pos.ins().stack_addr(types::I64, slot, at);
        pos.ins().store(DATA, value, to, 0);
    }
}

/// What becomes of one instruction.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// How often it is computed.
    copies: u32,
    /// Instructions that are computed again only to compute this one again.
    extra: usize,
    /// The block that dominates all that compute it.
    above: Option<Block>,
}

/// A way through the blocks from dominators to dominated ones, as the optimiser takes it.
enum TreeStep {
    Enter(Block),
    /// A block and all below it are done: its computations are out of reach.
    Leave(Vec<Inst>),
}

struct Copies {
    /// Instructions computed again.
    extra: usize,
    /// What to compute in which block, to save the most of these.
    roots: Vec<(Value, Block)>,
}

struct Walk<'f> {
    func: &'f Function,
    domtree: DominatorTree,
    depth: SecondaryMap<Block, u32>,
    fates: SecondaryMap<Inst, Fate>,
    at_hand: SecondaryMap<Inst, bool>,
    extra: usize,
}

impl Copies {
    /// Counts, up to a limit of copied instructions.
    fn count(func: &Function, limit: usize) -> Self {
        let cfg = ControlFlowGraph::with_function(func);
        let mut walk = Walk {
            func,
            domtree: DominatorTree::with_function(func, &cfg),
            depth: SecondaryMap::new(),
            fates: SecondaryMap::new(),
            at_hand: SecondaryMap::new(),
            extra: 0,
        };
        walk.go(limit);
        let insts = func
            .layout
            .blocks()
            .flat_map(|b| func.layout.block_insts(b));
        let roots = insts.filter_map(|inst| {
            let fate = walk.fates[inst];
            let value = *func.dfg.inst_results(inst).first()?;
            (fate.extra >= DEAR).then_some((value, fate.above?))
        });
        Self {
            roots: roots.collect(),
            extra: walk.extra,
        }
    }
}

impl Walk<'_> {
    fn go(&mut self, limit: usize) {
        let mut steps: Vec<TreeStep> = self
            .func
            .layout
            .entry_block()
            .map(TreeStep::Enter)
            .into_iter()
            .collect();
        while let Some(step) = steps.pop() {
            match step {
                TreeStep::Leave(insts) => insts.into_iter().for_each(|i| self.at_hand[i] = false),
                TreeStep::Enter(block) => {
                    let made = self.enter(block);
                    if self.extra > limit {
                        return;
                    }
                    steps.push(TreeStep::Leave(made));
                    for child in self.domtree.children(block) {
                        self.depth[child] = self.depth[block] + 1;
                        steps.push(TreeStep::Enter(child));
                    }
                }
            }
        }
    }

    /// Computes what a block uses, and says what that was.
    fn enter(&mut self, block: Block) -> Vec<Inst> {
        let mut made = Vec::new();
        for inst in self.func.layout.block_insts(block) {
            if floats(self.func, inst) {
                continue;
            }
            // Instructions whose operands are needed, with the root of the copy that they are part of.
            let mut needed = vec![(inst, None)];
            while let Some((user, root)) = needed.pop() {
                for v in self.func.dfg.inst_values(user) {
                    if let Some(inst) = self.unmade(v) {
                        self.at_hand[inst] = true;
                        made.push(inst);
                        needed.push((inst, self.make(inst, block, root)));
                    }
                }
            }
        }
        made
    }

    /// The instruction of a value that is not at hand and has to be computed.
    fn unmade(&self, v: Value) -> Option<Inst> {
        let dfg = &self.func.dfg;
        match dfg.value_def(dfg.resolve_aliases(v)) {
            ValueDef::Result(inst, _) => {
                let op = dfg.insts[inst].opcode();
                (!self.at_hand[inst] && !constant(op) && floats(self.func, inst)).then_some(inst)
            }
            _ => None,
        }
    }

    /// Notes that an instruction is computed in a block, as a part of the copy of `root` or for the sake of something new. Returns
    /// the root of the copy for its operands.
    fn make(&mut self, inst: Inst, block: Block, root: Option<Inst>) -> Option<Inst> {
        let fate = &mut self.fates[inst];
        fate.copies += 1;
        let (copies, above) = (fate.copies, fate.above);
        self.fates[inst].above = Some(above.map_or(block, |above| self.common(above, block)));
        if copies == 1 {
            return None;
        }
        let root = root.unwrap_or(inst);
        self.fates[root].extra += 1;
        self.extra += 1;
        Some(root)
    }

    /// The nearest block that dominates both.
    fn common(&self, mut a: Block, mut b: Block) -> Block {
        while a != b {
            let deeper = if self.depth[a] >= self.depth[b] {
                &mut a
            } else {
                &mut b
            };
            match self.domtree.idom(*deeper) {
                Some(above) => *deeper = above,
                None => break,
            }
        }
        a
    }
}

/// Whether the optimiser puts an instruction where its result is used.
fn floats(func: &Function, inst: Inst) -> bool {
    let op = func.dfg.insts[inst].opcode();
    let stays = op.can_load()
        || op.can_store()
        || op.can_trap()
        || op.is_call()
        || op.is_branch()
        || op.is_terminator()
        || op.other_side_effects();
    !stays
}

/// Whether an instruction is made anew in each block in any case, which costs little.
fn constant(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::Iconst | Opcode::F32const | Opcode::F64const | Opcode::Vconst
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::{AbiParam, UserFuncName};

    /// Sums in a row, and as many stores of the last ones, each in a block of its own that an argument leads to.
    fn sums(count: usize, stores: usize) -> Function {
        let mut func = Function::new();
        func.name = UserFuncName::testcase("sums");
        func.signature.params.push(AbiParam::new(types::I64));
        let entry = func.dfg.make_block();
        let mut pos = FuncCursor::new(&mut func);
        pos.insert_block(entry);
        let to = pos.func.dfg.append_block_param(entry, types::I64);
        let mut made = vec![to, to];
        for n in 0..count {
            let sum = pos.ins().iadd(made[n], made[n + 1]);
            made.push(sum);
        }
        for &value in made.iter().rev().take(stores) {
            let [store, next] = [0; 2].map(|_| pos.func.dfg.make_block());
            pos.ins().brif(to, store, &[], next, &[]);
            pos.insert_block(store);
            pos.ins().store(DATA, value, to, 0);
            pos.ins().jump(next, &[]);
            pos.insert_block(next);
        }
        pos.ins().return_(&[]);
        func
    }

    #[test]
    fn copies_are_counted() {
        let func = sums(100, 5);
        let copies = Copies::count(&func, usize::MAX);
        // The first store computes all 100, the others 99, 98, 97 and 96 of them again.
        assert_eq!(copies.extra, 99 + 98 + 97 + 96);
        let stored: Vec<_> = copies.roots.iter().map(|&(_, block)| block).collect();
        let entry = func.layout.entry_block().unwrap();
        assert_eq!(stored, [entry; 4]);
    }

    #[test]
    fn what_would_be_copied_is_computed_once() {
        let mut func = sums(1_000, 10);
        let insts = func.dfg.num_insts();
        assert_eq!(Copies::count(&func, usize::MAX).extra, 9 * 999 - 36);
        assert!(compute_once(&mut func));
        assert_eq!(Copies::count(&func, usize::MAX).extra, 0);
        // Nine values are stored.
        assert_eq!(func.dfg.num_insts(), insts + 2 * 9);
    }

    #[test]
    fn few_copies_are_left_alone() {
        let mut func = sums(100, 5);
        let insts = func.dfg.num_insts();
        assert!(compute_once(&mut func));
        assert_eq!(func.dfg.num_insts(), insts);
    }
}
