//! Memory objects: buffers, parts of buffers, images.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use visa_runtime::{Buffer, ImageShape};

use super::context::{Context, Destructor};
use super::device::{max_alloc_bytes, memory_bytes};
use super::engine::engine;
use super::error::{Cl, ClError, ensure, err};
use super::object::{Ref, lock};
use super::ranges::{Known, Range};
use super::report;
use crate::abi::fork;
use crate::abi::host::{CopySide, HostMemory};
use crate::abi::{
    CL_INVALID_BUFFER_SIZE, CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_MAP_READ, CL_MAP_WRITE,
    CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_MEM_READ_ONLY, cl_image_format, cl_map_flags,
    cl_mem_flags, cl_mem_object_type,
};

/// Alignment of every buffer, in bytes: that of the largest type.
const ALIGNMENT: u64 = 128;

/// Sizes and pitches of an image, by the names of `cl_image_desc`, without what it is made in.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "OpenCL's names")]
pub struct Description {
    pub image_type: cl_mem_object_type,
    pub image_width: usize,
    pub image_height: usize,
    pub image_depth: usize,
    pub image_array_size: usize,
    pub image_row_pitch: usize,
    pub image_slice_pitch: usize,
}

/// What an image is, as the program said it and as kernels see it.
#[derive(Clone)]
pub struct Image {
    /// As given.
    pub format: cl_image_format,
    /// As given.
    pub desc: Description,
    /// For kernels.
    pub shape: ImageShape,
}

/// A place that the program may access.
struct Mapping {
    address: usize,
    offset: usize,
    len: usize,
    /// Which bytes or texels.
    part: Part,
    writes: bool,
    /// A command that ends it is enqueued.
    ends: bool,
}

/// Part of a memory object: where it begins and what it has, in bytes, or in texels of each dimension.
#[derive(Clone, Copy)]
pub struct Part {
    /// First.
    pub origin: [usize; 3],
    /// How many.
    pub region: [usize; 3],
}

impl Part {
    fn shares(self, other: Part) -> bool {
        (0..3).all(|k| {
            let (a, b) = (self.origin[k], other.origin[k]);
            a < b.saturating_add(other.region[k]) && b < a.saturating_add(self.region[k])
        })
    }
}

/// A memory object.
pub struct Mem {
    /// Whose it is.
    pub context: Ref<Context>,
    /// Buffer, or a kind of image.
    pub kind: cl_mem_object_type,
    /// As given, or taken over from the object it is part of.
    pub flags: cl_mem_flags,
    /// The list of properties it was made with.
    pub given: Vec<u64>,
    /// The bytes. Those of a part are some of its buffer's.
    pub buffer: Buffer,
    /// What the program gave for it, with `CL_MEM_USE_HOST_PTR`.
    pub host: Option<HostMemory>,
    /// The buffer it is part of, or made from, and from which byte on.
    pub parent: Option<(Ref<Mem>, usize)>,
    /// Images only.
    pub image: Option<Image>,
    mappings: Mutex<Vec<Mapping>>,
    destructors: Mutex<Vec<Destructor>>,
    /// Bytes that count as taken while it is there.
    taken: Option<Taken>,
}

