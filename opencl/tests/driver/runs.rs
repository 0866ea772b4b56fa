//! Kernels run, and results are those of the same computation here.

use std::ptr::{null, null_mut};

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::{enqueue, event, kernel, mem, program, queue};

use super::{Rig, SUCCESS, set};

fn saxpy(rig: &Rig, kernel: cl_kernel, n: usize, a: f32) {
    let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let y: Vec<f32> = (0..n).map(|i| 1000.0 - i as f32).collect();
    let (bx, by) = (rig.buffer(&x), rig.buffer(&y));
    assert_eq!(set(kernel, 0, &by), SUCCESS);
    assert_eq!(set(kernel, 1, &bx), SUCCESS);
    assert_eq!(set(kernel, 2, &a), SUCCESS);
    assert_eq!(rig.launch(kernel, n, None), SUCCESS);
    let got: Vec<f32> = rig.read(by, n);
    for (i, value) in got.into_iter().enumerate() {
        assert_eq!(value.to_bits(), a.mul_add(x[i], y[i]).to_bits(), "{i}");
    }
    for buffer in [bx, by] {
        // SAFETY: it was made here.
        assert_eq!(unsafe { mem::clReleaseMemObject(buffer) }, SUCCESS);
    }
}

fn release(kernel: cl_kernel, program: cl_program) {
    // SAFETY: both are the caller's own.
    unsafe {
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
}

#[test]
fn a_kernel_of_a_zebin_runs() {
    let rig = Rig::new();
    let program = rig.program("saxpy");
    let kernel = rig.kernel(program, "saxpy");
    for n in [1, 31, 256, 5000] {
        saxpy(&rig, kernel, n, 2.5);
    }
    release(kernel, program);
}

/// Eight threads with contexts and queues of their own.
#[test]
fn threads_do_not_disturb_each_other() {
    std::thread::scope(|scope| {
        for t in 0..8_u8 {
            scope.spawn(move || {
                let out_of_order = u64::from(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
                let rig = Rig::with_queue(if t % 2 == 0 { 0 } else { out_of_order });
                let program = rig.program("saxpy");
                let kernel = rig.kernel(program, "saxpy");
                for round in 0..40 {
                    saxpy(&rig, kernel, 64 + round, f32::from(t));
                }
                release(kernel, program);
            });
        }
    });
}

/// One queue and one context for all threads, with kernels of their own.
#[test]
fn threads_share_a_queue() {
    let rig = Rig::new();
    let program = rig.program("saxpy");
    std::thread::scope(|scope| {
        for t in 0..8_u8 {
            let (rig, program) = (&rig, program as usize);
            scope.spawn(move || {
                let kernel = rig.kernel(program as cl_program, "saxpy");
                for round in 0..40 {
                    saxpy(rig, kernel, 100 + round, f32::from(t));
                }
                // SAFETY: it was made here.
                assert_eq!(unsafe { kernel::clReleaseKernel(kernel) }, SUCCESS);
            });
        }
    });
    // SAFETY: it was made here.
    assert_eq!(unsafe { program::clReleaseProgram(program) }, SUCCESS);
}

/// Nothing of a queue starts before a user event is set, and an error of the event ends what waits for it.
#[test]
fn commands_wait_for_events_of_the_program() {
    let rig = Rig::new();
    let buffer = rig.buffer(&[0_u32; 4]);
    for (status, value) in [(CL_COMPLETE as cl_int, 7_u32), (-5, 9)] {
        let mut code = 1;
        let before: Vec<u32> = rig.read(buffer, 4);
        // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
        unsafe {
            let user = event::clCreateUserEvent(rig.context, &mut code);
            assert_eq!(code, SUCCESS);
            let mut done = null_mut();
            let filled = enqueue::clEnqueueFillBuffer(
                rig.queue,
                buffer,
                (&raw const value).cast(),
                4,
                0,
                16,
                1,
                &user,
                &mut done,
            );
            assert_eq!(filled, SUCCESS);
            assert_eq!(queue::clFlush(rig.queue), SUCCESS);
            assert_eq!(event::clSetUserEventStatus(user, status), SUCCESS);
            let waited = event::clWaitForEvents(1, &done);
            let failed = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
            assert_eq!(waited, if status < 0 { failed } else { SUCCESS });
            assert_eq!(event::clReleaseEvent(done), SUCCESS);
            assert_eq!(event::clReleaseEvent(user), SUCCESS);
        }
        let want = if status < 0 { before } else { vec![value; 4] };
        assert_eq!(rig.read::<u32>(buffer, 4), want);
    }
    // SAFETY: it was made here.
    assert_eq!(unsafe { mem::clReleaseMemObject(buffer) }, SUCCESS);
}

/// What the host writes through a mapping is what a kernel reads, and copies, fills and rectangles move the right bytes.
#[test]
fn buffers_are_mapped_copied_and_filled() {
    let rig = Rig::new();
    let (a, b) = (
        rig.buffer(&[1_u32, 2, 3, 4, 5, 6, 7, 8]),
        rig.buffer(&[0_u32; 8]),
    );
    let mut code = 1;
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let flags = u64::from(CL_MAP_READ | CL_MAP_WRITE);
        let mapped = enqueue::clEnqueueMapBuffer(
            rig.queue,
            a,
            CL_TRUE,
            flags,
            8,
            8,
            0,
            null(),
            null_mut(),
            &mut code,
        );
        assert_eq!(code, SUCCESS);
        let words = mapped.cast::<u32>();
        assert_eq!((words.read(), words.add(1).read()), (3, 4));
        words.write(30);
        let unmapped =
            enqueue::clEnqueueUnmapMemObject(rig.queue, a, mapped, 0, null(), null_mut());
        assert_eq!(unmapped, SUCCESS);
        let copied =
            enqueue::clEnqueueCopyBuffer(rig.queue, a, b, 4, 16, 12, 0, null(), null_mut());
        assert_eq!(copied, SUCCESS);
        let overlap = enqueue::clEnqueueCopyBuffer(rig.queue, a, a, 0, 4, 8, 0, null(), null_mut());
        assert_eq!(overlap, CL_MEM_COPY_OVERLAP);
    }
    assert_eq!(rig.read::<u32>(a, 8), [1, 2, 30, 4, 5, 6, 7, 8]);
    assert_eq!(rig.read::<u32>(b, 8), [0, 0, 0, 0, 2, 30, 4, 0]);
    for buffer in [a, b] {
        // SAFETY: it was made here.
        assert_eq!(unsafe { mem::clReleaseMemObject(buffer) }, SUCCESS);
    }
}
