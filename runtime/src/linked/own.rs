//! Memory of a launch that no argument names.

use super::implicit::IMPLICIT_ARGS_BYTES;
use super::plan::{LaunchPlan, SlotSource};
use crate::error::LaunchError;
use crate::launch::{LocalIdTable, PreparedLaunch};
use crate::memory::{Buffer, DeviceMemory};
use crate::pool::WorkerPool;
use crate::printf::PrintBuffer;

/// Memory of a launch that no argument names. Arguments that were laid out with it hold its addresses, so it must be kept as
/// long as they are used.
#[derive(Debug, Default)]
pub struct LaunchMemory {
    /// Private memory of all hardware threads.
    pub(super) private: Option<Buffer>,
    /// Where the kernel prints to.
    pub(super) printing: Option<PrintBuffer>,
    /// Where its assertions say that they failed.
    pub(super) asserting: Option<PrintBuffer>,
    /// Where functions find their local ids.
    pub(super) local_ids: Option<LocalIdTable>,
    /// Where functions find what they are told of the launch, if it is no part of the payload.
    pub(super) implicit: Option<Buffer>,
}

impl LaunchMemory {
    /// What a plan needs for a launch on this pool.
    ///
    /// # Errors
    /// When there is not enough memory, and for kernels whose functions read local ids if groups differ in size.
    pub fn new(
        plan: &LaunchPlan,
        launch: &PreparedLaunch,
        memory: &DeviceMemory,
        pool: Option<&WorkerPool>,
    ) -> Result<LaunchMemory, LaunchError> {
        let wants = |wanted: fn(&SlotSource) -> bool| plan.wants(wanted);
        let by_address = wants(|source| matches!(source, SlotSource::ImplicitArgsAddress { .. }));
        let in_payload = wants(|source| matches!(source, SlotSource::ImplicitArgs { .. }));
        let private = plan.private_bytes.saturating_mul(launch.hw_threads(pool));
        let some = |bytes| memory.alloc(bytes);
        let private = (private != 0).then(|| some(private)).transpose()?;
        let local_ids = match by_address || in_payload {
            true => launch.local_id_table(memory)?,
            false => None,
        };
        let implicit = by_address.then(|| some(IMPLICIT_ARGS_BYTES.into()));
        let printing = plan
            .prints()
            .then(|| PrintBuffer::new(memory))
            .transpose()?;
        let asserting = plan
            .asserts()
            .then(|| PrintBuffer::for_assertions(memory))
            .transpose()?;
        Ok(LaunchMemory {
            private,
            printing,
            asserting,
            local_ids,
            implicit: implicit.transpose()?,
        })
    }

    /// Private memory of all hardware threads, if the kernel has any there.
    pub fn private(&self) -> Option<&Buffer> {
        self.private.as_ref()
    }

    /// Where the kernel prints to.
    pub fn printing(&self) -> Option<&PrintBuffer> {
        self.printing.as_ref()
    }

    /// Where its assertions say that they failed.
    pub fn asserting(&self) -> Option<&PrintBuffer> {
        self.asserting.as_ref()
    }
}
