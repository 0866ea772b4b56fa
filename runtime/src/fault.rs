//! Fault records: accesses that compiled code found to be out of bounds and reported.

use crate::abi::GroupCtx;
use crate::launch::GroupShape;
use crate::limits::MAX_FAULT_RECORDS;

/// An access of one lane that was out of bounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fault {
    /// Group id.
    pub group: [u32; 3],
    /// Hardware thread of the group.
    pub thread: u32,
    /// Lane of the thread.
    pub lane: u32,
    /// Number of the memory instruction, as the compiler counted them.
    pub site: u32,
    /// Local id of the lane.
    pub local_id: [u32; 3],
    /// Global id of the lane, offset included.
    pub global_id: [u64; 3],
    /// Byte offset in the surface, local or scratch memory, or flat address.
    pub address: u64,
    /// Binding-table index; what it says for other memory is up to the compiler.
    pub surface: u32,
}

/// Where one worker's faults go; [`GroupCtx::faults`] points at it.
#[derive(Debug)]
pub(crate) struct FaultSink {
    /// First records, at most [`MAX_FAULT_RECORDS`].
    pub records: Vec<Fault>,
    /// All faults.
    pub count: u64,
    /// A fault stops the thread.
    pub stop: bool,
    /// Shape of the group that runs.
    pub shape: *const GroupShape,
    /// First global id of the launch.
    pub offset: [u32; 3],
    /// Local size of a full group.
    pub enqueued: [u32; 3],
}

impl FaultSink {
    fn record(&mut self, base: &Fault, lanes: u32, addresses: *const u64) {
        for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
            self.count += 1;
            if self.records.len() >= MAX_FAULT_RECORDS {
                continue;
            }
            let address = addresses.wrapping_add(lane as usize);
            // SAFETY: the caller passes an address for each lane of the mask. The shape is set
            // before a group runs and lives as long as the launch.
            let (address, shape) = unsafe { (address.read_unaligned(), &*self.shape) };
            let local_id = shape.local_id(base.thread, lane);
            let mut global_id = [0; 3];
            for (dim, id) in global_id.iter_mut().enumerate() {
                *id = u64::from(base.group[dim]) * u64::from(self.enqueued[dim])
                    + u64::from(local_id[dim])
                    + u64::from(self.offset[dim]);
            }
            self.records.push(Fault {
                lane,
                local_id,
                global_id,
                address,
                ..base.clone()
            });
        }
    }
}

/// [`crate::abi::Helpers::fault`].
///
/// # Safety
/// `group` must be the group that runs, `addresses` valid at each lane of `lanes`.
pub(crate) unsafe extern "C" fn fault(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    lanes: u32,
    addresses: *const u64,
    surface: u32,
) -> u32 {
    // SAFETY: `group` is valid by the caller's promise.
    let (r0, sink) = unsafe { ((*group).r0, (*group).faults.cast::<FaultSink>()) };
    if sink.is_null() {
        return 1;
    }
    let base = Fault {
        group: [r0[1], r0[6], r0[7]],
        thread,
        lane: 0,
        site,
        local_id: [0; 3],
        global_id: [0; 3],
        address: 0,
        surface,
    };
    // SAFETY: the sink belongs to the worker that runs this group, and only this call uses it now.
    let sink = unsafe { &mut *sink };
    sink.record(&base, lanes, addresses);
    u32::from(sink.stop)
}
