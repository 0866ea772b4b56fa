//! The edges of a process: it may end at any time, and without having released anything.

use std::process::Command;
use std::ptr::{null, null_mut};

use visa_jit_opencl::abi::{CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE};
use visa_jit_opencl::api::{device, enqueue, mem, usm};
use visa_test_common::{full, share};

use super::{Rig, SUCCESS, set};

/// What a child process of this test does; the parent names it.
const CHILD: &str = "VISA_JIT_TEST_CHILD";

fn work(rig: &Rig) {
    let program = rig.program("saxpy");
    let kernel = rig.kernel(program, "saxpy");
    let buffer = rig.buffer(&[1_f32; 1 << 16]);
    for index in [0, 1] {
        assert_eq!(set(kernel, index, &buffer), SUCCESS);
    }
    assert_eq!(set(kernel, 2, &2.0_f32), SUCCESS);
    for _ in 0..50 {
        assert_eq!(rig.launch(kernel, 1 << 16, None), SUCCESS);
    }
}

/// Does what a child was started for. Nothing when the tests run as usual.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    let rig = Rig::new();
    if ![
        "barrier", "beyond", "filled", "init", "memory", "order", "race", "tier", "usm",
    ]
    .contains(&what.as_str())
    {
        work(&rig);
    }
    match what.as_str() {
        // Commands are still in the queue.
        "exit" => std::process::exit(0),
        "flush" => {
            // SAFETY: it is the rig's own.
            let flushed = unsafe { visa_jit_opencl::api::queue::clFlush(rig.queue) };
            assert_eq!(flushed, SUCCESS);
            std::process::exit(0);
        }
        "main" => std::mem::forget(rig),
        "beyond" => {
            let kernel = rig.kernel(rig.program("saxpy"), "saxpy");
            for index in [0, 1] {
                assert_eq!(set(kernel, index, &rig.buffer(&[1_f32; 64])), SUCCESS);
            }
            assert_eq!(set(kernel, 2, &2.0_f32), SUCCESS);
            assert_eq!(rig.launch(kernel, 65, None), SUCCESS);
            // SAFETY: it is the rig's own.
            let done = unsafe { visa_jit_opencl::api::queue::clFinish(rig.queue) };
            assert_eq!(done, SUCCESS);
        }
        "barrier" => {
            let zebin = include_bytes!("../../../tests/checks/barrier-skl.zebin");
            let kernel = rig.kernel(rig.program_of("barrier", zebin), "early");
            let buffer = rig.buffer(&[0_i32; 64]);
            assert_eq!(set(kernel, 0, &buffer), SUCCESS);
            assert_eq!(set(kernel, 1, &5_i32), SUCCESS);
            assert_eq!(rig.launch(kernel, 64, Some(64)), SUCCESS);
            assert_eq!(rig.read::<i32>(buffer, 64)[5], 58);
        }
        "race" => {
            let zebin = include_bytes!("../../../tests/checks/race-skl.zebin");
            let kernel = rig.kernel(rig.program_of("race", zebin), "local_read");
            assert_eq!(set(kernel, 0, &rig.buffer(&[0_i32; 256])), SUCCESS);
            assert_eq!(set(kernel, 1, &1_i32), SUCCESS);
            assert_eq!(rig.launch(kernel, 256, Some(128)), SUCCESS);
            // SAFETY: it is the rig's own.
            let done = unsafe { visa_jit_opencl::api::queue::clFinish(rig.queue) };
            assert_eq!(done, SUCCESS);
        }
        "order" => {
            let zebin = include_bytes!("../../../tests/checks/race-skl.zebin");
            let kernel = rig.kernel(rig.program_of("race", zebin), "local_read");
            let o = rig.buffer(&[0_i32; 256]);
            assert_eq!(set(kernel, 0, &o), SUCCESS);
            assert_eq!(set(kernel, 1, &1_i32), SUCCESS);
            assert_eq!(rig.launch(kernel, 256, Some(128)), SUCCESS);
            println!("left {:?}", rig.read::<i32>(o, 256));
        }
        "init" => use_without_content(&rig, 0),
        "filled" => use_without_content(&rig, 240),
        "tier" => run_until_llvms(&rig),
        "usm" => use_usm(&rig),
        "memory" => fill_memory(&rig),
        other => panic!("{other}"),
    }
}

