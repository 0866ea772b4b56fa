//! The order of instructions in a block.
//!
//! Cranelift's optimiser places operations without effects by demand: in front of a store comes everything that leads to the
//! first piece of a vector, then everything that leads to the second. That needs few registers, but leaves one long dependence chain
//! behind the other. In the order of the IR, each operation is done on all pieces. That has eight chains side by side, and spills.
//! Here a block is put in order again, as [`Graph`] says.

use rustc_hash::FxHashSet;

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Type, Value, types};

use crate::schedule::{Class, Effect, Graph, Node};

/// Blocks with fewer operations on vectors are left alone: all of such a block is in a processor's scheduler at once.
const LEAST: usize = 40;
/// Half cycles from which on an operation counts as slow.
const SLOW: u32 = 8;
/// Blocks where fewer than one in `SHARE` operations is slow are left alone: the processor overlaps fast ones without help, and longer lives
/// only cause spills.
const SHARE: usize = 8;

/// Which blocks to put in order.
pub(super) struct Schedule {
    /// Registers for vectors.
    registers: u32,
    /// Whether only blocks that gain from it are put in order.
    only_if_it_pays: bool,
    /// Blocks that are left alone.
    but: FxHashSet<Block>,
}

impl Schedule {
    /// All blocks.
    pub(super) fn all(registers: u32) -> Schedule {
        Schedule {
            registers,
            only_if_it_pays: false,
            but: FxHashSet::default(),
        }
    }

    /// Blocks of many operations with enough slow ones among them, but for some.
    pub(super) fn large(registers: u32, but: FxHashSet<Block>) -> Schedule {
        Schedule {
            registers,
            only_if_it_pays: true,
            but,
        }
    }

    /// Puts them in order.
    pub(super) fn run(&self, func: &mut Function) {
        let mut number = SecondaryMap::with_default(u32::MAX);
        let blocks: Vec<Block> = func.layout.blocks().collect();
        for block in blocks.into_iter().filter(|b| !self.but.contains(b)) {
            let insts: Vec<Inst> = func.layout.block_insts(block).collect();
            let Some((&last, body)) = insts.split_last() else {
                continue;
            };
            if self.only_if_it_pays && !pays(func, body) {
                continue;
            }
            let order = order(func, body, last, &mut number, self.registers);
            for &n in &order {
                func.layout.remove_inst(body[n as usize]);
                func.layout.insert_inst(body[n as usize], last);
            }
        }
    }
}

/// Whether a block has many operations on vectors, and enough slow ones among them.
fn pays(func: &Function, body: &[Inst]) -> bool {
    let vectors = body.iter().filter(|&&i| class(func, i) == Class::Vector);
    let (mut all, mut slow) = (0, 0);
    for &i in vectors {
        let op = func.dfg.insts[i].opcode();
        let ty = func.dfg.value_type(func.dfg.inst_results(i)[0]);
        all += 1;
        slow += usize::from(!op.can_load() && latency(op, ty) >= SLOW);
    }
    all >= LEAST && slow * SHARE >= all
}

fn class(func: &Function, inst: Inst) -> Class {
    let &[result] = func.dfg.inst_results(inst) else {
        return Class::None;
    };
    if is_constant(func, inst) {
        return Class::None;
    }
    let ty = func.dfg.value_type(result);
    match ty.is_vector() || ty.is_float() {
        true => Class::Vector,
        false => Class::Scalar,
    }
}

fn is_constant(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    use Opcode::{F32const, F64const, Iconst, StackAddr, Vconst};
    matches!(
        data.opcode(),
        Iconst | F32const | F64const | Vconst | StackAddr
    )
}

fn effect(func: &Function, inst: Inst) -> Effect {
    let data = &func.dfg.insts[inst];
    let op = data.opcode();
    let none = !(op.can_load()
        || op.can_store()
        || op.can_trap()
        || op.is_call()
        || op.is_branch()
        || op.other_side_effects());
    match data {
        _ if none => Effect::None,
        InstructionData::Load { flags, .. } => {
            let flags = func.dfg.mem_flags[*flags];
            match (flags.notrap(), flags.readonly()) {
                (true, true) => Effect::None,
                (true, false) => Effect::Load,
                _ => Effect::Other,
            }
        }
        _ => Effect::Other,
    }
}

