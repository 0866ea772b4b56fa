//! Objects to try entry points with: of every kind, some of another context, some that must not be used.

use std::ffi::c_void;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use visa_jit_opencl::abi::*;

use super::frame::go;
use crate::SUCCESS;

/// Objects. `far_` is of another context, `bare` a device without images.
pub struct World {
    pub cl: cl_icd_dispatch,
    /// Calls go through a loader.
    pub by_loader: bool,
    /// There is a compiler for the first device, or none at all; neither, if it does not know the device.
    pub compiles: Option<bool>,
    /// Of the platform.
    pub extensions: Option<Box<str>>,
    pub platform: cl_platform_id,
    pub device: cl_device_id,
    pub bare: cl_device_id,
    pub context: cl_context,
    /// Of both devices.
    pub wide: cl_context,
    pub far: cl_context,
    /// Of the device without images.
    pub bare_context: cl_context,
    pub queue: cl_command_queue,
    /// With times.
    pub timed: cl_command_queue,
    pub far_queue: cl_command_queue,
    /// Of the device without images, in the context of both.
    pub wide_bare_queue: cl_command_queue,
    pub wide_queue: cl_command_queue,
    /// 256 bytes.
    pub buffer: cl_mem,
    pub far_buffer: cl_mem,
    /// Parts of `buffer`, that have bytes in common.
    pub parts: [cl_mem; 2],
    /// What the host must not read, and not write.
    pub unreadable: cl_mem,
    pub unwritable: cl_mem,
    /// What kernels must not read, and not write.
    pub write_only: cl_mem,
    pub read_only: cl_mem,
    /// 8 times 8 texels of four bytes.
    pub image: cl_mem,
    pub images: cl_mem,
    pub far_image: cl_mem,
    pub wide_image: cl_mem,
    pub wide_buffer: cl_mem,
    pub float_image: cl_mem,
    pub unreadable_image: cl_mem,
    pub unwritable_image: cl_mem,
    /// In `buffer`.
    pub buffer_image: cl_mem,
    pub sampler: cl_sampler,
    pub far_sampler: cl_sampler,
    /// Built, and nothing was made of it.
    pub program: cl_program,
    /// Built, and there are kernels of it.
    pub used: cl_program,
    pub far_program: cl_program,
    /// Of sources, never built.
    pub unbuilt: cl_program,
    pub il: cl_program,
    pub far_source: cl_program,
    /// All arguments are set.
    pub kernel: cl_kernel,
    pub unset: cl_kernel,
    pub far_kernel: cl_kernel,
    /// Writes an image, and takes two buffers.
    pub image_kernel: cl_kernel,
    /// Reads one: its second argument.
    pub reading_kernel: cl_kernel,
    /// Takes a sampler as its third argument.
    pub sampling_kernel: cl_kernel,
    /// Third argument in local memory.
    pub local_kernel: cl_kernel,
    /// Groups of another size than one.
    pub grouped_kernel: cl_kernel,
    /// Of the context of both devices, for the first only.
    pub wide_kernel: cl_kernel,
    pub wide_program: cl_program,
    pub done: cl_event,
    /// With times.
    pub timed_done: cl_event,
    pub far_done: cl_event,
    pub failed: cl_event,
    /// 256 bytes of shared memory.
    pub shared: *mut c_void,
    /// 4096 bytes of the program's.
    pub room: *mut c_void,
}

/// Makes an object.
macro_rules! new {
    ($w:ident.$f:ident($($arg:expr),* $(,)?)) => {{
        let mut code = 1;
        // SAFETY: arguments are as the specification says.
        let made = unsafe { ($w.cl.$f.unwrap())($($arg,)* &mut code) };
        assert_eq!(code, SUCCESS, stringify!($f));
        made
    }};
}

/// A SPIR-V module without contents.
pub const MODULE: [u32; 5] = [0x0723_0203, 0x0001_0000, 0, 1, 0];

pub fn format(order: u32, ty: u32) -> cl_image_format {
    cl_image_format {
        image_channel_order: order,
        image_channel_data_type: ty,
    }
}

pub fn description(kind: u32, size: [usize; 3], in_buffer: cl_mem) -> cl_image_desc {
    let layers = kind == CL_MEM_OBJECT_IMAGE2D_ARRAY;
    cl_image_desc {
        image_type: kind,
        image_width: size[0],
        image_height: size[1],
        image_depth: if layers { 0 } else { size[2] },
        image_array_size: if layers { size[2] } else { 0 },
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        __bindgen_anon_1: _cl_image_desc__bindgen_ty_1 { buffer: in_buffer },
    }
}

/// The bytes of a zebin that is checked in.
pub fn zebin(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/kernels/bin")
        .join(name)
        .with_extension("zebin");
    std::fs::read(path).unwrap()
}

impl World {
    fn buffer_in(&self, context: cl_context, flags: u32) -> cl_mem {
        new!(self.clCreateBuffer(context, u64::from(flags), 256, null_mut()))
    }

