//! Cost of a launch, of handing out groups, of installing code and of the helpers.
//!
//! `cargo bench -p visa-runtime`

use std::hint::black_box;
use std::time::{Duration, Instant};
use visa_runtime::abi::{Entry, GroupCtx, Status, THREAD_DONE, fp_env};
use visa_runtime::{
    Arguments, DeviceMemory, Interrupter, Kernel, KernelCode, KernelMeta, LaunchOptions,
    LaunchShape, PreparedLaunch, WorkerPool, helpers,
};
use visa_test_common::bench::measure;

fn main() {
    // `cargo test --benches` only looks whether it starts.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    one_empty_group("one_empty_group");
    one_empty_group_interruptible("one_empty_group_interruptible");
    one_group_with_memory("one_group_with_memory");
    for workers in [1, 2] {
        ten_thousand_groups(&format!("ten_thousand_groups, {workers} workers"), workers);
        let name = format!("ten_thousand_busy_groups, {workers} workers");
        ten_thousand_busy_groups(&name, workers);
    }
    two_groups_on_two_workers("two_groups_on_two_workers");
    preparation("preparation");
    #[cfg(feature = "jit")]
    for bytes in [100, 10_000, 1_000_000] {
        install_and_drop(&format!("install_and_drop, {bytes} bytes"), bytes);
    }
    device_memory("device_memory");
    for bytes in [64, 65536, 1 << 20] {
        buffer(&format!("buffer, {bytes} bytes"), bytes);
    }
    write_one_mib("write_one_mib");
    for (what, operation) in [
        ("add f32", [fp_env::ADD, 4, 4]),
        ("fma f32", [fp_env::FMA, 4, 4]),
        ("div f64", [fp_env::DIV, 8, 8]),
        ("add f16", [fp_env::ADD, 2, 2]),
        ("i32 to f32", [fp_env::SI_TO_F, 4, 4]),
        ("u32 to f32", [fp_env::UI_TO_F, 4, 4]),
        ("f32 to f16", [fp_env::F_TO_F, 4, 2]),
    ] {
        fp_env_16_lanes(&format!("fp_env_16_lanes, {what}"), operation);
    }
}

/// Finishes all threads at once.
unsafe extern "C" fn empty(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    for thread in first..end {
        // SAFETY: called by the launch with a valid group.
        unsafe { (*(*group).threads.add(thread as usize)).state = THREAD_DONE };
    }
    Status::Done as u32
}

