//! Unified shared memory by its extension's functions, which are found by name as programs find them.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::usm::*;
use visa_jit_opencl::api::{context, device, event, kernel, platform, program, queue, svm};

use super::{Rig, SUCCESS};

const FLAGS: u64 = CL_MEM_ALLOC_FLAGS_INTEL as u64;

/// An allocation of one of the three kinds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Host,
    Device,
    Shared,
}

const KINDS: [Kind; 3] = [Kind::Host, Kind::Device, Kind::Shared];

fn try_alloc(
    rig: &Rig,
    kind: Kind,
    list: &[u64],
    size: usize,
    align: u32,
) -> Result<*mut u8, cl_int> {
    let list = if list.is_empty() {
        null()
    } else {
        list.as_ptr()
    };
    let mut code = 1;
    // SAFETY: the list ends in 0, the other pointers are to variables of their type.
    let made = unsafe {
        let (context, device) = (rig.context, rig.device);
        match kind {
            Kind::Host => clHostMemAllocINTEL(context, list, size, align, &mut code),
            Kind::Device => clDeviceMemAllocINTEL(context, device, list, size, align, &mut code),
            Kind::Shared => clSharedMemAllocINTEL(context, device, list, size, align, &mut code),
        }
    };
    assert_eq!(made.is_null(), code != SUCCESS);
    if made.is_null() {
        return Err(code);
    }
    Ok(made.cast())
}

pub fn alloc(rig: &Rig, kind: Kind, size: usize) -> *mut u8 {
    try_alloc(rig, kind, &[], size, 0).unwrap()
}

pub fn free(rig: &Rig, pointer: *mut u8) -> cl_int {
    // SAFETY: freed or not, it is only looked up.
    unsafe { clMemFreeINTEL(rig.context, pointer.cast()) }
}

fn asked<T: Copy>(rig: &Rig, pointer: *const u8, query: cl_mem_info, none: T) -> T {
    let (mut value, mut needed) = (none, 0);
    // SAFETY: the value is as large as is said.
    let code = unsafe {
        clGetMemAllocInfoINTEL(
            rig.context,
            pointer.cast(),
            query,
            size_of::<T>(),
            (&raw mut value).cast(),
            &mut needed,
        )
    };
    assert_eq!((code, needed), (SUCCESS, size_of::<T>()));
    value
}

/// Type, first byte, size, device and flags of what an address is in.
fn info(rig: &Rig, pointer: *const u8) -> (u32, usize, usize, cl_device_id, u64) {
    (
        asked(rig, pointer, CL_MEM_ALLOC_TYPE_INTEL, 0),
        asked(rig, pointer, CL_MEM_ALLOC_BASE_PTR_INTEL, 0),
        asked(rig, pointer, CL_MEM_ALLOC_SIZE_INTEL, 0),
        asked(rig, pointer, CL_MEM_ALLOC_DEVICE_INTEL, null_mut()),
        asked(rig, pointer, CL_MEM_ALLOC_FLAGS_INTEL, 0),
    )
}

fn copy(rig: &Rig, to: *mut u8, from: *const u8, size: usize) -> cl_int {
    // SAFETY: wrong ranges are what the codes are for; others are those of the caller.
    unsafe {
        clEnqueueMemcpyINTEL(
            rig.queue,
            CL_TRUE,
            to.cast(),
            from.cast(),
            size,
            0,
            null(),
            null_mut(),
        )
    }
}

pub fn set(kernel: cl_kernel, index: u32, pointer: *const u8) -> cl_int {
    // SAFETY: the address is looked up.
    unsafe { clSetKernelArgMemPointerINTEL(kernel, index, pointer.cast()) }
}

