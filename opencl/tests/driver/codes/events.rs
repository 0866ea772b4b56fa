//! Events, markers, barriers.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use super::frame::{go, make, rows};
use super::world::World;
use visa_jit_opencl::abi::*;

unsafe extern "C" fn on_event(_: cl_event, _: cl_int, _: *mut c_void) {}

/// Sets a new user event, some times.
fn set(w: &World, statuses: &[cl_int]) -> cl_int {
    let mut code = 1;
    let event = go!(w.clCreateUserEvent(w.context, &mut code));
    for status in statuses {
        code = go!(w.clSetUserEventStatus(event, *status));
    }
    go!(w.clReleaseEvent(event));
    code
}

rows! {
    clCreateUserEvent {
        right |w| make!(w.clCreateUserEvent(w.context) clReleaseEvent);
        handle CL_INVALID_CONTEXT |w, h| make!(w.clCreateUserEvent(h.cast()) clReleaseEvent);
    }
    clSetUserEventStatus {
        right |w| set(w, &[CL_COMPLETE as cl_int]);
        handle CL_INVALID_EVENT |w, h| go!(w.clSetUserEventStatus(h.cast(), 0));
        wrong CL_INVALID_EVENT "a command's event" |w| go!(w.clSetUserEventStatus(w.timed_done, 0));
        wrong CL_INVALID_VALUE "neither complete nor an error" |w| set(w, &[CL_RUNNING as cl_int]);
        wrong CL_INVALID_OPERATION "twice" |w| set(w, &[0, 0]);
    }
    clWaitForEvents {
        right |w| go!(w.clWaitForEvents(2, [w.done, w.timed_done].as_ptr()));
        wrong CL_INVALID_VALUE "no list" |w| go!(w.clWaitForEvents(1, null()));
        wrong CL_INVALID_VALUE "no events" |w| go!(w.clWaitForEvents(0, &w.done));
        wrong CL_INVALID_CONTEXT "of two contexts" |w| go!(w.clWaitForEvents(2, [w.done, w.far_done].as_ptr()));
        wrong CL_INVALID_EVENT "a buffer as event" |w| go!(w.clWaitForEvents(2, [w.done, w.buffer.cast()].as_ptr()));
        wrong CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST "one that failed" |w| go!(w.clWaitForEvents(1, &w.failed));
    }
    clGetEventInfo {
        handle CL_INVALID_EVENT |w, h| go!(w.clGetEventInfo(h.cast(), CL_EVENT_CONTEXT, 0, null_mut(), null_mut()));
        query CL_EVENT_CONTEXT |w, q, s, v, n| go!(w.clGetEventInfo(w.done, q, s, v, n));
    }
    clSetEventCallback {
        right |w| go!(w.clSetEventCallback(w.done, CL_COMPLETE as cl_int, Some(on_event), null_mut()));
        handle CL_INVALID_EVENT |w, h| go!(w.clSetEventCallback(h.cast(), CL_COMPLETE as cl_int, Some(on_event), null_mut()));
        wrong CL_INVALID_VALUE "no function" |w| go!(w.clSetEventCallback(w.done, CL_COMPLETE as cl_int, None, null_mut()));
        wrong CL_INVALID_VALUE "not a status to wait for" |w| go!(w.clSetEventCallback(w.done, CL_QUEUED as cl_int, Some(on_event), null_mut()));
    }
    clRetainEvent {
        right |w| go!(w.clRetainEvent(w.done));
        handle CL_INVALID_EVENT |w, h| go!(w.clRetainEvent(h.cast()));
    }
    clReleaseEvent {
        right |w| go!(w.clReleaseEvent(w.done));
        handle CL_INVALID_EVENT |w, h| go!(w.clReleaseEvent(h.cast()));
    }
    clGetEventProfilingInfo {
        handle CL_INVALID_EVENT |w, h| go!(w.clGetEventProfilingInfo(h.cast(), CL_PROFILING_COMMAND_START, 0, null_mut(), null_mut()));
        wrong CL_PROFILING_INFO_NOT_AVAILABLE "a user event" |w| go!(w.clGetEventProfilingInfo(w.done, CL_PROFILING_COMMAND_START, 8, w.room, null_mut()));
        query CL_PROFILING_COMMAND_START |w, q, s, v, n| go!(w.clGetEventProfilingInfo(w.timed_done, q, s, v, n));
    }
    clEnqueueMarkerWithWaitList {
        command |w, q, n, list| go!(w.clEnqueueMarkerWithWaitList(q, n, list, null_mut()));
    }
    clEnqueueBarrierWithWaitList {
        command |w, q, n, list| go!(w.clEnqueueBarrierWithWaitList(q, n, list, null_mut()));
    }
    clEnqueueMarker {
        right |w| { let mut event = null_mut(); go!(w.clEnqueueMarker(w.queue, &mut event)) | go!(w.clReleaseEvent(event)) };
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clEnqueueMarker(h.cast(), &mut null_mut()));
        wrong CL_INVALID_VALUE "no place" |w| go!(w.clEnqueueMarker(w.queue, null_mut()));
    }
    clEnqueueWaitForEvents {
        right |w| go!(w.clEnqueueWaitForEvents(w.queue, 1, &w.done));
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clEnqueueWaitForEvents(h.cast(), 1, &w.done));
        wrong CL_INVALID_CONTEXT "another context's event" |w| go!(w.clEnqueueWaitForEvents(w.queue, 1, &w.far_done));
        wrong CL_INVALID_VALUE "no list" |w| go!(w.clEnqueueWaitForEvents(w.queue, 1, null()));
        wrong CL_INVALID_VALUE "no events" |w| go!(w.clEnqueueWaitForEvents(w.queue, 0, &w.done));
        wrong CL_INVALID_EVENT "a buffer as event" |w| go!(w.clEnqueueWaitForEvents(w.queue, 1, [w.buffer.cast()].as_ptr()));
    }
    clEnqueueBarrier {
        right |w| go!(w.clEnqueueBarrier(w.queue));
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clEnqueueBarrier(h.cast()));
    }
}
