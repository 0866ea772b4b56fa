//! Uniformity: a vector whose lanes are all equal is computed as a scalar.
//!
//! Guarantees: a lane-wise operation whose operands are all splats (also around loops) becomes the
//! scalar operation and one splat; such block parameters become scalar parameters; uniform
//! conditions of selects and uniform shift counts become scalar operands. Does not look into
//! memory: a load from one address stays a vector load (its shape says so).

use super::edit::{Rewriter, uniform_const};
use crate::ssa::dom::{drop_unreachable, reverse_post_order};
use crate::ssa::{BinOp, Block, Conv, Function, Inst, InstData, Op, Term, Ty, Value, ValueDef};

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let order = reverse_post_order(f);
    drop_unreachable(f, &order);
    let uniform = analyse(f, &order);
    let mut pass = Pass {
        scalar: vec![None; f.values.len()],
        uniform,
    };
    let mut rewriter = Rewriter::new(f);
    for &b in &order {
        let heads = pass.params(rewriter.f, b);
        rewriter.block(b, |r, i| pass.inst(r, i));
        rewriter.changes += heads.len();
        let insts = &mut rewriter.f.block_mut(b).insts;
        insts.splice(0..0, heads);
    }
    let changes = rewriter.changes;
    pass.arguments(f, &order);
    f.resolve_aliases();
    changes
}

/// Which values have equal lanes; scalars have.
fn analyse(f: &Function, order: &[Block]) -> Vec<bool> {
    // All are taken to be uniform until something says otherwise, which lets loops start.
    let mut uniform = vec![true; f.values.len()];
    loop {
        let mut changed = false;
        let mut lower = |v: Value, uniform: &mut Vec<bool>| {
            changed |= std::mem::replace(&mut uniform[v.0 as usize], false);
        };
        for &b in order {
            for &i in &f.block(b).insts {
                let data = f.inst(i);
                if !inst_uniform(f, data, &uniform) {
                    for &r in data.results.iter().filter(|&&r| !f.ty(r).is_scalar()) {
                        lower(r, &mut uniform);
                    }
                }
            }
            for call in f.block(b).term.targets() {
                for (&p, a) in f.block(call.block).params.iter().zip(&call.args) {
                    if !uniform[a.0 as usize] {
                        lower(p, &mut uniform);
                    }
                }
            }
        }
        if !changed {
            return uniform;
        }
    }
}

fn inst_uniform(f: &Function, data: &InstData, uniform: &[bool]) -> bool {
    let [r] = data.results.as_slice() else {
        return false;
    };
    match &data.op {
        Op::VecConst(_) => uniform_const(f, *r).is_some(),
        Op::Splat => true,
        Op::Shuffle(_) => data.args.len() == 1 && uniform[data.args[0].0 as usize],
        Op::Bitcast => {
            let same_lanes = f.ty(data.args[0]).lanes == f.ty(*r).lanes;
            same_lanes && uniform[data.args[0].0 as usize]
        }
        op => op.is_lane_wise() && data.args.iter().all(|a| uniform[a.0 as usize]),
    }
}

struct Pass {
    uniform: Vec<bool>,
    /// The scalar that a uniform vector repeats, defined where the vector is.
    scalar: Vec<Option<Value>>,
}

impl Pass {
    fn is_uniform(&self, f: &Function, v: Value) -> bool {
        let known = self.uniform.get(v.0 as usize).copied().unwrap_or(false);
        known && !f.ty(v).is_scalar()
    }

    fn set_scalar(&mut self, v: Value, scalar: Value) {
        let n = v.0 as usize;
        if n >= self.scalar.len() {
            self.scalar.resize(n + 1, None);
        }
        self.scalar[n] = Some(scalar);
    }

    /// The scalar of a uniform vector; a scalar itself.
    fn scalar_of(&self, f: &Function, v: Value) -> Option<Value> {
        if f.ty(v).is_scalar() {
            return Some(v);
        }
        let scalar = self.scalar.get(v.0 as usize).copied().flatten();
        scalar.map(|s| f.resolve(s))
    }

