//! What passes share: looking through definitions, and rewriting blocks in place.

use rustc_hash::FxHashMap;

use crate::ssa::dom::reverse_post_order;
use crate::ssa::{
    BinOp, Block, BlockAccess, Conv, Function, Inst, Lane, Op, Space, Ty, UnOp, Value, ValueDef,
};

/// Lanes of a constant.
pub(super) fn const_lanes(f: &Function, v: Value) -> Option<&[u64]> {
    match &f.def_inst(v)?.op {
        Op::Const(bits) => Some(std::slice::from_ref(bits)),
        Op::VecConst(bits) => Some(bits),
        _ => None,
    }
}

/// Bits of a constant whose lanes are all the same.
pub(super) fn uniform_const(f: &Function, v: Value) -> Option<u64> {
    let (&first, rest) = const_lanes(f, v)?.split_first()?;
    rest.iter().all(|&b| b == first).then_some(first)
}

/// A constant of 32-bit floats that is the same in all lanes.
pub(super) fn float_const(f: &Function, v: Value) -> Option<f32> {
    let bits = uniform_const(f, v).filter(|_| f.ty(v).lane == Lane::F32)?;
    Some(f32::from_bits(bits as u32))
}

/// Operands of `v` if it is this operation.
pub(super) fn binary(f: &Function, v: Value, op: BinOp) -> Option<(Value, Value)> {
    let data = f.def_inst(v).filter(|d| d.op == Op::Binary(op))?;
    Some((data.args[0], data.args[1]))
}

/// Operand of `v` if it is this operation.
pub(super) fn unary(f: &Function, v: Value, op: UnOp) -> Option<Value> {
    let data = f.def_inst(v).filter(|d| d.op == Op::Unary(op))?;
    Some(data.args[0])
}

/// The mask that says which lanes of `v` have all of their bits set, as none or all of them have; or, if the bool is set, which have none.
pub(super) fn spread_mask(f: &Function, v: Value) -> Option<(Value, bool)> {
    let data = f.def_inst(v)?;
    let (mask, ones) = (*data.args.first()?, f.ty(v).lane.mask());
    match data.op {
        Op::Convert(Conv::SExt) if f.ty(mask).lane == Lane::I1 => Some((mask, false)),
        Op::Select => match [1, 2].map(|n| uniform_const(f, data.args[n])) {
            [Some(set), Some(0)] if set == ones => Some((mask, false)),
            [Some(0), Some(clear)] if clear == ones => Some((mask, true)),
            _ => None,
        },
        _ => None,
    }
}

/// The operation that makes a constant with the same bits in each lane.
pub(super) fn const_op(ty: Ty, bits: u64) -> Op {
    lanes_op(vec![bits; usize::from(ty.lanes)])
}

/// The operation that makes a constant of these lanes.
pub(super) fn lanes_op(lanes: Vec<u64>) -> Op {
    match lanes.as_slice() {
        [bits] => Op::Const(*bits),
        _ => Op::VecConst(lanes.into()),
    }
}

/// Makes a value again at the end of a block, out of those that `copies` has. It is for values whose operations the caller has seen: it goes
/// down to whatever has no entry there and is no result.
pub(super) fn copied(
    f: &mut Function,
    to: Block,
    v: Value,
    copies: &mut FxHashMap<Value, Value>,
) -> Value {
    if let Some(&copy) = copies.get(&v) {
        return copy;
    }
    let Some(data) = f.def_inst(v).cloned() else {
        return v;
    };
    let args = data.args.iter().map(|&arg| copied(f, to, arg, copies));
    let args = args.collect();
    let ty = f.ty(v);
    let copy = f.push1(to, data.op, args, ty, data.line);
    copies.insert(v, copy);
    copy
}

/// Replaces results of instructions by other values, in reverse post-order; returns how many. `replacement` gives the value that takes
/// the place of an instruction's first result.
pub(super) fn replace_results(
    f: &mut Function,
    mut replacement: impl FnMut(&mut Rewriter, Inst) -> Option<Value>,
) -> usize {
    replace_by_block(f, |r, _: &mut (), i| replacement(r, i))
}

/// As [`replace_results`], with a state that begins anew in each block: values that were made in a block are there for the rest of it.
pub(super) fn replace_by_block<S: Default>(
    f: &mut Function,
    mut replacement: impl FnMut(&mut Rewriter, &mut S, Inst) -> Option<Value>,
) -> usize {
    let order = reverse_post_order(f);
    let mut rewriter = Rewriter::new(f);
    for b in order {
        let mut state = S::default();
        rewriter.block(b, |r, i| {
            let Some(new) = replacement(r, &mut state, i) else {
                return true;
            };
            let old = r.f.inst(i).results[0];
            r.f.replace(old, new);
            r.changes += 1;
            false
        });
    }
    let changes = rewriter.changes;
    f.resolve_aliases();
    changes
}