    fn image_in(&self, context: cl_context, flags: u32, ty: u32, kind: u32) -> cl_mem {
        let in_buffer = kind == CL_MEM_OBJECT_IMAGE1D_BUFFER;
        let parent = if in_buffer { self.buffer } else { null_mut() };
        let desc = description(kind, [8, 8, 2], parent);
        let format = format(CL_RGBA, ty);
        new!(self.clCreateImage(context, u64::from(flags), &format, &desc, null_mut()))
    }

    pub fn loaded(&self, context: cl_context, device: cl_device_id, name: &str) -> cl_program {
        let bytes = zebin(name);
        let (len, mut at) = (bytes.len(), bytes.as_ptr());
        let program =
            new!(self.clCreateProgramWithBinary(context, 1, &device, &len, &mut at, null_mut()));
        let built = go!(self.clBuildProgram(program, 0, null(), null(), None, null_mut()));
        assert_eq!(built, SUCCESS, "{name}");
        program
    }

    /// Whether the platform has an extension.
    pub fn has(&self, extension: &str) -> bool {
        let mut all = self
            .extensions
            .iter()
            .flat_map(|all| all.split([' ', '\0']));
        all.any(|name| name == extension)
    }

    pub fn source(&self, context: cl_context, text: &std::ffi::CStr) -> cl_program {
        let mut text = text.as_ptr();
        new!(self.clCreateProgramWithSource(context, 1, &mut text, null()))
    }

    fn kernel_of(&self, program: cl_program, name: &std::ffi::CStr) -> cl_kernel {
        new!(self.clCreateKernel(program, name.as_ptr()))
    }

    fn user_event(&self, context: cl_context, status: cl_int) -> cl_event {
        let event = new!(self.clCreateUserEvent(context));
        assert_eq!(go!(self.clSetUserEventStatus(event, status)), SUCCESS);
        event
    }

    pub fn set<T>(&self, kernel: cl_kernel, index: u32, value: &T) -> cl_int {
        let value: *const T = value;
        go!(self.clSetKernelArg(kernel, index, size_of::<T>(), value.cast()))
    }

    /// Everything, by this table.
    pub fn new(cl: cl_icd_dispatch, by_loader: bool) -> World {
        // SAFETY: all members are numbers, pointers, and options of pointers, which may be zero.
        let mut w: World = unsafe { std::mem::zeroed() };
        (w.cl, w.by_loader) = (cl, by_loader);
        w.devices();
        w.memory();
        w.programs();
        w.kernels();
        w.done = w.user_event(w.context, SUCCESS);
        w.far_done = w.user_event(w.bare_context, SUCCESS);
        w.failed = w.user_event(w.context, -5);
        w.shared = go!(w.clSVMAlloc(w.context, u64::from(CL_MEM_READ_WRITE), 256, 0));
        assert!(!w.shared.is_null());
        let marked = go!(w.clEnqueueMarkerWithWaitList(w.timed, 0, null(), &mut w.timed_done));
        assert_eq!((marked, go!(w.clFinish(w.timed))), (SUCCESS, SUCCESS));
        w
    }

    fn devices(&mut self) {
        let w = self;
        let mut devices = [null_mut(); 2];
        let all = u64::from(CL_DEVICE_TYPE_ALL);
        assert_eq!(
            go!(w.clGetPlatformIDs(1, &mut w.platform, null_mut())),
            SUCCESS
        );
        let got = go!(w.clGetDeviceIDs(w.platform, all, 2, devices.as_mut_ptr(), null_mut()));
        assert_eq!(got, SUCCESS);
        [w.device, w.bare] = devices;
        let mut text = vec![0_u8; 4096];
        let (room, mut len) = (text.as_mut_ptr().cast(), 0);
        let query = CL_PLATFORM_EXTENSIONS;
        let got = go!(w.clGetPlatformInfo(w.platform, query, 4096, room, &mut len));
        assert_eq!(got, SUCCESS);
        text.truncate(len);
        w.extensions = Some(String::from_utf8(text).unwrap().into());
        let context = |n: usize, list: *const cl_device_id| {
            new!(w.clCreateContext(null(), n as cl_uint, list, None, null_mut()))
        };
        let contexts = (
            context(1, &devices[0]),
            context(2, devices.as_ptr()),
            context(1, &devices[1]),
        );
        (w.context, w.wide, w.bare_context) = contexts;
        let far = context(1, &devices[0]);
        let queue = |context, device, properties: u32| {
            new!(w.clCreateCommandQueue(context, device, u64::from(properties)))
        };
        let queues = [
            queue(w.context, w.device, 0),
            queue(w.context, w.device, CL_QUEUE_PROFILING_ENABLE),
            queue(far, w.device, 0),
            queue(w.wide, w.bare, 0),
            queue(w.wide, w.device, 0),
        ];
        [
            w.queue,
            w.timed,
            w.far_queue,
            w.wide_bare_queue,
            w.wide_queue,
        ] = queues;
        w.far = far;
    }