/// Half cycles from an instruction to the first that can use its result, as on today's processors. One for what takes a cycle: a
/// processor does without help there.
fn latency(op: Opcode, ty: Type) -> u32 {
    let vector = ty.is_vector() || ty.is_float();
    match op {
        _ if op.can_load() => 10,
        Opcode::Fdiv | Opcode::Sqrt => 24,
        Opcode::Imul if vector => 20,
        Opcode::Ceil | Opcode::Floor | Opcode::Trunc | Opcode::Nearest => 16,
        Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fma => 8,
        Opcode::Fmin | Opcode::Fmax | Opcode::Fcmp | Opcode::Imul => 8,
        Opcode::FcvtFromSint | Opcode::FcvtToSintSat | Opcode::FcvtToUintSat => 8,
        Opcode::Splat | Opcode::Extractlane | Opcode::Insertlane | Opcode::VhighBits => 6,
        Opcode::Bitselect | Opcode::Select if vector => 4,
        Opcode::Bitcast => 0,
        _ => 1,
    }
}

/// The order of the instructions of a block but the last.
fn order(
    func: &Function,
    body: &[Inst],
    last: Inst,
    number: &mut SecondaryMap<Value, u32>,
    registers: u32,
) -> Vec<u32> {
    let mut graph = Graph::default();
    for (n, &inst) in (0u32..).zip(body) {
        let operands = made_here(func, number, body, inst);
        let results = func.dfg.inst_results(inst);
        for &v in results {
            number[v] = n;
        }
        let ty = results
            .first()
            .map_or(types::INVALID, |&v| func.dfg.value_type(v));
        graph.push(Node {
            operands,
            effect: effect(func, inst),
            constant: is_constant(func, inst),
            class: class(func, inst),
            latency: latency(func.dfg.insts[inst].opcode(), ty),
            size: 1,
        });
    }
    graph.order(made_here(func, number, body, last), registers)
}

