//! Compiles SSA and runs it against hand-made contexts.

use std::cell::RefCell;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::AtomicU32;

use crate::generator;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use visa_jit::backend::{Backend, CodeObject, CodegenEffort, CodegenOptions, OobPolicy, Tuning};
use visa_jit::ssa::{AccessKind, Function, Site, Space, verify};
use visa_runtime::abi::{
    Entry, GroupCtx, Helpers, LaunchCtx, Pointee, SINK_BYTES, SURFACES, Surface, ThreadCtx,
};
use visa_runtime::{CodeHandle, enter, helpers};

/// Options with the default policy.
pub const SPEED: CodegenOptions = CodegenOptions {
    oob: OobPolicy::ReadZeroSkipWrite,
    tuning: Tuning::DEFAULT,
};

/// Options that compile fastest.
pub const NONE: CodegenOptions = CodegenOptions {
    oob: OobPolicy::ReadZeroSkipWrite,
    tuning: Tuning {
        codegen: CodegenEffort::None,
        ..Tuning::DEFAULT
    },
};

/// The site of an access that some tests make, at line 5.
pub fn gather(space: Space) -> Site {
    Site {
        line: 5,
        opcode: "gather_scaled",
        space,
        kind: AccessKind::Read,
        bytes: 4,
        alignment: 1,
        first_lane: 0,
        parts: Vec::new(),
    }
}

/// Parses and verifies text.
pub fn function(text: &str) -> Function {
    let f = visa_jit::ssa::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    if let Err(errors) = verify(&f) {
        panic!("{}\n{text}", errors[0]);
    }
    f
}

/// Machine code for the host.
pub fn compile(f: &Function, options: &CodegenOptions) -> CodeObject {
    thread_local! {
        static BACKEND: generator::Generator = generator::host();
    }
    BACKEND.with(|backend| {
        backend
            .compile(f, options)
            .unwrap_or_else(|e| panic!("{e}\n{f}"))
    })
}

/// Installed code for the host's architecture without the features beyond our base, so that what
/// is emulated there runs too.
pub fn install_base(f: &Function) -> CodeHandle {
    thread_local! {
        static BACKEND: generator::Generator = generator::base();
    }
    let object = BACKEND.with(|backend| {
        backend
            .compile(f, &SPEED)
            .unwrap_or_else(|e| panic!("{e}\n{f}"))
    });
    CodeHandle::install(&object.code, object.align).unwrap()
}

/// Bytes that end (and, page by page, begin) at inaccessible pages.
pub struct Guarded {
    map: *mut u8,
    pages: usize,
    len: usize,
}

const PAGE: usize = 4096;

thread_local! {
    /// Mappings to use again, by their pages. Some tests make 100,000 of them, and threads that map memory wait for each other.
    static SPARE: RefCell<[Vec<*mut u8>; 4]> = const { RefCell::new([const { Vec::new() }; 4]) };
}

impl Guarded {
    /// `len` bytes of zero, flush against the page after them.
    pub fn new(len: usize) -> Guarded {
        let pages = len.div_ceil(PAGE).max(1);
        let spare = SPARE.with_borrow_mut(|spare| spare.get_mut(pages - 1).and_then(Vec::pop));
        let map = spare.map_or_else(|| Guarded::map(pages), |map| Guarded::clear(map, pages));
        Guarded { map, pages, len }
    }

    /// Zeroes what a mapping has from its last use.
    fn clear(map: *mut u8, pages: usize) -> *mut u8 {
        // SAFETY: the pages between the first and the last are writable, and nothing else has them.
        unsafe { map.add(PAGE).write_bytes(0, pages * PAGE) };
        map
    }