#[test]
fn allocations_say_what_they_are() {
    let rig = Rig::new();
    for (kind, code, device) in [
        (Kind::Host, CL_MEM_TYPE_HOST_INTEL, null_mut()),
        (Kind::Device, CL_MEM_TYPE_DEVICE_INTEL, rig.device),
        (Kind::Shared, CL_MEM_TYPE_SHARED_INTEL, rig.device),
    ] {
        let flags = u64::from(CL_MEM_ALLOC_WRITE_COMBINED_INTEL);
        for align in [0, 1, 64, 4096] {
            let made = try_alloc(&rig, kind, &[FLAGS, flags, 0], 1000, align).unwrap();
            assert!(made.addr().is_multiple_of(align.max(1) as usize));
            for at in [0, 1, 999] {
                let told = info(&rig, made.wrapping_add(at));
                assert_eq!(told, (code, made.addr(), 1000, device, flags), "{kind:?}");
            }
            let nothing = (CL_MEM_TYPE_UNKNOWN_INTEL, 0, 0, null_mut(), 0);
            assert_eq!(info(&rig, made.wrapping_add(1000)), nothing);
            assert_eq!(info(&rig, made.wrapping_sub(1)), nothing);
            assert_eq!(free(&rig, made), SUCCESS);
            assert_eq!(info(&rig, made), nothing);
        }
    }
    // Shared memory of no device in particular.
    let mut code = 1;
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let made =
            clSharedMemAllocINTEL(rig.context, null_mut(), null(), 64, 0, &mut code).cast::<u8>();
        assert_eq!(code, SUCCESS);
        assert_eq!(info(&rig, made).3, null_mut());
        assert_eq!(clMemBlockingFreeINTEL(rig.context, made.cast()), SUCCESS);
        let told =
            clGetMemAllocInfoINTEL(rig.context, null(), CL_MEM_SIZE, 0, null_mut(), null_mut());
        assert_eq!(told, CL_INVALID_VALUE);
    }
}

#[test]
fn wrong_allocations_are_codes() {
    let rig = Rig::new();
    let mut most = 0_u64;
    // SAFETY: as above.
    unsafe {
        let query = CL_DEVICE_MAX_MEM_ALLOC_SIZE;
        let told =
            device::clGetDeviceInfo(rig.device, query, 8, (&raw mut most).cast(), null_mut());
        assert_eq!(told, SUCCESS);
    }
    let unknown = u64::from(CL_MEM_ALLOC_BUFFER_LOCATION_INTEL);
    let placed = u64::from(CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL);
    let both = placed | u64::from(CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL);
    for kind in KINDS {
        let code = |list: &[u64], size, align| try_alloc(&rig, kind, list, size, align).err();
        assert_eq!(code(&[], 0, 0), Some(CL_INVALID_BUFFER_SIZE));
        let over = usize::try_from(most).unwrap() + 1;
        assert_eq!(code(&[], over, 0), Some(CL_INVALID_BUFFER_SIZE));
        assert_eq!(code(&[], 64, 3), Some(CL_INVALID_VALUE));
        assert_eq!(code(&[], 64, 1 << 30), Some(CL_INVALID_VALUE));
        assert_eq!(code(&[unknown, 0, 0], 64, 0), Some(CL_INVALID_PROPERTY));
        assert_eq!(code(&[FLAGS, both, 0], 64, 0), Some(CL_INVALID_PROPERTY));
        let shared = if kind == Kind::Shared {
            None
        } else {
            Some(CL_INVALID_PROPERTY)
        };
        assert_eq!(code(&[FLAGS, placed, 0], 64, 0), shared);
        assert_eq!(
            code(&[FLAGS, 0, FLAGS, 0, 0], 64, 0),
            Some(CL_INVALID_PROPERTY)
        );
    }
    let mut code = 1;
    // SAFETY: a wrong handle is answered by a code.
    unsafe {
        let none = clHostMemAllocINTEL(null_mut(), null(), 64, 0, &mut code);
        assert_eq!((none, code), (null_mut(), CL_INVALID_CONTEXT));
        let none = clDeviceMemAllocINTEL(rig.context, null_mut(), null(), 64, 0, &mut code);
        assert_eq!((none, code), (null_mut(), CL_INVALID_DEVICE));
        assert_eq!(clMemFreeINTEL(null_mut(), null_mut()), CL_INVALID_CONTEXT);
        assert_eq!(clMemFreeINTEL(rig.context, null_mut()), SUCCESS);
        assert_eq!(clMemBlockingFreeINTEL(rig.context, null_mut()), SUCCESS);
        let told = clGetMemAllocInfoINTEL(
            null_mut(),
            null(),
            CL_MEM_ALLOC_TYPE_INTEL,
            0,
            null_mut(),
            null_mut(),
        );
        assert_eq!(told, CL_INVALID_CONTEXT);
    }
}

