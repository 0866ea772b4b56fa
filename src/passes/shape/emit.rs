//! Scalar bases, guards and "all lanes" conditions, made beside the vectors they belong to.

use super::analysis::{Spacing, first_lane, keeps_offset, same_bits};
use crate::passes::edit::{Rewriter, uniform_const};
use crate::passes::fold::most;
use crate::ssa::shape::Affine;
use crate::ssa::{
    BinOp, Block, Conv, Function, ICond, Input, Inst, InstData, Lane, MAX_LOCAL_ID, Op, Term, Ty,
    Value, ValueDef,
};

/// Scalars made for vectors and masks.
pub(super) struct Made {
    base: Vec<Option<Value>>,
    guard: Vec<Option<Value>>,
    all: Vec<Option<Value>>,
}

impl Made {
    /// Shape of an address.
    pub(super) fn affine(&self, v: Value, spacing: &[Spacing]) -> Option<Affine> {
        let Spacing::Affine { stride, .. } = spacing[v.0 as usize] else {
            return None;
        };
        Some(Affine {
            base: self.base[v.0 as usize]?,
            stride,
            guard: self.guard[v.0 as usize],
        })
    }

    /// Condition under which all lanes of a mask are set.
    pub(super) fn all(&self, v: Value) -> Option<Value> {
        self.all[v.0 as usize]
    }
}

/// Makes what is needed; nothing that exists is changed apart from new block parameters.
pub(super) fn run(
    f: &mut Function,
    order: &[Block],
    spacing: &[Spacing],
    bases: &[bool],
    masks: &[bool],
) -> Made {
    let n = f.values.len();
    let mut emit = AddressEmitter {
        spacing,
        made: Made {
            base: vec![None; n],
            guard: vec![None; n],
            all: vec![None; n],
        },
    };
    let mut carried: Vec<(Block, Value)> = Vec::new();
    for &b in order {
        for p in f.block(b).params.clone() {
            if bases[p.0 as usize] {
                emit.param(f, b, p);
                carried.push((b, p));
            }
        }
    }
    let mut rewriter = Rewriter::new(f);
    for &b in order {
        rewriter.block(b, |r, i| {
            if let [v] = *r.f.inst(i).results.as_slice()
                && (v.0 as usize) < n
            {
                if bases[v.0 as usize] {
                    emit.base(r, i, v);
                }
                if masks[v.0 as usize] {
                    // After the mask itself, because it may be tested directly.
                    return emit.mask(r, i, v);
                }
            }
            true
        });
    }
    emit.arguments(f, order, &carried);
    emit.made
}

/// True when a comparison holds in all lanes if it holds in the first and the last one.
pub(super) fn compares_ends(
    f: &Function,
    spacing: &[Spacing],
    cond: ICond,
    args: &[Value],
) -> bool {
    let stride = |v: Value| match spacing[v.0 as usize] {
        Spacing::Affine { stride, .. } => Some(stride),
        _ => None,
    };
    let (Some(a), Some(b)) = (stride(args[0]), stride(args[1])) else {
        return false;
    };
    let ty = f.ty(args[0]);
    let span = i128::from(a).abs() * i128::from(ty.lanes - 1);
    let ordered = !matches!(cond, ICond::Eq | ICond::Ne);
    b == 0 && (a == 0 || ordered && ty.lane != Lane::I64 && span < 1 << ty.lane.bits())
}

struct AddressEmitter<'a> {
    spacing: &'a [Spacing],
    made: Made,
}

