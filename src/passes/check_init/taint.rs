//! Computes at run time which bits of values depend on registers that were not written, or on uninitialised memory that was loaded.
//!
//! Each value that may depend on them ([`super::unset`]) gets a shadow value: integers of the same width, with the dependent bits set. The
//! shadow is exact to the bit where that is cheap, and else to the lane. It never misses a bit, but may have too many.

use rustc_hash::FxHashMap;

use super::unset::Dependent;
use crate::ssa::{BinOp, Conv, Function, ICond, Input, Inst, InstData, Lane, Op, Ty, UnOp, Value};

/// Writes instructions one after the other.
pub(super) struct Writer<'f> {
    pub f: &'f mut Function,
    pub out: Vec<Inst>,
    pub line: u32,
    pub made: usize,
}

impl Writer<'_> {
    pub(super) fn emit(&mut self, op: Op, args: Vec<Value>, results: &[Ty]) -> Vec<Value> {
        let inst = self.f.make(op, args, results, self.line);
        self.out.push(inst);
        self.made += 1;
        self.f.inst(inst).results.clone()
    }

    pub(super) fn one(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        self.emit(op, args.to_vec(), &[ty])[0]
    }

    /// A constant of the same bits in each lane.
    pub(super) fn same(&mut self, ty: Ty, bits: u64) -> Value {
        self.one(
            super::super::edit::const_op(ty, bits & ty.lane.mask()),
            &[],
            ty,
        )
    }

    fn binary(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let ty = self.f.ty(a);
        self.one(Op::Binary(op), &[a, b], ty)
    }

    fn not(&mut self, a: Value) -> Value {
        let ty = self.f.ty(a);
        self.one(Op::Unary(UnOp::Not), &[a], ty)
    }

    /// Lanes that have any bit, as a mask.
    fn lanes(&mut self, v: Value) -> Value {
        let ty = self.f.ty(v);
        if ty.lane == Lane::I1 {
            return v;
        }
        let zero = self.same(ty, 0);
        let mask = ty_of_lane(ty, Lane::I1);
        self.one(Op::ICmp(ICond::Ne), &[v, zero], mask)
    }

    /// All bits of the lanes of a mask, in another type of as many lanes.
    fn spread(&mut self, mask: Value, ty: Ty) -> Value {
        match ty.lane {
            Lane::I1 => mask,
            _ => self.one(Op::Convert(Conv::SExt), &[mask], ty),
        }
    }

    /// Either of two, as far as there are any.
    fn or(&mut self, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.binary(BinOp::Or, a, b)),
            (one, None) | (None, one) => one,
        }
    }

    /// Those bits that enabled lanes have.
    pub(super) fn enabled(&mut self, mask: Value, v: Value) -> Value {
        let ty = self.f.ty(v);
        let zero = self.same(ty, 0);
        self.one(Op::Select, &[mask, v, zero], ty)
    }

    /// A mask as one condition; other values as they are.
    pub(super) fn condition(&mut self, v: Value) -> Value {
        let ty = self.f.ty(v);
        match ty.lane {
            Lane::I1 if !ty.is_scalar() => self.one(Op::MaskAny, &[v], Ty::BOOL),
            _ => v,
        }
    }
}

fn ty_of_lane(ty: Ty, lane: Lane) -> Ty {
    Ty::vector(lane, ty.lanes)
}

/// Type of what depends, of a value's type.
fn bits_of(ty: Ty) -> Ty {
    let lane = match ty.lane {
        Lane::F32 => Lane::I32,
        Lane::F64 => Lane::I64,
        other => other,
    };
    ty_of_lane(ty, lane)
}

/// What depends of each value.
pub(super) struct Taint {
    pub dependent: Dependent,
    bits: FxHashMap<Value, Value>,
}

impl Taint {
    /// Nothing is known yet but of parameters, which get further parameters; the caller completes branches.
    pub(super) fn new(f: &mut Function, dependent: Dependent) -> Taint {
        let mut bits = FxHashMap::default();
        for b in f.order.clone() {
            for p in f.block(b).params.clone() {
                if dependent.any(p) {
                    let ty = bits_of(f.ty(p));
                    bits.insert(p, f.add_param(b, ty));
                }
            }
        }
        Taint { dependent, bits }
    }

    /// What depends of a value, if any may.
    pub(super) fn taint_of(&self, v: Value) -> Option<Value> {
        self.bits.get(&v).copied()
    }

    /// The same, or zeros.
    pub(super) fn or_none(&self, w: &mut Writer<'_>, v: Value) -> Value {
        match self.taint_of(v) {
            Some(bits) => bits,
            None => {
                let ty = bits_of(w.f.ty(v));
                w.same(ty, 0)
            }
        }
    }

    /// What depends of a value is known: it was loaded.
    pub(super) fn is_loaded(&mut self, v: Value, bits: Value) {
        self.bits.insert(v, bits);
    }

    /// Finds out what depends of the result of an instruction that has just been written.
    pub(super) fn note(&mut self, w: &mut Writer<'_>, i: Inst) {
        let data = w.f.inst(i).clone();
        if data.op.has_effect() || data.results.len() != 1 {
            return;
        }
        let result = data.results[0];
        if !self.dependent.any(result) {
            return;
        }
        let ty = bits_of(w.f.ty(result));
        let bits = self.result(w, &data, ty);
        self.bits.insert(result, bits);
    }

