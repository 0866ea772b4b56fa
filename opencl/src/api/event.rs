//! Events.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use super::entry::{entries, queries};
use super::given::{Ptr, answer, objects};
use crate::abi::*;
use crate::core::context::Context;
use crate::core::event::Event;
use crate::core::{Cl, Object, Ref, ensure, err};

queries! {
    /// What `clGetEventInfo` says.
    fn event_info(event: &Ref<Event>) {
        CL_EVENT_COMMAND_QUEUE => match &event.queue {
            Some(queue) => queue.handle(),
            None => std::ptr::null_mut(),
        },
        CL_EVENT_CONTEXT => event.context.handle(),
        CL_EVENT_COMMAND_TYPE => event.command.load(Ordering::Relaxed),
        CL_EVENT_COMMAND_EXECUTION_STATUS => {
            if let Some(queue) = &event.queue && !event.is_done() {
                // A program that asks again and again waits.
                queue.runner.wake();
            }
            event.status()
        },
        CL_EVENT_REFERENCE_COUNT => event.references(),
    }
}

queries! {
    /// What `clGetEventProfilingInfo` says of a command that is complete.
    fn profiling_info(event: &Ref<Event>) {
        CL_PROFILING_COMMAND_QUEUED => event.time(CL_QUEUED as cl_int),
        CL_PROFILING_COMMAND_SUBMIT => event.time(CL_SUBMITTED as cl_int),
        CL_PROFILING_COMMAND_START => event.time(CL_RUNNING as cl_int),
        CL_PROFILING_COMMAND_END | CL_PROFILING_COMMAND_COMPLETE => event.time(CL_COMPLETE as cl_int),
    }
}

/// Events that a command of a context waits for.
///
/// # Errors
/// `CL_INVALID_EVENT_WAIT_LIST`, `CL_INVALID_CONTEXT`.
pub fn wait_list(context: &Ref<Context>, n: cl_uint, list: Ptr<cl_event>) -> Cl<Vec<Ref<Event>>> {
    let events = objects::<Event>(list, n, CL_INVALID_EVENT_WAIT_LIST);
    let events = events.map_err(|_| crate::core::ClError(CL_INVALID_EVENT_WAIT_LIST))?;
    let own = events.iter().all(|e| Ref::ptr_eq(&e.context, context));
    ensure(own, CL_INVALID_CONTEXT)?;
    Ok(events)
}

entries! {
    fn clWaitForEvents(n: cl_uint, list: *const cl_event) -> cl_int {
        ensure(n != 0 && !list.is_null(), CL_INVALID_VALUE)?;
        let events = objects::<Event>(list, n, CL_INVALID_VALUE)?;
        let context = events.first().map(|event| event.context.clone());
        let same = |event: &Ref<Event>| context.as_ref().is_some_and(|c| Ref::ptr_eq(c, &event.context));
        ensure(events.iter().all(same), CL_INVALID_CONTEXT)?;
        for event in &events {
            if let Some(queue) = &event.queue && events.len() > 1 {
                queue.runner.wake();
            }
        }
        events.iter().for_each(|event| event.wait());
        let good = events.iter().all(|event| event.status() >= 0);
        ensure(good, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    }

    fn clGetEventInfo(
        event: cl_event,
        query: cl_event_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        answer(&event_info(&event.object()?, query)?, size, value, needed)
    }

    fn clGetEventProfilingInfo(
        event: cl_event,
        query: cl_profiling_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let event = event.object::<Event>()?;
        let profiled = event.queue.as_ref().is_some_and(|queue| queue.profiles());
        ensure(profiled && event.status() == CL_COMPLETE as cl_int, CL_PROFILING_INFO_NOT_AVAILABLE)?;
        answer(&profiling_info(&event, query)?, size, value, needed)
    }

    fn clCreateUserEvent(context: cl_context) -> cl_event {
        Ok(Object::create(Event::of_user(&context.object()?)))
    }

    fn clSetUserEventStatus(event: cl_event, status: cl_int) -> cl_int {
        let event = event.object::<Event>()?;
        ensure(event.queue.is_none(), CL_INVALID_EVENT)?;
        event.set_by_user(status)
    }

    fn clRetainEvent(event: cl_event) -> cl_int {
        event.object::<Event>()?.retain();
        Ok(())
    }

    fn clReleaseEvent(event: cl_event) -> cl_int {
        event.object::<Event>()?.release().map(drop)
    }

    fn clSetEventCallback(
        event: cl_event,
        status: cl_int,
        notify: Option<unsafe extern "C" fn(cl_event, cl_int, *mut c_void)>,
        user_data: *mut c_void,
    ) -> cl_int {
        let object = event.object::<Event>()?;
        let Some(notify) = notify else { return err(CL_INVALID_VALUE) };
        let known = [CL_COMPLETE, CL_RUNNING, CL_SUBMITTED].contains(&status.cast_unsigned());
        ensure(known, CL_INVALID_VALUE)?;
        let data = user_data.addr();
        // The handle is good until the function returns.
        object.retain();
        let held = object.clone();
        object.when(status, Box::new(move |reached| {
            let data = std::ptr::with_exposed_provenance_mut(data);
            // SAFETY: the program gave the function for this call.
            unsafe { notify(held.handle(), reached, data) };
            // Held since above.
            let _ = held.release();
        }));
        if let Some(queue) = &object.queue {
            queue.runner.wake();
        }
        Ok(())
    }
}
