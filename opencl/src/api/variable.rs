//! Program-scope variables that the host reads and writes: `cl_intel_global_variable_access`. Codes are those of the extension's
//! specification, version 0.9.0.

use std::ffi::{c_char, c_void};

use visa_runtime::Buffer;

use super::enqueue::Command;
use super::entry::entries;
use super::given::Ptr;
use crate::abi::host::CopySide;
use crate::abi::*;
use crate::core::device::Device;
use crate::core::program::Program;
use crate::core::{Cl, Ref, ensure};

/// `CL_EVENT_COMMAND_TYPE` of a read.
pub const CL_COMMAND_READ_GLOBAL_VARIABLE_INTEL: u32 = 0x418E;
/// `CL_EVENT_COMMAND_TYPE` of a write.
pub const CL_COMMAND_WRITE_GLOBAL_VARIABLE_INTEL: u32 = 0x418F;

/// The variable that a command is for.
fn variable(
    command: &Command,
    program: Ptr<_cl_program>,
    name: Ptr<c_char>,
    (offset, size): (usize, usize),
) -> Cl<Buffer> {
    let program = program.object::<Program>()?;
    let queue = &command.queue;
    let own = Ref::ptr_eq(&program.context, &queue.context);
    ensure(own, CL_INVALID_CONTEXT)?;
    ensure(!name.is_null(), CL_INVALID_VALUE)?;
    let found = program.build_of(&queue.device)?.variable(&name.text())?;
    let end = offset.checked_add(size).map(|end| end as u64);
    let fits = end.is_some_and(|end| end <= found.len());
    ensure(fits, CL_INVALID_VALUE)?;
    Ok(found)
}

entries! {
    fn clGetDeviceGlobalVariablePointerINTEL(
        device: cl_device_id,
        program: cl_program,
        name: *const c_char,
        size: *mut usize,
        pointer: *mut *mut c_void,
    ) -> cl_int {
        let device = device.object::<Device>()?;
        let program = program.object::<Program>()?;
        ensure(!name.is_null(), CL_INVALID_VALUE)?;
        let found = program.show(&device, &name.text())?;
        size.set(found.len() as usize);
        pointer.set(std::ptr::with_exposed_provenance_mut(found.address() as usize));
        Ok(())
    }

    fn clEnqueueReadGlobalVariableINTEL(
        queue: cl_command_queue,
        program: cl_program,
        name: *const c_char,
        blocking: cl_bool,
        size: usize,
        offset: usize,
        to: *mut c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let from = variable(&command, program, name, (offset, size))?;
        ensure(!to.is_null(), CL_INVALID_VALUE)?;
        let to = CopySide::Host(to.host(size));
        let work = move || to.copy_from(0, &CopySide::Device(from), offset, size);
        command.send_and_wait(CL_COMMAND_READ_GLOBAL_VARIABLE_INTEL, blocking, Box::new(work))
    }

    fn clEnqueueWriteGlobalVariableINTEL(
        queue: cl_command_queue,
        program: cl_program,
        name: *const c_char,
        blocking: cl_bool,
        size: usize,
        offset: usize,
        from: *const c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let to = variable(&command, program, name, (offset, size))?;
        ensure(!from.is_null(), CL_INVALID_VALUE)?;
        let from = CopySide::Host(from.host(size));
        let work = move || CopySide::Device(to).copy_from(offset, &from, 0, size);
        command.send_and_wait(CL_COMMAND_WRITE_GLOBAL_VARIABLE_INTEL, blocking, Box::new(work))
    }
}
