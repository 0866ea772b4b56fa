//! Variables (register cells, predicates, masks …) in SSA form, in the manner of Braun et al., "Simple and Efficient
//! Construction of Static Single Assignment Form" (2013): a read in a block without a definition asks the predecessors, and
//! becomes a block parameter where they differ. Blocks are *sealed* once all their predecessors are known.
//!
//! Where the predecessors agree, no parameter is made, except for a moment where a read comes back to a block that it
//! started from. A long kernel has thousands of joins with hundreds of variables that live across all of them, and few of
//! these change between two joins.

use rustc_hash::{FxHashMap, FxHashSet};

use super::build::Builder;
use crate::ssa::{Block, Function, Input, Op, Ty, Value, ValueDef};

/// A mutable quantity that SSA construction tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Var(pub u32);

/// What is known of the variables so far.
#[derive(Default)]
pub(super) struct Variables {
    types: Vec<Ty>,
    /// Variables that are registers of the kernel, which read as [`Input::Unset`] until they are written.
    unset: FxHashSet<Var>,
    /// Values of each variable at the ends of blocks.
    defs: Vec<Defs>,
    /// Zeros of variables that are read before they are written.
    initial: FxHashMap<Var, Value>,
    blocks: Vec<BlockVariables>,
    /// Parameters that were made. Those whose incoming values agreed are aliases.
    params: Vec<(Var, Block, Value)>,
}

/// Blocks in a row whose values lie together.
const PAGE: usize = 16;

/// Values of a variable at the ends of blocks. A read follows it through many blocks, most of which were made one after the other:
/// pages of them keep it from waiting for memory at each.
#[derive(Default)]
struct Defs(FxHashMap<u32, [Option<DefValue>; PAGE]>);

/// The number of a value, plus one.
type DefValue = std::num::NonZeroU32;

impl Defs {
    fn get(&self, block: Block) -> Option<Value> {
        let page = self.0.get(&(block.0 / PAGE as u32))?;
        let number = page[block.0 as usize % PAGE]?;
        Some(Value(number.get() - 1))
    }

    fn set(&mut self, block: Block, value: Value) {
        let page = self.0.entry(block.0 / PAGE as u32).or_default();
        page[block.0 as usize % PAGE] = DefValue::MIN.checked_add(value.0);
    }
}

/// What is known of the variables in a block.
#[derive(Default)]
struct BlockVariables {
    /// Blocks that branch here, once each when the block is sealed.
    preds: Vec<Block>,
    sealed: bool,
    /// Parameters whose incoming values are looked for when the block is sealed.
    incomplete: Vec<(Var, Value)>,
    /// Place of the block in the joins of the read that is under way, counted from one.
    visited: usize,
}

/// What a block or a chain of blocks with one predecessor each says of a variable.
enum Step {
    Known(Value),
    /// The predecessors of this block say.
    Join(Join),
}

/// A block of several predecessors, whose value of the variable is being looked for.
struct Join {
    block: Block,
    /// Blocks below, which have the same value.
    below: Vec<Block>,
    /// Predecessors that have been asked.
    asked: usize,
    incoming: Incoming,
    /// The parameter, if the read came back here.
    param: Option<Value>,
}

/// What the predecessors of a block said so far.
#[derive(Clone, Copy)]
enum Incoming {
    Nothing,
    One(Value),
    Different,
}

impl Incoming {
    /// Adds the value from one more predecessor to a block that has this parameter.
    fn add(&mut self, f: &Function, value: Value, param: Option<Value>) {
        let value = f.resolve(value);
        *self = match *self {
            other if Some(value) == param => other,
            Incoming::Nothing => Incoming::One(value),
            Incoming::One(first) if f.resolve(first) == value => Incoming::One(value),
            _ => Incoming::Different,
        };
    }
}

impl Variables {
    /// Parameters that were made.
    pub(super) fn params(&self) -> usize {
        self.params.len()
    }

