//! Kernels.

use std::ffi::{c_char, c_void};

use visa_jit::ArgKind;
use visa_jit::container::Zebin;

use super::entry::{Answer, entries, queries};
use super::given::{Ptr, answer};
use crate::abi::*;
use crate::core::device::Device;
use crate::core::kernel::{Kernel, Setting, check, narrowed, suggested};
use crate::core::mem::Mem;
use crate::core::program::Program;
use crate::core::queue::Queue;
use crate::core::sampler::Sampler;
use crate::core::{Cl, ClError, Object, Ref, ensure, err};

queries! {
    /// What `clGetKernelInfo` says.
    fn kernel_info(kernel: &Ref<Kernel>) {
        CL_KERNEL_FUNCTION_NAME => kernel.name.as_str(),
        CL_KERNEL_NUM_ARGS => kernel.arguments().len() as cl_uint,
        CL_KERNEL_REFERENCE_COUNT => kernel.references(),
        CL_KERNEL_CONTEXT => kernel.program.context.handle(),
        CL_KERNEL_PROGRAM => kernel.program.handle(),
        CL_KERNEL_ATTRIBUTES => attributes(kernel),
    }
}

/// The attributes of a kernel's source, as `clGetKernelInfo` says them: with spaces between.
fn attributes(kernel: &Kernel) -> String {
    let mut builds = kernel.program.builds().into_iter();
    let told = builds.find_map(|build| build.attributes(&kernel.name));
    let told = told.unwrap_or_default();
    let size = |name, size: Option<[u32; 3]>| size.map(|[x, y, z]| format!("{name}({x},{y},{z})"));
    let lanes = told.intel_reqd_sub_group_size;
    let all = [
        told.vec_type_hint.map(|ty| format!("vec_type_hint({ty})")),
        size("work_group_size_hint", told.work_group_size_hint),
        size("reqd_work_group_size", told.reqd_work_group_size),
        lanes.map(|lanes| format!("intel_reqd_sub_group_size({lanes})")),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A kernel on a device.
pub struct On {
    device: Ref<Device>,
    kernel: visa_jit::Kernel,
    program: Ref<Program>,
}

impl On {
    /// Work-items of the largest group.
    fn max_group(&self) -> usize {
        match self.kernel.required_local_size() {
            Some(local) => local.iter().map(|n| *n as usize).product(),
            None => self.device.max_group(),
        }
    }
}

queries! {
    /// What `clGetKernelWorkGroupInfo` says.
    fn group_info(on: &On) {
        CL_KERNEL_WORK_GROUP_SIZE => on.max_group(),
        CL_KERNEL_COMPILE_WORK_GROUP_SIZE => on.kernel.required_local_size().unwrap_or_default().map(|n| n as usize),
        CL_KERNEL_LOCAL_MEM_SIZE => u64::from(on.kernel.slm_bytes()),
        CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE => on.kernel.simd() as usize,
        CL_KERNEL_PRIVATE_MEM_SIZE => u64::from(on.kernel.scratch_bytes()),
    }
}

/// The device that is meant: the only one, if none is named.
fn on(of: &Kernel, device: Ptr<_cl_device_id>) -> Cl<On> {
    let device = match device.optional::<Device>()? {
        Some(device) => device,
        None => {
            ensure(of.program.devices.len() == 1, CL_INVALID_DEVICE)?;
            of.program
                .devices
                .first()
                .cloned()
                .ok_or(ClError(CL_INVALID_DEVICE))?
        }
    };
    let built = of.on(&device).map_err(|_| ClError(CL_INVALID_DEVICE));
    let kernel = built?.1.clone();
    let program = of.program.clone();
    Ok(On {
        device,
        kernel,
        program,
    })
}

/// What `clGetKernelArgInfo` says: from the zebin, where the compiler wrote it down and the program asked for it.
fn argument_info(kernel: &Kernel, index: cl_uint, query: cl_kernel_arg_info) -> Cl<Vec<u8>> {
    kernel.argument(index)?;
    let missing = ClError(CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
    let build = kernel
        .program
        .builds()
        .into_iter()
        .filter(|build| build.tells_arguments)
        .find_map(|build| build.zebin);
    let zebin = Zebin::parse(&build.ok_or(missing)?).map_err(|_| missing)?;
    let all = zebin.ze_info.args_of(&kernel.name).iter();
    let info = all
        .into_iter()
        .find(|info| info.index == index)
        .ok_or(missing)?;
    let has = |word: &str| info.type_qualifiers.split_whitespace().any(|w| w == word);
    Ok(match query {
        CL_KERNEL_ARG_ADDRESS_QUALIFIER => match info.address_qualifier.as_str() {
            "__global" => CL_KERNEL_ARG_ADDRESS_GLOBAL,
            "__local" => CL_KERNEL_ARG_ADDRESS_LOCAL,
            "__constant" => CL_KERNEL_ARG_ADDRESS_CONSTANT,
            _ => CL_KERNEL_ARG_ADDRESS_PRIVATE,
        }
        .bytes(),
        CL_KERNEL_ARG_ACCESS_QUALIFIER => match info.access_qualifier.as_str() {
            "__read_only" => CL_KERNEL_ARG_ACCESS_READ_ONLY,
            "__write_only" => CL_KERNEL_ARG_ACCESS_WRITE_ONLY,
            "__read_write" => CL_KERNEL_ARG_ACCESS_READ_WRITE,
            _ => CL_KERNEL_ARG_ACCESS_NONE,
        }
        .bytes(),
        CL_KERNEL_ARG_TYPE_NAME => Answer::bytes(info.type_and_size().0),
        CL_KERNEL_ARG_TYPE_QUALIFIER => {
            let words = [
                ("const", CL_KERNEL_ARG_TYPE_CONST),
                ("restrict", CL_KERNEL_ARG_TYPE_RESTRICT),
                ("volatile", CL_KERNEL_ARG_TYPE_VOLATILE),
                ("pipe", CL_KERNEL_ARG_TYPE_PIPE),
            ];
            let set = words.into_iter().filter(|(word, _)| has(word));
            set.fold(0_u64, |all, (_, bit)| all | u64::from(bit))
                .bytes()
        }
        CL_KERNEL_ARG_NAME => Answer::bytes(info.name.as_str()),
        _ => return err(CL_INVALID_VALUE),
    })
}

/// The handle that an argument's value holds.
fn handle<T>(value: Ptr<c_void>) -> Option<Ptr<T>> {
    value.cast::<*mut T>().get().map(Ptr::promised)
}

/// Bytes of the largest argument: `CL_DEVICE_MAX_PARAMETER_SIZE`.
const MOST_BYTES: usize = 2048;

fn set_argument(kernel: &Kernel, index: cl_uint, size: usize, value: Ptr<c_void>) -> Cl<()> {
    let argument = kernel.argument(index)?;
    if let ArgKind::Value { .. } = argument.kind
        && size <= MOST_BYTES
    {
        let bytes = narrowed(argument, value.bytes(size));
        check(argument, bytes.len(), !value.is_null())?;
        kernel.set(index, Setting::Bytes(bytes));
        return Ok(());
    }
    check(argument, size, !value.is_null())?;
    let mem = || -> Cl<Setting> {
        let Some(handle) = handle::<_cl_mem>(value).filter(|handle| !handle.is_null()) else {
            return Ok(Setting::Null);
        };
        let mem = handle.object::<Mem>()?;
        let own = Ref::ptr_eq(&mem.context, &kernel.program.context);
        ensure(own, CL_INVALID_CONTEXT)?;
        Ok(Setting::Mem(mem))
    };
    let setting = match argument.kind {
        ArgKind::Buffer { .. } => match mem()? {
            Setting::Mem(mem) if mem.image.is_some() => return err(CL_INVALID_MEM_OBJECT),
            setting => setting,
        },
        ArgKind::Image { kind, .. } => match mem()? {
            Setting::Mem(mem) => {
                let given = mem.image.as_ref().map(|image| image.shape.kind);
                ensure(given.is_some() && given == kind, CL_INVALID_MEM_OBJECT)?;
                let forbidden = kernel.forbidden_flags(index);
                ensure(mem.flags & forbidden == 0, CL_INVALID_ARG_VALUE)?;
                Setting::Mem(mem)
            }
            _ => return err(CL_INVALID_MEM_OBJECT),
        },
        ArgKind::Sampler => {
            let handle = handle::<_cl_sampler>(value).ok_or(ClError(CL_INVALID_SAMPLER))?;
            let sampler = handle.object::<Sampler>()?;
            let own = Ref::ptr_eq(&sampler.context, &kernel.program.context);
            ensure(own, CL_INVALID_CONTEXT)?;
            Setting::Sampler(sampler)
        }
        ArgKind::Local { .. } => Setting::Local(u32::try_from(size).unwrap_or(u32::MAX)),
        ArgKind::Value { .. } => return err(CL_INVALID_ARG_SIZE),
        // Whatever it is, the kernel does not read it.
        ArgKind::Unused => Setting::Null,
    };
    kernel.set(index, setting);
    Ok(())
}

/// Sets an argument to memory that is shared by address, or to null.
///
/// # Errors
/// `CL_INVALID_ARG_INDEX`; `CL_INVALID_ARG_VALUE` for an argument that is no pointer, and for an address in no allocation.
pub fn set_shared(kernel: &Kernel, index: cl_uint, address: usize) -> Cl<()> {
    let argument = kernel.argument(index)?;
    let pointer = matches!(argument.kind, ArgKind::Buffer { .. } | ArgKind::Unused);
    ensure(pointer, CL_INVALID_ARG_VALUE)?;
    if address == 0 {
        kernel.set(index, Setting::Null);
        return Ok(());
    }
    let shared = &kernel.program.context.shared;
    let found = shared
        .rest(address as u64)
        .ok_or(ClError(CL_INVALID_ARG_VALUE))?;
    kernel.set(index, Setting::Shared(found));
    Ok(())
}

fn sub_group_info(
    on: &On,
    query: cl_kernel_sub_group_info,
    input: &[usize],
    size: usize,
) -> Cl<Vec<u8>> {
    let simd = on.kernel.simd() as usize;
    let items = || {
        let fine = matches!(input.len(), 1..=3) && !input.contains(&0);
        ensure(fine, CL_INVALID_VALUE).map(|()| input.iter().product::<usize>())
    };
    Ok(match query {
        CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE => simd.min(items()?).bytes(),
        CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE => items()?.div_ceil(simd).bytes(),
        CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT => {
            let [count] = input else {
                return err(CL_INVALID_VALUE);
            };
            // A call that asks for the size of the answer gives no room for it yet.
            let dimensions = if size == 0 {
                3
            } else {
                size / size_of::<usize>()
            };
            ensure(matches!(dimensions, 1..=3), CL_INVALID_VALUE)?;
            let wanted = count.saturating_mul(simd);
            let required = on
                .kernel
                .required_local_size()
                .map(|l| l.map(|n| n as usize));
            let possible = match required {
                Some(local) => local == [wanted, 1, 1],
                None => wanted <= on.device.max_group(),
            };
            let mut local = [0; 3];
            if possible && wanted != 0 {
                local = [wanted, 1, 1];
            }
            local.get(..dimensions).unwrap_or_default().bytes()
        }
        CL_KERNEL_MAX_NUM_SUB_GROUPS => on.max_group().div_ceil(simd).bytes(),
        CL_KERNEL_COMPILE_NUM_SUB_GROUPS => 0_usize.bytes(),
        CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL => {
            let build = on.program.build_of(&on.device)?;
            build.required_sub_group_size(on.kernel.name()).bytes()
        }
        _ => return err(CL_INVALID_VALUE),
    })
}

entries! {
    fn clCreateKernel(program: cl_program, name: *const c_char) -> cl_kernel {
        let program = program.object::<Program>()?;
        ensure(!name.is_null(), CL_INVALID_VALUE)?;
        Ok(Object::create(Kernel::new(&program, &name.text())?))
    }

    fn clCreateKernelsInProgram(
        program: cl_program,
        n: cl_uint,
        list: *mut cl_kernel,
        count: *mut cl_uint,
    ) -> cl_int {
        let program = program.object::<Program>()?;
        let names = program.kernel_names()?;
        if !list.is_null() {
            ensure(n as usize >= names.len(), CL_INVALID_VALUE)?;
            let kernels = names.iter().map(|name| Kernel::new(&program, name));
            for (i, kernel) in kernels.collect::<Cl<Vec<Kernel>>>()?.into_iter().enumerate() {
                list.set_at(i, Object::create(kernel));
            }
        }
        count.set(names.len() as cl_uint);
        Ok(())
    }

    fn clCloneKernel(kernel: cl_kernel) -> cl_kernel {
        Ok(Object::create(kernel.object::<Kernel>()?.copy()))
    }

    fn clRetainKernel(kernel: cl_kernel) -> cl_int {
        kernel.object::<Kernel>()?.retain();
        Ok(())
    }

    fn clReleaseKernel(kernel: cl_kernel) -> cl_int {
        kernel.object::<Kernel>()?.release().map(drop)
    }

    fn clSetKernelArg(kernel: cl_kernel, index: cl_uint, size: usize, value: *const c_void) -> cl_int {
        set_argument(&*kernel.object::<Kernel>()?, index, size, value)
    }

    fn clSetKernelArgSVMPointer(kernel: cl_kernel, index: cl_uint, value: *const c_void) -> cl_int {
        set_shared(&*kernel.object::<Kernel>()?, index, value.addr())
    }

    fn clSetKernelExecInfo(
        kernel: cl_kernel,
        query: cl_kernel_exec_info,
        size: usize,
        value: *const c_void,
    ) -> cl_int {
        kernel.object::<Kernel>()?;
        // An empty list takes back the one before.
        ensure(value.is_null() == (size == 0), CL_INVALID_VALUE)?;
        match query {
            // Kernels reach all shared memory, whether they are told of it or not.
            CL_KERNEL_EXEC_INFO_SVM_PTRS | CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL => ensure(size.is_multiple_of(size_of::<usize>()), CL_INVALID_VALUE),
            CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM => {
                ensure(size == size_of::<cl_bool>(), CL_INVALID_VALUE)?;
                ensure(value.cast::<cl_bool>().get() == Some(CL_FALSE), CL_INVALID_OPERATION)
            }
            CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL
            | CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL
            | CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL => ensure(size == size_of::<cl_bool>(), CL_INVALID_VALUE),
            _ => err(CL_INVALID_VALUE),
        }
    }

    fn clGetKernelInfo(
        kernel: cl_kernel,
        query: cl_kernel_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        answer(&kernel_info(&kernel.object()?, query)?, size, value, needed)
    }

    fn clGetKernelArgInfo(
        kernel: cl_kernel,
        index: cl_uint,
        query: cl_kernel_arg_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let kernel = kernel.object::<Kernel>()?;
        answer(&argument_info(&kernel, index, query)?, size, value, needed)
    }

    fn clGetKernelWorkGroupInfo(
        kernel: cl_kernel,
        device: cl_device_id,
        query: cl_kernel_work_group_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let on = on(&*kernel.object::<Kernel>()?, device)?;
        answer(&group_info(&on, query)?, size, value, needed)
    }

    fn clGetKernelSubGroupInfo(
        kernel: cl_kernel,
        device: cl_device_id,
        query: cl_kernel_sub_group_info,
        input_size: usize,
        input: *const c_void,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let on = on(&*kernel.object::<Kernel>()?, device)?;
        let input = input.cast::<usize>().slice(input_size / size_of::<usize>());
        answer(&sub_group_info(&on, query, input, size)?, size, value, needed)
    }

    fn clGetKernelSubGroupInfoKHR(
        kernel: cl_kernel,
        device: cl_device_id,
        query: cl_kernel_sub_group_info,
        input_size: usize,
        input: *const c_void,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let on = on(&*kernel.object::<Kernel>()?, device)?;
        let input = input.cast::<usize>().slice(input_size / size_of::<usize>());
        answer(&sub_group_info(&on, query, input, size)?, size, value, needed)
    }

    fn clGetKernelSuggestedLocalWorkSizeKHR(
        queue: cl_command_queue,
        kernel: cl_kernel,
        dimensions: cl_uint,
        offset: *const usize,
        global: *const usize,
        local: *mut usize,
    ) -> cl_int {
        let queue = queue.object::<Queue>()?;
        let kernel = kernel.object::<Kernel>()?;
        let range = super::enqueue::range(dimensions, offset, global, Ptr::nowhere())?;
        ensure(!local.is_null(), CL_INVALID_VALUE)?;
        let (_, built) = kernel.on(&queue.device)?;
        for (i, n) in suggested(built, range.global).iter().take(dimensions as usize).enumerate() {
            local.set_at(i, *n as usize);
        }
        Ok(())
    }
}