    /// Gives a block scalar parameters for its uniform ones; returns the splats to put at its head.
    fn params(&mut self, f: &mut Function, b: Block) -> Vec<Inst> {
        let mut heads = Vec::new();
        for p in f.block(b).params.clone() {
            if !self.is_uniform(f, p) {
                continue;
            }
            let ty = f.ty(p);
            let scalar = f.add_param(b, Ty::scalar(ty.lane));
            let splat = f.make(Op::Splat, vec![scalar], &[ty], 0);
            let value = f.inst(splat).results[0];
            f.replace(p, value);
            self.set_scalar(p, scalar);
            self.set_scalar(value, scalar);
            heads.push(splat);
        }
        heads
    }

    fn inst(&mut self, r: &mut Rewriter, i: Inst) -> bool {
        let data = r.f.inst(i);
        let [result] = *data.results.as_slice() else {
            return true;
        };
        if self.is_uniform(r.f, result) {
            self.uniform_inst(r, i, result);
            return true;
        }
        self.scalar_operands(r, i, result)
    }

    fn uniform_inst(&mut self, r: &mut Rewriter, i: Inst, result: Value) {
        let data = r.f.inst(i).clone();
        let lane = Ty::scalar(r.f.ty(result).lane);
        if data.op == Op::Splat {
            self.set_scalar(result, data.args[0]);
            return;
        }
        if let Some(bits) = uniform_const(r.f, result) {
            let scalar = r.constant(lane, bits);
            self.set_scalar(result, scalar);
            return;
        }
        let args: Option<Vec<Value>> = data.args.iter().map(|&a| self.scalar_of(r.f, a)).collect();
        let Some(args) = args else {
            return;
        };
        let scalar = match data.op {
            Op::Shuffle(_) => args[0],
            op => r.emit(op, args, lane),
        };
        let inst = r.f.inst_mut(i);
        inst.op = Op::Splat;
        inst.args = vec![scalar];
        self.set_scalar(result, scalar);
        r.changes += 1;
    }

    /// Scalar operands where an operation takes them; false when the operation is not needed any more.
    fn scalar_operands(&mut self, r: &mut Rewriter, i: Inst, result: Value) -> bool {
        let data = r.f.inst(i);
        let operand = match data.op {
            Op::Select | Op::ExtractLane(_) | Op::MaskAny | Op::MaskAll | Op::MaskToBits => 0,
            Op::Binary(op) if op.is_shift() => 1,
            _ => return true,
        };
        let v = data.args[operand];
        if r.f.ty(v).is_scalar() || !self.is_uniform(r.f, v) {
            return true;
        }
        let Some(scalar) = self.scalar_of(r.f, v) else {
            return true;
        };
        r.changes += 1;
        match r.f.inst(i).op {
            Op::Select | Op::Binary(_) => {
                r.f.inst_mut(i).args[operand] = scalar;
                true
            }
            Op::MaskToBits => {
                let bits = r.emit(Op::Convert(Conv::SExt), vec![scalar], Ty::I32);
                let low = r.constant(Ty::I32, u64::MAX >> (64 - r.f.ty(v).lanes));
                let inst = r.f.inst_mut(i);
                inst.op = Op::Binary(BinOp::And);
                inst.args = vec![bits, low];
                true
            }
            _ => {
                r.f.replace(result, scalar);
                false
            }
        }
    }

    /// Passes scalars to the scalar parameters and drops the vector ones.
    fn arguments(&self, f: &mut Function, order: &[Block]) {
        for &b in order {
            let mut term = std::mem::replace(&mut f.block_mut(b).term, Term::None);
            for call in term.targets_mut() {
                let (mut kept, mut scalars) = (Vec::new(), Vec::new());
                for (&p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                    match (self.is_uniform(f, p), self.scalar_of(f, a)) {
                        (true, Some(s)) => scalars.push(s),
                        _ => kept.push(a),
                    }
                }
                kept.append(&mut scalars);
                call.args = kept;
            }
            f.block_mut(b).term = term;
        }
        for &b in order {
            let mut params = std::mem::take(&mut f.block_mut(b).params);
            params.retain(|&p| !self.is_uniform(f, p));
            for (n, p) in params.iter().enumerate() {
                f.values[p.0 as usize].def = ValueDef::Param(b, n as u32);
            }
            f.block_mut(b).params = params;
        }
    }
}
