//! Commands: kernels, buffers, markers.

use std::ffi::c_void;

use super::entry::entries;
use super::event::wait_list;
use super::given::{Ptr, objects};
use crate::abi::host::CopySide;
use crate::abi::*;
use crate::core::event::Event;
use crate::core::kernel::{Kernel, Range, check_local};
use crate::core::mem::{Mem, Part};
use crate::core::queue::{Order, Queue, Work, enqueue};
use crate::core::{Cl, ClError, Ref, ensure, err};

/// What every command has: the queue, what it waits for, and where its event goes.
pub struct Command {
    /// Where it goes.
    pub queue: Ref<Queue>,
    waits: Vec<Ref<Event>>,
    event: Ptr<cl_event>,
}

impl Command {
    /// Checks the queue and the wait list.
    ///
    /// # Errors
    /// `CL_INVALID_COMMAND_QUEUE`, `CL_INVALID_EVENT_WAIT_LIST`, `CL_INVALID_CONTEXT`.
    pub fn new(
        queue: Ptr<_cl_command_queue>,
        n: cl_uint,
        list: Ptr<cl_event>,
        event: Ptr<cl_event>,
    ) -> Cl<Command> {
        let queue = queue.object::<Queue>()?;
        let waits = wait_list(&queue.context, n, list)?;
        Ok(Command {
            queue,
            waits,
            event,
        })
    }

    /// A memory object of the queue's context.
    ///
    /// # Errors
    /// `CL_INVALID_MEM_OBJECT`, `CL_INVALID_CONTEXT`.
    pub fn mem(&self, mem: Ptr<_cl_mem>) -> Cl<Ref<Mem>> {
        let mem = mem.object::<Mem>()?;
        ensure(
            Ref::ptr_eq(&mem.context, &self.queue.context),
            CL_INVALID_CONTEXT,
        )?;
        Ok(mem)
    }

    /// An image of the queue's context, for a device that has images.
    ///
    /// # Errors
    /// As [`Command::mem`], and `CL_INVALID_OPERATION`.
    pub fn image(&self, mem: Ptr<_cl_mem>) -> Cl<Ref<Mem>> {
        let mem = self.mem(mem)?;
        ensure(mem.image.is_some(), CL_INVALID_MEM_OBJECT)?;
        ensure(self.queue.device.has_images(), CL_INVALID_OPERATION)?;
        Ok(mem)
    }

    /// A buffer of the queue's context.
    ///
    /// # Errors
    /// As [`Command::mem`].
    pub fn buffer(&self, mem: Ptr<_cl_mem>) -> Cl<Ref<Mem>> {
        let mem = self.mem(mem)?;
        ensure(mem.kind == CL_MEM_OBJECT_BUFFER, CL_INVALID_MEM_OBJECT)?;
        Ok(mem)
    }

    /// Enqueues it.
    pub fn send(self, kind: u32, order: Order, work: Work) {
        let event = enqueue(&self.queue, kind, self.waits, order, work);
        if !self.event.is_null() {
            event.publish();
            self.event.set(event.handle());
        }
    }

    /// Enqueues it, and waits for it if it blocks.
    ///
    /// # Errors
    /// `CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST` if it blocks and what it waits for failed.
    pub fn send_and_wait(self, kind: u32, blocking: cl_bool, work: Work) -> Cl<()> {
        let event = enqueue(&self.queue, kind, self.waits, Order::Usual, work);
        if !self.event.is_null() {
            event.publish();
            self.event.set(event.handle());
        }
        if blocking == CL_FALSE {
            return Ok(());
        }
        event.wait();
        match event.status() {
            0.. => Ok(()),
            code => err(code),
        }
    }
}

/// Checks what the program itself may do with an object.
///
/// # Errors
/// `CL_INVALID_OPERATION`.
pub fn host_may(mem: &Mem, not: u32) -> Cl<()> {
    let forbidden = u64::from(not | CL_MEM_HOST_NO_ACCESS);
    ensure(mem.flags & forbidden == 0, CL_INVALID_OPERATION)
}

fn inside(mem: &Mem, offset: usize, size: usize) -> Cl<()> {
    let fits = offset
        .checked_add(size)
        .is_some_and(|end| end <= mem.size());
    ensure(fits, CL_INVALID_VALUE)
}