    /// Makes room for a block.
    pub(super) fn track(&mut self, b: Block) {
        let n = b.0 as usize + 1;
        if self.blocks.len() < n {
            self.blocks.resize_with(n, BlockVariables::default);
        }
    }

    /// Adds an edge to an unsealed block.
    pub(super) fn edge(&mut self, from: Block, to: Block) {
        let to = self.block_mut(to);
        debug_assert!(!to.sealed, "edge into a sealed block");
        to.preds.push(from);
    }

    fn block_mut(&mut self, b: Block) -> &mut BlockVariables {
        &mut self.blocks[b.0 as usize]
    }

    fn define(&mut self, var: Var, value: Value, blocks: &[Block]) {
        let defs = &mut self.defs[var.0 as usize];
        for &block in blocks {
            defs.set(block, value);
        }
    }
}

impl Builder {
    /// Declares a variable that reads as zero until it is written.
    pub(crate) fn var(&mut self, ty: Ty) -> Var {
        self.variables.types.push(ty);
        self.variables.defs.push(Defs::default());
        Var(self.variables.types.len() as u32 - 1)
    }

    /// Declares a variable of which it is known where it was not written, if that is asked for.
    pub(crate) fn register(&mut self, ty: Ty) -> Var {
        let var = self.var(ty);
        if self.check_init {
            self.variables.unset.insert(var);
        }
        var
    }

    /// Type of a variable.
    pub(crate) fn var_ty(&self, v: Var) -> Ty {
        self.variables.types[v.0 as usize]
    }

    /// Sets a variable from here on.
    pub(crate) fn write(&mut self, var: Var, value: Value) {
        debug_assert_eq!(
            self.f.ty(value),
            self.var_ty(var),
            "variable written with another type"
        );
        self.variables.define(var, value, &[self.cur]);
    }

    /// Current value of a variable.
    pub(crate) fn read(&mut self, var: Var) -> Value {
        self.value_at_end(var, self.cur)
    }

    /// Value of a variable at the end of any block. The joins that it depends on are a list of their own, since chains of
    /// joins are as long as kernels are.
    pub(crate) fn value_at_end(&mut self, var: Var, block: Block) -> Value {
        let mut joins: Vec<Join> = Vec::new();
        let mut step = self.step(var, block, &mut joins);
        loop {
            match (step, joins.last_mut()) {
                (Step::Known(value), None) => return self.f.resolve(value),
                (Step::Known(value), Some(join)) => {
                    join.incoming.add(&self.f, value, join.param);
                }
                (Step::Join(join), _) => {
                    self.variables.block_mut(join.block).visited = joins.len() + 1;
                    joins.push(join);
                }
            }
            step = self.ask_next(var, &mut joins);
        }
    }

    /// Asks the next predecessor of the last join; takes the join off the list when all have been asked.
    fn ask_next(&mut self, var: Var, joins: &mut Vec<Join>) -> Step {
        if let Some(join) = joins.last_mut()
            && let Some(&pred) = self.variables.block_mut(join.block).preds.get(join.asked)
        {
            join.asked += 1;
            return self.step(var, pred, joins);
        }
        let Some(join) = joins.pop() else {
            return Step::Known(self.initial_value(var));
        };
        self.variables.block_mut(join.block).visited = 0;
        let value = self.agree(var, join.block, join.incoming, join.param);
        self.variables.define(var, value, &[join.block]);
        self.variables.define(var, value, &join.below);
        Step::Known(value)
    }

    /// The value of a block whose predecessors have been asked.
    fn agree(&mut self, var: Var, block: Block, incoming: Incoming, param: Option<Value>) -> Value {
        let value = match incoming {
            Incoming::Different => return param.unwrap_or_else(|| self.add_param(block, var)),
            Incoming::One(value) => value,
            // The block is reached only from itself.
            Incoming::Nothing => self.initial_value(var),
        };
        if let Some(param) = param {
            self.f.replace(param, value);
        }
        value
    }

