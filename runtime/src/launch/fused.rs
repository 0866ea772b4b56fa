//! Fused threads that exchange values ([`Exchange`]): which of them go on when all threads of a group have stopped.
//!
//! Threads that wait for each other go on first, pair after pair, while those at barriers stay where they are. Only when no pair meets
//! any more is there a barrier to leave; a thread that still waits for its other half then waits forever, which ends
//! the launch.

use crate::abi::{GroupCtx, Status, THREAD_DONE, ThreadCtx};
use crate::meta::{Exchange, KernelMeta};

/// What runs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// These pairs: threads `2k` and `2k + 1`.
    Pairs(Vec<u32>),
    /// All threads.
    All,
    /// A thread waits at an exchange on this line, and the other one does not come there.
    Alone(u32),
}

/// Number of the exchange that a thread waits at.
fn exchange_index(e: &Exchange, states: u32, state: u32) -> Option<usize> {
    let barriers = states.checked_sub(e.lines.len() as u32)?;
    let waits = state != THREAD_DONE && state > barriers && state <= states;
    waits.then(|| (state - barriers - 1) as usize)
}

/// Decides, and lets pairs that meet exchange what they offer.
///
/// # Safety
/// No code runs in the group; its first `threads` threads are laid out for a kernel of this (checked) metadata.
pub(super) unsafe fn meet(
    group: *const GroupCtx,
    threads: u32,
    meta: &KernelMeta,
    e: &Exchange,
) -> Next {
    // SAFETY: the table has an entry for each thread.
    let threads = unsafe { std::slice::from_raw_parts((*group).threads, threads as usize) };
    let at = |t: &ThreadCtx| exchange_index(e, meta.states, t.state);
    let alone = |place: usize| Next::Alone(e.lines.get(place).copied().unwrap_or(0));
    let mut pairs = Vec::new();
    for (k, pair) in (0..).zip(threads.chunks_exact(2)) {
        let (Some(x), Some(y)) = (at(&pair[0]), at(&pair[1])) else {
            continue;
        };
        if x != y {
            return alone(x);
        }
        // SAFETY: both offers lie in the threads' frames, which do not overlap.
        unsafe { swap(&pair[0], &pair[1], e) };
        pairs.push(k);
    }
    if !pairs.is_empty() {
        return Next::Pairs(pairs);
    }
    match threads.iter().find_map(at) {
        Some(place) => alone(place),
        None => Next::All,
    }
}

/// # Safety
/// Frames of both threads hold the exchange, and do not overlap.
unsafe fn swap(x: &ThreadCtx, y: &ThreadCtx, e: &Exchange) {
    let (from, bytes) = (e.offset as usize, e.bytes as usize);
    for (to, other) in [(x, y), (y, x)] {
        // SAFETY: as promised; what is read is not written here.
        unsafe {
            let offer = other.frame.add(from);
            offer.copy_to_nonoverlapping(to.frame.add(from + bytes), bytes);
        }
    }
}

/// [`Status::Done`] or [`Status::Suspended`] of all threads.
///
/// # Safety
/// As with [`meet`].
pub(super) unsafe fn status(group: *const GroupCtx, threads: u32) -> u32 {
    // SAFETY: the table has an entry for each thread.
    let threads = unsafe { std::slice::from_raw_parts((*group).threads, threads as usize) };
    if threads.iter().all(|t| t.state == THREAD_DONE) {
        Status::Done as u32
    } else {
        Status::Suspended as u32
    }
}
