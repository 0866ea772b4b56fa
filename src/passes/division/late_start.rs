//! The other way into a loop of long division: at its last step.

use super::bit_by_bit::{Found, LongDivision, Part, Role};
use super::lanes::{Expr, Exprs, Node};
use crate::passes::edit::{const_op, uniform_const};
use crate::ssa::{BinOp, Block, BlockCall, Conv, Function, Lane, Op, Ty, Value, ValueDef};

/// Puts what the last step starts with on the edge into the loop.
pub(super) fn start_late(
    f: &mut Function,
    (from, n): (Block, usize),
    counter: usize,
    found: &Found,
) -> bool {
    let Some(call) = f.block(from).term.targets().get(n).map(|&c| c.clone()) else {
        return false;
    };
    let zeros = found
        .roles
        .iter()
        .all(|&(at, _)| uniform_const(f, call.args[at]) == Some(0));
    if !zeros {
        return false;
    }
    let line = f.block(from).term_line;
    let mut builder = Builder {
        f,
        at: from,
        line,
        call: &call,
        exprs: &found.exprs,
    };
    let mut args = call.args.clone();
    let mut any: Option<Value> = None;
    let mut shifting = Vec::new();
    for (at, role) in &found.roles {
        let Some((value, mask)) = builder.before_last(call.args[*at], role) else {
            return false;
        };
        args[*at] = value;
        if let Role::Remainder(lanes) = role {
            let shifts = |l: &LongDivision| matches!(l.part, Part::OrShifts(_));
            shifting.extend(lanes.iter().any(shifts).then_some(*at));
            let set = builder.emit(Op::MaskAny, vec![mask], Ty::BOOL);
            any = Some(match any {
                Some(other) => builder.emit(Op::Binary(BinOp::Or), vec![other, set], Ty::BOOL),
                None => set,
            });
        }
    }
    let Some(any) = any else {
        return false;
    };
    for at in shifting {
        let late = vec![any, args[at], call.args[at]];
        args[at] = builder.emit(Op::Select, late, builder.f.ty(call.args[at]));
    }
    let last = builder.emit(Op::Const(0), Vec::new(), Ty::I32);
    args[counter] = builder.emit(Op::Select, vec![any, last, call.args[counter]], Ty::I32);
    if let Some(target) = f.block_mut(from).term.targets_mut().into_iter().nth(n) {
        target.args = args;
    }
    true
}

/// Makes vectors at the end of a block.
struct Builder<'a> {
    f: &'a mut Function,
    at: Block,
    line: u32,
    /// The edge into the loop.
    call: &'a BlockCall,
    exprs: &'a Exprs,
}