    /// Maps pages, between two that cannot be accessed.
    fn map(pages: usize) -> *mut u8 {
        let total = (pages + 2) * PAGE;
        // SAFETY: a fresh private mapping.
        let map = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                total,
                ProtFlags::empty(),
                // Some is large, and mostly never touched.
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
            .unwrap()
        };
        // SAFETY: inside the mapping just made.
        unsafe {
            mprotect(
                map.cast::<u8>().add(PAGE).cast(),
                pages * PAGE,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )
            .unwrap();
        }
        map.cast()
    }

    /// With contents.
    pub fn of(bytes: &[u8]) -> Guarded {
        let g = Guarded::new(bytes.len());
        g.write(bytes);
        g
    }

    /// First byte.
    pub fn base(&self) -> *mut u8 {
        // SAFETY: inside the mapping.
        unsafe { self.map.add(PAGE + self.pages * PAGE - self.len) }
    }

    /// Length.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Replaces the contents.
    pub fn write(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len);
        // SAFETY: `len` bytes are writable.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.base(), bytes.len()) }
    }

    /// Sets one byte.
    pub fn set(&self, at: usize, byte: u8) {
        assert!(at < self.len);
        // SAFETY: `len` bytes are writable.
        unsafe { self.base().add(at).write(byte) }
    }

    /// The contents.
    pub fn read(&self) -> Vec<u8> {
        // SAFETY: `len` bytes are readable.
        unsafe { std::slice::from_raw_parts(self.base(), self.len) }.to_vec()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let kept = SPARE.try_with(|spare| match spare.borrow_mut().get_mut(self.pages - 1) {
            Some(spare) if spare.len() < 64 => {
                spare.push(self.map);
                true
            }
            _ => false,
        });
        if kept == Ok(true) {
            return;
        }
        // SAFETY: the mapping made in `map`, which nothing uses any more.
        unsafe { munmap(self.map.cast(), (self.pages + 2) * PAGE).unwrap() }
    }
}

/// Everything an entry point reads and writes.
pub struct Rig {
    /// Surface table.
    pub surfaces: Vec<Surface>,
    /// Payload bytes.
    pub payload: Guarded,
    /// Frames, one a thread.
    pub frames: Vec<Guarded>,
    /// Shared local memory and its size.
    pub slm_at: (*mut u8, u64),
    /// Device memory and its size.
    pub flat_at: (*mut u8, u64),
    /// Indirect data: base and bytes.
    pub args_at: (*mut u8, u64),
    /// Interruption request.
    pub interrupt: AtomicU32,
    /// Groups that the call runs beside the first.
    pub following: u32,
    /// Rows of groups after that, and groups of the launch in y.
    pub rows: (u32, u32),
    /// The group that runs first; afterwards the one that ran last.
    pub group: [u32; 3],
    /// Threads.
    pub threads: Vec<ThreadCtx>,
    /// Helper table.
    pub helpers: Helpers,
    /// Argument of the fault helper.
    pub faults: *mut u8,
    /// [`LaunchCtx::invariant_pointees`].
    pub invariant: Vec<Pointee>,
    /// [`LaunchCtx::confined_pointees`].
    pub confined: Vec<Pointee>,
    local_ids: Vec<u16>,
    sink: Vec<u8>,
}

impl Rig {
    /// `threads` threads with frames of `frame` bytes.
    pub fn new(threads: usize, frame: usize) -> Rig {
        let frames: Vec<Guarded> = (0..threads).map(|_| Guarded::new(frame)).collect();
        let local_ids: Vec<u16> = (0..96).collect();
        let threads = frames
            .iter()
            .enumerate()
            .map(|(i, frame)| ThreadCtx {
                local_ids: local_ids.as_ptr(),
                frame: frame.base(),
                scratch: ptr::null_mut(),
                scratch_size: 0,
                dispatch_mask: u32::MAX,
                state: 0,
                r0_2: 4000 + i as u32,
                r0_5: 1000 + i as u32,
                sr0: 2000 + i as u32,
                hw_id: 3000 + i as u32,
            })
            .collect();
        let empty = Surface {
            base: ptr::null_mut(),
            size: 0,
        };
        Rig {
            surfaces: vec![empty; SURFACES],
            payload: Guarded::new(8192),
            frames,
            slm_at: (ptr::null_mut(), 0),
            flat_at: (ptr::null_mut(), 0),
            args_at: (ptr::null_mut(), 0),
            interrupt: AtomicU32::new(0),
            following: 0,
            rows: (0, 1),
            group: [101, 106, 107],
            threads,
            helpers: *helpers(),
            faults: ptr::null_mut(),
            invariant: Vec::new(),
            confined: Vec::new(),
            local_ids,
            sink: vec![0; SINK_BYTES],
        }
    }

