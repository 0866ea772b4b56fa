//! Platforms, and functions by name.

use std::ffi::{c_char, c_void};

use super::entry::{entries, queries};
use super::given::{Given, Ptr, answer};
use crate::abi::*;
use crate::core::platform::{NAME, Platform, SUFFIX, VENDOR, VERSION};
use crate::core::version::{name_version, version};
use crate::core::{Cl, Ref, ensure, err};

fn platforms(n: cl_uint, list: Ptr<cl_platform_id>, count: Ptr<cl_uint>) -> Cl<()> {
    ensure(list.is_null() || n != 0, CL_INVALID_VALUE)?;
    ensure(!list.is_null() || !count.is_null(), CL_INVALID_VALUE)?;
    let platform = Platform::get();
    if platform.devices().is_empty() {
        count.set(0);
        return err(CL_PLATFORM_NOT_FOUND_KHR);
    }
    list.set(platform.handle());
    count.set(1);
    Ok(())
}

fn extensions() -> Vec<(&'static str, u32)> {
    let mut all = vec![
        ("cl_khr_icd", version(1, 0, 0)),
        ("cl_khr_extended_versioning", version(1, 0, 0)),
    ];
    // Those that all devices have.
    let [first, others @ ..] = Platform::get().devices() else {
        return all;
    };
    let common = first
        .extensions()
        .into_iter()
        .filter(|name| others.iter().all(|other| other.extensions().contains(name)));
    for name in common {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

queries! {
    /// What `clGetPlatformInfo` says.
    fn platform_info(_platform: &Ref<Platform>) {
        CL_PLATFORM_PROFILE => "FULL_PROFILE",
        CL_PLATFORM_VERSION => VERSION,
        CL_PLATFORM_NUMERIC_VERSION => version(3, 0, 0),
        CL_PLATFORM_NAME => NAME,
        CL_PLATFORM_VENDOR => VENDOR,
        CL_PLATFORM_ICD_SUFFIX_KHR => SUFFIX,
        CL_PLATFORM_HOST_TIMER_RESOLUTION => 1_u64,
        CL_PLATFORM_EXTENSIONS => {
            let names: Vec<&str> = extensions().into_iter().map(|(name, _)| name).collect();
            names.join(" ")
        },
        CL_PLATFORM_EXTENSIONS_WITH_VERSION => {
            let all = extensions().into_iter();
            all.flat_map(|(name, v)| name_version(v, name)).collect::<Vec<u8>>()
        },
    }
}

/// The platform that is meant; null is the only one.
pub fn platform(handle: Ptr<_cl_platform_id>) -> Cl<Ref<Platform>> {
    if handle.is_null() {
        return Ok(Platform::get().clone());
    }
    handle.object()
}

entries! {
    fn clGetPlatformIDs(num_entries: cl_uint, list: *mut cl_platform_id, count: *mut cl_uint) -> cl_int {
        platforms(num_entries, list, count)
    }

    fn clIcdGetPlatformIDsKHR(num_entries: cl_uint, list: *mut cl_platform_id, count: *mut cl_uint) -> cl_int {
        platforms(num_entries, list, count)
    }

    fn clGetPlatformInfo(
        handle: cl_platform_id,
        query: cl_platform_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        answer(&platform_info(&platform(handle)?, query)?, size, value, needed)
    }

    fn clUnloadCompiler() -> cl_int {
        Ok(())
    }

    fn clUnloadPlatformCompiler(handle: cl_platform_id) -> cl_int {
        handle.object::<Platform>().map(drop)
    }
}

/// Functions that are found by name: extensions, and what loaders ask for.
fn by_name(name: &[u8]) -> *mut c_void {
    macro_rules! named {
        ($($extension:literal => $function:path),* $(,)?) => {
            match name {
                $($extension => $function as *mut c_void,)*
                _ => std::ptr::null_mut(),
            }
        };
    }
    named! {
        b"clCreateProgramWithILKHR" => super::program::clCreateProgramWithILKHR,
        b"clGetKernelSubGroupInfoKHR" => super::kernel::clGetKernelSubGroupInfoKHR,
        b"clGetKernelSuggestedLocalWorkSizeKHR" => super::kernel::clGetKernelSuggestedLocalWorkSizeKHR,
        b"clGetDeviceGlobalVariablePointerINTEL" => super::variable::clGetDeviceGlobalVariablePointerINTEL,
        b"clEnqueueReadGlobalVariableINTEL" => super::variable::clEnqueueReadGlobalVariableINTEL,
        b"clEnqueueWriteGlobalVariableINTEL" => super::variable::clEnqueueWriteGlobalVariableINTEL,
        b"clGetPlatformInfo" => clGetPlatformInfo,
        b"clHostMemAllocINTEL" => super::usm::clHostMemAllocINTEL,
        b"clDeviceMemAllocINTEL" => super::usm::clDeviceMemAllocINTEL,
        b"clSharedMemAllocINTEL" => super::usm::clSharedMemAllocINTEL,
        b"clMemFreeINTEL" => super::usm::clMemFreeINTEL,
        b"clMemBlockingFreeINTEL" => super::usm::clMemBlockingFreeINTEL,
        b"clGetMemAllocInfoINTEL" => super::usm::clGetMemAllocInfoINTEL,
        b"clSetKernelArgMemPointerINTEL" => super::usm::clSetKernelArgMemPointerINTEL,
        b"clEnqueueMemsetINTEL" => super::usm::clEnqueueMemsetINTEL,
        b"clEnqueueMemFillINTEL" => super::usm::clEnqueueMemFillINTEL,
        b"clEnqueueMemcpyINTEL" => super::usm::clEnqueueMemcpyINTEL,
        b"clEnqueueMigrateMemINTEL" => super::usm::clEnqueueMigrateMemINTEL,
        b"clEnqueueMemAdviseINTEL" => super::usm::clEnqueueMemAdviseINTEL,
        b"clIcdGetPlatformIDsKHR" => clIcdGetPlatformIDsKHR,
        b"clCreateCommandQueueWithPropertiesKHR" => super::queue::clCreateCommandQueueWithProperties,
    }
}

/// OpenCL's `clGetExtensionFunctionAddress`.
///
/// # Safety
/// `name` is null or ends in NUL.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is OpenCL's")]
pub unsafe extern "C" fn clGetExtensionFunctionAddress(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller keeps to the specification of this function.
    let name = unsafe { name.given() };
    by_name(name.text().as_bytes())
}

/// OpenCL's `clGetExtensionFunctionAddressForPlatform`.
///
/// # Safety
/// `name` is null or ends in NUL.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is OpenCL's")]
pub unsafe extern "C" fn clGetExtensionFunctionAddressForPlatform(
    handle: cl_platform_id,
    name: *const c_char,
) -> *mut c_void {
    // SAFETY: the caller keeps to the specification of this function.
    let (handle, name) = unsafe { (handle.given(), name.given()) };
    match handle.object::<Platform>() {
        Ok(_) => by_name(name.text().as_bytes()),
        Err(_) => std::ptr::null_mut(),
    }
}
