//! Contexts.

use std::ffi::{c_char, c_void};

use super::device::of_type;
use super::entry::{entries, queries};
use super::given::{Ptr, answer, objects};
use crate::abi::*;
use crate::core::context::Context;
use crate::core::device::Device;
use crate::core::platform::Platform;
use crate::core::{Cl, Object, Ref, ensure, err};

type Notify = Option<unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>;

queries! {
    /// What `clGetContextInfo` says.
    fn context_info(context: &Ref<Context>) {
        CL_CONTEXT_REFERENCE_COUNT => context.references(),
        CL_CONTEXT_NUM_DEVICES => context.devices.len() as cl_uint,
        CL_CONTEXT_DEVICES => context.devices.iter().map(Object::handle).collect::<Vec<_>>(),
        CL_CONTEXT_PROPERTIES => context.given.as_slice(),
    }
}

/// Checks a list of properties; it comes back with its end.
fn properties(list: Ptr<cl_context_properties>) -> Cl<Vec<isize>> {
    let mut given = list.until(2, |name| name == 0);
    let mut seen = Vec::new();
    for pair in given.chunks_exact(2) {
        let (name, value) = (pair[0], pair[1]);
        ensure(!seen.contains(&name), CL_INVALID_PROPERTY)?;
        seen.push(name);
        match u32::try_from(name).unwrap_or(0) {
            CL_CONTEXT_PLATFORM => {
                let handle = std::ptr::with_exposed_provenance_mut(value.cast_unsigned());
                crate::core::find::<Platform>(handle)?;
            }
            CL_CONTEXT_INTEROP_USER_SYNC => {
                ensure(matches!(value, 0 | 1), CL_INVALID_PROPERTY)?;
            }
            _ => return err(CL_INVALID_PROPERTY),
        }
    }
    if !list.is_null() {
        given.push(0);
    }
    Ok(given)
}

fn distinct(devices: Vec<Ref<Device>>) -> Vec<Ref<Device>> {
    let mut all: Vec<Ref<Device>> = Vec::new();
    for device in devices {
        if !all.iter().any(|known| Ref::ptr_eq(known, &device)) {
            all.push(device);
        }
    }
    all
}

fn create(given: Vec<isize>, devices: Vec<Ref<Device>>) -> Cl<cl_context> {
    crate::core::engine::engine()?;
    Ok(Object::create(Context::new(distinct(devices), given)))
}

entries! {
    fn clCreateContext(
        given: *const cl_context_properties,
        num_devices: cl_uint,
        devices: *const cl_device_id,
        notify: Notify,
        user_data: *mut c_void,
    ) -> cl_context {
        let given = properties(given)?;
        ensure(!devices.is_null() && num_devices != 0, CL_INVALID_VALUE)?;
        ensure(notify.is_some() || user_data.is_null(), CL_INVALID_VALUE)?;
        create(given, objects(devices, num_devices, CL_INVALID_VALUE)?)
    }

    fn clCreateContextFromType(
        given: *const cl_context_properties,
        kind: cl_device_type,
        notify: Notify,
        user_data: *mut c_void,
    ) -> cl_context {
        let given = properties(given)?;
        ensure(notify.is_some() || user_data.is_null(), CL_INVALID_VALUE)?;
        create(given, of_type(Platform::get(), kind)?)
    }

    fn clRetainContext(context: cl_context) -> cl_int {
        context.object::<Context>()?.retain();
        Ok(())
    }

    fn clReleaseContext(context: cl_context) -> cl_int {
        context.object::<Context>()?.release().map(drop)
    }

    fn clGetContextInfo(
        context: cl_context,
        query: cl_context_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        answer(&context_info(&context.object()?, query)?, size, value, needed)
    }

    fn clSetContextDestructorCallback(
        context: cl_context,
        notify: Option<unsafe extern "C" fn(cl_context, *mut c_void)>,
        user_data: *mut c_void,
    ) -> cl_int {
        let object = context.object::<Context>()?;
        let Some(notify) = notify else { return err(CL_INVALID_VALUE) };
        let (handle, data) = (context.addr(), user_data.addr());
        object.at_end(Box::new(move || {
            let handle = std::ptr::with_exposed_provenance_mut(handle);
            let data = std::ptr::with_exposed_provenance_mut(data);
            // SAFETY: the program gave the function for this call.
            unsafe { notify(handle, data) }
        }));
        Ok(())
    }
}
