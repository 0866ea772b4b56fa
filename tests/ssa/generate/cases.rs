//! Shapes of code that passes look for, in random functions: cases of `tests/ssa/passes` become a part of one, on its values.

use std::collections::HashMap;
use std::sync::LazyLock;

use visa_jit::ssa::*;

use super::Generator;
use crate::golden;

/// The functions of all cases that a part of another function can be.
static CASES: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let fits = |f: &Function| {
        let order = dom::reverse_post_order(f);
        let place = |b| order.iter().position(|&other| other == b);
        // A loop may end for the case's own inputs only.
        let ends = |b| {
            f.block(b)
                .term
                .targets()
                .iter()
                .all(|call| place(call.block) > place(b))
        };
        let plain = |b: Block| f.block(b).insts.iter().all(|&i| is_plain(f, i));
        let returns = order.iter().filter(|&&b| is_return(f, b)).count();
        returns == 1 && order.iter().all(|&b| ends(b) && plain(b))
    };
    golden::inputs().into_iter().filter(fits).collect()
});

fn is_return(f: &Function, b: Block) -> bool {
    matches!(f.block(b).term, Term::Return)
}

/// Not what only the launch knows, nor what belongs to a whole function.
fn is_plain(f: &Function, i: Inst) -> bool {
    match &f.inst(i).op {
        Op::Input(Input::Payload(_) | Input::DispatchMask | Input::LocalIds { .. }) => true,
        Op::Load(_) | Op::Store(_) | Op::BlockLoad(_) | Op::BlockStore(_) => true,
        Op::Input(_) | Op::FrameLoad(_) | Op::Image(_) => false,
        op => !op.waits() && (op.site().is_none() || matches!(op, Op::Atomic(_))),
    }
}

impl Generator {
    /// Takes over a case: its inputs are values of this function, and so is what it leaves in its frame.
    pub(super) fn case(&mut self) {
        let fitting: Vec<_> = CASES.iter().filter(|f| f.simd == self.lanes).collect();
        let case = *self.rng.pick(&fitting);
        let first_site = self.f.sites.len() as u32;
        self.f.sites.extend(case.sites.iter().cloned());
        let end = self.f.new_block();
        let mut blocks = HashMap::from([(Function::ENTRY, self.block)]);
        let mut values = HashMap::new();
        for &b in case.order.iter().filter(|&&b| b != Function::ENTRY) {
            let new = self.f.new_block();
            blocks.insert(b, new);
            for &p in &case.block(b).params {
                values.insert(p, self.f.add_param(new, case.ty(p)));
            }
        }
        let mut left = Vec::new();
        for b in dom::reverse_post_order(case) {
            self.block = blocks[&b];
            for &i in &case.block(b).insts {
                let InstData {
                    op, args, results, ..
                } = case.inst(i);
                match op {
                    Op::Input(_) => {
                        let outer = self.value(case.ty(results[0]));
                        values.insert(results[0], outer);
                    }
                    Op::FrameStore(_) if b == Function::ENTRY || is_return(case, b) => {
                        left.push(values[&args[0]]);
                    }
                    Op::FrameStore(_) => {}
                    _ => {
                        let args = args.iter().map(|v| values[v]).collect();
                        let tys: Vec<_> = results.iter().map(|&v| case.ty(v)).collect();
                        let op = of_sites(op.clone(), first_site);
                        let made = self.f.push(self.block, op, args, &tys, 0);
                        values.extend(
                            results
                                .iter()
                                .copied()
                                .zip(self.f.inst(made).results.clone()),
                        );
                    }
                }
            }
            let mut term = case.block(b).term.clone();
            for call in term.targets_mut() {
                call.block = blocks[&call.block];
                call.args.iter_mut().for_each(|v| *v = values[v]);
            }
            match &mut term {
                Term::Branch { cond: v, .. } | Term::Switch { index: v, .. } => *v = values[v],
                Term::Return => {
                    let (block, args) = (end, vec![]);
                    term = Term::Jump(BlockCall { block, args });
                }
                Term::None | Term::Jump(_) | Term::Suspend(_) => {}
            }
            self.terminate(term);
        }
        self.block = end;
        for &v in &left {
            self.save(v);
        }
        self.pool.extend(left);
    }
}

/// The operation with sites that come after others.
fn of_sites(mut op: Op, first: u32) -> Op {
    match &mut op {
        Op::Load(m) | Op::Store(m) => m.site = m.site.saturating_add(first),
        Op::BlockLoad(m) | Op::BlockStore(m) => m.site = m.site.saturating_add(first),
        Op::Atomic(m) => m.site = m.site.saturating_add(first),
        _ => {}
    }
    op
}