    /// Follows blocks of one predecessor up to one that knows the variable, or to a join.
    fn step(&mut self, var: Var, block: Block, joins: &mut [Join]) -> Step {
        let mut below = Vec::new();
        let mut at = block;
        let value = loop {
            if let Some(v) = self.variables.defs[var.0 as usize].get(at) {
                break v;
            }
            if let Some(v) = self.restored(var, at) {
                break v;
            }
            let full = self.is_full();
            self.too_large |= full;
            if full {
                // The result is thrown away: any value of the type will do.
                break self.initial_value(var);
            }
            let blocks = self.variables.blocks.len();
            let here = self.variables.block_mut(at);
            if !here.sealed {
                let p = self.add_param(at, var);
                self.variables.block_mut(at).incomplete.push((var, p));
                break p;
            }
            let visited = here.visited.checked_sub(1);
            if let Some(join) = visited.and_then(|n| joins.get_mut(n)) {
                let param = self.add_param(at, var);
                join.param = Some(param);
                break param;
            }
            match here.preds.as_slice() {
                // Unreachable code may go round in circles without any definition.
                &[one] if below.len() <= blocks => {
                    below.push(at);
                    at = one;
                }
                [] | [_] => break self.initial_value(var),
                _ => {
                    return Step::Join(Join {
                        block: at,
                        below,
                        asked: 0,
                        incoming: Incoming::Nothing,
                        param: None,
                    });
                }
            }
        };
        self.variables.define(var, value, &[at]);
        self.variables.define(var, value, &below);
        Step::Known(value)
    }

    fn add_param(&mut self, block: Block, var: Var) -> Value {
        let param = self.f.add_param(block, self.var_ty(var));
        self.variables.params.push((var, block, param));
        param
    }

    fn initial_value(&mut self, var: Var) -> Value {
        if let Some(&v) = self.variables.initial.get(&var) {
            return v;
        }
        let ty = self.var_ty(var);
        let op = if self.variables.unset.contains(&var) {
            Op::Input(Input::Unset)
        } else if ty.is_scalar() {
            Op::Const(0)
        } else {
            Op::VecConst(vec![0; ty.lanes as usize].into())
        };
        let i = self.f.make(op, vec![], &[ty], 0);
        // The entry dominates everything, so one zero serves all uses.
        self.f.block_mut(Function::ENTRY).insts.insert(0, i);
        let v = self.f.inst(i).results[0];
        self.variables.initial.insert(var, v);
        v
    }

    /// Declares that no further predecessor will be added.
    pub(crate) fn seal(&mut self, block: Block) {
        let here = self.variables.block_mut(block);
        if std::mem::replace(&mut here.sealed, true) {
            return;
        }
        here.preds.sort_unstable();
        here.preds.dedup();
        for (var, param) in std::mem::take(&mut here.incomplete) {
            let mut incoming = Incoming::Nothing;
            let mut asked = 0;
            while let Some(&pred) = self.variables.block_mut(block).preds.get(asked) {
                let value = self.value_at_end(var, pred);
                incoming.add(&self.f, value, Some(param));
                asked += 1;
            }
            self.agree(var, block, incoming, Some(param));
        }
    }

    /// Gives blocks the parameters that are still needed, and branches their arguments, when all blocks are sealed.
    pub(super) fn place_params(&mut self) {
        for block in &mut self.f.blocks {
            block.params.clear();
        }
        for (var, block, param) in std::mem::take(&mut self.variables.params) {
            if matches!(self.f.def(param), ValueDef::Alias(_)) {
                continue;
            }
            self.f.place_param(block, param);
            let mut asked = 0;
            while let Some(&pred) = self.variables.block_mut(block).preds.get(asked) {
                let value = self.value_at_end(var, pred);
                for call in self.f.block_mut(pred).term.targets_mut() {
                    if call.block == block {
                        call.args.push(value);
                    }
                }
                asked += 1;
            }
        }
    }
}
