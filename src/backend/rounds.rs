//! Which code takes all threads of a group through their barriers in one call.

use super::{BackendError, Dispatch, Tuning};
use crate::ssa::{Block, Function, Op, Term};

/// Who lets threads go on that all wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rounds {
    /// Nobody: threads never wait.
    #[default]
    None,
    /// The runtime: the code returns.
    Runtime,
    /// The code itself: it starts anew with the first thread, until all are finished.
    Code,
}

/// Who does it in the reachable blocks of a function.
///
/// # Errors
/// [`BackendError::Strategy`] when code is asked for that goes round by itself, and threads wait for what only the
/// runtime knows.
pub(super) fn of(
    backend: &'static str,
    f: &Function,
    order: &[Block],
    tuning: Tuning,
) -> Result<Rounds, BackendError> {
    let suspends = |&b: &Block| matches!(f.block(b).term, Term::Suspend(_));
    if !order.iter().any(suspends) {
        return Ok(Rounds::None);
    }
    if tuning.dispatch != Dispatch::Group {
        return Ok(Rounds::Runtime);
    }
    let mut insts = order.iter().flat_map(|&b| &f.block(b).insts);
    let named = insts.any(|&i| matches!(f.inst(i).op, Op::NamedBarrier(_)));
    let what = match (&f.exchange, named) {
        (Some(_), _) => "threads that exchange values",
        (None, true) => "named barriers",
        (None, false) => return Ok(Rounds::Code),
    };
    Err(BackendError::Strategy {
        backend,
        what: format!(
            "has no code for whole groups with {what}, as in `{}`, the runtime says which thread goes on: use --dispatch thread",
            f.name
        ),
    })
}
