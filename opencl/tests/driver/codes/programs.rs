//! Programs: made, compiled, linked, built.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use super::frame::{go, make, rows};
use super::world::{MODULE, World, zebin};
use visa_jit_opencl::abi::*;

unsafe extern "C" fn on_program(_: cl_program, _: *mut c_void) {}

/// A zebin for the second device, with a kernel `saxpy` that takes doubles.
pub fn renamed() -> Vec<u8> {
    let mut bytes = zebin("pvc/double");
    let (old, new) = (b"daxpy", b"saxpy");
    let mut found = 0;
    for at in 0..bytes.len() - old.len() {
        if bytes[at..].starts_with(old) {
            bytes[at..at + new.len()].copy_from_slice(new);
            found += 1;
        }
    }
    assert!(found > 0);
    bytes
}

/// Does something with a new program of a text.
fn with(w: &World, text: &CStr, call: fn(&World, cl_program) -> cl_int) -> cl_int {
    let program = w.source(w.context, text);
    let code = call(w, program);
    assert_eq!(go!(w.clReleaseProgram(program)), 0);
    code
}

fn build(w: &World, program: cl_program, options: *const std::ffi::c_char) -> cl_int {
    go!(w.clBuildProgram(program, 0, null(), options, None, null_mut()))
}

fn build_for(w: &World, n: cl_uint, list: *const cl_device_id) -> cl_int {
    go!(w.clBuildProgram(w.program, n, list, null(), None, null_mut()))
}

fn compile(w: &World, program: cl_program, options: *const std::ffi::c_char) -> cl_int {
    go!(w.clCompileProgram(
        program,
        0,
        null(),
        options,
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ))
}

fn compile_for(w: &World, n: cl_uint, list: *const cl_device_id) -> cl_int {
    go!(w.clCompileProgram(
        w.il,
        n,
        list,
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ))
}

fn compile_with(w: &World, n: cl_uint, headers: *const cl_program, name: bool) -> cl_int {
    let mut text = c"header.h".as_ptr();
    let names: *mut _ = if name { &mut text } else { null_mut() };
    go!(w.clCompileProgram(w.il, 0, null(), null(), n, headers, names, None, null_mut()))
}

/// Links what was compiled of a SPIR-V module without contents.
fn link(
    w: &World,
    context: cl_context,
    devices: &[cl_device_id],
    options: &CStr,
    inputs: &[cl_program],
) -> cl_int {
    assert_eq!(compile_for(w, 0, null()), 0);
    let (n, count) = (devices.len() as cl_uint, inputs.len() as cl_uint);
    let list = if n == 0 { null() } else { devices.as_ptr() };
    make!(w.clLinkProgram(context, n, list, options.as_ptr(), count, inputs.as_ptr(), None, null_mut()) clReleaseProgram)
}

/// Links what was compiled of a text. A program that could not be linked is there, and has a log.
fn link_source(w: &World, text: &CStr) -> cl_int {
    let (program, mut code) = (w.source(w.context, text), 1);
    assert_eq!(compile(w, program, null()), 0);
    let linked = go!(w.clLinkProgram(
        w.context,
        0,
        null(),
        null(),
        1,
        &program,
        None,
        null_mut(),
        &mut code
    ));
    assert!(!linked.is_null());
    assert_eq!(
        (
            go!(w.clReleaseProgram(linked)),
            go!(w.clReleaseProgram(program))
        ),
        (0, 0)
    );
    code
}

fn binary(w: &World, context: cl_context, devices: &[cl_device_id], bytes: &[u8]) -> cl_int {
    let (len, mut place) = ([bytes.len(); 2], [bytes.as_ptr(); 2]);
    let n = devices.len() as cl_uint;
    make!(w.clCreateProgramWithBinary(context, n, devices.as_ptr(), len.as_ptr(), place.as_mut_ptr(), null_mut()) clReleaseProgram)
}

fn source(w: &World, context: cl_context, n: cl_uint, text: *const std::ffi::c_char) -> cl_int {
    make!(w.clCreateProgramWithSource(context, n, &mut { text }, null()) clReleaseProgram)
}

fn il(w: &World, context: cl_context, at: *const u32, len: usize) -> cl_int {
    make!(w.clCreateProgramWithIL(context, at.cast(), len) clReleaseProgram)
}

fn built_in(
    w: &World,
    context: cl_context,
    n: cl_uint,
    list: *const cl_device_id,
    names: *const std::ffi::c_char,
) -> cl_int {
    make!(w.clCreateProgramWithBuiltInKernels(context, n, list, names) clReleaseProgram)
}