/// A kernel reads all 256 bytes of a buffer that was made without content. The first `filled` bytes are copied from another buffer first,
/// whose last 16 bytes have no content either.
fn use_without_content(rig: &Rig, filled: usize) {
    let zebin = include_bytes!("../../../tests/checks/init-skl.zebin");
    let kernel = rig.kernel(rig.program_of("init", zebin), "buffer_index");
    let (a, o) = (rig.buffer(&[1_i32; 64]), rig.buffer(&[0_i32; 64]));
    let mut code = SUCCESS;
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let mut empty = || mem::clCreateBuffer(rig.context, 0, 256, null_mut(), &mut code);
        let (other, b) = (empty(), empty());
        let (none, value) = (null_mut(), 0_i32);
        if filled != 0 {
            let pattern = (&raw const value).cast();
            let done = enqueue::clEnqueueFillBuffer(
                rig.queue,
                other,
                pattern,
                4,
                0,
                filled,
                0,
                null(),
                none,
            );
            assert_eq!(done, SUCCESS);
            let done =
                enqueue::clEnqueueCopyBuffer(rig.queue, other, b, 0, 0, 256, 0, null(), none);
            assert_eq!(done, SUCCESS);
        }
        assert_eq!(code, SUCCESS);
        for (index, buffer) in [o, a, b].iter().enumerate() {
            assert_eq!(set(kernel, index as u32, buffer), SUCCESS);
        }
        assert_eq!(set(kernel, 3, &0_i32), SUCCESS);
        assert_eq!(rig.launch(kernel, 64, Some(64)), SUCCESS);
        assert_eq!(visa_jit_opencl::api::queue::clFinish(rig.queue), SUCCESS);
    }
}

/// A kernel reads device memory of which half of 256 bytes was filled, then shared memory, which counts as initialised.
fn use_usm(rig: &Rig) {
    let zebin = include_bytes!("../../../tests/checks/init-skl.zebin");
    let kernel = rig.kernel(rig.program_of("init", zebin), "buffer_index");
    let (a, o) = (rig.buffer(&[1_i32; 64]), rig.buffer(&[0_i32; 64]));
    assert_eq!(set(kernel, 0, &o), SUCCESS);
    assert_eq!(set(kernel, 1, &a), SUCCESS);
    assert_eq!(set(kernel, 3, &0_i32), SUCCESS);
    let (mut code, value) = (SUCCESS, 0_i32);
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let (context, device, list) = (rig.context, rig.device, null());
        let on_device = usm::clDeviceMemAllocINTEL(context, device, list, 256, 0, &mut code);
        let shared = usm::clSharedMemAllocINTEL(context, device, list, 256, 0, &mut code);
        assert_eq!(code, SUCCESS);
        let pattern = (&raw const value).cast();
        let none = null_mut();
        let filled =
            usm::clEnqueueMemFillINTEL(rig.queue, on_device, pattern, 4, 128, 0, null(), none);
        assert_eq!(filled, SUCCESS);
        for memory in [on_device, shared] {
            assert_eq!(
                usm::clSetKernelArgMemPointerINTEL(kernel, 2, memory),
                SUCCESS
            );
            assert_eq!(rig.launch(kernel, 64, Some(64)), SUCCESS);
        }
        assert_eq!(visa_jit_opencl::api::queue::clFinish(rig.queue), SUCCESS);
    }
}

