//! The order of instructions in a block: list scheduling under a limit of registers.
//!
//! Cranelift's optimiser places operations without effects by demand: in front of a store comes everything that leads to the
//! first piece of a vector, then everything that leads to the second. That needs few registers. But a dependence chain of twenty
//! operations takes eighty cycles, and a processor's scheduler holds only two or three such chains that follow each other. In the
//! order of the IR, each operation is done on all pieces. That has eight chains side by side, and spills.
//!
//! Here a block is put in order again, in two steps. The first is by demand ([`demand`]): the operand with the longest chain
//! comes first, so that sums are computed term by term, and loads come where they are used. The second issues instructions as a
//! processor with unlimited look-ahead would ([`Issue`]). It takes the first instruction, in the order of the first step, that
//! does not wait for an operand, unless more values would be live than there are registers. So the beginning of the next chain
//! fills the gaps of the one before, as long as registers last.
//!
//! Guarantees: an instruction stays in its block, behind what it depends on. Instructions with effects keep their order, and
//! loads stay between the same stores.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Type, Value, types};

/// Blocks with fewer operations on vectors are left alone: all of such a block is in a processor's scheduler at once.
const LEAST: usize = 40;
/// Half cycles from which on an operation counts as slow.
const SLOW: u32 = 8;
/// Blocks where fewer than one in `SHARE` operations is slow are left alone: the processor overlaps fast ones without help, and longer lives
/// only cause spills.
const SHARE: usize = 8;
/// A value whose last use is at least `FAR` instructions away, in the order of demand, is assumed to be spilled.
const FAR: u32 = 64;
/// Instructions without unmet dependences that are looked at, in the order of demand.
const WINDOW: usize = 24;

/// Which blocks to put in order.
pub(super) struct Schedule {
    /// Registers for vectors.
    registers: usize,
    /// Whether only blocks that gain from it are put in order.
    only_if_it_pays: bool,
    /// Blocks that are left alone.
    but: FxHashSet<Block>,
}

impl Schedule {
    /// All blocks.
    pub(super) fn all(registers: usize) -> Schedule {
        Schedule {
            registers,
            only_if_it_pays: false,
            but: FxHashSet::default(),
        }
    }