/// A module with a specialisation constant, 7, of 32 bits.
const SPECIAL: [[u32; 4]; 3] = [
    // OpDecorate %2 SpecId 7
    [0x0004_0047, 2, 1, 7],
    // OpTypeInt %1 32 0
    [0x0004_0015, 1, 32, 0],
    // OpSpecConstant %1 %2 5
    [0x0004_0032, 1, 2, 5],
];

/// Sets a constant of such a module.
fn special(w: &World, id: u32, size: usize, value: *const c_void) -> cl_int {
    let mut module = MODULE.to_vec();
    // Numbers below 4 are names.
    module[3] = 4;
    module.extend(SPECIAL.as_flattened());
    let mut code = 1;
    let program = go!(w.clCreateProgramWithIL(
        w.context,
        module.as_ptr().cast(),
        module.len() * 4,
        &mut code
    ));
    assert_eq!(code, 0);
    let code = go!(w.clSetProgramSpecializationConstant(program, id, size, value));
    assert_eq!(go!(w.clReleaseProgram(program)), 0);
    code
}

const GOOD: &CStr = c"kernel void set(global int *a) { *a = 1; }";
const BAD: &CStr = c"kernel void set(global int *a) { nonsense }";
const LIBRARY: &CStr = c"-create-library";

rows! {
    clCreateProgramWithSource {
        right |w| source(w, w.context, 1, GOOD.as_ptr());
        handle CL_INVALID_CONTEXT |w, h| source(w, h.cast(), 1, GOOD.as_ptr());
        wrong CL_INVALID_VALUE "no texts" |w| source(w, w.context, 0, GOOD.as_ptr());
        wrong CL_INVALID_VALUE "a text that is null" |w| source(w, w.context, 1, null());
        wrong CL_INVALID_VALUE "no list" |w| make!(w.clCreateProgramWithSource(w.context, 1, null_mut(), null()) clReleaseProgram);
    }
    clCreateProgramWithIL {
        right |w| il(w, w.context, MODULE.as_ptr(), 20);
        handle CL_INVALID_CONTEXT |w, h| il(w, h.cast(), MODULE.as_ptr(), 20);
        wrong CL_INVALID_VALUE "no module" |w| il(w, w.context, null(), 20);
        wrong CL_INVALID_VALUE "an empty module" |w| il(w, w.context, MODULE.as_ptr(), 0);
        wrong CL_INVALID_VALUE "other words" |w| il(w, w.context, [1, 2, 3, 4, 5].as_ptr(), 20);
        never CL_INVALID_OPERATION "all devices take SPIR-V";
    }
    clCreateProgramWithBinary {
        right |w| binary(w, w.context, &[w.device], &zebin("skl/saxpy"));
        handle CL_INVALID_CONTEXT |w, h| binary(w, h.cast(), &[w.device], &zebin("skl/saxpy"));
        wrong CL_INVALID_VALUE "no devices" |w| binary(w, w.context, &[], &zebin("skl/saxpy"));
        wrong CL_INVALID_VALUE "an empty binary" |w| binary(w, w.context, &[w.device], &[]);
        wrong CL_INVALID_VALUE "no binaries" |w| make!(w.clCreateProgramWithBinary(w.context, 1, &w.device, &8, null_mut(), null_mut()) clReleaseProgram);
        wrong CL_INVALID_DEVICE "another context's device" |w| binary(w, w.context, &[w.device, w.bare], &zebin("skl/saxpy"));
        wrong CL_INVALID_BINARY "no zebin" |w| binary(w, w.context, &[w.device], b"no zebin at all");
        wrong CL_INVALID_BINARY "another device's" |w| binary(w, w.context, &[w.device], &zebin("pvc/saxpy"));
    }
    clCreateProgramWithBuiltInKernels {
        handle CL_INVALID_CONTEXT |w, h| built_in(w, h.cast(), 1, &w.device, c"any".as_ptr());
        wrong CL_INVALID_VALUE "no devices" |w| built_in(w, w.context, 0, null(), c"any".as_ptr());
        wrong CL_INVALID_VALUE "no names" |w| built_in(w, w.context, 1, &w.device, null());
        wrong CL_INVALID_VALUE "no such kernel" |w| built_in(w, w.context, 1, &w.device, c"any".as_ptr());
        wrong CL_INVALID_DEVICE "another context's device" |w| built_in(w, w.context, 1, &w.bare, c"any".as_ptr());
        never CL_SUCCESS "devices say that they have no kernels of their own";
    }
    clRetainProgram {
        right |w| go!(w.clRetainProgram(w.program));
        handle CL_INVALID_PROGRAM |w, h| go!(w.clRetainProgram(h.cast()));
    }
    clReleaseProgram {
        right |w| go!(w.clReleaseProgram(w.program));
        handle CL_INVALID_PROGRAM |w, h| go!(w.clReleaseProgram(h.cast()));
    }
    clSetProgramReleaseCallback {
        handle CL_INVALID_PROGRAM |w, h| go!(w.clSetProgramReleaseCallback(h.cast(), Some(on_program), null_mut()));
        wrong CL_INVALID_VALUE "no function" |w| go!(w.clSetProgramReleaseCallback(w.program, None, null_mut()));
        wrong CL_INVALID_OPERATION "no destructors" |w| go!(w.clSetProgramReleaseCallback(w.program, Some(on_program), null_mut()));
        never CL_SUCCESS "since OpenCL 3.0 it is there for devices with destructors, which these are not";
    }
    clSetProgramSpecializationConstant {
        right |w| special(w, 7, 4, w.room);
        handle CL_INVALID_PROGRAM |w, h| go!(w.clSetProgramSpecializationConstant(h.cast(), 7, 4, w.room));
        wrong CL_INVALID_PROGRAM "of a text" |w| go!(w.clSetProgramSpecializationConstant(w.unbuilt, 7, 4, w.room));
        wrong CL_INVALID_SPEC_ID "no such constant" |w| special(w, 8, 4, w.room);
        wrong CL_INVALID_VALUE "another size" |w| special(w, 7, 8, w.room);
        wrong CL_INVALID_VALUE "no value" |w| special(w, 7, 4, null());
        never CL_INVALID_OPERATION "all devices take SPIR-V";
        never CL_COMPILER_NOT_AVAILABLE "constants are set without a compiler";
    }
    clBuildProgram {
        right |w| build(w, w.program, null());
        right |w| build_for(w, 1, &w.device);
        compiled |w| with(w, GOOD, |w, p| build(w, p, c"-D A=1".as_ptr()));
        handle CL_INVALID_PROGRAM |w, h| build(w, h.cast(), null());
        wrong CL_INVALID_VALUE "no list" |w| build_for(w, 1, null());
        wrong CL_INVALID_VALUE "no devices" |w| build_for(w, 0, &w.device);
        wrong CL_INVALID_VALUE "data for no function" |w| go!(w.clBuildProgram(w.program, 0, null(), null(), None, w.room));
        wrong CL_INVALID_DEVICE "another context's device" |w| build_for(w, 1, &w.bare);
        refused CL_INVALID_BUILD_OPTIONS "an unknown option" |w| with(w, GOOD, |w, p| build(w, p, c"-cl-nonsense".as_ptr()));
        refused CL_BUILD_PROGRAM_FAILURE "nonsense" |w| with(w, BAD, |w, p| build(w, p, null()));
        uncompiled CL_COMPILER_NOT_AVAILABLE "a text" |w| with(w, GOOD, |w, p| build(w, p, null()));
        wrong CL_INVALID_OPERATION "it has kernels" |w| build(w, w.used, null());
        never CL_INVALID_BINARY "a program is only made of binaries that can be read";
    }
    clCompileProgram {
        right |w| compile(w, w.il, null());
        compiled |w| with(w, GOOD, |w, p| compile(w, p, null()));
        compiled |w| compile_with(w, 1, &w.unbuilt, true);
        handle CL_INVALID_PROGRAM |w, h| compile(w, h.cast(), null());
        wrong CL_INVALID_CONTEXT "another context's header" |w| compile_with(w, 1, &w.far_source, true);
        wrong CL_INVALID_VALUE "no list" |w| compile_for(w, 1, null());
        wrong CL_INVALID_VALUE "no devices" |w| compile_for(w, 0, &w.device);
        wrong CL_INVALID_VALUE "headers of no number" |w| compile_with(w, 0, &w.unbuilt, true);
        wrong CL_INVALID_VALUE "no headers" |w| compile_with(w, 1, null(), true);
        wrong CL_INVALID_VALUE "headers without names" |w| compile_with(w, 1, &w.unbuilt, false);
        wrong CL_INVALID_VALUE "data for no function" |w| go!(w.clCompileProgram(w.il, 0, null(), null(), 0, null(), null_mut(), None, w.room));
        wrong CL_INVALID_DEVICE "another context's device" |w| compile_for(w, 1, &w.bare);
        refused CL_INVALID_COMPILER_OPTIONS "an unknown option" |w| with(w, GOOD, |w, p| compile(w, p, c"-cl-nonsense".as_ptr()));
        wrong CL_INVALID_OPERATION "of a binary" |w| compile(w, w.program, null());
        wrong CL_INVALID_OPERATION "it has kernels" |w| compile(w, w.used, null());
        refused CL_COMPILE_PROGRAM_FAILURE "nonsense" |w| with(w, BAD, |w, p| compile(w, p, null()));
        uncompiled CL_COMPILER_NOT_AVAILABLE "a text" |w| with(w, GOOD, |w, p| compile(w, p, null()));
    }
    clLinkProgram {
        right |w| link(w, w.context, &[], LIBRARY, &[w.il]);
        right |w| link(w, w.context, &[w.device], LIBRARY, &[w.il]);
        compiled |w| link_source(w, GOOD);
        handle CL_INVALID_CONTEXT |w, h| link(w, h.cast(), &[], LIBRARY, &[w.il]);
        wrong CL_INVALID_CONTEXT "another context's program" |w| link(w, w.context, &[], LIBRARY, &[w.il, w.far_source]);
        wrong CL_INVALID_VALUE "no list" |w| make!(w.clLinkProgram(w.context, 1, null(), null(), 1, &w.il, None, null_mut()) clReleaseProgram);
        wrong CL_INVALID_VALUE "no devices" |w| make!(w.clLinkProgram(w.context, 0, &w.device, null(), 1, &w.il, None, null_mut()) clReleaseProgram);
        wrong CL_INVALID_VALUE "no programs" |w| link(w, w.context, &[], LIBRARY, &[]);
        wrong CL_INVALID_VALUE "no list of programs" |w| make!(w.clLinkProgram(w.context, 0, null(), null(), 1, null(), None, null_mut()) clReleaseProgram);
        wrong CL_INVALID_VALUE "data for no function" |w| make!(w.clLinkProgram(w.context, 0, null(), null(), 1, &w.il, None, w.room) clReleaseProgram);
        wrong CL_INVALID_PROGRAM "a buffer as program" |w| link(w, w.context, &[], LIBRARY, &[w.il, w.buffer.cast()]);
        wrong CL_INVALID_DEVICE "another context's device" |w| link(w, w.context, &[w.bare], LIBRARY, &[w.il]);
        wrong CL_INVALID_LINKER_OPTIONS "an unknown option" |w| link(w, w.context, &[], c"-nonsense", &[w.il]);
        wrong CL_INVALID_OPERATION "never compiled" |w| link(w, w.context, &[], LIBRARY, &[w.unbuilt]);
        refused CL_LINK_PROGRAM_FAILURE "a function that is defined nowhere" |w| link_source(w, c"int other(int); kernel void set(global int *a) { *a = other(1); }");
        uncompiled CL_LINKER_NOT_AVAILABLE "to be run" |w| link(w, w.context, &[], c"", &[w.il]);
    }
    clGetProgramInfo {
        handle CL_INVALID_PROGRAM |w, h| go!(w.clGetProgramInfo(h.cast(), CL_PROGRAM_CONTEXT, 0, null_mut(), null_mut()));
        query CL_PROGRAM_CONTEXT |w, q, s, v, n| go!(w.clGetProgramInfo(w.program, q, s, v, n));
        query CL_PROGRAM_KERNEL_NAMES |w, q, s, v, n| go!(w.clGetProgramInfo(w.program, q, s, v, n));
        wrong CL_INVALID_VALUE "no room for places" |w| go!(w.clGetProgramInfo(w.program, CL_PROGRAM_BINARIES, 4, w.room, null_mut()));
        wrong CL_INVALID_PROGRAM_EXECUTABLE "the number of kernels" |w| go!(w.clGetProgramInfo(w.unbuilt, CL_PROGRAM_NUM_KERNELS, 8, w.room, null_mut()));
        wrong CL_INVALID_PROGRAM_EXECUTABLE "names of kernels" |w| go!(w.clGetProgramInfo(w.unbuilt, CL_PROGRAM_KERNEL_NAMES, 8, w.room, null_mut()));
        wrong CL_INVALID_PROGRAM_EXECUTABLE "constructors" |w| go!(w.clGetProgramInfo(w.unbuilt, CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, 4, w.room, null_mut()));
        wrong CL_INVALID_PROGRAM_EXECUTABLE "destructors" |w| go!(w.clGetProgramInfo(w.unbuilt, CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT, 4, w.room, null_mut()));
    }
    clGetProgramBuildInfo {
        handle CL_INVALID_PROGRAM |w, h| go!(w.clGetProgramBuildInfo(h.cast(), w.device, CL_PROGRAM_BUILD_STATUS, 0, null_mut(), null_mut()));
        handle CL_INVALID_DEVICE |w, h| go!(w.clGetProgramBuildInfo(w.program, h.cast(), CL_PROGRAM_BUILD_STATUS, 0, null_mut(), null_mut()));
        wrong CL_INVALID_DEVICE "another context's device" |w| go!(w.clGetProgramBuildInfo(w.program, w.bare, CL_PROGRAM_BUILD_STATUS, 0, null_mut(), null_mut()));
        query CL_PROGRAM_BUILD_STATUS |w, q, s, v, n| go!(w.clGetProgramBuildInfo(w.program, w.device, q, s, v, n));
    }
}