/// The instructions of `body` that make the operands of an instruction.
fn made_here(
    func: &Function,
    number: &SecondaryMap<Value, u32>,
    body: &[Inst],
    inst: Inst,
) -> Vec<u32> {
    let made = func.dfg.inst_values(inst).filter_map(|v| {
        let v = func.dfg.resolve_aliases(v);
        let n = number[v];
        let def = func.dfg.value_def(v).inst()?;
        (body.get(n as usize) == Some(&def)).then_some(n)
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rustc_hash::FxHashMap;

    use super::*;
    use cranelift_codegen::cursor::{Cursor, FuncCursor};
    use cranelift_codegen::ir::{InstBuilder, MemFlagsData};

    const FLAGS: MemFlagsData = MemFlagsData::new().with_notrap();

    /// A function of one block: sums of vectors of constant memory with themselves, one after the other, each of which is stored.
    fn chains(number: i32, long: usize) -> Function {
        let mut func = Function::new();
        let block = func.dfg.make_block();
        let base = func.dfg.append_block_param(block, types::I64);
        let mut pos = FuncCursor::new(&mut func);
        pos.insert_block(block);
        let flags = FLAGS.with_readonly();
        let loads = (0..number).map(|n| pos.ins().load(types::F32X4, flags, base, 16 * n));
        let loads: Vec<Value> = loads.collect();
        let sums = loads.into_iter().map(|mut v| {
            for _ in 0..long {
                v = pos.ins().fadd(v, v);
            }
            v
        });
        let sums: Vec<Value> = sums.collect();
        for (v, n) in sums.into_iter().zip(0..) {
            pos.ins().store(FLAGS, v, base, 16 * n);
        }
        pos.ins().return_(&[]);
        func
    }

    fn insts(func: &Function) -> Vec<Inst> {
        let block = func.layout.entry_block().unwrap();
        func.layout.block_insts(block).collect()
    }

    /// Instructions that use the result of the one in front of them.
    fn waits(func: &Function) -> usize {
        let insts = insts(func);
        let uses = |pair: &&[Inst]| {
            let made = func.dfg.inst_results(pair[0]).first();
            made.is_some_and(|&v| func.dfg.inst_values(pair[1]).any(|u| u == v))
        };
        insts.windows(2).filter(uses).count()
    }

    /// The most vectors that are live at a time.
    fn most_live(func: &Function) -> usize {
        let insts = insts(func);
        let mut last: FxHashMap<Value, usize> = FxHashMap::default();
        for (at, &inst) in insts.iter().enumerate() {
            last.extend(func.dfg.inst_values(inst).map(|v| (v, at)));
        }
        let mut live = BTreeSet::new();
        let mut most = 0;
        for (at, &inst) in insts.iter().enumerate() {
            live.retain(|v| last[v] > at);
            let vectors = func.dfg.inst_results(inst).iter().copied();
            live.extend(vectors.filter(|v| func.dfg.value_type(*v).is_vector()));
            most = most.max(live.len());
        }
        most
    }

    #[test]
    fn chains_run_side_by_side() {
        let mut func = chains(8, 20);
        Schedule::all(16).run(&mut func);
        assert_eq!(insts(&func).len(), 8 * 22 + 1);
        assert!(waits(&func) <= 8, "{}", func.display());
        assert_eq!(most_live(&func), 8);
    }

    #[test]
    fn no_more_chains_than_registers() {
        let mut func = chains(50, 20);
        assert_eq!(most_live(&func), 50);
        Schedule::all(16).run(&mut func);
        assert!((8..=16).contains(&most_live(&func)), "{}", func.display());
        assert!(waits(&func) <= 50, "{}", func.display());
    }

    #[test]
    fn sums_take_their_terms_one_by_one() {
        let mut func = Function::new();
        let block = func.dfg.make_block();
        let base = func.dfg.append_block_param(block, types::I64);
        let mut pos = FuncCursor::new(&mut func);
        pos.insert_block(block);
        let terms = (0..60).map(|n| pos.ins().load(types::F32X4, FLAGS, base, 16 * n));
        let terms: Vec<Value> = terms.collect();
        let mut sum = terms[0];
        for &term in &terms[1..] {
            sum = pos.ins().fma(term, term, sum);
        }
        pos.ins().store(FLAGS, sum, base, 0);
        pos.ins().return_(&[]);
        assert_eq!(most_live(&func), 60);
        Schedule::all(16).run(&mut func);
        assert!(most_live(&func) <= 16, "{}", func.display());
    }

    #[test]
    fn loads_stay_between_the_same_stores() {
        let mut func = Function::new();
        let block = func.dfg.make_block();
        let base = func.dfg.append_block_param(block, types::I64);
        let mut pos = FuncCursor::new(&mut func);
        pos.insert_block(block);
        let early = pos.ins().load(types::F32X4, FLAGS, base, 0);
        let unused = pos.ins().load(types::F32X4, FLAGS, base, 16);
        let zero = pos.ins().f32const(0.0);
        let zero = pos.ins().splat(types::F32X4, zero);
        let first = pos.ins().store(FLAGS, zero, base, 0);
        let late = pos.ins().load(types::F32X4, FLAGS, base, 0);
        let second = pos.ins().store(FLAGS, zero, base, 0);
        let sum = pos.ins().fadd(late, early);
        let third = pos.ins().store(FLAGS, sum, base, 32);
        pos.ins().return_(&[]);
        let loads = [early, unused, late].map(|v| func.dfg.value_def(v).unwrap_inst());
        Schedule::all(16).run(&mut func);
        let insts = insts(&func);
        let at = |inst| insts.iter().position(|&i| i == inst).unwrap();
        let [early, unused, late] = loads.map(at);
        let [first, second, third] = [first, second, third].map(at);
        assert!(early < first && unused < first, "{}", func.display());
        assert!(first < late && late < second && second < third);
    }

    #[test]
    fn small_blocks_stay() {
        let mut func = chains(2, LEAST / 2 - 2);
        let before = insts(&func);
        Schedule::large(16, FxHashSet::default()).run(&mut func);
        assert_eq!(insts(&func), before);
        let mut func = chains(2, LEAST / 2 - 1);
        let before = insts(&func);
        let block = func.layout.entry_block().unwrap();
        Schedule::large(16, FxHashSet::from_iter([block])).run(&mut func);
        assert_eq!(insts(&func), before);
        Schedule::large(16, FxHashSet::default()).run(&mut func);
        assert_ne!(insts(&func), before);
    }
}