/// Two ranges that share bytes.
fn overlap(a: usize, b: usize, len: usize) -> bool {
    len != 0 && a < b.saturating_add(len) && b < a.saturating_add(len)
}

/// Reads a range of work-items.
///
/// # Errors
/// `CL_INVALID_WORK_DIMENSION`, `CL_INVALID_GLOBAL_WORK_SIZE`, `CL_INVALID_GLOBAL_OFFSET`, `CL_INVALID_WORK_ITEM_SIZE`.
pub fn range(
    dimensions: cl_uint,
    offset: Ptr<usize>,
    global: Ptr<usize>,
    local: Ptr<usize>,
) -> Cl<Range> {
    ensure(matches!(dimensions, 1..=3), CL_INVALID_WORK_DIMENSION)?;
    let n = dimensions as usize;
    let three = |list: Ptr<usize>, rest: u32, code: cl_int| -> Cl<[u32; 3]> {
        let mut all = [rest; 3];
        for (to, from) in all.iter_mut().zip(list.slice(n)) {
            *to = u32::try_from(*from).map_err(|_| ClError(code))?;
        }
        Ok(all)
    };
    let range = Range {
        dimensions: dimensions as u8,
        global: if global.is_null() {
            [0; 3]
        } else {
            three(global, 1, CL_INVALID_GLOBAL_WORK_SIZE)?
        },
        offset: three(offset, 0, CL_INVALID_GLOBAL_OFFSET)?,
        local: if local.is_null() {
            None
        } else {
            Some(three(local, 1, CL_INVALID_WORK_ITEM_SIZE)?)
        },
    };
    let ends = range.global.iter().zip(range.offset);
    let fits = ends
        .into_iter()
        .all(|(n, first)| first.checked_add(*n).is_some());
    ensure(fits, CL_INVALID_GLOBAL_OFFSET)?;
    Ok(range)
}

fn launch(command: Command, kind: u32, kernel: Ptr<_cl_kernel>, range: Range) -> Cl<()> {
    let kernel = kernel.object::<Kernel>()?;
    let own = Ref::ptr_eq(&kernel.program.context, &command.queue.context);
    ensure(own, CL_INVALID_CONTEXT)?;
    let (_, built) = kernel.on(&command.queue.device)?;
    if let Some(local) = range.local {
        let most = command.queue.device.max_group() as u64;
        ensure(
            local.iter().all(|n| u64::from(*n) <= most),
            CL_INVALID_WORK_ITEM_SIZE,
        )?;
        check_local(&command.queue.device, built, local)?;
    } else if let Some(required) = built.required_local_size() {
        let whole = range
            .global
            .iter()
            .zip(required)
            .all(|(n, of)| n.is_multiple_of(of.max(1)));
        ensure(whole, CL_INVALID_WORK_GROUP_SIZE)?;
    }
    let work: Work = if range.global[..usize::from(range.dimensions)].contains(&0) {
        // Since OpenCL 2.1 there may be nothing to do.
        Box::new(|| Ok(()))
    } else {
        kernel.work(&command.queue.device, range)?
    };
    command.send(kind, Order::Usual, work);
    Ok(())
}