    fn result(&self, w: &mut Writer<'_>, data: &InstData, ty: Ty) -> Value {
        let args = data.args.as_slice();
        let of = |n: usize| args.get(n).and_then(|v| self.taint_of(*v));
        match &data.op {
            Op::Input(Input::Unset) => w.same(ty, u64::MAX),
            Op::Unary(UnOp::Not) => self.or_none(w, args[0]),
            Op::Binary(op @ (BinOp::And | BinOp::Or)) => self.logic(w, *op, args),
            Op::Binary(BinOp::Xor) => match w.or(of(0), of(1)) {
                Some(bits) => bits,
                None => w.same(ty, 0),
            },
            Op::Binary(op @ (BinOp::Shl | BinOp::LShr | BinOp::AShr)) if of(1).is_none() => {
                let bits = self.or_none(w, args[0]);
                w.one(Op::Binary(*op), &[bits, args[1]], ty)
            }
            Op::Select => self.select(w, args, ty),
            Op::Convert(conv @ (Conv::SExt | Conv::ZExt | Conv::Trunc)) => {
                let bits = self.or_none(w, args[0]);
                w.one(Op::Convert(*conv), &[bits], ty)
            }
            op @ (Op::Bitcast
            | Op::Splat
            | Op::ExtractLane(_)
            | Op::InsertLane(_)
            | Op::Shuffle(_)) => {
                let moved: Vec<Value> = args.iter().map(|&v| self.or_none(w, v)).collect();
                w.one(op.clone(), &moved, ty)
            }
            op @ (Op::MaskToBits | Op::BitsToMask) => {
                let bits = self.or_none(w, args[0]);
                w.one(op.clone(), &[bits], ty)
            }
            // A lane that is known may decide.
            Op::MaskAny => {
                let bits = self.or_none(w, args[0]);
                let known = w.not(bits);
                let set = w.binary(BinOp::And, args[0], known);
                let decided = w.one(Op::MaskAny, &[set], ty);
                self.undecided(w, bits, decided, ty)
            }
            Op::MaskAll => {
                let bits = self.or_none(w, args[0]);
                let most = w.binary(BinOp::Or, args[0], bits);
                let open = w.one(Op::MaskAll, &[most], ty);
                let decided = w.not(open);
                self.undecided(w, bits, decided, ty)
            }
            op if op.is_lane_wise() => self.any_of_lane(w, args, ty),
            _ => w.same(ty, u64::MAX),
        }
    }

    fn undecided(&self, w: &mut Writer<'_>, bits: Value, decided: Value, ty: Ty) -> Value {
        let any = w.one(Op::MaskAny, &[bits], ty);
        let open = w.not(decided);
        w.binary(BinOp::And, any, open)
    }

    /// A bit that is known may decide.
    fn logic(&self, w: &mut Writer<'_>, op: BinOp, args: &[Value]) -> Value {
        let (a, b) = (args[0], args[1]);
        let mut all = match (self.taint_of(a), self.taint_of(b)) {
            (Some(x), Some(y)) => Some(w.binary(BinOp::And, x, y)),
            _ => None,
        };
        for (unset, other) in [(a, b), (b, a)] {
            let Some(bits) = self.taint_of(unset) else {
                continue;
            };
            let open = match op {
                BinOp::And => other,
                _ => w.not(other),
            };
            let bits = w.binary(BinOp::And, bits, open);
            all = w.or(all, Some(bits));
        }
        let ty = w.f.ty(a);
        all.unwrap_or_else(|| w.same(ty, 0))
    }

    fn select(&self, w: &mut Writer<'_>, args: &[Value], ty: Ty) -> Value {
        let [x, y] = [args[1], args[2]].map(|v| self.or_none(w, v));
        let chosen = w.one(Op::Select, &[args[0], x, y], ty);
        let Some(condition) = self.taint_of(args[0]) else {
            return chosen;
        };
        let lanes = match w.f.ty(condition).lanes {
            1 if ty.lanes > 1 => {
                let mask = ty_of_lane(ty, Lane::I1);
                w.one(Op::Splat, &[condition], mask)
            }
            _ => condition,
        };
        let all = w.spread(lanes, ty);
        w.binary(BinOp::Or, chosen, all)
    }

    /// All bits of lanes of which an operand depends.
    fn any_of_lane(&self, w: &mut Writer<'_>, args: &[Value], ty: Ty) -> Value {
        let mut all = None;
        for bits in args.iter().filter_map(|v| self.taint_of(*v)) {
            let mut lanes = w.lanes(bits);
            if w.f.ty(lanes).lanes == 1 && ty.lanes > 1 {
                let mask = ty_of_lane(ty, Lane::I1);
                lanes = w.one(Op::Splat, &[lanes], mask);
            }
            all = w.or(all, Some(lanes));
        }
        match all {
            Some(lanes) => w.spread(lanes, ty),
            None => w.same(ty, 0),
        }
    }
}