/// What is freed, off by one allocation, or shared virtual memory, is no unified shared memory.
#[test]
fn pointers_elsewhere_are_codes() {
    let rig = Rig::new();
    let made = alloc(&rig, Kind::Shared, 256);
    assert_eq!(free(&rig, made.wrapping_add(1)), CL_INVALID_VALUE);
    assert_eq!(free(&rig, made.wrapping_add(256)), CL_INVALID_VALUE);
    let mut here = [0_u8; 300];
    let outside = [(0, 257), (1, 256), (255, 2)];
    for (at, size) in outside {
        let place = made.wrapping_add(at);
        assert_eq!(copy(&rig, here.as_mut_ptr(), place, size), CL_INVALID_VALUE);
        assert_eq!(copy(&rig, place, here.as_ptr(), size), CL_INVALID_VALUE);
    }
    assert_eq!(copy(&rig, null_mut(), made, 1), CL_INVALID_VALUE);
    assert_eq!(copy(&rig, made, null(), 1), CL_INVALID_VALUE);
    let behind = made.wrapping_add(100);
    assert_eq!(copy(&rig, behind, made, 101), CL_MEM_COPY_OVERLAP);
    assert_eq!(copy(&rig, behind, made, 100), SUCCESS);
    let program = rig.program("saxpy");
    let kernel = rig.kernel(program, "saxpy");
    assert_eq!(set(kernel, 0, made.wrapping_add(255)), SUCCESS);
    assert_eq!(set(kernel, 0, null()), SUCCESS);
    let end = made.wrapping_add(256);
    assert_eq!(set(kernel, 0, end), CL_INVALID_ARG_VALUE);
    assert_eq!(set(kernel, 0, here.as_ptr()), CL_INVALID_ARG_VALUE);
    assert_eq!(set(kernel, 2, made), CL_INVALID_ARG_VALUE);
    assert_eq!(set(kernel, 3, made), CL_INVALID_ARG_INDEX);
    assert_eq!(set(null_mut(), 0, made), CL_INVALID_KERNEL);
    assert_eq!(free(&rig, made), SUCCESS);
    assert_eq!(set(kernel, 0, made), CL_INVALID_ARG_VALUE);
    assert_eq!(free(&rig, made), CL_INVALID_VALUE);
    // SAFETY: the objects are this test's own.
    unsafe {
        assert_eq!(
            clMemBlockingFreeINTEL(rig.context, made.cast()),
            CL_INVALID_VALUE
        );
        let flags = u64::from(CL_MEM_READ_WRITE);
        let other = svm::clSVMAlloc(rig.context, flags, 64, 0);
        assert_eq!(free(&rig, other.cast()), CL_INVALID_VALUE);
        assert_eq!(info(&rig, other.cast()).0, CL_MEM_TYPE_UNKNOWN_INTEL);
        assert_eq!(copy(&rig, other.cast(), here.as_ptr(), 64), SUCCESS);
        svm::clSVMFree(rig.context, other);
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
}

/// Commands on memory, each with its own kind of event.
#[test]
fn memory_is_filled_copied_and_migrated() {
    let rig = Rig::new();
    let made = alloc(&rig, Kind::Device, 1024);
    let mut event: cl_event = null_mut();
    let kind = |event: cl_event| {
        let mut kind: cl_command_type = 0;
        // SAFETY: the event is that of the last command.
        unsafe {
            let query = CL_EVENT_COMMAND_TYPE;
            let told = event::clGetEventInfo(event, query, 4, (&raw mut kind).cast(), null_mut());
            assert_eq!(told, SUCCESS);
            assert_eq!(event::clReleaseEvent(event), SUCCESS);
        }
        kind
    };
    let pattern = [1_u16, 2, 3, 4];
    // SAFETY: ranges are those of the allocation, or their codes are what is asked for.
    unsafe {
        let (queue, to) = (rig.queue, made.cast::<c_void>());
        assert_eq!(
            clEnqueueMemsetINTEL(queue, to, 0x1A5, 1024, 0, null(), &mut event),
            SUCCESS
        );
        assert_eq!(kind(event), CL_COMMAND_MEMFILL_INTEL);
        let from = pattern.as_ptr().cast();
        let part = to.wrapping_byte_add(64);
        let fill = |to, bytes, size, event| {
            clEnqueueMemFillINTEL(queue, to, from, bytes, size, 0, null(), event)
        };
        assert_eq!(fill(part, 8, 32, &mut event), SUCCESS);
        assert_eq!(kind(event), CL_COMMAND_MEMFILL_INTEL);
        let wrong = [
            (part, 3, 3),
            (part, 256, 256),
            (part, 8, 12),
            (part, 8, 968),
        ];
        for (to, bytes, size) in wrong {
            assert_eq!(fill(to, bytes, size, null_mut()), CL_INVALID_VALUE);
        }
        let odd = to.wrapping_byte_add(4);
        assert_eq!(fill(odd, 8, 8, null_mut()), CL_INVALID_VALUE);
        assert_eq!(fill(null_mut(), 8, 8, null_mut()), CL_INVALID_VALUE);
        let wait = [null_mut()];
        let waits = clEnqueueMemsetINTEL(queue, to, 0, 4, 1, wait.as_ptr(), null_mut());
        assert_eq!(waits, CL_INVALID_EVENT_WAIT_LIST);
        let none = null_mut();
        assert_eq!(
            clEnqueueMemsetINTEL(none, to, 0, 4, 0, null(), null_mut()),
            CL_INVALID_COMMAND_QUEUE
        );
        let migrate = |to, size, flags, event| {
            clEnqueueMigrateMemINTEL(queue, to, size, flags, 0, null(), event)
        };
        let host = u64::from(CL_MIGRATE_MEM_OBJECT_HOST);
        assert_eq!(migrate(to, 1024, host, &mut event), SUCCESS);
        assert_eq!(kind(event), CL_COMMAND_MIGRATEMEM_INTEL);
        assert_eq!(migrate(to, 1025, 0, null_mut()), CL_INVALID_VALUE);
        assert_eq!(migrate(to, 1024, 1 << 9, null_mut()), CL_INVALID_VALUE);
        let advise =
            |to, size, event| clEnqueueMemAdviseINTEL(queue, to, size, 0, 0, null(), event);
        assert_eq!(advise(to, 1024, &mut event), SUCCESS);
        assert_eq!(kind(event), CL_COMMAND_MEMADVISE_INTEL);
        assert_eq!(advise(to, 1025, null_mut()), CL_INVALID_VALUE);
    }
    let mut here = [0_u8; 1024];
    assert_eq!(copy(&rig, here.as_mut_ptr(), made, 1024), SUCCESS);
    let mut wanted = [0xA5_u8; 1024];
    let words = pattern.iter().flat_map(|word| word.to_ne_bytes());
    let words: Vec<u8> = words.collect();
    wanted[64..96].copy_from_slice(&words.repeat(4));
    assert_eq!(here, wanted);
    assert_eq!(free(&rig, made), SUCCESS);
}

#[test]
fn devices_say_what_they_can_do() {
    let rig = Rig::new();
    let caps = |query| {
        let mut bits = u64::MAX;
        // SAFETY: the value is as large as is said.
        let told = unsafe {
            device::clGetDeviceInfo(rig.device, query, 8, (&raw mut bits).cast(), null_mut())
        };
        assert_eq!(told, SUCCESS);
        bits
    };
    for query in [
        CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL,
        CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
        CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
        CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
    ] {
        assert_eq!(caps(query), 0b1111);
    }
    assert_eq!(caps(CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL), 0);
}

/// Libraries divide by these numbers.
#[test]
fn parts_of_a_device_agree() {
    let rig = Rig::new();
    let number = |query| {
        let mut value = 0_u32;
        // SAFETY: the value is as large as is said.
        let told = unsafe {
            device::clGetDeviceInfo(rig.device, query, 4, (&raw mut value).cast(), null_mut())
        };
        assert_eq!(told, SUCCESS);
        value
    };
    let parts = [
        CL_DEVICE_NUM_SLICES_INTEL,
        CL_DEVICE_NUM_SUB_SLICES_PER_SLICE_INTEL,
        CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL,
    ];
    let units: u32 = parts.into_iter().map(number).product();
    assert_eq!(units, number(CL_DEVICE_MAX_COMPUTE_UNITS));
    assert!(units.is_multiple_of(8) && units > 0);
    assert!(number(CL_DEVICE_NUM_THREADS_PER_EU_INTEL) > 0);
}

/// Programs find the functions by name, by either way.
#[test]
fn functions_are_found_by_name() {
    let rig = Rig::new();
    let names = [
        c"clHostMemAllocINTEL",
        c"clDeviceMemAllocINTEL",
        c"clSharedMemAllocINTEL",
        c"clMemFreeINTEL",
        c"clMemBlockingFreeINTEL",
        c"clGetMemAllocInfoINTEL",
        c"clSetKernelArgMemPointerINTEL",
        c"clEnqueueMemsetINTEL",
        c"clEnqueueMemFillINTEL",
        c"clEnqueueMemcpyINTEL",
        c"clEnqueueMigrateMemINTEL",
        c"clEnqueueMemAdviseINTEL",
    ];
    let find = |name: &CStr| {
        // SAFETY: the name ends in NUL.
        unsafe {
            let one = platform::clGetExtensionFunctionAddress(name.as_ptr());
            let named = name.as_ptr();
            let two = platform::clGetExtensionFunctionAddressForPlatform(rig.platform, named);
            assert_eq!(one, two);
            one
        }
    };
    assert!(names.iter().all(|name| !find(name).is_null()));
    assert!(find(c"clEnqueueReadHostPipeINTEL").is_null());
    assert!(find(c"clHostMemAlloc").is_null());
}

/// A kernel reaches what it is told of by pointers in memory, and what the program writes by its own pointers.
#[test]
fn kernels_follow_pointers_in_memory() {
    let rig = Rig::new();
    let program = rig.program("pointers");
    let kernel = rig.kernel(program, "chase_sum");
    let (n, node) = (64_usize, 32_usize);
    // Each node is an allocation of its own, of every kind in turn.
    let nodes: Vec<*mut u8> = (0..n).map(|i| alloc(&rig, KINDS[i % 3], node)).collect();
    let heads = alloc(&rig, Kind::Shared, n * node);
    let (out, steps) = (
        alloc(&rig, Kind::Host, 4 * n),
        alloc(&rig, Kind::Host, 4 * n),
    );
    // SAFETY: all places are inside allocations of this test.
    unsafe {
        for (i, at) in nodes.iter().enumerate() {
            let next = nodes[(i * 7 + 3) % n];
            for at in [*at, heads.add(i * node)] {
                at.cast::<*mut u8>().write(next);
                at.add(8).cast::<i32>().write(3 * i as i32 + 1);
            }
            steps.cast::<u32>().add(i).write(i as u32 % 9);
        }
        for (index, pointer) in [(0, out), (1, heads), (2, steps)] {
            assert_eq!(set(kernel, index, pointer), SUCCESS);
        }
        let yes = CL_TRUE;
        for query in [
            CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL,
            CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
            CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
        ] {
            let told =
                |size| kernel::clSetKernelExecInfo(kernel, query, size, (&raw const yes).cast());
            assert_eq!((told(4), told(3)), (SUCCESS, CL_INVALID_VALUE));
        }
        let all = nodes.as_ptr().cast();
        let query = CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL;
        let told = |size| kernel::clSetKernelExecInfo(kernel, query, size, all);
        assert_eq!((told(8 * n), told(7)), (SUCCESS, CL_INVALID_VALUE));
        assert_eq!(rig.launch(kernel, n, None), SUCCESS);
        assert_eq!(queue::clFinish(rig.queue), SUCCESS);
        for i in 0..n {
            let (mut at, mut sum) = (i, 0);
            for _ in 0..i % 9 {
                sum += 3 * at as i32 + 1;
                at = (at * 7 + 3) % n;
            }
            assert_eq!(out.cast::<i32>().add(i).read(), sum, "{i}");
        }
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
    for pointer in nodes.into_iter().chain([heads, out, steps]) {
        assert_eq!(free(&rig, pointer), SUCCESS);
    }
}

/// A blocking free waits for commands that use the memory.
#[test]
fn a_blocking_free_waits() {
    let rig = Rig::new();
    let from = alloc(&rig, Kind::Device, 1 << 20);
    let mut here = vec![0_u8; 1 << 20];
    // SAFETY: all are this test's own, and there until the end.
    unsafe {
        let to = from.cast();
        let set = clEnqueueMemsetINTEL(rig.queue, to, 7, 1 << 20, 0, null(), null_mut());
        assert_eq!(set, SUCCESS);
        let copied = clEnqueueMemcpyINTEL(
            rig.queue,
            CL_FALSE,
            here.as_mut_ptr().cast(),
            to,
            1 << 20,
            0,
            null(),
            null_mut(),
        );
        assert_eq!(copied, SUCCESS);
        assert_eq!(clMemBlockingFreeINTEL(rig.context, to), SUCCESS);
    }
    assert!(here.iter().all(|byte| *byte == 7));
}

/// Allocations of 1 byte to 300 kilobytes are new, used by kernels and freed, by threads that share a context.
#[test]
fn threads_churn() {
    churn_on_threads(&Rig::new(), visa_test_common::share(150, 3));
}

/// The same with 10,000 launches: memory that was in use once is used again.
#[test]
#[ignore = "takes seconds"]
fn churn_leaks_nothing() {
    // Threads keep some of what they freed for themselves.
    const SLACK_BYTES: u64 = 8 << 20;
    let rig = Rig::new();
    churn_on_threads(&rig, 250);
    let before = resident_bytes();
    churn_on_threads(&rig, 10_000 / THREADS);
    let after = resident_bytes();
    println!("{before} bytes before, {after} bytes after");
    assert!(after < before + SLACK_BYTES, "{before} {after}");
}

/// Bytes of memory that this process has.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<u64>().unwrap() << 10
}

const THREADS: u64 = 8;

fn churn_on_threads(rig: &Rig, rounds: u64) {
    let program = rig.program("saxpy").expose_provenance();
    std::thread::scope(|scope| {
        for t in 0..THREADS {
            scope.spawn(move || churn(rig, program, t, rounds));
        }
    });
    // SAFETY: it was made here.
    let released =
        unsafe { program::clReleaseProgram(std::ptr::with_exposed_provenance_mut(program)) };
    assert_eq!(released, SUCCESS);
}

fn churn(rig: &Rig, program: usize, t: u64, rounds: u64) {
    let kernel = rig.kernel(std::ptr::with_exposed_provenance_mut(program), "saxpy");
    let mut state = t + 1;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut kept: Vec<(*mut u8, usize, u8)> = Vec::new();
    for round in 0..rounds {
        let n = 1 + random(2000) as usize;
        let [x, y] = [0, 1].map(|_| alloc(rig, KINDS[random(3) as usize], 4 * n).cast::<f32>());
        let spare = 1 + random(300_000) as usize;
        let filled = alloc(rig, Kind::Device, spare);
        // SAFETY: all places are inside allocations of this thread.
        unsafe {
            for i in 0..n {
                assert_eq!(y.add(i).read().to_bits(), 0, "memory is zero at first");
                x.add(i).write(i as f32);
                y.add(i).write(t as f32);
            }
            let set_to = clEnqueueMemsetINTEL(
                rig.queue,
                filled.cast(),
                t as i32,
                spare,
                0,
                null(),
                null_mut(),
            );
            assert_eq!(set_to, SUCCESS);
            assert_eq!(set(kernel, 0, y.cast()), SUCCESS);
            assert_eq!(set(kernel, 1, x.cast()), SUCCESS);
            assert_eq!(super::set(kernel, 2, &2.0_f32), SUCCESS);
            assert_eq!(rig.launch(kernel, n, None), SUCCESS);
            assert_eq!(queue::clFinish(rig.queue), SUCCESS);
            for i in 0..n {
                assert_eq!(y.add(i).read(), 2.0 * i as f32 + t as f32, "{round} {i}");
            }
        }
        kept.push((filled, spare, t as u8));
        if kept.len() > 8 {
            let (old, bytes, value) = kept.swap_remove(random(8) as usize);
            // SAFETY: as above.
            let seen = unsafe { std::slice::from_raw_parts(old, bytes) };
            assert!(seen.iter().all(|byte| *byte == value));
            assert_eq!(free(rig, old), SUCCESS);
        }
        assert_eq!(free(rig, x.cast()), SUCCESS);
        // SAFETY: as above.
        let freed = unsafe { clMemBlockingFreeINTEL(rig.context, y.cast()) };
        assert_eq!(freed, SUCCESS);
    }
    for (old, ..) in kept {
        assert_eq!(free(rig, old), SUCCESS);
    }
    // SAFETY: it was made here.
    assert_eq!(unsafe { kernel::clReleaseKernel(kernel) }, SUCCESS);
}

/// Contexts do not know each other's memory.
#[test]
fn contexts_are_apart() {
    let (rig, other) = (Rig::new(), Rig::new());
    let made = alloc(&rig, Kind::Host, 64);
    assert_eq!(info(&other, made).0, CL_MEM_TYPE_UNKNOWN_INTEL);
    assert_eq!(free(&other, made), CL_INVALID_VALUE);
    // SAFETY: the context is this test's own.
    assert_eq!(unsafe { context::clRetainContext(rig.context) }, SUCCESS);
    // SAFETY: as above.
    assert_eq!(unsafe { context::clReleaseContext(rig.context) }, SUCCESS);
    assert_eq!(free(&rig, made), SUCCESS);
}