entries! {
    fn clEnqueueNDRangeKernel(
        queue: cl_command_queue,
        kernel: cl_kernel,
        dimensions: cl_uint,
        offset: *const usize,
        global: *const usize,
        local: *const usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        launch(command, CL_COMMAND_NDRANGE_KERNEL, kernel, range(dimensions, offset, global, local)?)
    }

    fn clEnqueueTask(
        queue: cl_command_queue,
        kernel: cl_kernel,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let one = Range { dimensions: 1, global: [1; 3], local: Some([1; 3]), offset: [0; 3] };
        launch(command, CL_COMMAND_TASK, kernel, one)
    }

    fn clEnqueueNativeKernel(
        queue: cl_command_queue,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        arguments: *mut c_void,
        size: usize,
        mem_count: cl_uint,
        mems: *const cl_mem,
        places: *mut *const c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        Command::new(queue, n, list, event)?;
        ensure(function.is_some(), CL_INVALID_VALUE)?;
        let some = size != 0;
        ensure(arguments.is_null() != some && (some || mem_count == 0), CL_INVALID_VALUE)?;
        let none = mem_count == 0;
        ensure(mems.is_null() == none && places.is_null() == none, CL_INVALID_VALUE)?;
        for mem in objects::<Mem>(mems, mem_count, CL_INVALID_VALUE)? {
            ensure(mem.kind == CL_MEM_OBJECT_BUFFER, CL_INVALID_MEM_OBJECT)?;
        }
        // Devices say that they cannot.
        err(CL_INVALID_OPERATION)
    }

    fn clEnqueueReadBuffer(
        queue: cl_command_queue,
        buffer: cl_mem,
        blocking: cl_bool,
        offset: usize,
        size: usize,
        to: *mut c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.buffer(buffer)?;
        inside(&mem, offset, size)?;
        ensure(!to.is_null(), CL_INVALID_VALUE)?;
        host_may(&mem, CL_MEM_HOST_WRITE_ONLY)?;
        let to = CopySide::Host(to.host(size));
        let work = move || to.copy_from(0, &mem.place(), offset, size);
        command.send_and_wait(CL_COMMAND_READ_BUFFER, blocking, Box::new(work))
    }

    fn clEnqueueWriteBuffer(
        queue: cl_command_queue,
        buffer: cl_mem,
        blocking: cl_bool,
        offset: usize,
        size: usize,
        from: *const c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.buffer(buffer)?;
        inside(&mem, offset, size)?;
        ensure(!from.is_null(), CL_INVALID_VALUE)?;
        host_may(&mem, CL_MEM_HOST_READ_ONLY)?;
        let from = CopySide::Host(from.host(size));
        let work = move || mem.place().copy_from(offset, &from, 0, size);
        command.send_and_wait(CL_COMMAND_WRITE_BUFFER, blocking, Box::new(work))
    }

    fn clEnqueueCopyBuffer(
        queue: cl_command_queue,
        source: cl_mem,
        target: cl_mem,
        from: usize,
        to: usize,
        size: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let (source, target) = (command.buffer(source)?, command.buffer(target)?);
        inside(&source, from, size)?;
        inside(&target, to, size)?;
        let bytes = |mem: &Mem, at: usize| mem.buffer.address() as usize + at;
        ensure(!overlap(bytes(&source, from), bytes(&target, to), size), CL_MEM_COPY_OVERLAP)?;
        let work = move || target.place().copy_from(to, &source.place(), from, size);
        command.send(CL_COMMAND_COPY_BUFFER, Order::Usual, Box::new(work));
        Ok(())
    }

    fn clEnqueueFillBuffer(
        queue: cl_command_queue,
        buffer: cl_mem,
        pattern: *const c_void,
        pattern_size: usize,
        offset: usize,
        size: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.buffer(buffer)?;
        let pattern = fill_pattern(pattern, pattern_size)?;
        inside(&mem, offset, size)?;
        let whole = offset.is_multiple_of(pattern_size) && size.is_multiple_of(pattern_size);
        ensure(whole, CL_INVALID_VALUE)?;
        let work = move || mem.place().fill(offset, size, &pattern);
        command.send(CL_COMMAND_FILL_BUFFER, Order::Usual, Box::new(work));
        Ok(())
    }

    fn clEnqueueUnmapMemObject(
        queue: cl_command_queue,
        mem: cl_mem,
        pointer: *mut c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.mem(mem)?;
        let address = pointer.addr();
        mem.will_unmap(address)?;
        command.send(CL_COMMAND_UNMAP_MEM_OBJECT, Order::Usual, Box::new(move || mem.unmap(address)));
        Ok(())
    }

    fn clEnqueueMigrateMemObjects(
        queue: cl_command_queue,
        count: cl_uint,
        mems: *const cl_mem,
        flags: cl_mem_migration_flags,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        ensure(count != 0 && !mems.is_null(), CL_INVALID_VALUE)?;
        let known = u64::from(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
        ensure(flags & !known == 0, CL_INVALID_VALUE)?;
        let mems = objects::<Mem>(mems, count, CL_INVALID_VALUE)?;
        let own = mems.iter().all(|mem| Ref::ptr_eq(&mem.context, &command.queue.context));
        ensure(own, CL_INVALID_CONTEXT)?;
        // All devices have the same memory.
        command.send(CL_COMMAND_MIGRATE_MEM_OBJECTS, Order::Usual, Box::new(|| Ok(())));
        Ok(())
    }

    fn clEnqueueMarkerWithWaitList(
        queue: cl_command_queue,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let order = if n == 0 { Order::AfterAll } else { Order::Usual };
        command.send(CL_COMMAND_MARKER, order, Box::new(|| Ok(())));
        Ok(())
    }

    fn clEnqueueBarrierWithWaitList(
        queue: cl_command_queue,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let order = if n == 0 { Order::FullBarrier } else { Order::Barrier };
        command.send(CL_COMMAND_BARRIER, order, Box::new(|| Ok(())));
        Ok(())
    }

    fn clEnqueueMarker(queue: cl_command_queue, event: *mut cl_event) -> cl_int {
        queue.object::<Queue>()?;
        ensure(!event.is_null(), CL_INVALID_VALUE)?;
        let command = Command::new(queue, 0, Ptr::nowhere(), event)?;
        command.send(CL_COMMAND_MARKER, Order::AfterAll, Box::new(|| Ok(())));
        Ok(())
    }

    fn clEnqueueWaitForEvents(queue: cl_command_queue, n: cl_uint, list: *const cl_event) -> cl_int {
        queue.object::<Queue>()?;
        ensure(n != 0 && !list.is_null(), CL_INVALID_VALUE)?;
        let command = Command::new(queue, n, list, Ptr::nowhere());
        let command = command.map_err(|ClError(code)| match code {
            CL_INVALID_EVENT_WAIT_LIST => ClError(CL_INVALID_EVENT),
            code => ClError(code),
        })?;
        command.send(CL_COMMAND_BARRIER, Order::Barrier, Box::new(|| Ok(())));
        Ok(())
    }

    fn clEnqueueBarrier(queue: cl_command_queue) -> cl_int {
        let command = Command::new(queue, 0, Ptr::nowhere(), Ptr::nowhere())?;
        command.send(CL_COMMAND_BARRIER, Order::FullBarrier, Box::new(|| Ok(())));
        Ok(())
    }

    fn clEnqueueMapBuffer(
        queue: cl_command_queue,
        buffer: cl_mem,
        blocking: cl_bool,
        flags: cl_map_flags,
        offset: usize,
        size: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> *mut c_void {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.buffer(buffer)?;
        inside(&mem, offset, size)?;
        ensure(size != 0, CL_INVALID_VALUE)?;
        map_flags(&mem, flags)?;
        let address = mem.map(offset, size, Part { origin: [offset, 0, 0], region: [size, 1, 1] }, flags)?;
        let shown = mem.clone();
        let work = move || shown.show(offset, size, flags);
        let sent = command.send_and_wait(CL_COMMAND_MAP_BUFFER, blocking, Box::new(work));
        sent.inspect_err(|_| mem.forget(address))?;
        Ok(std::ptr::with_exposed_provenance_mut(address))
    }
}

/// Checks flags of mappings by themselves.
///
/// # Errors
/// `CL_INVALID_VALUE`.
pub fn known_map_flags(flags: cl_map_flags) -> Cl<()> {
    let anew = u64::from(CL_MAP_WRITE_INVALIDATE_REGION);
    let keeps = u64::from(CL_MAP_READ | CL_MAP_WRITE);
    ensure(flags & !(anew | keeps) == 0, CL_INVALID_VALUE)?;
    ensure(flags & anew == 0 || flags & keeps == 0, CL_INVALID_VALUE)
}

/// Checks how an object is to be mapped.
///
/// # Errors
/// `CL_INVALID_VALUE`, `CL_INVALID_OPERATION`.
pub fn map_flags(mem: &Mem, flags: cl_map_flags) -> Cl<()> {
    let anew = u64::from(CL_MAP_WRITE_INVALIDATE_REGION);
    known_map_flags(flags)?;
    if flags & u64::from(CL_MAP_READ) != 0 {
        host_may(mem, CL_MEM_HOST_WRITE_ONLY)?;
    }
    if flags & (anew | u64::from(CL_MAP_WRITE)) != 0 {
        host_may(mem, CL_MEM_HOST_READ_ONLY)?;
    }
    Ok(())
}

/// A pattern to fill buffers with: 1 to 128 bytes, a power of two.
///
/// # Errors
/// `CL_INVALID_VALUE`.
pub fn fill_pattern(pattern: Ptr<c_void>, size: usize) -> Cl<Vec<u8>> {
    let fine = size.is_power_of_two() && size <= 128;
    ensure(!pattern.is_null() && fine, CL_INVALID_VALUE)?;
    Ok(pattern.bytes(size))
}