/// Bytes of device memory that programs have.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Bytes that are counted, and the range of addresses that they are.
pub struct Taken {
    len: u64,
    range: Option<Known>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Before the memory is free for others.
        drop(self.range.take());
        TAKEN.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// Device memory of `len` bytes, zeroed; `made_by` is the function that the program has called.
///
/// # Errors
/// `CL_MEM_OBJECT_ALLOCATION_FAILURE`, and the log says what was asked and what is there.
pub fn allocate(len: usize, alignment: u64, made_by: &'static str) -> Cl<(Buffer, Taken)> {
    let len = len as u64;
    let taken = TAKEN.fetch_add(len, Ordering::Relaxed);
    let mut count = Taken { len, range: None };
    let fails = |what: String| {
        report::problem("memory", &what);
        ClError(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    };
    if taken.saturating_add(len) > memory_bytes() {
        let all = memory_bytes();
        return Err(fails(format!(
            "{len} bytes wanted; {taken} of {all} bytes of device memory are taken"
        )));
    }
    let alignment = if len >= 1 << 16 {
        4096
    } else {
        alignment.max(ALIGNMENT)
    };
    let buffer = engine()?.memory().alloc_aligned(len, alignment);
    let buffer = buffer.map_err(|error| fails(error.to_string()))?;
    count.range = Some(Known::new(Range {
        start: buffer.address(),
        len,
        made_by,
    }));
    Ok((buffer, count))
}

/// Has kernels only read what the program wants them to.
///
/// # Errors
/// `CL_MEM_OBJECT_ALLOCATION_FAILURE`, and the log says why.
pub fn only_read(buffer: &Buffer, flags: cl_mem_flags) -> Cl<()> {
    if flags & u64::from(CL_MEM_READ_ONLY) == 0 {
        return Ok(());
    }
    buffer.mark_read_only().map_err(|error| {
        report::problem("memory", &error.to_string());
        ClError(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    })
}

/// What a new memory object is made of.
pub struct New {
    /// Whose it will be.
    pub context: Ref<Context>,
    /// Buffer, or a kind of image.
    pub kind: cl_mem_object_type,
    /// Flags.
    pub flags: cl_mem_flags,
    /// The list of properties.
    pub given: Vec<u64>,
    /// Images only.
    pub image: Option<Image>,
}

impl Mem {
    /// An object with memory of its own.
    ///
    /// # Errors
    /// `CL_INVALID_BUFFER_SIZE` for a size that no device has, else as [`allocate`] and [`only_read`].
    pub fn new(new: New, len: usize, host: Option<HostMemory>) -> Cl<Mem> {
        let fits = len != 0 && len as u64 <= max_alloc_bytes();
        ensure(fits, CL_INVALID_BUFFER_SIZE)?;
        let made_by = match new.image {
            Some(_) => "clCreateImage",
            None => "clCreateBuffer",
        };
        let (buffer, taken) = allocate(len, ALIGNMENT, made_by)?;
        buffer.set_context(new.context.number);
        // What the program gives with the flags is copied there next. Images count as initialised.
        if new.image.is_none() && host.is_none() {
            buffer.mark_uninitialised();
        }
        if new.image.is_none() {
            only_read(&buffer, new.flags)?;
        }
        Ok(Mem::of(new, buffer, host, None, Some(taken)))
    }

    /// An object over memory that is shared with the program by address.
    pub fn over(new: New, shared: Buffer, host: HostMemory) -> Mem {
        Mem::of(new, shared, Some(host), None, None)
    }

    /// Part of a buffer, or an image in one.
    ///
    /// # Errors
    /// `CL_INVALID_VALUE` when a byte is outside.
    pub fn part(new: New, parent: &Ref<Mem>, offset: usize, len: usize) -> Cl<Mem> {
        // Kernels may reach memory that is shared by address without being told.
        let apart = new.image.is_none() && parent.taken.is_some();
        let read_only = new.flags & u64::from(CL_MEM_READ_ONLY) != 0;
        let (from, size) = (offset as u64, len as u64);
        let buffer = match apart {
            true => parent.buffer.sub_buffer(from, size, read_only),
            false => parent.buffer.part(from, size),
        };
        let buffer = buffer.map_err(|_| ClError(CL_INVALID_VALUE))?;
        if new.image.is_some() {
            // Kernels write texels, too, and images are not looked at.
            buffer.memory().written(buffer.address(), buffer.len());
        }
        let host = parent.host.and_then(|host| host.part(offset, len));
        let parent = Some((parent.clone(), offset));
        Ok(Mem::of(new, buffer, host, parent, None))
    }

    fn of(
        new: New,
        buffer: Buffer,
        host: Option<HostMemory>,
        parent: Option<(Ref<Mem>, usize)>,
        taken: Option<Taken>,
    ) -> Mem {
        Mem {
            context: new.context,
            kind: new.kind,
            flags: new.flags,
            given: new.given,
            buffer,
            host,
            parent,
            image: new.image,
            mappings: Mutex::default(),
            destructors: Mutex::default(),
            taken,
        }
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.buffer.len() as usize
    }

    /// The bytes, for copies.
    pub fn place(&self) -> CopySide {
        CopySide::Device(self.buffer.clone())
    }

    /// Has a function called at the end.
    pub fn at_end(&self, destructor: Destructor) {
        lock(&self.destructors).push(destructor);
    }

    /// Places that the program may access.
    pub fn map_count(&self) -> usize {
        lock(&self.mappings).len()
    }

    /// Where the program will find bytes that it maps: in its own memory if it gave some, else in the device's.
    ///
    /// # Errors
    /// `CL_INVALID_OPERATION` if bytes that are mapped for writing already are to be mapped for writing again.
    pub fn map(&self, offset: usize, len: usize, part: Part, flags: cl_map_flags) -> Cl<usize> {
        let base = match self.host {
            Some(host) => host.address(),
            None => self.buffer.address() as usize,
        };
        let address = base + offset;
        let writes = flags != u64::from(CL_MAP_READ);
        if writes && self.host.is_none() {
            // The program may write all of it, which nothing sees.
            self.buffer.memory().written(address as u64, len as u64);
        }
        let mut mappings = lock(&self.mappings);
        let taken = |m: &Mapping| m.writes && !m.ends && m.part.shares(part);
        let again = writes && mappings.iter().any(taken);
        ensure(!again, CL_INVALID_OPERATION)?;
        mappings.push(Mapping {
            address,
            offset,
            len,
            part,
            writes,
            ends: false,
        });
        Ok(address)
    }

    /// Brings what is mapped up to date in the program's own memory.
    ///
    /// # Errors
    /// None but for ranges outside.
    pub fn show(&self, offset: usize, len: usize, flags: cl_map_flags) -> Cl<()> {
        let reads = flags & u64::from(CL_MAP_READ | CL_MAP_WRITE) != 0;
        match self.host {
            Some(host) if reads => {
                CopySide::Host(host).copy_from(offset, &self.place(), offset, len)
            }
            _ => Ok(()),
        }
    }

    /// Notes that the program ends a mapping, which a command will do later with [`Mem::unmap`].
    ///
    /// # Errors
    /// `CL_INVALID_VALUE` if it may not access this address by a mapping.
    pub fn will_unmap(&self, address: usize) -> Cl<()> {
        let mut mappings = lock(&self.mappings);
        let mut live = mappings.iter_mut().filter(|m| !m.ends);
        let found = live.rfind(|m| m.address == address);
        found.ok_or(ClError(CL_INVALID_VALUE))?.ends = true;
        Ok(())
    }

    /// Takes back a mapping that the program was not told of.
    pub fn forget(&self, address: usize) {
        let mut mappings = lock(&self.mappings);
        let last = mappings.iter().rposition(|m| m.address == address);
        if let Some(at) = last {
            mappings.remove(at);
        }
    }

    /// Ends a mapping: what the program wrote is there for kernels.
    ///
    /// # Errors
    /// `CL_INVALID_VALUE` if there is none.
    pub fn unmap(&self, address: usize) -> Cl<()> {
        let mut mappings = lock(&self.mappings);
        let ended = |m: &Mapping| m.ends && m.address == address;
        let Some(at) = mappings.iter().position(ended) else {
            return err(CL_INVALID_VALUE);
        };
        let mapping = mappings.remove(at);
        drop(mappings);
        match self.host {
            Some(host) if mapping.writes => {
                let (offset, len) = (mapping.offset, mapping.len);
                self.place()
                    .copy_from(offset, &CopySide::Host(host), offset, len)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Mem {
    fn drop(&mut self) {
        let all = std::mem::take(&mut *lock(&self.destructors));
        fork::without_locks(|| all.into_iter().rev().for_each(|destructor| destructor()));
    }
}