/// Runs a kernel until the log says that its code is LLVM's, and sees to it that results do not change.
fn run_until_llvms(rig: &Rig) {
    let log = std::env::var("VISA_JIT_LOG").unwrap();
    let kernel = rig.kernel(rig.program("saxpy"), "saxpy");
    let x = rig.buffer(&[1_f32; 64]);
    assert_eq!(set(kernel, 1, &x), SUCCESS);
    assert_eq!(set(kernel, 2, &2.0_f32), SUCCESS);
    let begun = std::time::Instant::now();
    loop {
        let y = rig.buffer(&[0.5_f32; 64]);
        assert_eq!(set(kernel, 0, &y), SUCCESS);
        // The later ones are launches that are ready.
        for runs in 1..=20 {
            assert_eq!(rig.launch(kernel, 64, None), SUCCESS);
            let wanted = 0.5 + 2.0 * runs as f32;
            assert_eq!(rig.read::<f32>(y, 64), [wanted; 64]);
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if said.contains("runs code by llvm") {
            return;
        }
        assert!(begun.elapsed().as_secs() < 300, "{said}");
    }
}

/// Takes the largest buffers until there is no room; then there is room again.
fn fill_memory(rig: &Rig) {
    let (mut held, mut code, mut most) = (Vec::new(), SUCCESS, 0_u64);
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let query = CL_DEVICE_MAX_MEM_ALLOC_SIZE;
        let room = (&raw mut most).cast();
        assert_eq!(
            device::clGetDeviceInfo(rig.device, query, 8, room, null_mut()),
            SUCCESS
        );
        while code == SUCCESS {
            assert!(held.len() < 1000, "there is no end");
            held.push(mem::clCreateBuffer(
                rig.context,
                0,
                most as usize,
                null_mut(),
                &mut code,
            ));
        }
        assert_eq!(code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert!(held.pop().is_some_and(|last| last.is_null()) && !held.is_empty());
        for buffer in held {
            assert_eq!(mem::clReleaseMemObject(buffer), SUCCESS);
        }
        let buffer = mem::clCreateBuffer(rig.context, 0, most as usize, null_mut(), &mut code);
        assert_eq!(code, SUCCESS);
        assert_eq!(mem::clReleaseMemObject(buffer), SUCCESS);
    }
}

/// The log says what was asked for and what there is, once for each buffer that there was no room for.
#[test]
fn memory_that_is_full_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::child", "--quiet", "--nocapture"])
        .env(CHILD, "memory")
        .env("VISA_JIT_LOG", file.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let log = std::fs::read_to_string(file.path()).unwrap();
    let numbers: Vec<u64> = log
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let [wanted, taken, all] = numbers[..] else {
        panic!("{log}");
    };
    assert!(taken <= all && wanted > all - taken, "{log}");
    assert!(log.contains("bytes wanted"), "{log}");
}

#[test]
fn programs_end_as_they_like() {
    let me = std::env::current_exe().unwrap();
    // With tiers, LLVM compiles in the background when they end.
    let tiers: &[&str] = if cfg!(feature = "llvm") {
        &["0", "1"]
    } else {
        &["0"]
    };
    for (what, tier) in ["exit", "flush", "main"]
        .into_iter()
        .flat_map(|what| tiers.iter().map(move |tier| (what, tier)))
    {
        for _ in 0..share(10, 4) {
            let output = Command::new(&me)
                .args(["--exact", "process::child", "--quiet", "--nocapture"])
                .env(CHILD, what)
                .env("VISA_JIT_TIER", tier)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{what}: {:?}: {said}",
                output.status
            );
            assert_eq!(said, "", "{what}");
        }
    }
}

/// The driver takes LLVM's code when it is there, or refuses to in builds without LLVM.
#[test]
fn kernels_are_tiered() {
    let run = |tier: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::child", "--quiet", "--nocapture"])
            .envs([(CHILD, "tier"), ("VISA_JIT_TIER", tier)])
            .env("VISA_JIT_LOG", file.path())
            .output()
            .unwrap();
        let log = std::fs::read_to_string(file.path()).unwrap();
        (output.status.success(), log)
    };
    let (fine, log) = run("1");
    if cfg!(feature = "llvm") {
        assert!(fine, "{log}");
        // The background may be faster than the first launch.
        let by = |name| format!("visa-jit: kernel `saxpy` runs code by {name}\n");
        let (first, then) = (by("cranelift"), by("llvm"));
        assert!([format!("{first}{then}"), then].contains(&log), "{log}");
    } else {
        assert!(!fine && log.contains("; --tier compiles with it"), "{log}");
    }
    let (fine, log) = run("perhaps");
    assert!(!fine && log.contains("VISA_JIT_TIER: `perhaps`"), "{log}");
}

/// A kernel with a race leaves what the order of its threads says.
#[test]
fn orders_are_drawn_from_a_seed() {
    let me = std::env::current_exe().unwrap();
    let left = |seed: &str| {
        let output = Command::new(&me)
            .args(["--exact", "process::child", "--quiet", "--nocapture"])
            .envs([(CHILD, "order"), ("VISA_JIT_SCHEDULE", seed)])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = said.lines().find(|line| line.starts_with("left "));
        line.map(str::to_owned)
    };
    let usual = left("");
    let seeds = ["1", "2", "3", "4"];
    let drawn: Vec<_> = seeds
        .into_iter()
        .take(if full() { 4 } else { 2 })
        .map(left)
        .collect();
    assert!(usual.is_some() && drawn.iter().all(Option::is_some));
    assert!(drawn.iter().any(|d| *d != usual), "{usual:?}");
    assert!(drawn.iter().any(|d| *d != drawn[0]), "{drawn:?}");
    assert_eq!(left("1"), drawn[0]);
    // What is no seed is no order either: the driver refuses to run.
    assert_eq!(left("often"), None);
}

