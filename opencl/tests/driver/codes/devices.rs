//! Platforms, devices, contexts, queues.

use std::ptr::{null, null_mut};

use super::frame::{go, make, rows};
use super::world::World;
use visa_jit_opencl::abi::*;

unsafe extern "C" fn on_context(_: cl_context, _: *mut std::ffi::c_void) {}

const GPU: u64 = CL_DEVICE_TYPE_GPU as u64;
const CPU: u64 = CL_DEVICE_TYPE_CPU as u64;

fn of_type(w: &World, given: &[isize], kind: u64, data: *mut std::ffi::c_void) -> cl_int {
    make!(w.clCreateContextFromType(given.as_ptr(), kind, None, data) clReleaseContext)
}

fn context(w: &World, given: &[isize], n: cl_uint, list: *const cl_device_id) -> cl_int {
    make!(w.clCreateContext(given.as_ptr(), n, list, None, null_mut()) clReleaseContext)
}

fn queue(w: &World, device: cl_device_id, properties: u32) -> cl_int {
    make!(w.clCreateCommandQueue(w.context, device, u64::from(properties)) clReleaseCommandQueue)
}

fn queue_with(w: &World, context: cl_context, device: cl_device_id, list: &[u64]) -> cl_int {
    make!(w.clCreateCommandQueueWithProperties(context, device, list.as_ptr()) clReleaseCommandQueue)
}

const ON_DEVICE: u32 = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
const PLATFORM: isize = CL_CONTEXT_PLATFORM as isize;
const SYNC: isize = CL_CONTEXT_INTEROP_USER_SYNC as isize;

