//! Functions: arenas of blocks, instructions and values, with the few edits that passes need.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::op::{BinOp, BlockAccess, Input, Op, Space};
use super::remark::{Decision, Remark};
use super::shape::Shape;
use super::site::Site;
use super::types::{Lane, Ty};

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inst(pub u32);

/// A basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(pub u32);

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueDef {
    /// Result `index` of an instruction.
    Result(Inst, u16),
    /// Parameter `index` of a block.
    Param(Block, u32),
    /// Replaced by another value; uses are rewritten by [`Function::resolve_aliases`].
    Alias(Value),
}

/// An instruction with its operands and results.
#[derive(Clone, Debug, PartialEq)]
pub struct InstData {
    /// Operation.
    pub op: Op,
    /// Operands.
    pub args: Vec<Value>,
    /// Results; one for most operations.
    pub results: Vec<Value>,
    /// Line of the vISA instruction it came from, 0 for none.
    pub line: u32,
}

/// A branch target with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockCall {
    /// Target.
    pub block: Block,
    /// One value for each parameter of the target.
    pub args: Vec<Value>,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// Not set yet; rejected by the verifier.
    None,
    /// Unconditional.
    Jump(BlockCall),
    /// On a scalar `i1`.
    Branch {
        /// Condition.
        cond: Value,
        /// Taken when set.
        then: BlockCall,
        /// Taken when clear.
        other: BlockCall,
    },
    /// On a scalar `i32`: `targets[index]`, else `default`.
    Switch {
        /// Selector.
        index: Value,
        /// Targets from 0.
        targets: Vec<BlockCall>,
        /// Out of range.
        default: BlockCall,
    },
    /// The thread is finished.
    Return,
    /// The thread waits for others and resumes with [`super::Input::State`] equal to this (from 1).
    Suspend(u32),
}

impl Term {
    /// Targets in order.
    pub fn targets(&self) -> Vec<&BlockCall> {
        match self {
            Term::None | Term::Return | Term::Suspend(_) => Vec::new(),
            Term::Jump(c) => vec![c],
            Term::Branch { then, other, .. } => vec![then, other],
            Term::Switch {
                targets, default, ..
            } => targets.iter().chain([default]).collect(),
        }
    }

    /// Targets in order, to be changed.
    pub fn targets_mut(&mut self) -> Vec<&mut BlockCall> {
        match self {
            Term::None | Term::Return | Term::Suspend(_) => Vec::new(),
            Term::Jump(c) => vec![c],
            Term::Branch { then, other, .. } => vec![then, other],
            Term::Switch {
                targets, default, ..
            } => targets.iter_mut().chain([default]).collect(),
        }
    }

    /// The value the terminator tests, if any.
    pub fn condition(&self) -> Option<Value> {
        match self {
            Term::Branch { cond, .. } => Some(*cond),
            Term::Switch { index, .. } => Some(*index),
            _ => None,
        }
    }
}

/// Contents of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockData {
    /// Parameters.
    pub params: Vec<Value>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// End.
    pub term: Term,
    /// Line of the vISA instruction that the terminator came from.
    pub term_line: u32,
}

/// A value's type and origin.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueData {
    /// Type.
    pub ty: Ty,
    /// Origin.
    pub def: ValueDef,
}

/// Suspended threads that exchange values: the last states of a function are such places. In front of one a thread stores
/// what it gives at `offset` of its frame; after it, it finds what the other thread gave at `offset + bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Offset in the frame.
    pub offset: u32,
    /// Bytes of the largest value.
    pub bytes: u32,
    /// Source line of each place, in the order of their states.
    pub lines: Vec<u32>,
}