/// Computes for some ten microseconds.
unsafe extern "C" fn busy(_: *mut GroupCtx, _: u32, _: u32) -> u32 {
    let sum = (0..10_000u64).fold(1, |x, i| {
        black_box(x ^ i).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    black_box(sum);
    Status::Done as u32
}

fn prepare(meta: KernelMeta, global: u32, local: u32) -> PreparedLaunch {
    prepare_entry(empty, meta, global, local)
}

fn prepare_entry(entry: Entry, meta: KernelMeta, global: u32, local: u32) -> PreparedLaunch {
    // SAFETY: the entries touch states only.
    let kernel = unsafe { Kernel::new(meta, KernelCode::Linked(entry)) };
    let shape = LaunchShape::new([global, 1, 1], [local, 1, 1]);
    match kernel.and_then(|kernel| PreparedLaunch::new(&kernel, shape)) {
        Ok(launch) => launch,
        Err(error) => panic!("{error}"),
    }
}

fn launch(name: &str, launch: &PreparedLaunch, options: LaunchOptions<'_>) {
    let memory = DeviceMemory::new().ok();
    let arguments = Arguments {
        memory,
        ..Arguments::default()
    };
    measure(name, || {
        black_box(launch).run(black_box(&arguments), &options)
    });
}

/// One group of one thread.
fn one_empty_group(name: &str) {
    launch(
        name,
        &prepare(KernelMeta::default(), 16, 16),
        LaunchOptions::default(),
    );
}

/// The same with an interrupter and a deadline far away.
fn one_empty_group_interruptible(name: &str) {
    let interrupter = Interrupter::new();
    let options = LaunchOptions {
        interrupter: Some(&interrupter),
        deadline: Some(Instant::now() + Duration::from_secs(3600)),
        ..LaunchOptions::default()
    };
    launch(name, &prepare(KernelMeta::default(), 16, 16), options);
}

/// One group of 16 threads with 1 KiB of registers each, 8 KiB of scratch each, 32 KiB of local memory.
fn one_group_with_memory(name: &str) {
    let meta = KernelMeta {
        frame_bytes: 2048,
        regs_bytes: 1024,
        scratch_bytes: 8192,
        slm_bytes: 32768,
        ..KernelMeta::default()
    };
    launch(name, &prepare(meta, 256, 256), LaunchOptions::default());
}

/// Ten thousand groups of 16 threads; divide by 10,000.
fn ten_thousand_groups(name: &str, workers: usize) {
    let pool = WorkerPool::new(workers).ok();
    let options = LaunchOptions {
        pool: pool.as_ref(),
        ..LaunchOptions::default()
    };
    launch(
        name,
        &prepare(KernelMeta::default(), 2_560_000, 256),
        options,
    );
}

/// Ten thousand groups that compute: how well workers share them.
fn ten_thousand_busy_groups(name: &str, workers: usize) {
    let pool = WorkerPool::new(workers).ok();
    let options = LaunchOptions {
        pool: pool.as_ref(),
        ..LaunchOptions::default()
    };
    let prepared = prepare_entry(busy, KernelMeta::default(), 160_000, 16);
    launch(name, &prepared, options);
}

/// Two groups on two workers: what offering a group to a thread costs.
fn two_groups_on_two_workers(name: &str) {
    let pool = WorkerPool::new(2).ok();
    let options = LaunchOptions {
        pool: pool.as_ref(),
        ..LaunchOptions::default()
    };
    launch(name, &prepare(KernelMeta::default(), 32, 16), options);
}

/// Preparing a launch with groups of 256, 8 kinds of group at most.
fn preparation(name: &str) {
    let launch = prepare(KernelMeta::default(), 16, 16);
    let shape = LaunchShape::new([1000, 1, 1], [256, 1, 1]);
    measure(name, || {
        PreparedLaunch::new(black_box(launch.kernel()), shape)
    });
}

/// Installing and dropping code of some bytes.
#[cfg(feature = "jit")]
fn install_and_drop(name: &str, bytes: usize) {
    let code = vec![0xC3; bytes];
    measure(name, || {
        visa_runtime::CodeHandle::install(black_box(&code), 16)
    });
}

/// Reserving device memory.
fn device_memory(name: &str) {
    measure(name, || DeviceMemory::new().ok());
}

/// Allocating and freeing a buffer.
fn buffer(name: &str, bytes: u64) {
    if let Ok(memory) = DeviceMemory::new() {
        measure(name, || memory.alloc(black_box(bytes)));
    }
}

/// Copying a MiB into a buffer.
fn write_one_mib(name: &str) {
    let bytes = vec![1u8; 1 << 20];
    if let Some(buffer) = DeviceMemory::new().ok().and_then(|m| m.alloc(1 << 20).ok()) {
        measure(name, || buffer.write(0, black_box(&bytes)));
    }
}

/// One call of `fp_env` on sixteen lanes, toward zero with denormals kept.
fn fp_env_16_lanes(name: &str, [op, source, result]: [u32; 3]) {
    let operand = [0x3F80_0000_3F80_0000u64; 16];
    let operands = [operand.as_ptr().cast::<u8>(); 3];
    let mut out = [0u64; 16];
    let packed = op | source << 8 | result << 16;
    let out = out.as_mut_ptr().cast::<u8>();
    measure(name, || {
        // SAFETY: operands and result have sixteen elements of up to eight bytes.
        unsafe { (helpers().fp_env)(black_box(packed), 0x4F0, 16, &raw const operands, out) }
    });
}
