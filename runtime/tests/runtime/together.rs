//! Launches of one kernel and shape that run at the same time.

use crate::common::{kernel, meta};
use std::sync::atomic::{AtomicU64, Ordering};
use visa_runtime::abi::{GroupCtx, Status};
use visa_runtime::{
    Arguments, DeviceMemory, KernelMeta, LaunchOptions, LaunchShape, Payload, PreparedLaunch,
};

/// Writes the launch's number to local memory and counts the groups that find it there after a while.
unsafe extern "C" fn count(group: *mut GroupCtx, _first: u32, _end: u32) -> u32 {
    // SAFETY: called by the launch with a valid group; the payload holds an address and a number.
    unsafe {
        let g = &*group;
        let [counter, number] = (*g.launch).payload.cast::<[u64; 2]>().read();
        let local = AtomicU64::from_ptr(g.slm.cast());
        assert_eq!(local.swap(number, Ordering::Relaxed), 0);
        std::thread::yield_now();
        if local.load(Ordering::Relaxed) == number {
            *(counter as *mut u64) += 1;
        }
    }
    Status::Done as u32
}

#[test]
fn each_has_memory_of_its_own() {
    let meta = KernelMeta {
        slm_bytes: 8,
        ..meta()
    };
    let kernel = kernel(meta, count);
    let memory = DeviceMemory::new().unwrap();
    let launch = |number: u64| {
        for _ in 0..50 {
            let shape = LaunchShape::new([32, 3, 1], [16, 1, 1]);
            let launch = PreparedLaunch::new(&kernel, shape).unwrap();
            let counter = memory.alloc(8).unwrap();
            let payload = [counter.address(), number].map(u64::to_le_bytes);
            let arguments = Arguments {
                payload: Payload::from_bytes(payload.as_flattened()).unwrap(),
                ..Arguments::default()
            };
            for runs in 1..4 {
                let report = launch.run(&arguments, &LaunchOptions::default()).unwrap();
                assert_eq!(report.groups, 6);
                assert_eq!(counter.to_vec_of::<u64>(), [6 * runs]);
            }
        }
    };
    std::thread::scope(|s| {
        for number in 1..5 {
            s.spawn(move || launch(number));
        }
    });
}
