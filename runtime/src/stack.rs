//! Stacks for code whose frame is too large for the stack of the thread that launches.
//!
//! Each worker of such a kernel has one, made with the worker, and switches to it for as long as it runs groups. Pages that
//! cannot be accessed lie on both sides. Generated code calls only helpers, never itself, so that the frame's size and
//! a reserve are all that is used; the frame's size is known, and no frame steps over the reserve.

use crate::memory::map::{Mapping, page_size, round_page};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Bytes for the worker's loop and for helpers, which generated code calls.
const RESERVE: u64 = 256 << 10;

/// A stack.
#[derive(Debug)]
pub(crate) struct Stack {
    mapping: Mapping,
    /// Bytes between the guard pages.
    bytes: usize,
}

impl Stack {
    /// A stack with room for a frame of `frame` bytes and the reserve.
    pub(crate) fn new(frame: u32) -> io::Result<Stack> {
        let bytes = round_page(u64::from(frame) + RESERVE);
        let bytes = bytes.and_then(|b| usize::try_from(b).ok());
        let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
        let guard = page_size();
        let mapping = Mapping::reserve(bytes + 2 * guard)?;
        mapping.open(guard..guard + bytes)?;
        Ok(Stack { mapping, bytes })
    }

    /// Bytes that it may take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Runs `work` on this stack. A panic of `work` goes on from here.
    pub(crate) fn run<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let guarded = move || catch_unwind(AssertUnwindSafe(work));
        #[cfg(not(miri))]
        // SAFETY: the pages between the guards are readable, writable and aligned, and `&mut self` keeps everybody else off
        // them until the call returns; the closure catches panics and so ends by returning only.
        let result = unsafe {
            let start = self.mapping.start().add(page_size());
            psm::on_stack(start, self.bytes, guarded)
        };
        #[cfg(miri)]
        let result = guarded();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address of something on the stack.
    #[inline(never)]
    fn here() -> usize {
        let local = 0u8;
        std::hint::black_box(&raw const local) as usize
    }

    #[test]
    #[cfg_attr(miri, ignore = "no stack to switch to")]
    fn work_runs_on_it_and_comes_back() {
        let mut stack = Stack::new(1 << 20).unwrap();
        let start = stack.mapping.start() as usize;
        let range = start..start + stack.bytes + 2 * page_size();
        assert!(!range.contains(&here()));
        for n in 0..3 {
            let (at, n) = stack.run(|| (here(), n));
            assert!(range.contains(&at), "{n}");
        }
    }

    #[test]
    fn a_panic_goes_on_where_it_was_called() {
        let mut stack = Stack::new(0).unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| stack.run(|| panic!("on it"))));
        let panic = caught.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"on it"));
        assert_eq!(stack.run(|| 7), 7);
    }
}
