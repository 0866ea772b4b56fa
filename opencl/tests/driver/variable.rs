//! Program-scope variables, read and written by the host.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::usm::clEnqueueMemcpyINTEL;
use visa_jit_opencl::api::variable::*;
use visa_jit_opencl::api::{event, kernel, program, queue};

use super::{Rig, SUCCESS, set};

/// A read of the variable's bytes from `offset` on.
fn read(rig: &Rig, program: cl_program, name: &CStr, offset: usize, to: &mut [i32]) -> cl_int {
    // SAFETY: there is room for what is read.
    unsafe {
        clEnqueueReadGlobalVariableINTEL(
            rig.queue,
            program,
            name.as_ptr(),
            CL_TRUE,
            size_of_val(to),
            offset,
            to.as_mut_ptr().cast(),
            0,
            null(),
            null_mut(),
        )
    }
}

fn write(rig: &Rig, program: cl_program, offset: usize, from: &[i32]) -> cl_int {
    let mut event: cl_event = null_mut();
    let mut kind: cl_command_type = 0;
    // SAFETY: what is written is there; the event is the command's.
    unsafe {
        let code = clEnqueueWriteGlobalVariableINTEL(
            rig.queue,
            program,
            c"counters".as_ptr(),
            CL_TRUE,
            size_of_val(from),
            offset,
            from.as_ptr().cast(),
            0,
            null(),
            &mut event,
        );
        if code == SUCCESS {
            let query = CL_EVENT_COMMAND_TYPE;
            event::clGetEventInfo(event, query, 4, (&raw mut kind).cast(), null_mut());
            assert_eq!(kind, CL_COMMAND_WRITE_GLOBAL_VARIABLE_INTEL);
            assert_eq!(event::clReleaseEvent(event), SUCCESS);
        }
        code
    }
}

/// What a kernel finds in the variable.
fn seen(rig: &Rig, kernel: cl_kernel) -> Vec<i32> {
    let out = rig.buffer(&[0_i32; 16]);
    assert_eq!(set(kernel, 0, &out), SUCCESS);
    assert_eq!(rig.launch(kernel, 16, Some(16)), SUCCESS);
    let all = rig.read::<i32>(out, 16);
    // SAFETY: it was made here.
    unsafe { visa_jit_opencl::api::mem::clReleaseMemObject(out) };
    all[..4].to_vec()
}

#[test]
fn variables_are_read_and_written() {
    let rig = Rig::new();
    let program = rig.program("global_state");
    let kernel = rig.kernel(program, "global_read");
    let mut here = [0; 4];
    assert_eq!(read(&rig, program, c"counters", 0, &mut here), SUCCESS);
    assert_eq!(here, [10, 20, 30, 40]);
    assert_eq!(seen(&rig, kernel), here);
    assert_eq!(write(&rig, program, 4, &[7, -8]), SUCCESS);
    assert_eq!(seen(&rig, kernel), [10, 7, -8, 40]);
    let (mut size, mut at) = (0, null_mut());
    // SAFETY: every pointer is to a variable of its type; the address is that of 16 bytes.
    unsafe {
        let name = c"counters".as_ptr();
        let told =
            clGetDeviceGlobalVariablePointerINTEL(rig.device, program, name, &mut size, &mut at);
        assert_eq!((told, size), (SUCCESS, 16));
        assert_eq!(at.cast::<i32>().add(2).read(), -8);
        let copy = |to: *mut c_void, bytes| {
            let from = here.as_ptr().cast();
            clEnqueueMemcpyINTEL(rig.queue, CL_TRUE, to, from, bytes, 0, null(), null_mut())
        };
        assert_eq!(copy(at, 16), SUCCESS);
        assert_eq!(copy(at, 17), CL_INVALID_VALUE);
        assert_eq!(seen(&rig, kernel), here);
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
}

#[test]
fn wrong_variables_are_codes() {
    let rig = Rig::new();
    let other = Rig::new();
    let program = rig.program("global_state");
    let mut here = [0; 5];
    let unknown = [c"counter", c"", c"global_count"];
    for name in unknown {
        let code = read(&rig, program, name, 0, &mut here[..1]);
        assert_eq!(code, CL_INVALID_ARG_VALUE, "{name:?}");
    }
    let outside = [(0, 5), (4, 4), (17, 0), (usize::MAX, 1)];
    for (offset, n) in outside {
        let code = read(&rig, program, c"counters", offset, &mut here[..n]);
        assert_eq!(code, CL_INVALID_VALUE, "{offset} {n}");
        assert_eq!(write(&rig, program, offset, &here[..n]), CL_INVALID_VALUE);
    }
    let code = read(&other, program, c"counters", 0, &mut here[..1]);
    assert_eq!(code, CL_INVALID_CONTEXT);
    let code = read(&rig, null_mut(), c"counters", 0, &mut here[..1]);
    assert_eq!(code, CL_INVALID_PROGRAM);
    // SAFETY: null is answered by a code.
    unsafe {
        let (mut size, mut at) = (0, null_mut());
        let pointer = |device, program, name| {
            clGetDeviceGlobalVariablePointerINTEL(device, program, name, &mut 0, &mut null_mut())
        };
        let name = c"counters".as_ptr();
        assert_eq!(pointer(null_mut(), program, name), CL_INVALID_DEVICE);
        assert_eq!(pointer(rig.device, null_mut(), name), CL_INVALID_PROGRAM);
        assert_eq!(pointer(rig.device, program, null()), CL_INVALID_VALUE);
        let text = c"kernel void k() {}".as_ptr();
        let mut code = 1;
        let fresh =
            program::clCreateProgramWithSource(rig.context, 1, &mut text.cast(), null(), &mut code);
        assert_eq!(code, SUCCESS);
        let told =
            clGetDeviceGlobalVariablePointerINTEL(rig.device, fresh, name, &mut size, &mut at);
        assert_eq!(told, CL_INVALID_PROGRAM_EXECUTABLE);
        assert_eq!(program::clReleaseProgram(fresh), SUCCESS);
        let none = clEnqueueReadGlobalVariableINTEL(
            rig.queue,
            program,
            name,
            CL_TRUE,
            4,
            0,
            null_mut(),
            0,
            null(),
            null_mut(),
        );
        assert_eq!(none, CL_INVALID_VALUE);
        assert_eq!(queue::clFinish(rig.queue), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
}