/// The program of one hardware thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Kernel name.
    pub name: String,
    /// Lanes of a thread: 8, 16 or 32 (1 for scalar kernels).
    pub simd: u16,
    /// Lanes of a row of local ids, where every thread has several whole rows.
    pub row: Option<u16>,
    /// Blocks; block 0 is the entry. Blocks not in `order` are dead.
    pub blocks: Vec<BlockData>,
    /// Layout order of live blocks.
    pub order: Vec<Block>,
    /// Instructions.
    pub insts: Vec<InstData>,
    /// Values.
    pub values: Vec<ValueData>,
    /// Memory instructions, indexed by the `site` of accesses.
    pub sites: Vec<Site>,
    /// Bytes of indirect register storage at the start of the frame ([`super::Space::Regs`]).
    pub regs_bytes: u32,
    /// Total bytes of a thread's frame: register storage, then values saved across barriers.
    pub frame_bytes: u32,
    /// Highest `Suspend` state; 0 when threads never wait, or wait at operations ([`super::Op::waits`]).
    pub states: u32,
    /// What fused threads exchange, once the pass `suspend` has run.
    pub exchange: Option<Exchange>,
    /// Shared local memory the program itself declares, in bytes.
    pub slm_bytes: u32,
    /// What is known about addresses and masks of accesses; empty until the pass `shape` has run.
    pub shapes: BTreeMap<Inst, Shape>,
    /// Loads whose masked-off lanes nothing observes: a backend may leave anything there instead of zero.
    pub inactive_undef: BTreeSet<Inst>,
    /// Operations that the pass `interleave` has put in order, which a code generator should keep.
    pub in_order: BTreeSet<Inst>,
    /// Of functions with checks of initialisation: they may find something that is not initialised in memory of the group or the thread, or in
    /// registers.
    pub suspects: bool,
    /// Of such functions: they may reach device memory by addresses that come from memory.
    pub follows_pointers: bool,
    /// Of such functions: offsets in the payload of 64-bit values that addresses are computed from. Unless all of them are addresses, it may reach any
    /// device memory, too.
    pub bases: BTreeSet<u32>,
    /// Of functions with checks of races: offsets in the payload of the pointers that all writes to device memory go through, if that is known and
    /// some reads go through others.
    pub written: Option<BTreeSet<u32>>,
    /// What passes decided, and why.
    pub remarks: Vec<Remark>,
}

impl Function {
    /// An empty function with an entry block.
    pub fn new(name: impl Into<String>, simd: u16) -> Function {
        let mut f = Function {
            name: name.into(),
            simd,
            row: None,
            blocks: Vec::new(),
            order: Vec::new(),
            insts: Vec::new(),
            values: Vec::new(),
            sites: Vec::new(),
            regs_bytes: 0,
            frame_bytes: 0,
            states: 0,
            exchange: None,
            slm_bytes: 0,
            shapes: BTreeMap::new(),
            inactive_undef: BTreeSet::new(),
            in_order: BTreeSet::new(),
            suspects: false,
            follows_pointers: false,
            bases: BTreeSet::new(),
            written: None,
            remarks: Vec::new(),
        };
        f.new_block();
        f
    }

    /// Notes a decision about an instruction.
    pub fn remark(&mut self, inst: Inst, decision: Decision) {
        let line = self.inst(inst).line;
        self.remarks.push(Remark {
            line,
            inst: Some(inst),
            decision,
        });
    }

    /// Notes a decision about the instruction that makes a value, or the start of a block.
    pub fn remark_value(&mut self, v: Value, decision: Decision) {
        let line = self.def_inst(v).map_or(0, |data| data.line);
        self.remarks.push(Remark {
            line,
            inst: None,
            decision,
        });
    }

    /// The entry block.
    pub const ENTRY: Block = Block(0);

    /// Adds a block at the end of the layout.
    pub fn new_block(&mut self) -> Block {
        let b = Block(self.blocks.len() as u32);
        self.blocks.push(BlockData {
            params: Vec::new(),
            insts: Vec::new(),
            term: Term::None,
            term_line: 0,
        });
        self.order.push(b);
        b
    }

