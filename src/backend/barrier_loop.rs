//! The work-group barrier loop: whether the runtime or the code itself resumes threads that wait at a barrier.

use super::{BackendError, Dispatch, Tuning};
use crate::ssa::{Block, Function, Op, Term};

/// Who resumes the threads of a work-group once all of them wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BarrierLoop {
    /// No barriers: threads never wait.
    #[default]
    None,
    /// The runtime: the code returns at each barrier.
    Runtime,
    /// The code itself: it loops over the threads until all are finished, if it is called for all threads of a group. Called for
    /// some of them, as in a launch with an order of its own, it returns at each barrier.
    Code,
}

/// Chooses the loop for the reachable blocks of a function.
///
/// # Errors
/// [`BackendError::Strategy`] when `--dispatch group` is asked for and threads wait for something that only the runtime
/// knows.
pub(super) fn plan(
    backend: &'static str,
    f: &Function,
    order: &[Block],
    tuning: Tuning,
) -> Result<BarrierLoop, BackendError> {
    let suspends = |&b: &Block| matches!(f.block(b).term, Term::Suspend(_));
    if !order.iter().any(suspends) {
        return Ok(BarrierLoop::None);
    }
    if tuning.dispatch == Dispatch::Thread {
        return Ok(BarrierLoop::Runtime);
    }
    let mut insts = order.iter().flat_map(|&b| &f.block(b).insts);
    let named = insts.any(|&i| matches!(f.inst(i).op, Op::NamedBarrier(_)));
    let what = match (&f.exchange, named) {
        _ if super::race::is_checked(f) => "checks of races",
        (Some(_), _) => "threads that exchange values",
        (None, true) => "named barriers",
        (None, false) => return Ok(BarrierLoop::Code),
    };
    if tuning.dispatch == Dispatch::Auto {
        return Ok(BarrierLoop::Runtime);
    }
    Err(BackendError::Strategy {
        backend,
        what: format!(
            "has no code for whole groups with {what}, as in `{}`, the runtime says which thread goes on: use --dispatch thread",
            f.name
        ),
    })
}
