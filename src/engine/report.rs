//! What a launch did.

use std::time::Duration;

use super::cache::Origin;
use super::fault::FaultRecord;
use visa_runtime::LaunchStatus;

/// What a launch did.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended. [`LaunchStatus::Faulted`], too, if an assertion of the kernel failed.
    pub status: LaunchStatus,
    /// Work-groups that ran to their end.
    pub groups: u64,
    /// Hardware threads of those.
    pub threads: u64,
    /// First faults.
    pub faults: Vec<FaultRecord>,
    /// All faults.
    pub fault_count: u64,
    /// Time to make the code, whenever that was.
    pub compile: Duration,
    /// Where the code was.
    pub origin: Origin,
    /// Run time.
    pub run: Duration,
    /// Code generator.
    pub backend: &'static str,
    /// What the code generator did other than asked for, and why; or why the interpreter carried the launch out.
    pub note: Option<String>,
    /// What the kernel printed.
    pub printed: Vec<u8>,
    /// Why that is not all, or not what the kernel meant.
    pub print_problem: Option<String>,
    /// What the kernel's failed assertions say, a line each; `None` when none failed.
    pub failed_assertions: Option<Vec<u8>>,
}

impl Report {
    /// Of a launch that was stopped while its code was compiled.
    pub(super) fn without_code(
        status: LaunchStatus,
        backend: &'static str,
        compile: Duration,
    ) -> Report {
        Report {
            status,
            groups: 0,
            threads: 0,
            faults: Vec::new(),
            fault_count: 0,
            compile,
            origin: Origin::Compiled,
            run: Duration::ZERO,
            backend,
            note: None,
            printed: Vec::new(),
            print_problem: None,
            failed_assertions: None,
        }
    }
}