    /// Binds memory to a surface.
    pub fn bind(&mut self, index: usize, memory: &Guarded) {
        self.surfaces[index] = Surface {
            base: memory.base(),
            size: memory.len() as u64,
        };
    }

    /// Makes memory the only one of its space.
    pub fn place(&mut self, space: Space, index: usize, memory: &Guarded) {
        let (base, size) = (memory.base(), memory.len() as u64);
        match space {
            Space::Surface => self.bind(index, memory),
            Space::Slm => self.slm_at = (base, size),
            Space::Flat => self.flat_at = (base, size),
            Space::Scratch => {
                for t in &mut self.threads {
                    (t.scratch, t.scratch_size) = (base, size);
                }
            }
            Space::Args => self.args_at = (base, size),
            _ => {}
        }
    }

    /// Replaces the local ids of all threads.
    pub fn set_local_ids(&mut self, ids: &[[u16; 32]; 3]) {
        self.local_ids = ids.concat();
        for t in &mut self.threads {
            t.local_ids = self.local_ids.as_ptr();
        }
    }

    /// Runs all threads once; returns the status.
    pub fn run(&mut self, entry: Entry) -> u32 {
        let count = self.threads.len() as u32;
        self.run_part(entry, 0..count)
    }

    /// Runs some threads of the group.
    pub fn run_part(&mut self, entry: Entry, threads: Range<u32>) -> u32 {
        assert_eq!(self.local_ids.len(), 96);
        let launch = LaunchCtx {
            surfaces: self.surfaces.as_ptr(),
            payload: self.payload.base(),
            flat_base: self.flat_at.0 as u64,
            flat_size: self.flat_at.1,
            interrupt: &raw const self.interrupt,
            helpers: &raw const self.helpers,
            images: std::ptr::null(),
            args: self.args_at.0,
            args_size: self.args_at.1,
            shadow: std::ptr::null(),
            marks: 0,
            pointees: std::ptr::null(),
            write_shadow: std::ptr::null(),
            write_pointees: std::ptr::null(),
            invariant_pointees: self.invariant.as_ptr(),
            confined_pointees: self.confined.as_ptr(),
        };
        let mut group = GroupCtx {
            launch: &raw const launch,
            slm: self.slm_at.0,
            slm_size: self.slm_at.1,
            threads: self.threads.as_mut_ptr(),
            sink: self.sink.as_mut_ptr(),
            faults: self.faults,
            r0: std::array::from_fn(|i| 100 + i as u32),
            thread_count: self.threads.len() as u32,
            following: self.following,
            barriers: std::ptr::null_mut(),
            answer: 0,
            rows: self.rows.0,
            races: std::ptr::null_mut(),
            slm_marks: 0,
            scratch_marks: 0,
            height: self.rows.1,
        };
        [group.r0[1], group.r0[6], group.r0[7]] = self.group;
        // SAFETY: the code was generated for this ABI and every pointer outlives the call.
        let status = unsafe { enter(entry, &raw mut group, threads.start, threads.end) };
        self.group = [1, 6, 7].map(|word| group.r0[word]);
        status
    }
}

/// Compiles for the host and installs.
pub fn install(f: &Function, options: &CodegenOptions) -> CodeHandle {
    let object = compile(f, options);
    CodeHandle::install(&object.code, object.align).unwrap()
}
