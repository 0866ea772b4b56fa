//! Memory objects.

use std::ffi::c_void;

use super::entry::{entries, queries};
use super::given::{Ptr, answer};
use crate::abi::host::CopySide;
use crate::abi::*;
use crate::core::context::Context;
use crate::core::mem::{Mem, New};
use crate::core::{Cl, ClError, Object, Ref, ensure, err};

const ACCESS: u64 = (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY) as u64;
const HOST_ACCESS: u64 =
    (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS) as u64;
const USE_HOST: u64 = CL_MEM_USE_HOST_PTR as u64;
const COPY_HOST: u64 = CL_MEM_COPY_HOST_PTR as u64;
const ALLOC_HOST: u64 = CL_MEM_ALLOC_HOST_PTR as u64;

/// Checks flags of memory objects.
///
/// # Errors
/// `CL_INVALID_VALUE` for flags that do not exist or exclude each other.
pub fn check_flags(flags: u64) -> Cl<()> {
    let known = ACCESS | HOST_ACCESS | USE_HOST | COPY_HOST | ALLOC_HOST;
    let at_most_one = |of: u64| (flags & of).count_ones() <= 1;
    let alone = flags & USE_HOST == 0 || flags & (COPY_HOST | ALLOC_HOST) == 0;
    let fine = flags & !known == 0 && at_most_one(ACCESS) && at_most_one(HOST_ACCESS) && alone;
    ensure(fine, CL_INVALID_VALUE)
}

/// Checks that memory of the program is given if, and only if, flags say so.
///
/// # Errors
/// `CL_INVALID_HOST_PTR`.
pub fn check_host(flags: u64, host: Ptr<c_void>) -> Cl<()> {
    let wanted = flags & (USE_HOST | COPY_HOST) != 0;
    ensure(wanted != host.is_null(), CL_INVALID_HOST_PTR)
}

/// The flags of part of an object, or of an image in one.
///
/// # Errors
/// `CL_INVALID_VALUE` for flags that say more than those of the whole.
pub fn part_flags(flags: u64, parent: &Mem) -> Cl<u64> {
    check_flags(flags)?;
    let all = parent.flags;
    ensure(
        flags & (USE_HOST | COPY_HOST | ALLOC_HOST) == 0,
        CL_INVALID_VALUE,
    )?;
    let (mut access, whole) = (flags & ACCESS, all & ACCESS);
    if access == 0 {
        access = whole;
    }
    let everything = u64::from(CL_MEM_READ_WRITE);
    let allowed = whole & everything != 0 || whole == 0 || access == whole;
    ensure(allowed, CL_INVALID_VALUE)?;
    let (mut host, whole) = (flags & HOST_ACCESS, all & HOST_ACCESS);
    if host == 0 {
        host = whole;
    }
    let none = u64::from(CL_MEM_HOST_NO_ACCESS);
    ensure(
        whole == 0 || host == whole || host == none,
        CL_INVALID_VALUE,
    )?;
    Ok(access | host | all & (USE_HOST | COPY_HOST | ALLOC_HOST))
}

fn create_buffer(
    context: Ptr<_cl_context>,
    given: Vec<u64>,
    flags: u64,
    size: usize,
    host: Ptr<c_void>,
) -> Cl<cl_mem> {
    let context = context.object::<Context>()?;
    check_flags(flags)?;
    ensure(size != 0, CL_INVALID_BUFFER_SIZE)?;
    check_host(flags, host)?;
    let new = New {
        context,
        kind: CL_MEM_OBJECT_BUFFER,
        flags: if flags & ACCESS == 0 {
            flags | u64::from(CL_MEM_READ_WRITE)
        } else {
            flags
        },
        given,
        image: None,
    };
    let memory = host.host(size);
    if let Some((shared, offset)) = new.context.shared.find(host.addr() as u64) {
        let part = shared.buffer.part(offset, size as u64);
        let part = part.map_err(|_| ClError(CL_INVALID_BUFFER_SIZE))?;
        if flags & USE_HOST != 0 {
            return Ok(Object::create(Mem::over(new, part, memory)));
        }
    }
    let mem = Mem::new(new, size, (flags & USE_HOST != 0).then_some(memory))?;
    if !host.is_null() {
        mem.place().copy_from(0, &CopySide::Host(memory), 0, size)?;
    }
    Ok(Object::create(mem))
}