#[test]
fn known_findings_are_not_told() {
    let me = std::env::current_exe().unwrap();
    let told_of = |what: &str, check: &str, rules: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let output = Command::new(&me)
            .args(["--exact", "process::child", "--quiet", "--nocapture"])
            .envs([(CHILD, what), ("VISA_JIT_CHECK", check)])
            .env("VISA_JIT_SUPPRESS", rules)
            .env("VISA_JIT_REPORT", file.path())
            .output()
            .unwrap();
        let lines = std::fs::read_to_string(file.path()).unwrap();
        // A report without findings would be told as a launch with faults.
        (
            output.status.success(),
            lines.contains(r#""kind":"faults""#),
        )
    };
    let told = |rules: &str| told_of("race", "race", rules);
    assert_eq!(told("barrier\nrace:another"), (true, true));
    assert_eq!(told("barrier\nrace:local_read"), (true, false));
    let (fine, _) = told("races");
    assert!(!fine);
    // Both buffers are missed: `y`, argument 0, and `x`.
    for (rules, left) in [
        ("all@y", true),
        ("all@y\nall@x", false),
        ("all@0\nbounds@1\nbuffer@1", false),
    ] {
        assert_eq!(told_of("beyond", "memory", rules), (true, left), "{rules}");
    }
}

#[test]
fn checks_are_told() {
    let me = std::env::current_exe().unwrap();
    let told_on = |backend: &str, what: &str, check: &str| {
        let name = format!("visa-jit-checks-{}-{what}-{check}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let output = Command::new(&me)
            .args(["--exact", "process::child", "--quiet", "--nocapture"])
            .envs([(CHILD, what), ("VISA_JIT_CHECK", check)])
            .env("VISA_JIT_BACKEND", backend)
            .env("VISA_JIT_REPORT", &file)
            .output()
            .unwrap();
        let lines = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        (output.status.success(), lines)
    };
    let told = |what: &str, check: &str| told_on("", what, check);
    let (fine, lines) = told("beyond", "memory");
    assert!(fine, "{lines}");
    // A load and a store of one work-item in each of the buffers: the first argument is read and written.
    for part in [
        r#""kind":"bounds""#,
        "reaching 4 bytes past the end of `y` (256 bytes, argument 0)",
        "reaching 4 bytes past the end of `x` (256 bytes, argument 1)",
        r#""local_id":[64,0,0]"#,
        r#""count":3"#,
    ] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    let (fine, lines) = told("barrier", "barrier");
    assert!(fine, "{lines}");
    for part in [
        r#""kind":"barrier""#,
        "`barrier` reached by 27 of 32 work-items of thread 0, group (0, 0, 0): local id (0, 0, 0) is missing",
        r#""count":5"#,
    ] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    // A plain run has each kind of check by itself or among all, on one of the engines.
    let every = if full() { 1 } else { 2 };
    for check in ["race", "all"].into_iter().step_by(every) {
        let (fine, lines) = told("race", check);
        assert!(fine, "{lines}");
        for part in [
            r#""kind":"race""#,
            "racing with the `",
            ": local memory at 0x",
        ] {
            assert!(lines.contains(part), "{check}: {part}: {lines}");
        }
    }
    let on = ["interp", "cranelift"].into_iter();
    let cases = on.flat_map(|on| [(on, "init", 64), (on, "filled", 4)]);
    let cases = cases.enumerate().filter(|(n, _)| full() || n % 3 == 0);
    for (_, (on, what, count)) in cases {
        let check = if what == "init" { "init" } else { "all" };
        let (fine, lines) = told_on(on, what, check);
        assert!(fine, "{lines}");
        let count = format!(r#""count":{count}"#);
        for part in [
            r#""kind":"init""#,
            "address depends on uninitialised memory at byte ",
            " of `b` (256 bytes, argument 2), from clCreateBuffer",
            &count,
        ] {
            assert!(lines.contains(part), "{what}: {part}: {lines}");
        }
    }
    for (on, check) in [
        ("interp", "init"),
        ("cranelift", "init"),
        ("cranelift", "all"),
    ]
    .into_iter()
    .step_by(every)
    {
        let (fine, lines) = told_on(on, "usm", check);
        assert!(
            fine && lines.matches(r#""count":32"#).count() == 1,
            "{lines}"
        );
        assert!(
            lines
                .contains("at byte 128 of `b` (256 bytes, argument 2), from clDeviceMemAllocINTEL"),
            "{lines}"
        );
    }
    for (what, check) in [
        ("barrier", "memory"),
        ("beyond", "barrier"),
        ("beyond", "race"),
        ("race", "memory,barrier"),
    ]
    .into_iter()
    .step_by(every)
    {
        let (fine, lines) = told(what, check);
        assert!(fine && !lines.contains("faults"), "{what}: {lines}");
    }
    let (fine, lines) = told("beyond", "nonsense");
    assert!(!fine, "{lines}");
    assert!(lines.contains("nonsense"), "{lines}");
}
