//! Kernels that follow wrong pointers: what is reported names the memory that the program has nearest to the address, and the
//! function that it is from. Settings are those of a process, so that each way runs in a child.

use std::process::Command;

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::{enqueue, kernel, mem, program, queue, svm};

use super::usm::{Kind, alloc, free, set};
use super::{Rig, SUCCESS};

/// What a child process of this test does; the parent names it.
const CHILD: &str = "VISA_JIT_TEST_ASTRAY";

/// Bytes of a list's node: a pointer to the next, a value behind it, and spare bytes.
const NODE: usize = 32;

/// Has one work-item read the value of a node, follow its pointer, and read the value there: 8 bytes behind where it points.
fn follow(rig: &Rig, wrong: u64) {
    let program = rig.program("pointers");
    let kernel = rig.kernel(program, "chase_sum");
    let head = alloc(rig, Kind::Shared, NODE);
    let [out, steps] = [0, 1].map(|_| alloc(rig, Kind::Host, 4));
    // SAFETY: all places are inside allocations of this test, and objects its own.
    unsafe {
        head.cast::<u64>().write(wrong);
        steps.cast::<u32>().write(2);
        for (index, pointer) in [(0, out), (1, head), (2, steps)] {
            assert_eq!(set(kernel, index, pointer), SUCCESS);
        }
        assert_eq!(rig.launch(kernel, 1, None), SUCCESS);
        assert_eq!(queue::clFinish(rig.queue), SUCCESS);
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
    for pointer in [out, head, steps] {
        assert_eq!(free(rig, pointer), SUCCESS);
    }
}

/// Has 64 work-items write to what the program said that kernels only read, or to a part of what they may write, and looks at what is there
/// then.
fn keep(rig: &Rig, what: &str) {
    let zebin = include_bytes!("../../../tests/checks/skl.zebin");
    let program = rig.program_of("skl", zebin);
    let kernel = rig.kernel(program, "store_int");
    let flags = |flags: cl_mem_flags| match what {
        "part" | "half" => u64::from(CL_MEM_READ_WRITE),
        _ => flags,
    };
    let (read_only, mut code) = (u64::from(CL_MEM_READ_ONLY), 1);
    let (null, host) = (std::ptr::null_mut(), [7_i32; 64]);
    // SAFETY: sizes are those of the buffers, and objects this test's own.
    unsafe {
        let buffer = mem::clCreateBuffer(rig.context, flags(read_only), 256, null, &mut code);
        assert_eq!(code, SUCCESS);
        // The program may write it.
        let wrote = enqueue::clEnqueueWriteBuffer(
            rig.queue,
            buffer,
            CL_TRUE,
            0,
            256,
            host.as_ptr().cast(),
            0,
            std::ptr::null(),
            null.cast(),
        );
        assert_eq!(wrote, SUCCESS);
        assert_eq!(rig.read::<i32>(buffer, 64), host);
        let half = what == "half";
        let region = cl_buffer_region {
            origin: 0,
            size: if half { 128 } else { 256 },
        };
        let region: *const cl_buffer_region = &raw const region;
        let kind = CL_BUFFER_CREATE_TYPE_REGION;
        let flags = if half { 0 } else { read_only };
        let part = mem::clCreateSubBuffer(buffer, flags, kind, region.cast(), &mut code);
        assert_eq!(code, SUCCESS);
        let shared = svm::clSVMAlloc(rig.context, read_only, 256, 0);
        assert!(!shared.is_null());
        let given = match what {
            "kept shared memory" => kernel::clSetKernelArgSVMPointer(kernel, 0, shared),
            "part" | "half" => super::set(kernel, 0, &part),
            _ => super::set(kernel, 0, &buffer),
        };
        assert_eq!((given, super::set(kernel, 1, &0_i32)), (SUCCESS, SUCCESS));
        assert_eq!(rig.launch(kernel, 64, None), SUCCESS);
        assert_eq!(queue::clFinish(rig.queue), SUCCESS);
        let left = match what {
            "kept shared memory" => shared.cast::<[i32; 64]>().read().to_vec(),
            _ => rig.read::<i32>(buffer, 64),
        };
        assert_eq!(left, (0..64).collect::<Vec<_>>());
        svm::clSVMFree(rig.context, shared);
        for object in [part, buffer] {
            assert_eq!(mem::clReleaseMemObject(object), SUCCESS);
        }
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
}

/// Does what a child was started for. Nothing when the tests run as usual.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    let rig = Rig::new();
    if matches!(
        what.as_str(),
        "kept" | "kept shared memory" | "part" | "half"
    ) {
        return keep(&rig, &what);
    }
    let after = |pointer: *mut u8, offset: i64| (pointer.addr() as u64).wrapping_add_signed(offset);
    let host = alloc(&rig, Kind::Host, 104);
    let shared = alloc(&rig, Kind::Shared, 48);
    let freed = alloc(&rig, Kind::Device, 64);
    assert_eq!(free(&rig, freed), SUCCESS);
    let other = Rig::new();
    let foreign = alloc(&other, Kind::Host, 112);
    follow(
        &rig,
        match what.as_str() {
            "behind" => after(host, 104),
            "across" => after(host, 94),
            "before" => after(shared, -40),
            "freed" => after(freed, 0),
            "foreign" => after(foreign, 8),
            "null" => 0,
            "far" => 1 << 47,
            other => panic!("{other}"),
        },
    );
    for pointer in [host, shared] {
        assert_eq!(free(&rig, pointer), SUCCESS);
    }
    assert_eq!(free(&other, foreign), SUCCESS);
}

/// The report of a child.
fn told(what: &str, setting: (&str, &str)) -> String {
    // Tests side by side ask the same children, under different settings.
    let name = format!(
        "visa-jit-astray-{}-{}-{what}",
        std::process::id(),
        setting.0
    );
    let file = std::env::temp_dir().join(name);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "astray::child", "--quiet", "--nocapture"])
        .env(CHILD, what)
        .env(setting.0, setting.1)
        .env("VISA_JIT_REPORT", &file)
        .output()
        .unwrap();
    let lines = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {said}");
    lines
}

