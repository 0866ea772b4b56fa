//! Whether this process is a copy that `fork` made.
//!
//! A copy has the memory of its parent and only the thread that called `fork`. What another thread was doing then never ends
//! there.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts the calls of `fork` between the process that loaded the driver and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A process, as far as its own memory can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The one that runs this.
    pub fn current() -> Process {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the handler only adds to a number, which is allowed between `fork` and `exec` in a process with threads. The C
            // library forgets it when the driver is unloaded. Without memory for it, copies are not told apart.
            let _ = unsafe { pthread_atfork(None, None, Some(in_child)) };
        });
        Process(FORKS.load(Ordering::Relaxed))
    }
}