    /// A block's contents.
    pub fn block(&self, b: Block) -> &BlockData {
        &self.blocks[b.0 as usize]
    }

    /// A block's contents, to be changed.
    pub fn block_mut(&mut self, b: Block) -> &mut BlockData {
        &mut self.blocks[b.0 as usize]
    }

    /// An instruction.
    pub fn inst(&self, i: Inst) -> &InstData {
        &self.insts[i.0 as usize]
    }

    /// An instruction, to be changed.
    pub fn inst_mut(&mut self, i: Inst) -> &mut InstData {
        &mut self.insts[i.0 as usize]
    }

    /// A value's type.
    pub fn ty(&self, v: Value) -> Ty {
        self.values[v.0 as usize].ty
    }

    /// A value's origin.
    pub fn def(&self, v: Value) -> ValueDef {
        self.values[v.0 as usize].def
    }

    /// The instruction that defines a value, if one does.
    pub fn def_inst(&self, v: Value) -> Option<&InstData> {
        match self.def(v) {
            ValueDef::Result(i, _) => Some(self.inst(i)),
            _ => None,
        }
    }

    /// Where in the payload a summand of an address stands that has its size, most likely a pointer.
    pub fn pointer_in_payload(&self, address: Value) -> Option<u32> {
        let mut seen = FxHashSet::default();
        let mut left = vec![address];
        while let Some(v) = left.pop() {
            let Some(data) = self.def_inst(v).filter(|_| seen.insert(v)) else {
                continue;
            };
            match data.op {
                Op::Input(Input::Payload(offset)) if self.ty(v).lane == Lane::I64 => {
                    return Some(offset);
                }
                Op::Splat | Op::Binary(BinOp::Add) => left.extend(data.args.iter().rev()),
                _ => {}
            }
        }
        None
    }

    /// Adds a parameter to a block. Callers fix the branches.
    pub fn add_param(&mut self, b: Block, ty: Ty) -> Value {
        let v = self.new_value(ty, ValueDef::Param(b, 0));
        self.place_param(b, v);
        v
    }

    /// Makes a value the last parameter of a block.
    pub fn place_param(&mut self, b: Block, param: Value) {
        let index = self.block(b).params.len() as u32;
        self.values[param.0 as usize].def = ValueDef::Param(b, index);
        self.block_mut(b).params.push(param);
    }

    fn new_value(&mut self, ty: Ty, def: ValueDef) -> Value {
        let v = Value(self.values.len() as u32);
        self.values.push(ValueData { ty, def });
        v
    }

    /// Sites that the lanes of an access come from, each with its lanes, a bit each. Numbers of lanes are those of the access.
    pub fn sites_of_lanes(&self, site: u32, lanes: u16) -> Vec<(u32, u32)> {
        let whole = self.sites.get(site as usize);
        let Some(whole) = whole.filter(|s| !s.parts.is_empty()) else {
            return vec![(site, u32::MAX)];
        };
        let start = |&part: &u32| {
            let first = self.sites.get(part as usize).map_or(0, |s| s.first_lane);
            u32::from(first.saturating_sub(whole.first_lane)).min(lanes.into())
        };
        let below = |end: u32| 1u32.checked_shl(end).unwrap_or(0).wrapping_sub(1);
        let ends = whole.parts.iter().skip(1).map(start).chain([lanes.into()]);
        let parts = whole.parts.iter().zip(ends);
        let parts = parts.map(|(part, end)| (*part, below(end) & !below(start(part))));
        parts.filter(|&(_, bits)| bits != 0).collect()
    }

    /// Creates an instruction without placing it.
    pub fn make(&mut self, op: Op, args: Vec<Value>, results: &[Ty], line: u32) -> Inst {
        let i = Inst(self.insts.len() as u32);
        self.insts.push(InstData {
            op,
            args,
            results: Vec::new(),
            line,
        });
        let values = results
            .iter()
            .enumerate()
            .map(|(n, &ty)| self.new_value(ty, ValueDef::Result(i, n as u16)))
            .collect();
        self.inst_mut(i).results = values;
        i
    }

