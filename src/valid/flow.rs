//! Where control may go: branches stay in their subroutine, calls enter one at its start.

use super::ValidError;
use crate::isa::Opcode;
use crate::module::{Body, Inst, LabelId, Module};

/// Checks every branch and call by label.
pub(super) fn branches(module: &Module, errors: &mut Vec<ValidError>) {
    let starts = module.subroutine_starts();
    // Subroutine number of an instruction.
    let around = |at: usize| starts.partition_point(|&start| start <= at);
    let place = |l: LabelId| {
        let label = module.labels.get(l.0 as usize)?;
        Some((label.def? as usize, label.name.as_str()))
    };
    for (at, inst) in module.insts.iter().enumerate() {
        let mut fail = |message| {
            let pos = inst.pos;
            errors.push(ValidError { pos, message });
        };
        let mut jump = |l: LabelId| {
            if let Some((to, name)) = place(l)
                && around(to) != around(at)
            {
                fail(format!(
                    "branch to `{name}`, which is in another subroutine"
                ));
            }
        };
        match &inst.body {
            Body::Branch(l) if inst.op == Opcode::Call => {
                if let Some((to, name)) = place(*l)
                    && !callable(module, &starts, to)
                {
                    fail(format!("call of `{name}`, where no subroutine starts"));
                }
            }
            Body::Branch(l) => jump(*l),
            Body::SwitchJmp { targets, .. } => targets.iter().for_each(|&l| jump(l)),
            _ => {}
        }
    }
}

/// True for the labels that a subroutine starts with; the kernel's own body is not called.
fn callable(module: &Module, starts: &[usize], to: usize) -> bool {
    let label = |i: &Inst| matches!(i.body, Body::Label(_));
    match starts.partition_point(|&start| start <= to).checked_sub(1) {
        None | Some(0) => false,
        Some(sub) => {
            let before = starts.get(sub).and_then(|&s| module.insts.get(s..=to));
            before.is_some_and(|b| b.iter().all(label))
        }
    }
}