    /// Blocks of many operations with enough slow ones among them, but for some.
    pub(super) fn large(registers: usize, but: FxHashSet<Block>) -> Schedule {
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
            let graph = Graph::new(func, body, last, &mut number);
            let order = graph.demand();
            let order = Issue::new(&graph, &order, self.registers).run(&order);
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

/// What an instruction's result is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Nothing that counts: no result, several, or a constant, which is made in front of its use.
    None,
    Vector,
    Scalar,
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

/// How an instruction is ordered with others by what it does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    /// Reads memory, and cannot trap.
    Load,
    /// Anything else: stays behind all loads and effects before it, and in front of all after it.
    Other,
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

/// The instructions of a block but the last, and what each depends on.
struct Graph {
    /// Operands, and what has to come before for the sake of memory.
    before: Vec<Vec<u32>>,
    /// Of these, how many are operands, which come first.
    operands: Vec<usize>,
    /// Operands that are constants of the block.
    constant: Vec<bool>,
    class: Vec<Class>,
    latency: Vec<u32>,
    /// Where to start from: effects in order, then what the end of the block or other blocks use.
    roots: Vec<u32>,
}

impl Graph {
    fn new(
        func: &Function,
        body: &[Inst],
        last: Inst,
        number: &mut SecondaryMap<Value, u32>,
    ) -> Graph {
        let mut graph = Graph {
            before: Vec::with_capacity(body.len()),
            operands: Vec::with_capacity(body.len()),
            constant: body.iter().map(|&i| is_constant(func, i)).collect(),
            class: body.iter().map(|&i| class(func, i)).collect(),
            latency: Vec::with_capacity(body.len()),
            roots: Vec::new(),
        };
        let (mut barrier, mut loads) = (None, Vec::new());
        for (n, &inst) in (0u32..).zip(body) {
            let mut before = graph.made_here(func, number, body, inst);
            graph.operands.push(before.len());
            match effect(func, inst) {
                Effect::None => {}
                Effect::Load => {
                    before.extend(barrier);
                    loads.push(n);
                }
                Effect::Other => {
                    before.extend(barrier);
                    before.append(&mut loads);
                    barrier = Some(n);
                    graph.roots.push(n);
                }
            }
            graph.before.push(before);
            let results = func.dfg.inst_results(inst);
            for &v in results {
                number[v] = n;
            }
            let ty = results
                .first()
                .map_or(types::INVALID, |&v| func.dfg.value_type(v));
            graph
                .latency
                .push(latency(func.dfg.insts[inst].opcode(), ty));
        }
        let ends = graph.made_here(func, number, body, last);
        graph.roots.extend(ends);
        // What only other blocks use.
        graph.roots.extend(0..body.len() as u32);
        graph
    }

    /// The instructions of `body` that make the operands of an instruction.
    fn made_here(
        &self,
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

    /// The instructions from roots down to their operands, that with the longest chain first.
    fn demand(&self) -> Vec<u32> {
        let mut height = vec![0u32; self.before.len()];
        for n in 0..height.len() {
            let longest = self.before[n].iter().map(|&b| height[b as usize]).max();
            height[n] = longest.unwrap_or(0) + self.latency[n];
        }
        let mut order = Vec::with_capacity(height.len());
        let mut seen = vec![false; height.len()];
        let mut stack: Vec<(u32, Vec<u32>)> = Vec::new();
        // Operands are taken from the end.
        let by_height = |n: u32| {
            let mut before: Vec<u32> = self.before[n as usize].iter().rev().copied().collect();
            before.sort_by_key(|&b| height[b as usize]);
            before
        };
        for &root in &self.roots {
            if std::mem::replace(&mut seen[root as usize], true) {
                continue;
            }
            stack.push((root, by_height(root)));
            while let Some((n, operands)) = stack.last_mut() {
                match operands.pop() {
                    Some(b) if std::mem::replace(&mut seen[b as usize], true) => {}
                    Some(b) => {
                        let below = by_height(b);
                        stack.push((b, below));
                    }
                    None => {
                        order.push(*n);
                        stack.pop();
                    }
                }
            }
        }
        order
    }
}

/// Instructions on their way out.
struct Issue<'g> {
    graph: &'g Graph,
    /// Place of each in the order of demand.
    place: Vec<u32>,
    /// Which depend on it, once for each time.
    after: Vec<Vec<u32>>,
    /// Dependences that are not issued yet.
    unmet: Vec<u32>,
    /// Operands that are not issued yet, of its users.
    uses: Vec<u32>,
    /// Whether it takes a register while it has uses.
    counted: Vec<bool>,
    /// Half cycle from which on all operands are there.
    start: Vec<u32>,
    issued: Vec<bool>,
    /// Places of those without unmet dependences.
    ready: BTreeSet<u32>,
    live: [usize; 2],
    limit: [usize; 2],
    now: u32,
}

/// Registers for scalars that may be used for those of a block.
const SCALARS: usize = 9;

impl<'g> Issue<'g> {
    fn new(graph: &'g Graph, order: &[u32], vectors: usize) -> Issue<'g> {
        let len = order.len();
        let mut place = vec![0; len];
        for (p, &n) in (0u32..).zip(order) {
            place[n as usize] = p;
        }
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); len];
        let (mut uses, mut farthest) = (vec![0u32; len], vec![0u32; len]);
        let mut unmet = vec![0u32; len];
        for n in 0..len {
            for (k, &b) in graph.before[n].iter().enumerate() {
                let b = b as usize;
                if graph.constant[b] {
                    continue;
                }
                unmet[n] += 1;
                after[b].push(n as u32);
                if k < graph.operands[n] {
                    uses[b] += 1;
                    farthest[b] = farthest[b].max(place[n]);
                }
            }
        }
        let counted = (0..len)
            .map(|n| graph.class[n] != Class::None && farthest[n].saturating_sub(place[n]) < FAR);
        let counted = counted.collect();
        let ready = (0..len).filter(|&n| unmet[n] == 0 && !graph.constant[n]);
        let ready = ready.map(|n| place[n]).collect();
        Issue {
            graph,
            place,
            after,
            unmet,
            uses,
            counted,
            start: vec![0; len],
            issued: vec![false; len],
            ready,
            live: [0; 2],
            limit: [vectors, SCALARS],
            now: 0,
        }
    }

    fn run(mut self, order: &[u32]) -> Vec<u32> {
        let mut out = Vec::with_capacity(order.len());
        while let Some(n) = self.choose(order) {
            self.issue(n, &mut out);
        }
        // Constants that nothing here uses.
        out.extend(order.iter().filter(|&&n| !self.issued[n as usize]));
        out
    }

    /// The next instruction.
    fn choose(&self, order: &[u32]) -> Option<u32> {
        let mut soonest: Option<u32> = None;
        for &p in self.ready.iter().take(WINDOW) {
            let n = order[p as usize];
            if !self.fits(n) {
                continue;
            }
            let start = self.start[n as usize];
            if start <= self.now {
                return Some(n);
            }
            if soonest.is_none_or(|s| start < self.start[s as usize]) {
                soonest = Some(n);
            }
        }
        soonest.or_else(|| self.ready.first().map(|&p| order[p as usize]))
    }

    /// Whether registers are left for it, or it frees as many as it takes.
    fn fits(&self, n: u32) -> bool {
        let change = self.change(n);
        (0..2).all(|c| change[c] <= 0 || self.live[c] as i32 + change[c] <= self.limit[c] as i32)
    }

    /// How many more values are live after an instruction than in front of it, by class.
    fn change(&self, n: u32) -> [i32; 2] {
        let mut change = [0; 2];
        let operands = self.operands(n);
        for (k, &b) in operands.iter().enumerate() {
            let times = operands.iter().filter(|&&o| o == b).count() as u32;
            let first = !operands[..k].contains(&b);
            if first && self.counted[b as usize] && self.uses[b as usize] == times {
                change[self.index(b)] -= 1;
            }
        }
        if self.counted[n as usize] && self.uses[n as usize] > 0 {
            change[self.index(n)] += 1;
        }
        change
    }

    fn operands(&self, n: u32) -> &'g [u32] {
        let n = n as usize;
        &self.graph.before[n][..self.graph.operands[n]]
    }

    fn index(&self, n: u32) -> usize {
        usize::from(self.graph.class[n as usize] == Class::Scalar)
    }

    fn issue(&mut self, n: u32, out: &mut Vec<u32>) {
        let change = self.change(n);
        for (live, by) in self.live.iter_mut().zip(change) {
            *live = live.saturating_add_signed(by as isize);
        }
        for &b in self.operands(n) {
            let b = b as usize;
            if !self.graph.constant[b] {
                self.uses[b] -= 1;
            } else if !std::mem::replace(&mut self.issued[b], true) {
                out.push(b as u32);
            }
        }
        out.push(n);
        let n = n as usize;
        self.issued[n] = true;
        self.ready.remove(&self.place[n]);
        let at = self.now.max(self.start[n]);
        self.now = at + 1;
        for &a in &self.after[n] {
            let a = a as usize;
            self.start[a] = self.start[a].max(at + self.graph.latency[n]);
            self.unmet[a] -= 1;
            if self.unmet[a] == 0 {
                self.ready.insert(self.place[a]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