impl Builder<'_> {
    fn emit(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        self.f.push1(self.at, op, args, ty, self.line)
    }

    fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        self.emit(const_op(ty, bits), Vec::new(), ty)
    }

    /// A parameter before the last step where the mask is set, and the mask.
    fn before_last(&mut self, first: Value, role: &Role) -> Option<(Value, Value)> {
        let (lanes, op) = match role {
            Role::Remainder(lanes) => (lanes, BinOp::URem),
            Role::Quotient(lanes) => (lanes, BinOp::UDiv),
        };
        let ty = Ty::vector(Lane::I64, u16::try_from(lanes.len()).ok()?);
        let x = self.vector(&lanes.iter().map(|l| l.dividend).collect::<Vec<_>>())?;
        let y = self.vector(&lanes.iter().map(|l| l.divisor).collect::<Vec<_>>())?;
        let masks: Vec<(Value, u16)> = lanes.iter().filter_map(LongDivision::mask).collect();
        let mask = match masks.len() {
            0 => self.constant(Ty::mask(ty.lanes), 1),
            n if n == lanes.len() => self.mask(&masks)?,
            _ => return None,
        };
        let one = self.constant(ty, 1);
        let upper = self.emit(Op::Binary(BinOp::LShr), vec![x, one], ty);
        let mut value = self.emit(Op::Binary(op), vec![upper, y], ty);
        if op == BinOp::UDiv {
            value = self.emit(Op::Binary(BinOp::Shl), vec![value, one], ty);
        }
        let shifts = |l: &&LongDivision| matches!(l.part, Part::OrShifts(_));
        let idle = match (role, lanes.iter().filter(shifts).count()) {
            (Role::Quotient(_), _) | (_, 0) => self.constant(ty, 0),
            (Role::Remainder(_), n) if n == lanes.len() => upper,
            _ => return None,
        };
        value = self.emit(Op::Select, vec![mask, value, idle], ty);
        let wanted = self.f.ty(first);
        if wanted != ty {
            value = self.emit(Op::Bitcast, vec![value], wanted);
        }
        Some((value, mask))
    }

    /// A vector of 64-bit lanes.
    fn vector(&mut self, lanes: &[Expr]) -> Option<Value> {
        let ty = Ty::vector(Lane::I64, u16::try_from(lanes.len()).ok()?);
        let halves = lanes.iter().map(|&e| match *self.exprs.node(e) {
            Node::Concat(low, high) => Some((low, high)),
            _ => None,
        });
        let Some(halves) = halves.collect::<Option<Vec<_>>>() else {
            return self.leaves(lanes, ty);
        };
        let (low, high): (Vec<_>, Vec<_>) = halves.into_iter().unzip();
        let narrow = ty.with_lane(Lane::I32);
        let (low, high) = (self.leaves(&low, narrow)?, self.leaves(&high, narrow)?);
        let extend = Op::Convert(Conv::ZExt);
        let low = self.emit(extend.clone(), vec![low], ty);
        let high = self.emit(extend, vec![high], ty);
        let count = self.constant(ty, 32);
        let high = self.emit(Op::Binary(BinOp::Shl), vec![high, count], ty);
        Some(self.emit(Op::Binary(BinOp::Or), vec![low, high], ty))
    }

    fn leaves(&mut self, lanes: &[Expr], ty: Ty) -> Option<Value> {
        if let Node::Const(bits) = *self.exprs.node(*lanes.first()?)
            && lanes.iter().all(|e| Some(e) == lanes.first())
        {
            return Some(self.constant(ty, bits));
        }
        let leaf = |&e: &Expr| match *self.exprs.node(e) {
            Node::Leaf(v, lane) => Some((v, lane)),
            _ => None,
        };
        let lanes: Vec<(Value, u16)> = lanes.iter().map(leaf).collect::<Option<_>>()?;
        self.gather(&lanes, ty)
    }

    fn mask(&mut self, lanes: &[(Value, u16)]) -> Option<Value> {
        let ty = Ty::mask(u16::try_from(lanes.len()).ok()?);
        // What the loop carries is on the edge.
        let entering = |&(v, lane): &(Value, u16)| match self.f.def(v) {
            ValueDef::Param(b, n) if b == self.call.block => (self.call.args[n as usize], lane),
            _ => (v, lane),
        };
        let lanes: Vec<(Value, u16)> = lanes.iter().map(entering).collect();
        self.gather(&lanes, ty)
    }

    /// Lanes of one or two values.
    fn gather(&mut self, lanes: &[(Value, u16)], ty: Ty) -> Option<Value> {
        let first = lanes.first()?.0;
        let second = lanes.iter().map(|l| l.0).find(|&v| v != first);
        let mut operands = vec![first];
        operands.extend(second);
        let count = self.f.ty(first).lanes;
        let place = |&(v, lane): &(Value, u16)| match (v == first, Some(v) == second) {
            (true, _) => Some(lane),
            (_, true) => Some(count + lane),
            _ => None,
        };
        let indices: Vec<u16> = lanes.iter().map(place).collect::<Option<_>>()?;
        if second.is_none() && indices.iter().copied().eq(0..count) && self.f.ty(first) == ty {
            return Some(first);
        }
        Some(self.emit(Op::Shuffle(indices.into()), operands, ty))
    }
}
