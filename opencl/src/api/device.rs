//! Devices.

use std::ffi::c_void;

use super::entry::{entries, queries};
use super::given::answer;
use super::platform::platform;
use crate::abi::*;
use crate::core::compiler::{about, last_spirv_minor};
use crate::core::device::{Device, Float, UNITS_OF_SUB_SLICE, max_alloc_bytes, memory_bytes};
use crate::core::error::Cl;
use crate::core::event::now;
use crate::core::image;
use crate::core::platform::{Platform, VENDOR, VERSION};
use crate::core::version::{name_version, version};
use crate::core::{Ref, ensure, err};

/// Arguments that are images of each kind of access.
const IMAGE_ARGS: u32 = 128;

fn bits(flags: &[u32]) -> u64 {
    flags.iter().fold(0, |all, flag| all | u64::from(*flag))
}

fn float_config() -> u64 {
    bits(&[
        CL_FP_DENORM,
        CL_FP_INF_NAN,
        CL_FP_ROUND_TO_NEAREST,
        CL_FP_ROUND_TO_ZERO,
        CL_FP_ROUND_TO_INF,
        CL_FP_FMA,
    ])
}

fn if_images(device: &Device, value: usize) -> usize {
    if device.has_images() { value } else { 0 }
}

fn features(device: &Device) -> Vec<u8> {
    let mut names = vec![
        "__opencl_c_atomic_order_acq_rel",
        "__opencl_c_atomic_order_seq_cst",
        "__opencl_c_atomic_scope_device",
        "__opencl_c_generic_address_space",
        "__opencl_c_int64",
        "__opencl_c_program_scope_global_variables",
        "__opencl_c_subgroups",
        "__opencl_c_work_group_collective_functions",
    ];
    if device.has_doubles() {
        names.push("__opencl_c_fp64");
    }
    if device.has_images() {
        names.extend(["__opencl_c_images", "__opencl_c_3d_image_writes"]);
    }
    let atomics = device.float_atomic_features();
    names.extend(atomics.iter().map(String::as_str));
    let versions = names.into_iter();
    versions
        .flat_map(|name| name_version(version(3, 0, 0), name))
        .collect()
}

fn uuid(device: &Device) -> Vec<u8> {
    let mut bytes = b"visa-jit".to_vec();
    bytes.extend(device.name.as_str().bytes());
    bytes.resize(CL_UUID_SIZE_KHR as usize, 0);
    bytes
}

/// Lanes of vectors that suit a type; none of one that there is not.
fn width(there: bool) -> u32 {
    u32::from(there)
}