impl AddressEmitter<'_> {
    fn stride(&self, v: Value) -> i64 {
        match self.spacing[v.0 as usize] {
            Spacing::Affine { stride, .. } => stride,
            _ => 0,
        }
    }

    fn guarded(&self, v: Value) -> bool {
        matches!(
            self.spacing[v.0 as usize],
            Spacing::Affine { guarded: true, .. }
        )
    }

    /// Scalar parameters for a vector one.
    fn param(&mut self, f: &mut Function, b: Block, p: Value) {
        let n = p.0 as usize;
        let lane = f.ty(p).lane;
        self.made.base[n] = Some(f.add_param(b, Ty::scalar(lane)));
        if self.guarded(p) {
            self.made.guard[n] = Some(f.add_param(b, Ty::BOOL));
        }
    }

    /// The scalar of an operand, which is itself if it is one.
    fn scalar(&self, f: &Function, v: Value) -> Option<Value> {
        if f.ty(v).is_scalar() {
            return Some(v);
        }
        self.made.base[v.0 as usize]
    }

    fn both(&self, r: &mut Rewriter, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) if a != b => {
                Some(r.emit(Op::Binary(BinOp::And), vec![a, b], Ty::BOOL))
            }
            (a, b) => a.or(b),
        }
    }

    /// Lane 0 of `v` as a scalar, and the condition under which its lanes are affine.
    fn base(&mut self, r: &mut Rewriter, i: Inst, v: Value) {
        let data = r.f.inst(i).clone();
        let ty = Ty::scalar(r.f.ty(v).lane);
        let guards = data
            .args
            .iter()
            .filter(|a| (a.0 as usize) < self.spacing.len());
        let guards: Vec<Value> = guards
            .filter_map(|a| self.made.guard[a.0 as usize])
            .collect();
        let mut guard = None;
        for g in guards {
            guard = self.both(r, guard, Some(g));
        }
        let args: Option<Vec<Value>> = data.args.iter().map(|&a| self.scalar(r.f, a)).collect();
        let Some(args) = args else {
            return;
        };
        let limited = self.limited(r.f, &data, v);
        let base = match &data.op {
            Op::Splat => args[0],
            Op::VecConst(_) => r.constant(ty, first_lane(r.f, v)),
            Op::Shuffle(indices) => {
                let stride = self.stride(data.args[0]);
                let skip = stride.wrapping_mul(i64::from(indices[0]));
                self.offset(r, args[0], skip)
            }
            Op::Binary(BinOp::Add) => self.sum(r, args[0], args[1]),
            // Below the limit, which is tested, it is the number itself, and keeps its distance from others.
            _ if limited => args[0],
            op => r.emit(op.clone(), args.clone(), ty),
        };
        let limits = match data.op {
            Op::Convert(Conv::SExt | Conv::ZExt) => true,
            Op::Binary(op @ BinOp::And) if !limited => {
                let x = self.spacing[data.args[0].0 as usize];
                let c = uniform_const(r.f, data.args[1]);
                !c.is_some_and(|c| same_bits(op, c, ty.lane, x))
            }
            _ => false,
        };
        if limited {
            let test = self.below(r, args[0], &data.args);
            guard = self.both(r, guard, Some(test));
        }
        let from = data.args.first().copied();
        if let (true, Some(from)) = (limits, from)
            && self.stride(from) != 0
            && !is_small_id(r.f, from)
        {
            let test = self.no_wrap(r, &data.op, &args, base, from);
            guard = self.both(r, guard, Some(test));
        }
        self.made.base[v.0 as usize] = Some(base);
        self.made.guard[v.0 as usize] = guard;
    }

    /// `x + y`, with a constant last.
    fn sum(&self, r: &mut Rewriter, x: Value, y: Value) -> Value {
        let constant = |v| uniform_const(r.f, v);
        match (constant(x), constant(y)) {
            (_, Some(by)) => self.offset(r, x, by.cast_signed()),
            (Some(by), None) => self.offset(r, y, by.cast_signed()),
            (None, None) => r.emit(Op::Binary(BinOp::Add), vec![x, y], r.f.ty(x)),
        }
    }

    /// `x + constant`.
    fn offset(&self, r: &mut Rewriter, x: Value, by: i64) -> Value {
        let ty = r.f.ty(x);
        let by = by as u64 & ty.lane.mask();
        if by == 0 {
            return x;
        }
        let by = r.constant(ty, by);
        r.emit(Op::Binary(BinOp::Add), vec![x, by], ty)
    }

    /// Tests that the last lane, taken through the same operation, is as far from the first as it should be.
    fn no_wrap(
        &self,
        r: &mut Rewriter,
        op: &Op,
        args: &[Value],
        base: Value,
        from: Value,
    ) -> Value {
        if let Op::Convert(extend @ (Conv::SExt | Conv::ZExt)) = op {
            return self.ends_fit(r, args[0], from, *extend == Conv::SExt);
        }
        let span = self.span(r.f, from);
        let last = self.offset(r, args[0], span);
        let mut args = args.to_vec();
        args[0] = last;
        let ty = r.f.ty(base);
        let last = r.emit(op.clone(), args, ty);
        let distance = r.emit(Op::Binary(BinOp::Sub), vec![last, base], ty);
        let expected = r.constant(ty, span as u64 & ty.lane.mask());
        r.emit(Op::ICmp(ICond::Eq), vec![distance, expected], Ty::BOOL)
    }

    /// True for the limits of numbers that are the numbers themselves where all lanes are below them.
    fn limited(&self, f: &Function, data: &InstData, v: Value) -> bool {
        let (lane, lanes) = (f.ty(v).lane, f.ty(v).lanes);
        let holds = match data.op {
            Op::Binary(BinOp::UMin) => return self.stride(v) != 0,
            Op::Binary(BinOp::And) => keeps_offset,
            _ => return false,
        };
        let limit = uniform_const(f, data.args[1]);
        limit.is_some_and(|c| holds(c, lane, lanes, self.spacing[data.args[0].0 as usize]))
    }

    /// Tests that no lane of a number, the first of which is `first`, is above a limit, nor wraps below it.
    fn below(&self, r: &mut Rewriter, first: Value, args: &[Value]) -> Value {
        let ty = r.f.ty(first);
        let limit = uniform_const(r.f, args[1]).unwrap_or(0);
        // The limit is not below what all lanes together span.
        let end = limit.wrapping_sub(self.span(r.f, args[0]).cast_unsigned());
        let end = r.constant(ty, end & ty.lane.mask());
        r.emit(Op::ICmp(ICond::Ule), vec![first, end], Ty::BOOL)
    }

    /// Distance of the last lane from the first.
    fn span(&self, f: &Function, v: Value) -> i64 {
        self.stride(v)
            .wrapping_mul(i64::from(f.ty(v).lanes.saturating_sub(1)))
    }

    /// Tests that no lane of `v`, the first of which is `first`, wraps at the end of signed or unsigned numbers. That is a
    /// comparison of the first one with a constant: the last one has to fit too.
    fn ends_fit(&self, r: &mut Rewriter, first: Value, v: Value, signed: bool) -> Value {
        let span = i128::from(self.span(r.f, v));
        let ty = r.f.ty(first);
        let values = 1_i128 << ty.lane.bits();
        let least = if signed { -values / 2 } else { 0 };
        if span.abs() >= values {
            return r.constant(Ty::BOOL, 0);
        }
        let (cond, end) = match (span > 0, signed) {
            (true, true) => (ICond::Sle, least + values - 1 - span),
            (true, false) => (ICond::Ule, least + values - 1 - span),
            (false, true) => (ICond::Sge, least - span),
            (false, false) => (ICond::Uge, least - span),
        };
        let end = r.constant(ty, end as u64 & ty.lane.mask());
        r.emit(Op::ICmp(cond), vec![first, end], Ty::BOOL)
    }

    /// The condition under which all lanes of a mask are set; false when the instruction was placed here.
    fn mask(&mut self, r: &mut Rewriter, i: Inst, v: Value) -> bool {
        let data = r.f.inst(i).clone();
        let lookup = |emit: &Self, a: Value| emit.made.all.get(a.0 as usize).copied().flatten();
        let (all, placed) = match &data.op {
            Op::Splat => (Some(data.args[0]), false),
            Op::VecConst(bits) => {
                let all = bits.iter().all(|&m| m != 0);
                (Some(r.constant(Ty::BOOL, all.into())), false)
            }
            Op::Input(Input::DispatchMask) | Op::Shuffle(_) => {
                r.place(i);
                (Some(r.emit(Op::MaskAll, vec![v], Ty::BOOL)), true)
            }
            Op::Binary(BinOp::And) => {
                let (a, b) = (lookup(self, data.args[0]), lookup(self, data.args[1]));
                let both = a.is_some() && b.is_some();
                (if both { self.both(r, a, b) } else { None }, false)
            }
            Op::ICmp(cond) => (self.compare(r, *cond, &data.args), false),
            _ => (None, false),
        };
        self.made.all[v.0 as usize] = all;
        !placed
    }

    /// A comparison of affine lanes with one value holds everywhere if it holds at both ends and no
    /// lane wraps between them.
    fn compare(&mut self, r: &mut Rewriter, cond: ICond, args: &[Value]) -> Option<Value> {
        let (a, b) = (self.scalar(r.f, args[0])?, self.scalar(r.f, args[1])?);
        let (ga, gb) = (
            self.made.guard[args[0].0 as usize],
            self.made.guard[args[1].0 as usize],
        );
        let guard = self.both(r, ga, gb);
        let first = r.emit(Op::ICmp(cond), vec![a, b], Ty::BOOL);
        let mut all = self.both(r, guard, Some(first));
        let stride = self.stride(args[0]);
        if stride != 0 {
            let span = stride.wrapping_mul(i64::from(r.f.ty(args[0]).lanes - 1));
            let last = self.offset(r, a, span);
            let holds = r.emit(Op::ICmp(cond), vec![last, b], Ty::BOOL);
            all = self.both(r, all, Some(holds));
            let signed = matches!(cond, ICond::Slt | ICond::Sle | ICond::Sgt | ICond::Sge);
            let test = self.ends_fit(r, a, args[0], signed);
            all = self.both(r, all, Some(test));
        }
        all
    }

    /// Passes bases and guards to the new parameters.
    fn arguments(&self, f: &mut Function, order: &[Block], carried: &[(Block, Value)]) {
        let mut by_block: Vec<Vec<Value>> = vec![Vec::new(); f.blocks.len()];
        for &(b, p) in carried {
            by_block[b.0 as usize].push(p);
        }
        for &b in order {
            let mut term = std::mem::replace(&mut f.block_mut(b).term, Term::None);
            for call in term.targets_mut() {
                for &p in &by_block[call.block.0 as usize] {
                    let ValueDef::Param(_, n) = f.def(p) else {
                        continue;
                    };
                    let arg = call.args[n as usize];
                    let base = self.made.base[arg.0 as usize];
                    call.args.extend(base);
                    if self.guarded(p) {
                        let guard = match self.made.guard[arg.0 as usize] {
                            Some(g) => g,
                            None => f.push1(b, Op::Const(1), Vec::new(), Ty::BOOL, 0),
                        };
                        call.args.push(guard);
                    }
                }
            }
            f.block_mut(b).term = term;
        }
    }
}

/// Local ids counted up from the thread's first: a group has at most 1024 work-items, so that neither
/// the ids nor those of lanes that do not exist come near the end of their 16 bits.
fn is_small_id(f: &Function, v: Value) -> bool {
    let Some(data) = f.def_inst(v) else {
        return false;
    };
    let id = |v: Value| {
        f.def_inst(v)
            .is_some_and(|d| d.op == Op::Splat && most(f, d.args[0]) <= MAX_LOCAL_ID)
    };
    let step = |v: Value| {
        f.def_inst(v)
            .is_some_and(|d| matches!(&d.op, Op::VecConst(bits) if bits.iter().all(|&b| b < 64)))
    };
    match (&data.op, data.args.as_slice()) {
        (Op::Binary(BinOp::Add), &[a, b]) => (id(a) && step(b)) || (id(b) && step(a)),
        _ => false,
    }
}