queries! {
    /// What `clGetMemObjectInfo` says.
    fn mem_info(mem: &Ref<Mem>) {
        CL_MEM_TYPE => mem.kind,
        CL_MEM_FLAGS => mem.flags,
        CL_MEM_SIZE => mem.size(),
        CL_MEM_HOST_PTR => match mem.host {
            Some(host) => host.address(),
            None => 0,
        },
        CL_MEM_MAP_COUNT => mem.map_count() as cl_uint,
        CL_MEM_REFERENCE_COUNT => mem.references(),
        CL_MEM_CONTEXT => mem.context.handle(),
        CL_MEM_ASSOCIATED_MEMOBJECT => match &mem.parent {
            Some((parent, _)) => parent.handle(),
            None => std::ptr::null_mut(),
        },
        CL_MEM_OFFSET => mem.parent.as_ref().map_or(0, |(_, offset)| *offset),
        CL_MEM_USES_SVM_POINTER => mem.host.is_some_and(|host| {
            mem.context.shared.find(host.address() as u64).is_some()
        }),
        CL_MEM_PROPERTIES => mem.given.as_slice(),
    }
}

/// A list of properties, of which there are none.
pub fn no_properties(list: Ptr<cl_mem_properties>) -> Cl<Vec<u64>> {
    match list.get() {
        None => Ok(Vec::new()),
        Some(0) => Ok(vec![0]),
        Some(_) => err(CL_INVALID_PROPERTY),
    }
}

entries! {
    fn clCreateBuffer(
        context: cl_context,
        flags: cl_mem_flags,
        size: usize,
        host_ptr: *mut c_void,
    ) -> cl_mem {
        create_buffer(context, Vec::new(), flags, size, host_ptr)
    }

    fn clCreateBufferWithProperties(
        context: cl_context,
        properties: *const cl_mem_properties,
        flags: cl_mem_flags,
        size: usize,
        host_ptr: *mut c_void,
    ) -> cl_mem {
        context.object::<Context>()?;
        create_buffer(context, no_properties(properties)?, flags, size, host_ptr)
    }

    fn clCreateSubBuffer(
        buffer: cl_mem,
        flags: cl_mem_flags,
        kind: cl_buffer_create_type,
        info: *const c_void,
    ) -> cl_mem {
        let parent = buffer.object::<Mem>()?;
        let whole = parent.kind == CL_MEM_OBJECT_BUFFER && parent.parent.is_none();
        ensure(whole, CL_INVALID_MEM_OBJECT)?;
        let flags = part_flags(flags, &parent)?;
        ensure(kind == CL_BUFFER_CREATE_TYPE_REGION, CL_INVALID_VALUE)?;
        let Some(region) = info.cast::<cl_buffer_region>().get() else {
            return err(CL_INVALID_VALUE);
        };
        ensure(region.size != 0, CL_INVALID_BUFFER_SIZE)?;
        let end = region.origin.checked_add(region.size);
        ensure(end.is_some_and(|end| end <= parent.size()), CL_INVALID_VALUE)?;
        ensure(region.origin.is_multiple_of(128), CL_MISALIGNED_SUB_BUFFER_OFFSET)?;
        let new = New {
            context: parent.context.clone(),
            kind: CL_MEM_OBJECT_BUFFER,
            flags,
            given: Vec::new(),
            image: None,
        };
        Ok(Object::create(Mem::part(new, &parent, region.origin, region.size)?))
    }

    fn clRetainMemObject(mem: cl_mem) -> cl_int {
        mem.object::<Mem>()?.retain();
        Ok(())
    }

    fn clReleaseMemObject(mem: cl_mem) -> cl_int {
        mem.object::<Mem>()?.release().map(drop)
    }

    fn clGetMemObjectInfo(
        mem: cl_mem,
        query: cl_mem_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        answer(&mem_info(&mem.object()?, query)?, size, value, needed)
    }

    fn clSetMemObjectDestructorCallback(
        mem: cl_mem,
        notify: Option<unsafe extern "C" fn(cl_mem, *mut c_void)>,
        user_data: *mut c_void,
    ) -> cl_int {
        let object = mem.object::<Mem>()?;
        let Some(notify) = notify else { return err(CL_INVALID_VALUE) };
        let (handle, data) = (mem.addr(), user_data.addr());
        object.at_end(Box::new(move || {
            let handle = std::ptr::with_exposed_provenance_mut(handle);
            let data = std::ptr::with_exposed_provenance_mut(data);
            // SAFETY: the program gave the function for this call.
            unsafe { notify(handle, data) }
        }));
        Ok(())
    }

    fn clCreatePipe(
        context: cl_context,
        _flags: cl_mem_flags,
        _packet_size: cl_uint,
        _max_packets: cl_uint,
        _properties: *const cl_pipe_properties,
    ) -> cl_mem {
        context.object::<Context>()?;
        // Devices have no pipes.
        err::<cl_mem>(CL_INVALID_OPERATION)
    }

    fn clGetPipeInfo(
        pipe: cl_mem,
        _query: cl_pipe_info,
        _size: usize,
        _value: *mut c_void,
        _needed: *mut usize,
    ) -> cl_int {
        pipe.object::<Mem>()?;
        err(CL_INVALID_MEM_OBJECT)
    }
}
