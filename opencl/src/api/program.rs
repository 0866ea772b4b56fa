//! Programs.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::entry::{entries, guard, queries};
use super::given::{Ptr, answer, objects};
use crate::abi::*;
use crate::core::context::Context;
use crate::core::device::Device;
use crate::core::program::{Begun, Build, Program, Source};
use crate::core::spirv::constant_bytes;
use crate::core::{Cl, ClError, Object, Ref, ensure, err, lock};

type Notify = Option<unsafe extern "C" fn(cl_program, *mut c_void)>;

const SPIRV: &[u8] = b"\x03\x02\x23\x07";

fn source(program: &Program) -> &[u8] {
    match &program.source {
        Some(Source::Text(text)) => text,
        _ => &[],
    }
}

fn il(program: &Program) -> Vec<u8> {
    match &program.source {
        Some(Source::Il(il)) => il.to_vec(),
        _ => Vec::new(),
    }
}

queries! {
    /// What `clGetProgramInfo` says, but for binaries, which go to places of the program.
    fn program_info(program: &Ref<Program>) {
        CL_PROGRAM_REFERENCE_COUNT => program.references(),
        CL_PROGRAM_CONTEXT => program.context.handle(),
        CL_PROGRAM_NUM_DEVICES => program.devices.len() as cl_uint,
        CL_PROGRAM_DEVICES => program.devices.iter().map(Object::handle).collect::<Vec<_>>(),
        CL_PROGRAM_SOURCE => String::from_utf8_lossy(source(program)).into_owned(),
        CL_PROGRAM_IL => il(program),
        CL_PROGRAM_BINARY_SIZES => {
            let sizes = program.builds().into_iter().map(|build| build.binary().len());
            sizes.collect::<Vec<usize>>()
        },
        CL_PROGRAM_NUM_KERNELS => program.kernel_names()?.len(),
        CL_PROGRAM_KERNEL_NAMES => program.kernel_names()?.join(";"),
        CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT | CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT => {
            program.kernel_names()?;
            false
        },
    }
}

queries! {
    /// What `clGetProgramBuildInfo` says.
    fn build_info(build: &Build) {
        CL_PROGRAM_BUILD_STATUS => build.status,
        CL_PROGRAM_BUILD_OPTIONS => build.options.as_str(),
        CL_PROGRAM_BUILD_LOG => build.log.as_str(),
        CL_PROGRAM_BINARY_TYPE => build.binary_type(),
        CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE => build.global_variable_bytes(),
    }
}

/// Copies binaries to places that the program has for them; null for those that it does not want.
fn binaries(program: &Program, size: usize, value: Ptr<c_void>, needed: Ptr<usize>) -> Cl<()> {
    let builds = program.builds();
    let all = builds.len() * size_of::<usize>();
    if !value.is_null() {
        ensure(size >= all, CL_INVALID_VALUE)?;
        let places = value.cast::<*mut u8>().slice(builds.len());
        for (build, place) in builds.iter().zip(places) {
            let bytes = build.binary();
            let place = Ptr::<c_void>::promised(place.cast());
            answer(&bytes, bytes.len(), place, Ptr::nowhere())?;
        }
    }
    needed.set(all);
    Ok(())
}

fn devices_of(program: &Program, n: cl_uint, list: Ptr<cl_device_id>) -> Cl<Vec<Ref<Device>>> {
    if list.is_null() && n == 0 {
        return Ok(program.devices.clone());
    }
    let devices = objects::<Device>(list, n, CL_INVALID_VALUE)?;
    let known = |d: &Ref<Device>| program.devices.iter().any(|own| Ref::ptr_eq(own, d));
    ensure(devices.iter().all(known), CL_INVALID_DEVICE)?;
    Ok(devices)
}

/// Carries out a build: at once, or on a thread if the program wants to be called back, once, when it has ended. What came of it
/// is in the program then.
fn carry_out(
    begun: Begun,
    object: &Ref<Program>,
    notify: Notify,
    user_data: Ptr<c_void>,
) -> Cl<()> {
    let Some(notify) = notify else {
        return begun.finish();
    };
    let (held, data) = (object.clone(), user_data.addr());
    // The handle is good until the function returns.
    object.retain();
    let work = move || {
        // Codes are for who waits.
        let _ = guard(|| begun.finish());
        let data = std::ptr::with_exposed_provenance_mut(data);
        // SAFETY: the program gave the function for this call.
        unsafe { notify(held.handle(), data) };
        // Held since above.
        let _ = held.release();
    };
    let thread = std::thread::Builder::new().name("visa-jit-build".to_owned());
    if thread.spawn(work).is_err() {
        object.release()?;
        return err(CL_OUT_OF_RESOURCES);
    }
    Ok(())
}