rows! {
    clGetPlatformIDs {
        right |w| go!(w.clGetPlatformIDs(0, null_mut(), &mut 0));
        right |w| go!(w.clGetPlatformIDs(1, null_mut(), &mut 0));
        wrong CL_INVALID_VALUE "nowhere to answer" |w| go!(w.clGetPlatformIDs(0, null_mut(), null_mut()));
        wrong CL_INVALID_VALUE "no entries" |w| go!(w.clGetPlatformIDs(0, &mut null_mut(), null_mut()));
        never CL_PLATFORM_NOT_FOUND_KHR "there is a platform, and the process has one environment";
    }
    clGetPlatformInfo {
        handle CL_INVALID_PLATFORM |w, h| go!(w.clGetPlatformInfo(h.cast(), CL_PLATFORM_NAME, 0, null_mut(), null_mut()));
        query CL_PLATFORM_NAME |w, q, s, v, n| go!(w.clGetPlatformInfo(w.platform, q, s, v, n));
    }
    clGetDeviceIDs {
        right |w| go!(w.clGetDeviceIDs(w.platform, GPU, 0, null_mut(), &mut 0));
        right |w| go!(w.clGetDeviceIDs(w.platform, GPU, 1, null_mut(), &mut 0));
        handle CL_INVALID_PLATFORM |w, h| go!(w.clGetDeviceIDs(h.cast(), GPU, 0, null_mut(), &mut 0));
        wrong CL_INVALID_DEVICE_TYPE "no type" |w| go!(w.clGetDeviceIDs(w.platform, 0, 0, null_mut(), &mut 0));
        wrong CL_INVALID_DEVICE_TYPE "an unknown type" |w| go!(w.clGetDeviceIDs(w.platform, 1 << 20, 0, null_mut(), &mut 0));
        wrong CL_INVALID_VALUE "nowhere to answer" |w| go!(w.clGetDeviceIDs(w.platform, GPU, 0, null_mut(), null_mut()));
        wrong CL_INVALID_VALUE "no entries" |w| go!(w.clGetDeviceIDs(w.platform, GPU, 0, &mut null_mut(), null_mut()));
        wrong CL_DEVICE_NOT_FOUND "a processor" |w| go!(w.clGetDeviceIDs(w.platform, CPU, 0, null_mut(), &mut 0));
    }
    clGetDeviceInfo {
        handle CL_INVALID_DEVICE |w, h| go!(w.clGetDeviceInfo(h.cast(), CL_DEVICE_NAME, 0, null_mut(), null_mut()));
        query CL_DEVICE_NAME |w, q, s, v, n| go!(w.clGetDeviceInfo(w.device, q, s, v, n));
    }
    clRetainDevice {
        right |w| go!(w.clRetainDevice(w.device));
        handle CL_INVALID_DEVICE |w, h| go!(w.clRetainDevice(h.cast()));
    }
    clReleaseDevice {
        right |w| go!(w.clReleaseDevice(w.device));
        handle CL_INVALID_DEVICE |w, h| go!(w.clReleaseDevice(h.cast()));
    }
    clCreateSubDevices {
        handle CL_INVALID_DEVICE |w, h| go!(w.clCreateSubDevices(h.cast(), [CL_DEVICE_PARTITION_EQUALLY as isize, 1, 0].as_ptr(), 0, null_mut(), &mut 0));
        wrong CL_INVALID_VALUE "no device can be parted" |w| go!(w.clCreateSubDevices(w.device, [CL_DEVICE_PARTITION_EQUALLY as isize, 1, 0].as_ptr(), 0, null_mut(), &mut 0));
        wrong CL_INVALID_VALUE "no properties" |w| go!(w.clCreateSubDevices(w.device, null(), 0, null_mut(), &mut 0));
        never CL_SUCCESS "devices say that they have no way of being parted";
        never CL_DEVICE_PARTITION_FAILED "as above";
        never CL_INVALID_DEVICE_PARTITION_COUNT "as above";
    }
    clGetDeviceAndHostTimer {
        right |w| go!(w.clGetDeviceAndHostTimer(w.device, &mut 0, &mut 0));
        handle CL_INVALID_DEVICE |w, h| go!(w.clGetDeviceAndHostTimer(h.cast(), &mut 0, &mut 0));
        wrong CL_INVALID_VALUE "no place for the host's" |w| go!(w.clGetDeviceAndHostTimer(w.device, &mut 0, null_mut()));
        wrong CL_INVALID_VALUE "no place for the device's" |w| go!(w.clGetDeviceAndHostTimer(w.device, null_mut(), &mut 0));
        never CL_INVALID_OPERATION "the platform has timers";
    }
    clGetHostTimer {
        right |w| go!(w.clGetHostTimer(w.device, &mut 0));
        handle CL_INVALID_DEVICE |w, h| go!(w.clGetHostTimer(h.cast(), &mut 0));
        wrong CL_INVALID_VALUE "no place" |w| go!(w.clGetHostTimer(w.device, null_mut()));
        never CL_INVALID_OPERATION "the platform has timers";
    }
    clCreateContext {
        right |w| context(w, &[PLATFORM, w.platform.expose_provenance() as isize, SYNC, 1, 0], 1, &w.device);
        right |w| context(w, &[0], 2, [w.device, w.device].as_ptr());
        wrong CL_INVALID_PLATFORM "no platform" |w| if w.by_loader { CL_INVALID_PLATFORM } else { context(w, &[PLATFORM, w.device.expose_provenance() as isize, 0], 1, &w.device) };
        wrong CL_INVALID_PROPERTY "an unknown name" |w| context(w, &[0xFFFF, 1, 0], 1, &w.device);
        wrong CL_INVALID_PROPERTY "a wrong value" |w| context(w, &[SYNC, 2, 0], 1, &w.device);
        wrong CL_INVALID_PROPERTY "a name twice" |w| context(w, &[SYNC, 1, SYNC, 1, 0], 1, &w.device);
        wrong CL_INVALID_VALUE "no devices" |w| context(w, &[0], 1, null());
        wrong CL_INVALID_VALUE "none of the devices" |w| context(w, &[0], 0, &w.device);
        wrong CL_INVALID_VALUE "data for no function" |w| make!(w.clCreateContext(null(), 1, &w.device, None, w.room) clReleaseContext);
        wrong CL_INVALID_DEVICE "a queue as device" |w| context(w, &[0], 2, [w.device, w.queue.cast()].as_ptr());
        never CL_DEVICE_NOT_AVAILABLE "devices are always there";
        never CL_INVALID_OPERATION "of sharing with other interfaces, which is not there";
    }
    clCreateContextFromType {
        right |w| of_type(w, &[PLATFORM, w.platform.expose_provenance() as isize, 0], GPU, null_mut());
        wrong CL_INVALID_PLATFORM "no platform" |w| if w.by_loader { CL_INVALID_PLATFORM } else { of_type(w, &[PLATFORM, w.device.expose_provenance() as isize, 0], GPU, null_mut()) };
        wrong CL_INVALID_PROPERTY "an unknown name" |w| of_type(w, &[PLATFORM, w.platform.expose_provenance() as isize, 0xFFFF, 1, 0], GPU, null_mut());
        wrong CL_INVALID_VALUE "data for no function" |w| of_type(w, &[PLATFORM, w.platform.expose_provenance() as isize, 0], GPU, w.room);
        wrong CL_INVALID_DEVICE_TYPE "no type" |w| of_type(w, &[PLATFORM, w.platform.expose_provenance() as isize, 0], 0, null_mut());
        wrong CL_DEVICE_NOT_FOUND "a processor" |w| of_type(w, &[PLATFORM, w.platform.expose_provenance() as isize, 0], CPU, null_mut());
        never CL_DEVICE_NOT_AVAILABLE "devices are always there";
        never CL_INVALID_OPERATION "of sharing with other interfaces, which is not there";
    }
    clRetainContext {
        right |w| go!(w.clRetainContext(w.context));
        handle CL_INVALID_CONTEXT |w, h| go!(w.clRetainContext(h.cast()));
    }
    clReleaseContext {
        right |w| go!(w.clReleaseContext(w.context));
        handle CL_INVALID_CONTEXT |w, h| go!(w.clReleaseContext(h.cast()));
    }
    clGetContextInfo {
        handle CL_INVALID_CONTEXT |w, h| go!(w.clGetContextInfo(h.cast(), CL_CONTEXT_DEVICES, 0, null_mut(), null_mut()));
        query CL_CONTEXT_DEVICES |w, q, s, v, n| go!(w.clGetContextInfo(w.context, q, s, v, n));
    }
    clSetContextDestructorCallback {
        right |w| go!(w.clSetContextDestructorCallback(w.context, Some(on_context), null_mut()));
        handle CL_INVALID_CONTEXT |w, h| go!(w.clSetContextDestructorCallback(h.cast(), Some(on_context), null_mut()));
        wrong CL_INVALID_VALUE "no function" |w| go!(w.clSetContextDestructorCallback(w.context, None, null_mut()));
    }
    clCreateCommandQueue {
        right |w| queue(w, w.device, CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        handle CL_INVALID_CONTEXT |w, h| make!(w.clCreateCommandQueue(h.cast(), w.device, 0) clReleaseCommandQueue);
        handle CL_INVALID_DEVICE |w, h| queue(w, h.cast(), 0);
        wrong CL_INVALID_DEVICE "another context's device" |w| queue(w, w.bare, 0);
        wrong CL_INVALID_VALUE "an unknown property" |w| queue(w, w.device, 1 << 20);
        wrong CL_INVALID_QUEUE_PROPERTIES "a queue on the device" |w| queue(w, w.device, ON_DEVICE);
    }
    clCreateCommandQueueWithProperties {
        right |w| queue_with(w, w.context, w.device, &[u64::from(CL_QUEUE_PROPERTIES), u64::from(CL_QUEUE_PROFILING_ENABLE), 0]);
        right |w| make!(w.clCreateCommandQueueWithProperties(w.context, w.device, null()) clReleaseCommandQueue);
        handle CL_INVALID_CONTEXT |w, h| queue_with(w, h.cast(), w.device, &[0]);
        handle CL_INVALID_DEVICE |w, h| queue_with(w, w.context, h.cast(), &[0]);
        wrong CL_INVALID_DEVICE "another context's device" |w| queue_with(w, w.context, w.bare, &[0]);
        wrong CL_INVALID_VALUE "an unknown name" |w| queue_with(w, w.context, w.device, &[0xFFFF, 0, 0]);
        wrong CL_INVALID_VALUE "a name twice" |w| queue_with(w, w.context, w.device, &[u64::from(CL_QUEUE_PROPERTIES), 0, u64::from(CL_QUEUE_PROPERTIES), 0, 0]);
        wrong CL_INVALID_VALUE "an unknown property" |w| queue_with(w, w.context, w.device, &[u64::from(CL_QUEUE_PROPERTIES), 1 << 20, 0]);
        wrong CL_INVALID_QUEUE_PROPERTIES "a queue on the device" |w| queue_with(w, w.context, w.device, &[u64::from(CL_QUEUE_PROPERTIES), u64::from(ON_DEVICE), 0]);
    }
    clSetDefaultDeviceCommandQueue {
        handle CL_INVALID_CONTEXT |w, h| go!(w.clSetDefaultDeviceCommandQueue(h.cast(), w.device, w.queue));
        handle CL_INVALID_DEVICE |w, h| go!(w.clSetDefaultDeviceCommandQueue(w.context, h.cast(), w.queue));
        wrong CL_INVALID_DEVICE "another context's device" |w| go!(w.clSetDefaultDeviceCommandQueue(w.context, w.bare, w.queue));
        wrong CL_INVALID_OPERATION "no queues on devices" |w| go!(w.clSetDefaultDeviceCommandQueue(w.context, w.device, w.queue));
        never CL_SUCCESS "devices say that they have no queues on them";
        never CL_INVALID_COMMAND_QUEUE "as above: no queue could be right";
    }
    clRetainCommandQueue {
        right |w| go!(w.clRetainCommandQueue(w.queue));
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clRetainCommandQueue(h.cast()));
    }
    clReleaseCommandQueue {
        right |w| go!(w.clReleaseCommandQueue(w.queue));
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clReleaseCommandQueue(h.cast()));
    }
    clGetCommandQueueInfo {
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clGetCommandQueueInfo(h.cast(), CL_QUEUE_CONTEXT, 0, null_mut(), null_mut()));
        wrong CL_INVALID_COMMAND_QUEUE "the size of a queue on the device" |w| go!(w.clGetCommandQueueInfo(w.queue, CL_QUEUE_SIZE, 4, w.room, null_mut()));
        query CL_QUEUE_CONTEXT |w, q, s, v, n| go!(w.clGetCommandQueueInfo(w.queue, q, s, v, n));
    }
    clSetCommandQueueProperty {
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clSetCommandQueueProperty(h.cast(), 0, CL_TRUE, null_mut()));
        wrong CL_INVALID_OPERATION "properties stay as they are" |w| go!(w.clSetCommandQueueProperty(w.queue, 0, CL_TRUE, null_mut()));
        never CL_SUCCESS "since OpenCL 1.1 properties stay as they are";
        never CL_INVALID_VALUE "as above";
        never CL_INVALID_QUEUE_PROPERTIES "as above";
    }
    clFlush {
        right |w| go!(w.clFlush(w.queue));
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clFlush(h.cast()));
    }
    clFinish {
        right |w| go!(w.clFinish(w.queue));
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clFinish(h.cast()));
    }
    clUnloadCompiler {
        right |w| go!(w.clUnloadCompiler());
    }
    clUnloadPlatformCompiler {
        right |w| go!(w.clUnloadPlatformCompiler(w.platform));
        handle CL_INVALID_PLATFORM |w, h| go!(w.clUnloadPlatformCompiler(h.cast()));
    }
    clGetExtensionFunctionAddress {
        right |w| cl_int::from(!w.by_loader && go!(w.clGetExtensionFunctionAddress(c"clMemFreeINTEL".as_ptr())).is_null());
        right |w| cl_int::from(!go!(w.clGetExtensionFunctionAddress(c"clNoSuchFunction".as_ptr())).is_null());
    }
    clGetExtensionFunctionAddressForPlatform {
        right |w| cl_int::from(go!(w.clGetExtensionFunctionAddressForPlatform(w.platform, c"clMemFreeINTEL".as_ptr())).is_null());
        right |w| cl_int::from(!go!(w.clGetExtensionFunctionAddressForPlatform(w.platform, c"clNoSuchFunction".as_ptr())).is_null());
    }
}
