//! Images and samplers.

use std::ffi::c_void;

use visa_runtime::ImageKind;

use super::enqueue::{Command, host_may, map_flags};
use super::entry::{entries, queries};
use super::given::{Ptr, answer, distinct_names};
use super::mem::{check_flags, check_host, no_properties, part_flags};
use super::rectangle::three;
use crate::abi::host::CopySide;
use crate::abi::*;
use crate::core::context::Context;
use crate::core::copy::{Layout, fill, rectangle};
use crate::core::image::formats;
use crate::core::mem::{Image, Mem, New, Part};
use crate::core::queue::Order;
use crate::core::sampler::Sampler;
use crate::core::{Cl, ClError, Object, Ref, ensure, err};

/// The object that an image is made in, by either of its names.
fn parent_of(desc: &cl_image_desc) -> cl_mem {
    // SAFETY: both members are handles.
    unsafe { desc.__bindgen_anon_1.mem_object }
}

fn create(
    context: Ptr<_cl_context>,
    given: Vec<u64>,
    flags: u64,
    format: Ptr<cl_image_format>,
    desc: Ptr<cl_image_desc>,
    host: Ptr<c_void>,
) -> Cl<cl_mem> {
    let context = context.object::<Context>()?;
    ensure(context.has_images(), CL_INVALID_OPERATION)?;
    let format = format
        .get()
        .ok_or(ClError(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR))?;
    let desc = desc.get().ok_or(ClError(CL_INVALID_IMAGE_DESCRIPTOR))?;
    let parent = parent_of(&desc);
    // An image in a buffer is as its buffer is, unless flags say more.
    let effective = match Ptr::promised(parent).object::<Mem>() {
        Ok(buffer) => part_flags(flags, &buffer).unwrap_or(flags),
        Err(_) => flags,
    };
    let image = Image::new(format, desc, effective)?;
    let in_buffer = desc.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
    ensure(in_buffer != parent.is_null(), CL_INVALID_IMAGE_DESCRIPTOR)?;
    let len = image.size();
    let new = |flags: u64, given| New {
        context: context.clone(),
        kind: desc.image_type,
        flags,
        given,
        image: Some(image.clone()),
    };
    if in_buffer {
        let buffer = Ptr::promised(parent).object::<Mem>();
        let buffer = buffer.map_err(|_| ClError(CL_INVALID_IMAGE_DESCRIPTOR))?;
        let fits = buffer.kind == CL_MEM_OBJECT_BUFFER && len <= buffer.size();
        ensure(fits, CL_INVALID_IMAGE_DESCRIPTOR)?;
        let flags = part_flags(flags, &buffer)?;
        return Ok(Object::create(Mem::part(
            new(flags, given),
            &buffer,
            0,
            len,
        )?));
    }
    check_flags(flags)?;
    check_host(flags, host)?;
    let (layout, region) = image.host_layout(!host.is_null())?;
    let end = layout.end(region).ok_or(ClError(CL_INVALID_IMAGE_SIZE))?;
    let memory = host.host(end);
    let access = u64::from(CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY);
    let flags = if flags & access == 0 {
        flags | u64::from(CL_MEM_READ_WRITE)
    } else {
        flags
    };
    let tight = image
        .region([0; 3], image.shape.extents().map(|n| n as usize))?
        .0;
    // Memory with gaps cannot be what is mapped.
    let use_host = flags & u64::from(CL_MEM_USE_HOST_PTR) != 0;
    let gaps = layout.row != tight.row || layout.slice != tight.slice;
    ensure(!use_host || !gaps, CL_INVALID_IMAGE_DESCRIPTOR)?;
    let mem = Mem::new(new(flags, given), len, use_host.then_some(memory));
    let mem = mem.map_err(|ClError(code)| match code {
        CL_INVALID_BUFFER_SIZE => ClError(CL_INVALID_IMAGE_SIZE),
        code => ClError(code),
    })?;
    if !host.is_null() {
        rectangle(&mem.place(), tight, &CopySide::Host(memory), layout, region)?;
    }
    Ok(Object::create(mem))
}

fn image_of(mem: &Ref<Mem>) -> Cl<&Image> {
    mem.image.as_ref().ok_or(ClError(CL_INVALID_MEM_OBJECT))
}