/// Puts an instruction in front of each for which `make` returns one; returns how many.
pub(super) fn insert_before(
    f: &mut Function,
    make: impl Fn(&mut Function, Inst) -> Option<Inst>,
) -> usize {
    let mut made = 0;
    for b in f.order.clone() {
        let mut insts = Vec::new();
        for i in std::mem::take(&mut f.block_mut(b).insts) {
            let new = make(f, i);
            made += usize::from(new.is_some());
            insts.extend(new);
            insts.push(i);
        }
        f.block_mut(b).insts = insts;
    }
    made
}

/// Rewrites the instructions of a function block by block; new ones go before the current one.
pub(super) struct Rewriter<'f> {
    pub(super) f: &'f mut Function,
    out: Vec<Inst>,
    line: u32,
    /// Changes made.
    pub(super) changes: usize,
}

impl<'f> Rewriter<'f> {
    pub(super) fn new(f: &'f mut Function) -> Self {
        Rewriter {
            f,
            out: Vec::new(),
            line: 0,
            changes: 0,
        }
    }

    /// Calls `each` for the instructions of a block in order, with aliases in their operands
    /// resolved. Instructions stay unless `each` says false.
    pub(super) fn block(&mut self, b: Block, mut each: impl FnMut(&mut Self, Inst) -> bool) {
        let insts = std::mem::take(&mut self.f.block_mut(b).insts);
        self.out = Vec::with_capacity(insts.len());
        for i in insts {
            self.line = self.f.inst(i).line;
            self.resolve(i);
            if each(self, i) {
                self.out.push(i);
            }
        }
        self.f.block_mut(b).insts = std::mem::take(&mut self.out);
    }

    fn resolve(&mut self, i: Inst) {
        for n in 0..self.f.inst(i).args.len() {
            let v = self.f.inst(i).args[n];
            self.f.inst_mut(i).args[n] = self.f.resolve(v);
        }
    }

    /// Adds an instruction before the current one.
    pub(super) fn emit(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        let i = self.f.make(op, args, &[ty], self.line);
        self.out.push(i);
        self.f.inst(i).results[0]
    }

    /// Adds an instruction without results before the current one.
    pub(super) fn effect(&mut self, op: Op, args: Vec<Value>) {
        let i = self.f.make(op, args, &[], self.line);
        self.out.push(i);
    }

    /// Puts the current instruction here, for ones that follow it; `each` then says false.
    pub(super) fn place(&mut self, i: Inst) {
        self.out.push(i);
    }

    /// Adds a constant with the same bits in each lane.
    pub(super) fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        self.emit(const_op(ty, bits), Vec::new(), ty)
    }

    /// Takes away an instruction that was placed already, and puts what `make` emits in its stead, if all operands of that are there by
    /// then. Uses of the instruction are the caller's.
    pub(super) fn instead_of<T>(
        &mut self,
        i: Inst,
        make: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let at = self.out.iter().rposition(|&placed| placed == i)?;
        let after = self.out.split_off(at);
        let line = std::mem::replace(&mut self.line, self.f.inst(i).line);
        let made = make(self);
        self.line = line;
        let is_after = |v: &Value| match self.f.def(self.f.resolve(*v)) {
            ValueDef::Result(def, _) => after.contains(&def),
            _ => false,
        };
        let new = self.out[at..].iter();
        let late = new.flat_map(|&n| &self.f.inst(n).args).any(is_after);
        if late || made.is_none() {
            self.out.truncate(at);
            self.out.extend(after);
            return None;
        }
        self.out.extend(&after[1..]);
        made
    }
}

/// Access to all elements of a value of this type in the storage of registers.
pub(super) fn in_registers(ty: Ty) -> BlockAccess {
    BlockAccess {
        space: Space::Regs,
        elem: ty.lane.as_int(),
        n: ty.lanes,
        site: 0,
    }
}

/// True if the storage of registers may grow: nothing stands behind it, such as variables of functions on the stack.
pub(super) fn registers_may_grow(f: &Function) -> bool {
    f.frame_bytes <= f.regs_bytes.next_multiple_of(16)
}

/// Room for some bytes at the end of the storage of registers; returns where.
pub(super) fn grow_registers(f: &mut Function, bytes: u32) -> u32 {
    let slot = f.regs_bytes.next_multiple_of(64);
    f.regs_bytes = slot + bytes;
    f.frame_bytes = f.regs_bytes.next_multiple_of(16);
    slot
}