    fn memory(&mut self) {
        let w = self;
        let here = w.context;
        let both = CL_MEM_READ_WRITE;
        w.buffer = w.buffer_in(here, both);
        w.far_buffer = w.buffer_in(w.far, both);
        w.wide_buffer = w.buffer_in(w.wide, both);
        w.unreadable = w.buffer_in(here, CL_MEM_HOST_WRITE_ONLY);
        w.unwritable = w.buffer_in(here, CL_MEM_HOST_READ_ONLY);
        w.parts = [128, 0].map(|origin| {
            let region = cl_buffer_region {
                origin,
                size: 256 - origin,
            };
            let (flags, kind) = (u64::from(both), CL_BUFFER_CREATE_TYPE_REGION);
            new!(w.clCreateSubBuffer(w.buffer, flags, kind, (&raw const region).cast()))
        });
        let two = CL_MEM_OBJECT_IMAGE2D;
        let bytes = CL_UNSIGNED_INT8;
        w.image = w.image_in(here, both, bytes, two);
        w.images = w.image_in(here, both, bytes, CL_MEM_OBJECT_IMAGE2D_ARRAY);
        w.far_image = w.image_in(w.far, both, bytes, two);
        w.wide_image = w.image_in(w.wide, both, bytes, two);
        w.float_image = w.image_in(here, both, CL_FLOAT, two);
        w.write_only = w.image_in(here, CL_MEM_WRITE_ONLY, CL_FLOAT, two);
        w.read_only = w.image_in(here, CL_MEM_READ_ONLY, CL_FLOAT, two);
        w.unreadable_image = w.image_in(here, CL_MEM_HOST_WRITE_ONLY, bytes, two);
        w.unwritable_image = w.image_in(here, CL_MEM_HOST_READ_ONLY, bytes, two);
        w.buffer_image = w.image_in(here, both, bytes, CL_MEM_OBJECT_IMAGE1D_BUFFER);
        let sampler = |context| {
            new!(w.clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST))
        };
        (w.sampler, w.far_sampler) = (sampler(here), sampler(w.far));
        w.room = vec![0_u64; 512].leak().as_mut_ptr().cast();
    }

    fn programs(&mut self) {
        let w = self;
        w.program = w.loaded(w.context, w.device, "skl/saxpy");
        w.used = w.loaded(w.context, w.device, "skl/saxpy");
        w.far_program = w.loaded(w.far, w.device, "skl/saxpy");
        w.wide_program = w.loaded(w.wide, w.device, "skl/saxpy");
        w.unbuilt = w.source(w.context, c"kernel void nothing() {}");
        w.far_source = w.source(w.far, c"kernel void nothing() {}");
        w.il =
            new!(w.clCreateProgramWithIL(w.context, MODULE.as_ptr().cast(), size_of_val(&MODULE)));
        // Tried once for all tests.
        static BUILT: OnceLock<cl_int> = OnceLock::new();
        let code = BUILT.get_or_init(|| {
            let built = w.source(
                w.context,
                c"kernel void something(global int *a) { *a = 1; }",
            );
            go!(w.clBuildProgram(built, 0, null(), null(), None, null_mut()))
        });
        w.compiles = match *code {
            SUCCESS => Some(true),
            CL_COMPILER_NOT_AVAILABLE => Some(false),
            _ => None,
        };
    }

    fn kernels(&mut self) {
        let w = self;
        let saxpy = c"saxpy";
        w.kernel = w.kernel_of(w.used, saxpy);
        w.unset = w.kernel_of(w.used, saxpy);
        w.far_kernel = w.kernel_of(w.far_program, saxpy);
        w.wide_kernel = w.kernel_of(w.wide_program, saxpy);
        for (kernel, buffer) in [(w.kernel, w.buffer), (w.wide_kernel, w.wide_buffer)] {
            let codes = [
                w.set(kernel, 0, &buffer),
                w.set(kernel, 1, &buffer),
                w.set(kernel, 2, &1.0_f32),
            ];
            assert_eq!(codes, [SUCCESS; 3]);
        }
        let of = |name, kernel| w.kernel_of(w.loaded(w.context, w.device, name), kernel);
        let kernels = [
            of("skl/image_write", c"fill_float"),
            of("skl/image_access", c"load_float"),
            of("skl/image_sample", c"sample_argument"),
            of("skl/reduction", c"reduce_sum"),
            of("skl/reduction", c"reduce_sum_fixed"),
        ];
        let [writes, reads, samples, local, grouped] = kernels;
        (w.image_kernel, w.reading_kernel, w.sampling_kernel) = (writes, reads, samples);
        (w.local_kernel, w.grouped_kernel) = (local, grouped);
        let codes = [
            w.set(grouped, 0, &w.buffer),
            w.set(grouped, 1, &w.buffer),
            w.set(grouped, 2, &1_u32),
        ];
        assert_eq!(codes, [SUCCESS; 3]);
    }
}