/// Checks that an image was not made in a buffer.
///
/// # Errors
/// `CL_INVALID_MEM_OBJECT`.
fn apart(image: &Mem, buffer: &Ref<Mem>) -> Cl<()> {
    let parent = image.parent.as_ref().map(|(parent, _)| parent);
    let inside = parent.is_some_and(|parent| Ref::ptr_eq(parent, buffer));
    ensure(!inside, CL_INVALID_MEM_OBJECT)
}

fn format_bytes(format: cl_image_format) -> Vec<u8> {
    let words = [format.image_channel_order, format.image_channel_data_type];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

queries! {
    /// What `clGetImageInfo` says.
    fn image_info(mem: &Ref<Mem>) {
        CL_IMAGE_FORMAT => format_bytes(image_of(mem)?.format),
        CL_IMAGE_ELEMENT_SIZE => image_of(mem)?.texel(),
        CL_IMAGE_ROW_PITCH => image_of(mem)?.row(),
        CL_IMAGE_SLICE_PITCH => match mem.kind {
            CL_MEM_OBJECT_IMAGE1D | CL_MEM_OBJECT_IMAGE1D_BUFFER | CL_MEM_OBJECT_IMAGE2D => 0,
            _ => image_of(mem)?.slice(),
        },
        CL_IMAGE_WIDTH => image_of(mem)?.desc.image_width,
        CL_IMAGE_HEIGHT => match mem.kind {
            CL_MEM_OBJECT_IMAGE1D | CL_MEM_OBJECT_IMAGE1D_BUFFER | CL_MEM_OBJECT_IMAGE1D_ARRAY => 0,
            _ => image_of(mem)?.desc.image_height,
        },
        CL_IMAGE_DEPTH => match mem.kind {
            CL_MEM_OBJECT_IMAGE3D => image_of(mem)?.desc.image_depth,
            _ => 0,
        },
        CL_IMAGE_ARRAY_SIZE => match mem.kind {
            CL_MEM_OBJECT_IMAGE1D_ARRAY | CL_MEM_OBJECT_IMAGE2D_ARRAY => image_of(mem)?.desc.image_array_size,
            _ => 0,
        },
        CL_IMAGE_BUFFER => match &mem.parent {
            Some((parent, _)) => parent.handle(),
            None => std::ptr::null_mut(),
        },
        CL_IMAGE_NUM_MIP_LEVELS | CL_IMAGE_NUM_SAMPLES => 0_u32,
    }
}

queries! {
    /// What `clGetSamplerInfo` says.
    fn sampler_info(sampler: &Ref<Sampler>) {
        CL_SAMPLER_REFERENCE_COUNT => sampler.references(),
        CL_SAMPLER_CONTEXT => sampler.context.handle(),
        CL_SAMPLER_NORMALIZED_COORDS => sampler.normalized,
        CL_SAMPLER_ADDRESSING_MODE => sampler.addressing,
        CL_SAMPLER_FILTER_MODE => sampler.filter,
        CL_SAMPLER_PROPERTIES => sampler.given.as_slice(),
    }
}

/// Where a region lies in memory of the program.
fn host_layout(image: &Image, region: [usize; 3], row: usize, slice: usize) -> Cl<Layout> {
    let least = region[0];
    ensure(row == 0 || row >= least, CL_INVALID_VALUE)?;
    let row = if row == 0 { least } else { row };
    let flat = matches!(
        image.shape.kind,
        ImageKind::D1 | ImageKind::Buffer | ImageKind::D2
    );
    ensure(slice == 0 || !flat, CL_INVALID_VALUE)?;
    if image.desc.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY {
        // Its layers are what a slice is.
        ensure(slice == 0 || slice >= row, CL_INVALID_VALUE)?;
        let row = if slice == 0 { row } else { slice };
        return Ok(Layout {
            offset: 0,
            row,
            slice: row * region[1],
        });
    }
    let least = row
        .checked_mul(region[1])
        .ok_or(ClError(CL_INVALID_VALUE))?;
    ensure(slice == 0 || slice >= least, CL_INVALID_VALUE)?;
    let slice = if slice == 0 { least } else { slice };
    Ok(Layout {
        offset: 0,
        row,
        slice,
    })
}

/// Bytes of a colour in an image: four channels, of 32 bits, in the program's memory.
fn colour(image: &Image, colour: Ptr<c_void>) -> Vec<u8> {
    let raw = colour.bytes(16);
    let mut texel = [0; 4];
    for (to, word) in texel.iter_mut().zip(raw.as_chunks::<4>().0) {
        *to = u32::from_ne_bytes(*word);
    }
    let format = image.shape.format;
    let size = format.channel_bytes() as usize;
    let channels = visa_runtime::encode_texel(format, texel).into_iter();
    channels
        .flat_map(|bits| bits.to_le_bytes().into_iter().take(size))
        .collect()
}

entries! {
    fn clCreateImage(
        context: cl_context,
        flags: cl_mem_flags,
        format: *const cl_image_format,
        desc: *const cl_image_desc,
        host: *mut c_void,
    ) -> cl_mem {
        create(context, Vec::new(), flags, format, desc, host)
    }

    fn clCreateImageWithProperties(
        context: cl_context,
        properties: *const cl_mem_properties,
        flags: cl_mem_flags,
        format: *const cl_image_format,
        desc: *const cl_image_desc,
        host: *mut c_void,
    ) -> cl_mem {
        context.object::<Context>()?;
        create(context, no_properties(properties)?, flags, format, desc, host)
    }

    fn clCreateImage2D(
        context: cl_context,
        flags: cl_mem_flags,
        format: *const cl_image_format,
        width: usize,
        height: usize,
        row_pitch: usize,
        host: *mut c_void,
    ) -> cl_mem {
        let desc = description(CL_MEM_OBJECT_IMAGE2D, [width, height, 0], row_pitch, 0);
        old(create(context, Vec::new(), flags, format, Ptr::promised(&raw const desc as *mut _), host))
    }

    fn clCreateImage3D(
        context: cl_context,
        flags: cl_mem_flags,
        format: *const cl_image_format,
        width: usize,
        height: usize,
        depth: usize,
        row_pitch: usize,
        slice_pitch: usize,
        host: *mut c_void,
    ) -> cl_mem {
        let desc = description(CL_MEM_OBJECT_IMAGE3D, [width, height, depth], row_pitch, slice_pitch);
        let whole = old(create(context, Vec::new(), flags, format, Ptr::promised(&raw const desc as *mut _), host))?;
        if depth == 1 {
            // Newer functions take it.
            Ptr::promised(whole).object::<Mem>()?.release()?;
            return err(CL_INVALID_IMAGE_SIZE);
        }
        Ok(whole)
    }

    fn clGetSupportedImageFormats(
        context: cl_context,
        flags: cl_mem_flags,
        kind: cl_mem_object_type,
        n: cl_uint,
        list: *mut cl_image_format,
        count: *mut cl_uint,
    ) -> cl_int {
        let context = context.object::<Context>()?;
        check_flags(flags & !u64::from(CL_MEM_KERNEL_READ_AND_WRITE))?;
        let image = matches!(
            kind,
            CL_MEM_OBJECT_IMAGE1D | CL_MEM_OBJECT_IMAGE1D_ARRAY | CL_MEM_OBJECT_IMAGE1D_BUFFER
                | CL_MEM_OBJECT_IMAGE2D | CL_MEM_OBJECT_IMAGE2D_ARRAY | CL_MEM_OBJECT_IMAGE3D
        );
        ensure(image, CL_INVALID_VALUE)?;
        ensure(n != 0 || list.is_null(), CL_INVALID_VALUE)?;
        // No kernel may both read and write an image.
        let none = !context.has_images() || flags & u64::from(CL_MEM_KERNEL_READ_AND_WRITE) != 0;
        let all: Vec<cl_image_format> = if none { Vec::new() } else { formats(flags, kind).collect() };
        count.set(all.len() as cl_uint);
        for (i, format) in all.into_iter().take(n as usize).enumerate() {
            list.set_at(i, format);
        }
        Ok(())
    }

    fn clGetImageInfo(
        mem: cl_mem,
        query: cl_image_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let mem = mem.object::<Mem>()?;
        image_of(&mem)?;
        answer(&image_info(&mem, query)?, size, value, needed)
    }

    fn clEnqueueReadImage(
        queue: cl_command_queue,
        image: cl_mem,
        blocking: cl_bool,
        origin: *const usize,
        region: *const usize,
        row: usize,
        slice: usize,
        to: *mut c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.image(image)?;
        let image = image_of(&mem)?;
        let (here, region) = image.region(three(origin)?, three(region)?)?;
        ensure(!to.is_null(), CL_INVALID_VALUE)?;
        let there = host_layout(image, region, row, slice)?;
        host_may(&mem, CL_MEM_HOST_WRITE_ONLY)?;
        let end = there.end(region).ok_or(ClError(CL_INVALID_VALUE))?;
        let to = CopySide::Host(to.host(end));
        let work = move || rectangle(&to, there, &mem.place(), here, region);
        command.send_and_wait(CL_COMMAND_READ_IMAGE, blocking, Box::new(work))
    }

    fn clEnqueueWriteImage(
        queue: cl_command_queue,
        image: cl_mem,
        blocking: cl_bool,
        origin: *const usize,
        region: *const usize,
        row: usize,
        slice: usize,
        from: *const c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.image(image)?;
        let image = image_of(&mem)?;
        let (there, region) = image.region(three(origin)?, three(region)?)?;
        ensure(!from.is_null(), CL_INVALID_VALUE)?;
        let here = host_layout(image, region, row, slice)?;
        host_may(&mem, CL_MEM_HOST_READ_ONLY)?;
        let end = here.end(region).ok_or(ClError(CL_INVALID_VALUE))?;
        let from = CopySide::Host(from.host(end));
        let work = move || rectangle(&mem.place(), there, &from, here, region);
        command.send_and_wait(CL_COMMAND_WRITE_IMAGE, blocking, Box::new(work))
    }

    fn clEnqueueFillImage(
        queue: cl_command_queue,
        image: cl_mem,
        value: *const c_void,
        origin: *const usize,
        region: *const usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.image(image)?;
        let image = image_of(&mem)?;
        ensure(!value.is_null(), CL_INVALID_VALUE)?;
        let (there, region) = image.region(three(origin)?, three(region)?)?;
        let texel = colour(image, value);
        let work = move || fill(&mem.place(), there, region, &texel);
        command.send(CL_COMMAND_FILL_IMAGE, Order::Usual, Box::new(work));
        Ok(())
    }

    fn clEnqueueCopyImage(
        queue: cl_command_queue,
        source: cl_mem,
        target: cl_mem,
        source_origin: *const usize,
        target_origin: *const usize,
        region: *const usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let (source, target) = (command.image(source)?, command.image(target)?);
        let (from, to) = (image_of(&source)?, image_of(&target)?);
        ensure(from.shape.format == to.shape.format, CL_IMAGE_FORMAT_MISMATCH)?;
        let (a, b, region) = (three(source_origin)?, three(target_origin)?, three(region)?);
        let (here, bytes) = from.region(a, region)?;
        let (there, _) = to.region(b, region)?;
        let apart = (0..3).any(|k| a[k].abs_diff(b[k]) >= region[k]);
        ensure(!Ref::ptr_eq(&source, &target) || apart, CL_MEM_COPY_OVERLAP)?;
        let work = move || rectangle(&target.place(), there, &source.place(), here, bytes);
        command.send(CL_COMMAND_COPY_IMAGE, Order::Usual, Box::new(work));
        Ok(())
    }

    fn clEnqueueCopyImageToBuffer(
        queue: cl_command_queue,
        image: cl_mem,
        buffer: cl_mem,
        origin: *const usize,
        region: *const usize,
        offset: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let (source, target) = (command.image(image)?, command.buffer(buffer)?);
        apart(&source, &target)?;
        let (here, region) = image_of(&source)?.region(three(origin)?, three(region)?)?;
        let there = Layout { offset, row: region[0], slice: region[0] * region[1] };
        ensure(there.end(region).is_some_and(|end| end <= target.size()), CL_INVALID_VALUE)?;
        let work = move || rectangle(&target.place(), there, &source.place(), here, region);
        command.send(CL_COMMAND_COPY_IMAGE_TO_BUFFER, Order::Usual, Box::new(work));
        Ok(())
    }

    fn clEnqueueCopyBufferToImage(
        queue: cl_command_queue,
        buffer: cl_mem,
        image: cl_mem,
        offset: usize,
        origin: *const usize,
        region: *const usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let (source, target) = (command.buffer(buffer)?, command.image(image)?);
        apart(&target, &source)?;
        let (there, region) = image_of(&target)?.region(three(origin)?, three(region)?)?;
        let here = Layout { offset, row: region[0], slice: region[0] * region[1] };
        ensure(here.end(region).is_some_and(|end| end <= source.size()), CL_INVALID_VALUE)?;
        let work = move || rectangle(&target.place(), there, &source.place(), here, region);
        command.send(CL_COMMAND_COPY_BUFFER_TO_IMAGE, Order::Usual, Box::new(work));
        Ok(())
    }

    fn clEnqueueMapImage(
        queue: cl_command_queue,
        image: cl_mem,
        blocking: cl_bool,
        flags: cl_map_flags,
        origin: *const usize,
        region: *const usize,
        row_pitch: *mut usize,
        slice_pitch: *mut usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> *mut c_void {
        let command = Command::new(queue, n, list, event)?;
        let mem = command.image(image)?;
        let image = image_of(&mem)?;
        let part = Part { origin: three(origin)?, region: three(region)? };
        let (layout, region) = image.region(part.origin, part.region)?;
        ensure(!row_pitch.is_null(), CL_INVALID_VALUE)?;
        let flat = matches!(
            mem.kind,
            CL_MEM_OBJECT_IMAGE1D | CL_MEM_OBJECT_IMAGE1D_BUFFER | CL_MEM_OBJECT_IMAGE2D
        );
        ensure(flat || !slice_pitch.is_null(), CL_INVALID_VALUE)?;
        map_flags(&mem, flags)?;
        row_pitch.set(image.row());
        slice_pitch.set(if flat { 0 } else { image.slice() });
        let end = layout.end(region).ok_or(ClError(CL_INVALID_VALUE))?;
        let len = end - layout.offset;
        let address = mem.map(layout.offset, len, part, flags)?;
        let shown = mem.clone();
        let work = move || shown.show(layout.offset, len, flags);
        let sent = command.send_and_wait(CL_COMMAND_MAP_IMAGE, blocking, Box::new(work));
        sent.inspect_err(|_| mem.forget(address))?;
        Ok(std::ptr::with_exposed_provenance_mut(address))
    }

    fn clCreateSampler(
        context: cl_context,
        normalized: cl_bool,
        addressing: cl_addressing_mode,
        filter: cl_filter_mode,
    ) -> cl_sampler {
        let context = context.object::<Context>()?;
        ensure(context.has_images(), CL_INVALID_OPERATION)?;
        let sampler = Sampler::new(context, normalized != CL_FALSE, addressing, filter, Vec::new());
        Ok(Object::create(sampler?))
    }

    fn clCreateSamplerWithProperties(
        context: cl_context,
        list: *const cl_sampler_properties,
    ) -> cl_sampler {
        let context = context.object::<Context>()?;
        ensure(context.has_images(), CL_INVALID_OPERATION)?;
        let mut given = list.until(2, |name| name == 0);
        let (mut normalized, mut addressing, mut filter) = (true, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST);
        ensure(distinct_names(&given), CL_INVALID_VALUE)?;
        for pair in given.chunks_exact(2) {
            let value = u32::try_from(pair[1]).map_err(|_| ClError(CL_INVALID_VALUE))?;
            match u32::try_from(pair[0]).unwrap_or(0) {
                CL_SAMPLER_NORMALIZED_COORDS => normalized = value != CL_FALSE,
                CL_SAMPLER_ADDRESSING_MODE => addressing = value,
                CL_SAMPLER_FILTER_MODE => filter = value,
                _ => return err(CL_INVALID_VALUE),
            }
        }
        if !list.is_null() {
            given.push(0);
        }
        Ok(Object::create(Sampler::new(context, normalized, addressing, filter, given)?))
    }

    fn clRetainSampler(sampler: cl_sampler) -> cl_int {
        sampler.object::<Sampler>()?.retain();
        Ok(())
    }

    fn clReleaseSampler(sampler: cl_sampler) -> cl_int {
        sampler.object::<Sampler>()?.release().map(drop)
    }

    fn clGetSamplerInfo(
        sampler: cl_sampler,
        query: cl_sampler_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        answer(&sampler_info(&sampler.object()?, query)?, size, value, needed)
    }
}

/// What older functions say of sizes and pitches: they have no descriptor.
fn old(made: Cl<cl_mem>) -> Cl<cl_mem> {
    made.map_err(|ClError(code)| match code {
        CL_INVALID_IMAGE_DESCRIPTOR => ClError(CL_INVALID_IMAGE_SIZE),
        code => ClError(code),
    })
}

/// The description that older functions spread over their arguments.
fn description(
    kind: u32,
    [width, height, depth]: [usize; 3],
    row: usize,
    slice: usize,
) -> cl_image_desc {
    cl_image_desc {
        image_type: kind,
        image_width: width,
        image_height: height,
        image_depth: depth,
        image_array_size: 0,
        image_row_pitch: row,
        image_slice_pitch: slice,
        num_mip_levels: 0,
        num_samples: 0,
        __bindgen_anon_1: _cl_image_desc__bindgen_ty_1 {
            buffer: std::ptr::null_mut(),
        },
    }
}