#[test]
fn checked_accesses_name_what_they_miss() {
    for (what, words) in [
        (
            "behind",
            "8 bytes past the end of a buffer of 104 bytes that is no argument, from clHostMemAllocINTEL: device memory",
        ),
        (
            "across",
            "reaching 2 bytes past the end of a buffer of 104 bytes that is no argument, from clHostMemAllocINTEL",
        ),
        (
            "before",
            "32 bytes before a buffer of 48 bytes that is no argument, from clSharedMemAllocINTEL",
        ),
        (
            "freed",
            "at byte 8 of a buffer of 64 bytes that was allocated after 0 launches and freed after 0 launches, from clDeviceMemAllocINTEL",
        ),
        (
            "foreign",
            "at byte 16 of a buffer of 112 bytes of another context, from clHostMemAllocINTEL",
        ),
    ] {
        let lines = told(what, ("VISA_JIT_CHECK", "memory"));
        assert!(lines.contains(words), "{what}: {lines}");
    }
}

#[test]
fn what_kernels_only_read_is_named() {
    let setting = ("VISA_JIT_CHECK", "memory");
    let lines = told("kept", setting);
    let says = "write of 4 bytes to byte 0 of read-only `o` (256 bytes, argument 0), from clCreateBuffer: device memory at 0x";
    assert!(lines.contains(says), "{lines}");
    for words in ["\"kind\":\"read-only\"", "\"count\":64"] {
        assert!(lines.contains(words), "{words}: {lines}");
    }
    let lines = told("kept shared memory", setting);
    let says = "to byte 0 of read-only `o` (256 bytes, argument 0), from clSVMAlloc";
    assert!(lines.contains(says), "{lines}");
    let lines = told("part", setting);
    let says = "to byte 0 of read-only `o` (256 bytes, argument 0), from clCreateBuffer";
    assert!(lines.contains(says), "{lines}");
}

#[test]
fn what_lies_beside_a_sub_buffer_is_missed() {
    let lines = told("half", ("VISA_JIT_CHECK", "memory"));
    let says = "reaching 4 bytes past the end of `o` (128 bytes, argument 0), part of a buffer of 256 bytes, from clCreateBuffer";
    assert!(lines.contains(says), "{lines}");
    assert!(lines.contains("\"count\":32"), "{lines}");
}

/// Without checks, what lies outside of all device memory is seen.
#[test]
fn reported_accesses_name_what_is_nearest() {
    for (what, place) in [
        ("null", "bytes before a buffer of"),
        ("far", "bytes past the end of a buffer of"),
    ] {
        let lines = told(what, ("VISA_JIT_OOB", "report"));
        for words in ["out of bounds, ", place, "MemAllocINTEL: device memory"] {
            assert!(lines.contains(words), "{what}: {words}: {lines}");
        }
    }
    let inside = told("behind", ("VISA_JIT_OOB", "report"));
    assert!(!inside.contains("faults"), "{inside}");
}