queries! {
    /// What `clGetDeviceInfo` says of what it is and computes.
    fn device_info(device: &Ref<Device>) {
        CL_DEVICE_TYPE => bits(&[CL_DEVICE_TYPE_GPU]),
        CL_DEVICE_VENDOR_ID => 0x8086_u32,
        CL_DEVICE_NAME => device.title(),
        CL_DEVICE_VENDOR => "Intel(R) Corporation",
        CL_DRIVER_VERSION => env!("CARGO_PKG_VERSION"),
        CL_DEVICE_PROFILE => "FULL_PROFILE",
        CL_DEVICE_VERSION => VERSION,
        CL_DEVICE_NUMERIC_VERSION => version(3, 0, 0),
        CL_DEVICE_OPENCL_C_VERSION => format!("OpenCL C 1.2 {VENDOR}"),
        CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR => version(1, 2, 0),
        CL_DEVICE_OPENCL_C_ALL_VERSIONS => {
            let all = [(1, 0), (1, 1), (1, 2), (3, 0)].into_iter();
            all.flat_map(|(a, b)| name_version(version(a, b, 0), "OpenCL C")).collect::<Vec<u8>>()
        },
        CL_DEVICE_OPENCL_C_FEATURES => features(device),
        CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED => "",
        CL_DEVICE_EXTENSIONS => {
            let names: Vec<&str> = device.extensions().into_iter().map(|(name, _)| name).collect();
            names.join(" ")
        },
        CL_DEVICE_EXTENSIONS_WITH_VERSION => {
            let all = device.extensions().into_iter();
            all.flat_map(|(name, v)| name_version(v, name)).collect::<Vec<u8>>()
        },
        CL_DEVICE_PLATFORM => Platform::get().handle(),
        CL_DEVICE_MAX_COMPUTE_UNITS => device.compute_units(),
        CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS => 3_u32,
        CL_DEVICE_MAX_WORK_ITEM_SIZES => [device.max_group(); 3],
        CL_DEVICE_MAX_WORK_GROUP_SIZE => device.max_group(),
        CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE => 32_usize,
        CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR | CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR
        | CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT | CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT
        | CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT | CL_DEVICE_NATIVE_VECTOR_WIDTH_INT
        | CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG | CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG
        | CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT | CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT
        | CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF | CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF => width(true),
        CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE | CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE => width(device.has_doubles()),
        CL_DEVICE_MAX_CLOCK_FREQUENCY => device.clock_megahertz(),
        CL_DEVICE_ADDRESS_BITS => 64_u32,
        CL_DEVICE_SINGLE_FP_CONFIG => float_config() | u64::from(CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT),
        CL_DEVICE_HALF_FP_CONFIG => float_config(),
        CL_DEVICE_DOUBLE_FP_CONFIG => if device.has_doubles() { float_config() } else { 0 },
        CL_DEVICE_MAX_MEM_ALLOC_SIZE => max_alloc_bytes(),
        CL_DEVICE_GLOBAL_MEM_SIZE => memory_bytes(),
        CL_DEVICE_GLOBAL_MEM_CACHE_TYPE => CL_READ_WRITE_CACHE,
        CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE => 64_u32,
        CL_DEVICE_GLOBAL_MEM_CACHE_SIZE => 1_u64 << 20,
        CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE => max_alloc_bytes(),
        CL_DEVICE_MAX_CONSTANT_ARGS => 8_u32,
        CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE => 64_usize << 10,
        CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE => 64_usize << 10,
        CL_DEVICE_LOCAL_MEM_TYPE => CL_LOCAL,
        CL_DEVICE_LOCAL_MEM_SIZE => device.local_bytes(),
        CL_DEVICE_MAX_PARAMETER_SIZE => 2048_usize,
        CL_DEVICE_MEM_BASE_ADDR_ALIGN => 1024_u32,
        CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE => 128_u32,
        CL_DEVICE_PRINTF_BUFFER_SIZE => 4_usize << 20,
        CL_DEVICE_ERROR_CORRECTION_SUPPORT => false,
        CL_DEVICE_HOST_UNIFIED_MEMORY | CL_DEVICE_ENDIAN_LITTLE | CL_DEVICE_AVAILABLE
        | CL_DEVICE_PREFERRED_INTEROP_USER_SYNC => true,
        CL_DEVICE_COMPILER_AVAILABLE | CL_DEVICE_LINKER_AVAILABLE => about().is_some(),
        CL_DEVICE_PROFILING_TIMER_RESOLUTION => 1_usize,
        CL_DEVICE_EXECUTION_CAPABILITIES => bits(&[CL_EXEC_KERNEL]),
        CL_DEVICE_QUEUE_PROPERTIES => bits(&[CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROFILING_ENABLE]),
        CL_DEVICE_BUILT_IN_KERNELS => "",
        CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION => Vec::<u8>::new(),
        CL_DEVICE_REFERENCE_COUNT => 1_u32,
        CL_DEVICE_UUID_KHR | CL_DRIVER_UUID_KHR => uuid(device),
        CL_DEVICE_LUID_VALID_KHR => false,
        CL_DEVICE_LUID_KHR => vec![0_u8; CL_LUID_SIZE_KHR as usize],
        CL_DEVICE_NODE_MASK_KHR => 0_u32,
        CL_DEVICE_IMAGE_SUPPORT => device.has_images(),
        CL_DEVICE_MAX_READ_IMAGE_ARGS | CL_DEVICE_MAX_WRITE_IMAGE_ARGS => if device.has_images() { IMAGE_ARGS } else { 0 },
        CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS => 0_u32,
        CL_DEVICE_MAX_SAMPLERS => if device.has_images() { 16_u32 } else { 0 },
        CL_DEVICE_IMAGE2D_MAX_WIDTH | CL_DEVICE_IMAGE2D_MAX_HEIGHT => if_images(device, image::MAX_SIDE),
        CL_DEVICE_IMAGE3D_MAX_WIDTH | CL_DEVICE_IMAGE3D_MAX_HEIGHT | CL_DEVICE_IMAGE3D_MAX_DEPTH
        | CL_DEVICE_IMAGE_MAX_ARRAY_SIZE => if_images(device, image::MAX_DEPTH),
        CL_DEVICE_IMAGE_MAX_BUFFER_SIZE => if_images(device, image::MAX_BUFFER),
        CL_DEVICE_IMAGE_PITCH_ALIGNMENT | CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT => 0_u32,
        CL_DEVICE_PARENT_DEVICE => std::ptr::null_mut::<_cl_device_id>(),
        CL_DEVICE_PARTITION_MAX_SUB_DEVICES => 0_u32,
        CL_DEVICE_PARTITION_PROPERTIES | CL_DEVICE_PARTITION_TYPE => 0_usize,
        CL_DEVICE_PARTITION_AFFINITY_DOMAIN => 0_u64,
        CL_DEVICE_SVM_CAPABILITIES => bits(&[CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, CL_DEVICE_SVM_ATOMICS]),
        CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL | CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL
        | CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL
        | CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL => super::usm::capabilities(),
        CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL => 0_u64,
        CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT | CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT
        | CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT => 64_u32,
        CL_DEVICE_IL_VERSION => {
            let all: Vec<String> = (0..=last_spirv_minor()).map(|minor| format!("SPIR-V_1.{minor}")).collect();
            all.join(" ")
        },
        CL_DEVICE_ILS_WITH_VERSION => {
            let all = 0..=last_spirv_minor();
            all.flat_map(|minor| name_version(version(1, minor, 0), "SPIR-V")).collect::<Vec<u8>>()
        },
        CL_DEVICE_MAX_NUM_SUB_GROUPS => {
            let narrowest = device.sub_group_sizes().first().copied().unwrap_or(1);
            u32::try_from(device.max_group() / narrowest).unwrap_or(0)
        },
        CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS => false,
        CL_DEVICE_SUB_GROUP_SIZES_INTEL => device.sub_group_sizes(),
        CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES => bits(&[
            CL_DEVICE_ATOMIC_ORDER_RELAXED, CL_DEVICE_ATOMIC_ORDER_ACQ_REL, CL_DEVICE_ATOMIC_ORDER_SEQ_CST,
            CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP, CL_DEVICE_ATOMIC_SCOPE_DEVICE,
        ]),
        CL_DEVICE_ATOMIC_FENCE_CAPABILITIES => bits(&[
            CL_DEVICE_ATOMIC_ORDER_RELAXED, CL_DEVICE_ATOMIC_ORDER_ACQ_REL, CL_DEVICE_ATOMIC_ORDER_SEQ_CST,
            CL_DEVICE_ATOMIC_SCOPE_WORK_ITEM, CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP, CL_DEVICE_ATOMIC_SCOPE_DEVICE,
        ]),
        CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT | CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT
        | CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT => true,
        CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES => 0_u64,
        CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES => 0_u64,
        CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE | CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE | CL_DEVICE_MAX_ON_DEVICE_QUEUES
        | CL_DEVICE_MAX_ON_DEVICE_EVENTS => 0_u32,
        CL_DEVICE_PIPE_SUPPORT => false,
        CL_DEVICE_MAX_PIPE_ARGS | CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS | CL_DEVICE_PIPE_MAX_PACKET_SIZE => 0_u32,
        CL_DEVICE_IP_VERSION_INTEL => device.ip_version(),
        CL_DEVICE_ID_INTEL => device.device_id(),
        CL_DEVICE_NUM_SLICES_INTEL => 1_u32,
        CL_DEVICE_NUM_SUB_SLICES_PER_SLICE_INTEL => device.sub_slices(),
        CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL => UNITS_OF_SUB_SLICE,
        CL_DEVICE_NUM_THREADS_PER_EU_INTEL => device.threads_of_unit(),
        CL_DEVICE_FEATURE_CAPABILITIES_INTEL => 0_u64,
        CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT => device.float_atomics(Float::Single),
        CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT => device.float_atomics(Float::Double),
        CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT => device.float_atomics(Float::Half),
    }
}

