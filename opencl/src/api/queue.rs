//! Command queues.

use std::ffi::c_void;

use super::entry::{entries, queries};
use super::given::{Ptr, answer, distinct_names};
use crate::abi::*;
use crate::core::context::Context;
use crate::core::device::Device;
use crate::core::queue::Queue;
use crate::core::{Cl, Object, Ref, ensure, err};

const PROPERTIES: u64 = (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE) as u64;
const ON_DEVICE: u64 = (CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT) as u64;

queries! {
    /// What `clGetCommandQueueInfo` says.
    fn queue_info(queue: &Ref<Queue>) {
        CL_QUEUE_CONTEXT => queue.context.handle(),
        CL_QUEUE_DEVICE => queue.device.handle(),
        CL_QUEUE_REFERENCE_COUNT => queue.references(),
        CL_QUEUE_PROPERTIES => queue.properties,
        CL_QUEUE_PROPERTIES_ARRAY => queue.given.as_slice(),
        CL_QUEUE_DEVICE_DEFAULT => std::ptr::null_mut::<_cl_command_queue>(),
    }
}

fn create(
    context: Ptr<_cl_context>,
    device: Ptr<_cl_device_id>,
    properties: u64,
    given: Vec<u64>,
) -> Cl<cl_command_queue> {
    let context = context.object::<Context>()?;
    let device = device.object::<Device>()?;
    context.check(&device)?;
    ensure(
        properties & !(PROPERTIES | ON_DEVICE) == 0,
        CL_INVALID_VALUE,
    )?;
    ensure(properties & ON_DEVICE == 0, CL_INVALID_QUEUE_PROPERTIES)?;
    Ok(Object::create(Queue::new(
        context, device, properties, given,
    )))
}

entries! {
    fn clCreateCommandQueue(
        context: cl_context,
        device: cl_device_id,
        properties: cl_command_queue_properties,
    ) -> cl_command_queue {
        create(context, device, properties, Vec::new())
    }

    fn clCreateCommandQueueWithProperties(
        context: cl_context,
        device: cl_device_id,
        list: *const cl_queue_properties,
    ) -> cl_command_queue {
        let mut given = list.until(2, |name| name == 0);
        let mut properties = 0;
        ensure(distinct_names(&given), CL_INVALID_VALUE)?;
        for pair in given.chunks_exact(2) {
            match u32::try_from(pair[0]).unwrap_or(0) {
                CL_QUEUE_PROPERTIES => properties = pair[1],
                // The size of a queue on the device.
                CL_QUEUE_SIZE => return err(CL_INVALID_QUEUE_PROPERTIES),
                _ => return err(CL_INVALID_VALUE),
            }
        }
        if !list.is_null() {
            given.push(0);
        }
        create(context, device, properties, given)
    }

    fn clRetainCommandQueue(queue: cl_command_queue) -> cl_int {
        queue.object::<Queue>()?.retain();
        Ok(())
    }

    fn clReleaseCommandQueue(queue: cl_command_queue) -> cl_int {
        let queue = queue.object::<Queue>()?;
        if queue.references() == 1 {
            // Commands that were not waited for are carried out.
            queue.runner.wake();
        }
        queue.release().map(drop)
    }

    fn clGetCommandQueueInfo(
        queue: cl_command_queue,
        query: cl_command_queue_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let queue = queue.object::<Queue>()?;
        // That of queues on the device.
        ensure(query != CL_QUEUE_SIZE, CL_INVALID_COMMAND_QUEUE)?;
        answer(&queue_info(&queue, query)?, size, value, needed)
    }

    fn clSetCommandQueueProperty(
        queue: cl_command_queue,
        _properties: cl_command_queue_properties,
        _enable: cl_bool,
        _old: *mut cl_command_queue_properties,
    ) -> cl_int {
        queue.object::<Queue>()?;
        // Since OpenCL 1.1 properties stay as they are.
        err(CL_INVALID_OPERATION)
    }

    fn clFlush(queue: cl_command_queue) -> cl_int {
        queue.object::<Queue>()?.runner.wake();
        Ok(())
    }

    fn clFinish(queue: cl_command_queue) -> cl_int {
        queue.object::<Queue>()?.runner.finish();
        Ok(())
    }
}
