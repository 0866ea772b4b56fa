//! Rectangles in buffers.

use std::ffi::c_void;

use super::enqueue::{Command, host_may};
use super::entry::entries;
use super::given::Ptr;
use crate::abi::host::CopySide;
use crate::abi::*;
use crate::core::copy::{Layout, overlap, rectangle};
use crate::core::mem::Mem;
use crate::core::queue::Order;
use crate::core::{Cl, ClError, Ref, ensure};

/// Three numbers that have to be there.
///
/// # Errors
/// `CL_INVALID_VALUE`.
pub fn three(list: Ptr<usize>) -> Cl<[usize; 3]> {
    let three = list.slice(3).try_into();
    three.map_err(|_| ClError(CL_INVALID_VALUE))
}

/// Where a rectangle lies, if pitches are as they may be: 0 for without gaps.
///
/// # Errors
/// `CL_INVALID_VALUE`.
fn layout(origin: [usize; 3], region: [usize; 3], row: usize, slice: usize) -> Cl<Layout> {
    ensure(!region.contains(&0), CL_INVALID_VALUE)?;
    ensure(row == 0 || row >= region[0], CL_INVALID_VALUE)?;
    let row = if row == 0 { region[0] } else { row };
    let least = region[1]
        .checked_mul(row)
        .ok_or(ClError(CL_INVALID_VALUE))?;
    let whole = slice >= least && slice.is_multiple_of(row);
    ensure(slice == 0 || whole, CL_INVALID_VALUE)?;
    let slice = if slice == 0 { least } else { slice };
    let parts = [
        Some(origin[0]),
        origin[1].checked_mul(row),
        origin[2].checked_mul(slice),
    ];
    let offset = parts
        .into_iter()
        .try_fold(0_usize, |sum, part| sum.checked_add(part?));
    let offset = offset.ok_or(ClError(CL_INVALID_VALUE))?;
    Ok(Layout { offset, row, slice })
}

fn inside(layout: Layout, region: [usize; 3], len: usize) -> Cl<()> {
    ensure(
        layout.end(region).is_some_and(|end| end <= len),
        CL_INVALID_VALUE,
    )
}

entries! {
    fn clEnqueueReadBufferRect(
        queue: cl_command_queue,
        buffer: cl_mem,
        blocking: cl_bool,
        buffer_origin: *const usize,
        host_origin: *const usize,
        region: *const usize,
        buffer_row: usize,
        buffer_slice: usize,
        host_row: usize,
        host_slice: usize,
        to: *mut c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.buffer(buffer)?;
        let region = three(region)?;
        ensure(!to.is_null(), CL_INVALID_VALUE)?;
        let here = layout(three(buffer_origin)?, region, buffer_row, buffer_slice)?;
        let there = layout(three(host_origin)?, region, host_row, host_slice)?;
        inside(here, region, mem.size())?;
        host_may(&mem, CL_MEM_HOST_WRITE_ONLY)?;
        let end = there.end(region).ok_or(ClError(CL_INVALID_VALUE))?;
        let to = CopySide::Host(to.host(end));
        let work = move || rectangle(&to, there, &mem.place(), here, region);
        command.send_and_wait(CL_COMMAND_READ_BUFFER_RECT, blocking, Box::new(work))
    }

    fn clEnqueueWriteBufferRect(
        queue: cl_command_queue,
        buffer: cl_mem,
        blocking: cl_bool,
        buffer_origin: *const usize,
        host_origin: *const usize,
        region: *const usize,
        buffer_row: usize,
        buffer_slice: usize,
        host_row: usize,
        host_slice: usize,
        from: *const c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.buffer(buffer)?;
        let region = three(region)?;
        ensure(!from.is_null(), CL_INVALID_VALUE)?;
        let there = layout(three(buffer_origin)?, region, buffer_row, buffer_slice)?;
        let here = layout(three(host_origin)?, region, host_row, host_slice)?;
        inside(there, region, mem.size())?;
        host_may(&mem, CL_MEM_HOST_READ_ONLY)?;
        let end = here.end(region).ok_or(ClError(CL_INVALID_VALUE))?;
        let from = CopySide::Host(from.host(end));
        let work = move || rectangle(&mem.place(), there, &from, here, region);
        command.send_and_wait(CL_COMMAND_WRITE_BUFFER_RECT, blocking, Box::new(work))
    }

    fn clEnqueueCopyBufferRect(
        queue: cl_command_queue,
        source: cl_mem,
        target: cl_mem,
        source_origin: *const usize,
        target_origin: *const usize,
        region: *const usize,
        source_row: usize,
        source_slice: usize,
        target_row: usize,
        target_slice: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let (source, target) = (command.buffer(source)?, command.buffer(target)?);
        let region = three(region)?;
        let (source_origin, target_origin) = (three(source_origin)?, three(target_origin)?);
        let here = layout(source_origin, region, source_row, source_slice)?;
        let there = layout(target_origin, region, target_row, target_slice)?;
        inside(here, region, source.size())?;
        inside(there, region, target.size())?;
        let alike = here.row == there.row && here.slice == there.slice;
        ensure(alike || !Ref::ptr_eq(&source, &target), CL_INVALID_VALUE)?;
        // Sub-buffers of the same buffer meet too.
        let placed = |mem: &Mem, layout: Layout| Layout {
            offset: layout.offset + mem.buffer.address() as usize,
            ..layout
        };
        let meet = overlap(placed(&source, here), placed(&target, there), region);
        ensure(!meet, CL_MEM_COPY_OVERLAP)?;
        let work = move || rectangle(&target.place(), there, &source.place(), here, region);
        command.send(CL_COMMAND_COPY_BUFFER_RECT, Order::Usual, Box::new(work));
        Ok(())
    }
}