    /// Appends an instruction to a block.
    pub fn push(&mut self, b: Block, op: Op, args: Vec<Value>, results: &[Ty], line: u32) -> Inst {
        let i = self.make(op, args, results, line);
        self.block_mut(b).insts.push(i);
        i
    }

    /// Appends an instruction with exactly one result and returns it.
    pub fn push1(&mut self, b: Block, op: Op, args: Vec<Value>, ty: Ty, line: u32) -> Value {
        let i = self.push(b, op, args, &[ty], line);
        self.inst(i).results[0]
    }

    /// Makes every later look-up of `from` give `to`. Call [`Function::resolve_aliases`] when done.
    pub fn replace(&mut self, from: Value, to: Value) {
        debug_assert_eq!(self.ty(from), self.ty(to), "replacement changes the type");
        let to = self.resolve(to);
        if from != to {
            self.values[from.0 as usize].def = ValueDef::Alias(to);
        }
    }

    /// Follows aliases.
    pub fn resolve(&self, mut v: Value) -> Value {
        while let ValueDef::Alias(to) = self.def(v) {
            v = to;
        }
        v
    }

    /// Rewrites every operand so that no live use refers to an alias, and takes operations without
    /// effect whose result is one out of their blocks.
    pub fn resolve_aliases(&mut self) {
        for b in 0..self.blocks.len() {
            let mut insts = std::mem::take(&mut self.blocks[b].insts);
            insts.retain(|&i| !self.is_replaced(i));
            self.blocks[b].insts = insts;
        }
        for i in 0..self.insts.len() {
            let mut args = std::mem::take(&mut self.insts[i].args);
            for a in &mut args {
                *a = self.resolve(*a);
            }
            self.insts[i].args = args;
        }
        for b in 0..self.blocks.len() {
            let mut term = std::mem::replace(&mut self.blocks[b].term, Term::None);
            if let Term::Branch { cond: v, .. } | Term::Switch { index: v, .. } = &mut term {
                *v = self.resolve(*v);
            }
            for call in term.targets_mut() {
                for a in &mut call.args {
                    *a = self.resolve(*a);
                }
            }
            self.blocks[b].term = term;
        }
    }

    /// True for an operation without effect whose result is an alias of another value.
    pub fn is_replaced(&self, i: Inst) -> bool {
        let data = self.inst(i);
        let alias = |&v: &Value| matches!(self.def(v), ValueDef::Alias(_));
        !data.op.has_effect() && data.results.first().is_some_and(alias)
    }

    /// First byte of a block access to registers that is surely carried out and lies inside of them.
    pub fn fixed_registers(&self, access: BlockAccess, args: &[Value]) -> Option<u32> {
        let constant = |n: usize| match self.def_inst(*args.get(n)?)?.op {
            Op::Const(bits) => Some(bits & self.ty(args[n]).lane.mask()),
            _ => None,
        };
        let bytes = u64::from(access.elem.bytes()) * u64::from(access.n);
        if access.space.data() != Space::Regs || constant(0)? != 1 {
            return None;
        }
        let at = constant(1)?;
        let end = at.checked_add(bytes)?;
        // Marks lie behind the registers.
        let first = if access.space.is_marks() {
            self.regs_bytes
        } else {
            0
        };
        (end <= u64::from(self.regs_bytes)).then_some(first + at as u32)
    }

    /// Predecessor blocks of each block, in layout order, one entry an edge.
    pub fn predecessors(&self) -> Vec<Vec<Block>> {
        let mut preds = vec![Vec::new(); self.blocks.len()];
        for &b in &self.order {
            for call in self.block(b).term.targets() {
                preds[call.block.0 as usize].push(b);
            }
        }
        preds
    }
}