entries! {
    fn clGetDeviceIDs(
        handle: cl_platform_id,
        kind: cl_device_type,
        num_entries: cl_uint,
        list: *mut cl_device_id,
        count: *mut cl_uint,
    ) -> cl_int {
        let platform = platform(handle)?;
        ensure(list.is_null() || num_entries != 0, CL_INVALID_VALUE)?;
        ensure(!list.is_null() || !count.is_null(), CL_INVALID_VALUE)?;
        let found = of_type(&platform, kind)?;
        for (i, device) in found.iter().take(num_entries as usize).enumerate() {
            list.set_at(i, device.handle());
        }
        count.set(found.len() as cl_uint);
        Ok(())
    }

    fn clGetDeviceInfo(
        handle: cl_device_id,
        query: cl_device_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        answer(&device_info(&handle.object()?, query)?, size, value, needed)
    }

    fn clRetainDevice(handle: cl_device_id) -> cl_int {
        // Devices are there as long as the process.
        handle.object::<Device>().map(drop)
    }

    fn clReleaseDevice(handle: cl_device_id) -> cl_int {
        handle.object::<Device>().map(drop)
    }

    fn clCreateSubDevices(
        handle: cl_device_id,
        _properties: *const cl_device_partition_property,
        _num_devices: cl_uint,
        _out_devices: *mut cl_device_id,
        _count: *mut cl_uint,
    ) -> cl_int {
        handle.object::<Device>()?;
        // No way of partitioning is supported.
        err(CL_INVALID_VALUE)
    }

    fn clGetDeviceAndHostTimer(handle: cl_device_id, device_time: *mut cl_ulong, host_time: *mut cl_ulong) -> cl_int {
        handle.object::<Device>()?;
        ensure(!device_time.is_null() && !host_time.is_null(), CL_INVALID_VALUE)?;
        let now = now();
        device_time.set(now);
        host_time.set(now);
        Ok(())
    }

    fn clGetHostTimer(handle: cl_device_id, host_time: *mut cl_ulong) -> cl_int {
        handle.object::<Device>()?;
        ensure(!host_time.is_null(), CL_INVALID_VALUE)?;
        host_time.set(now());
        Ok(())
    }

    fn clSetDefaultDeviceCommandQueue(
        context: cl_context,
        device: cl_device_id,
        _queue: cl_command_queue,
    ) -> cl_int {
        let context = context.object::<crate::core::context::Context>()?;
        context.check(&device.object()?)?;
        // There are no queues on devices.
        err(CL_INVALID_OPERATION)
    }
}

/// The devices of a type.
///
/// # Errors
/// `CL_INVALID_DEVICE_TYPE` for what is no type, `CL_DEVICE_NOT_FOUND`.
pub fn of_type(platform: &Platform, kind: cl_device_type) -> Cl<Vec<Ref<Device>>> {
    const KNOWN: u32 = CL_DEVICE_TYPE_DEFAULT
        | CL_DEVICE_TYPE_CPU
        | CL_DEVICE_TYPE_GPU
        | CL_DEVICE_TYPE_ACCELERATOR
        | CL_DEVICE_TYPE_CUSTOM;
    let all = kind == u64::from(CL_DEVICE_TYPE_ALL);
    let known = all || (kind != 0 && kind & !u64::from(KNOWN) == 0);
    ensure(known, CL_INVALID_DEVICE_TYPE)?;
    let devices = platform.devices();
    let found = if kind & u64::from(CL_DEVICE_TYPE_GPU) != 0 {
        devices
    } else if kind & u64::from(CL_DEVICE_TYPE_DEFAULT) != 0 {
        &devices[..devices.len().min(1)]
    } else {
        &[]
    };
    ensure(!found.is_empty(), CL_DEVICE_NOT_FOUND)?;
    Ok(found.to_vec())
}