fn with_il(context: Ptr<_cl_context>, il: Ptr<c_void>, length: usize) -> Cl<cl_program> {
    let context = context.object::<Context>()?;
    ensure(!il.is_null() && length != 0, CL_INVALID_VALUE)?;
    let il = il.bytes(length);
    ensure(il.starts_with(SPIRV), CL_INVALID_VALUE)?;
    let devices = context.devices.clone();
    let source = Source::Il(Arc::new(il));
    Ok(Object::create(Program::new(context, devices, Some(source))))
}

entries! {
    fn clCreateProgramWithSource(
        context: cl_context,
        count: cl_uint,
        strings: *mut *const c_char,
        lengths: *const usize,
    ) -> cl_program {
        let context = context.object::<Context>()?;
        ensure(count != 0 && !strings.is_null(), CL_INVALID_VALUE)?;
        let mut text = Vec::new();
        let lengths = lengths.slice(count as usize);
        for (i, string) in strings.slice(count as usize).iter().enumerate() {
            ensure(!string.is_null(), CL_INVALID_VALUE)?;
            let string = Ptr::<c_char>::promised(string.cast_mut());
            match lengths.get(i) {
                Some(&length) if length != 0 => text.extend(string.cast_void().bytes(length)),
                _ => text.extend(string.text_bytes()),
            }
        }
        // Some programs count the end of the text too.
        while text.last() == Some(&0) {
            text.pop();
        }
        let devices = context.devices.clone();
        let source = Source::Text(Arc::new(text));
        Ok(Object::create(Program::new(context, devices, Some(source))))
    }

    fn clCreateProgramWithIL(context: cl_context, il: *const c_void, length: usize) -> cl_program {
        with_il(context, il, length)
    }

    fn clCreateProgramWithILKHR(context: cl_context, il: *const c_void, length: usize) -> cl_program {
        with_il(context, il, length)
    }

    fn clCreateProgramWithBinary(
        context: cl_context,
        n: cl_uint,
        list: *const cl_device_id,
        lengths: *const usize,
        binaries: *mut *const u8,
        statuses: *mut cl_int,
    ) -> cl_program {
        let context = context.object::<Context>()?;
        ensure(n != 0 && !list.is_null() && !lengths.is_null() && !binaries.is_null(), CL_INVALID_VALUE)?;
        let devices = objects::<Device>(list, n, CL_INVALID_VALUE)?;
        devices.iter().try_for_each(|device| context.check(device))?;
        let mut all = Vec::new();
        let places = lengths.slice(n as usize).iter().zip(binaries.slice(n as usize));
        for (i, (&length, place)) in places.enumerate() {
            let fine = length != 0 && !place.is_null();
            statuses.set_at(i, if fine { CL_SUCCESS as cl_int } else { CL_INVALID_VALUE });
            ensure(fine, CL_INVALID_VALUE)?;
            all.push(Ptr::<c_void>::promised(place.cast_mut().cast()).bytes(length));
        }
        let (program, results) = Program::of_binaries(context, devices, &all);
        for (i, result) in results.iter().enumerate() {
            statuses.set_at(i, super::entry::code(*result));
        }
        results.into_iter().collect::<Cl<Vec<()>>>()?;
        Ok(Object::create(program))
    }

    fn clCreateProgramWithBuiltInKernels(
        context: cl_context,
        n: cl_uint,
        list: *const cl_device_id,
        names: *const c_char,
    ) -> cl_program {
        let context = context.object::<Context>()?;
        ensure(n != 0 && !list.is_null() && !names.is_null(), CL_INVALID_VALUE)?;
        let devices = objects::<Device>(list, n, CL_INVALID_VALUE)?;
        devices.iter().try_for_each(|device| context.check(device))?;
        // There are none.
        err::<cl_program>(CL_INVALID_VALUE)
    }

    fn clRetainProgram(program: cl_program) -> cl_int {
        program.object::<Program>()?.retain();
        Ok(())
    }

    fn clReleaseProgram(program: cl_program) -> cl_int {
        program.object::<Program>()?.release().map(drop)
    }

    fn clBuildProgram(
        program: cl_program,
        n: cl_uint,
        list: *const cl_device_id,
        options: *const c_char,
        notify: Notify,
        user_data: *mut c_void,
    ) -> cl_int {
        let object = program.object::<Program>()?;
        ensure(notify.is_some() || user_data.is_null(), CL_INVALID_VALUE)?;
        let devices = devices_of(&object, n, list)?;
        let begun = Program::build(&object, &devices, &options.text())?;
        carry_out(begun, &object, notify, user_data)
    }

    fn clCompileProgram(
        program: cl_program,
        n: cl_uint,
        list: *const cl_device_id,
        options: *const c_char,
        header_count: cl_uint,
        headers: *const cl_program,
        names: *mut *const c_char,
        notify: Notify,
        user_data: *mut c_void,
    ) -> cl_int {
        let object = program.object::<Program>()?;
        ensure(notify.is_some() || user_data.is_null(), CL_INVALID_VALUE)?;
        let together = (header_count == 0) == headers.is_null() && headers.is_null() == names.is_null();
        ensure(together, CL_INVALID_VALUE)?;
        let devices = devices_of(&object, n, list)?;
        let mut given = Vec::new();
        let texts = objects::<Program>(headers, header_count, CL_INVALID_VALUE)?;
        let own = texts.iter().all(|text| Ref::ptr_eq(&text.context, &object.context));
        ensure(own, CL_INVALID_CONTEXT)?;
        for (text, name) in texts.iter().zip(names.slice(header_count as usize)) {
            let name = Ptr::<c_char>::promised(name.cast_mut()).text();
            given.push((name, source(text).to_vec()));
        }
        let begun = Program::compile(&object, &devices, &options.text(), given)?;
        carry_out(begun, &object, notify, user_data)
    }

    fn clLinkProgram(
        context: cl_context,
        n: cl_uint,
        list: *const cl_device_id,
        options: *const c_char,
        count: cl_uint,
        inputs: *const cl_program,
        notify: Notify,
        user_data: *mut c_void,
    ) -> cl_program {
        let context = context.object::<Context>()?;
        ensure(notify.is_some() || user_data.is_null(), CL_INVALID_VALUE)?;
        ensure(count != 0 && !inputs.is_null(), CL_INVALID_VALUE)?;
        let inputs = objects::<Program>(inputs, count, CL_INVALID_VALUE)?;
        let own = inputs.iter().all(|input| Ref::ptr_eq(&input.context, &context));
        ensure(own, CL_INVALID_CONTEXT)?;
        let program = Object::hidden(Program::new(context.clone(), context.devices.clone(), None));
        let devices = devices_of(&program, n, list)?;
        let begun = Program::link(&program, &devices, &options.text(), &inputs)?;
        program.publish();
        let done = carry_out(begun, &program, notify, user_data);
        if let Err(ClError(code @ (CL_INVALID_LINKER_OPTIONS | CL_LINKER_NOT_AVAILABLE | CL_OUT_OF_RESOURCES))) = done {
            // Nothing was linked. A program that failed has a log, so it is there.
            program.release()?;
            return err(code);
        }
        Ok((program.handle(), done))
    }

    fn clGetProgramInfo(
        program: cl_program,
        query: cl_program_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let program = program.object::<Program>()?;
        if query == CL_PROGRAM_BINARIES {
            return binaries(&program, size, value, needed);
        }
        answer(&program_info(&program, query)?, size, value, needed)
    }

    fn clGetProgramBuildInfo(
        program: cl_program,
        device: cl_device_id,
        query: cl_program_build_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let build = program.object::<Program>()?.build_of(&device.object()?)?;
        answer(&build_info(&build, query)?, size, value, needed)
    }

    fn clSetProgramReleaseCallback(program: cl_program, notify: Notify, _user_data: *mut c_void) -> cl_int {
        program.object::<Program>()?;
        ensure(notify.is_some(), CL_INVALID_VALUE)?;
        // No program has destructors.
        err(CL_INVALID_OPERATION)
    }

    fn clSetProgramSpecializationConstant(
        program: cl_program,
        id: cl_uint,
        size: usize,
        value: *const c_void,
    ) -> cl_int {
        let program = program.object::<Program>()?;
        let Some(Source::Il(il)) = &program.source else { return err(CL_INVALID_PROGRAM) };
        ensure(!value.is_null(), CL_INVALID_VALUE)?;
        ensure(program.kernels.load(Ordering::Relaxed) == 0, CL_INVALID_OPERATION)?;
        let bytes = constant_bytes(il, id).ok_or(ClError(CL_INVALID_SPEC_ID))?;
        ensure(size == bytes, CL_INVALID_VALUE)?;
        lock(&program.constants).insert(id, value.bytes(size));
        Ok(())
    }
}
