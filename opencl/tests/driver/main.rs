//! The driver by its entry points of C, called as a program calls them. Programs are zebins that are checked in, so no compiler
//! and no loader is needed.
#![allow(
    unsafe_code,
    reason = "the entry points are functions of C; each call here keeps to the specification, or breaks it where an error code is the answer"
)]

mod answers;
mod astray;
mod builds;
mod codes;
mod compilers;
mod formats;
mod launches;
mod modules;
mod process;
mod runs;
mod usm;
mod variable;

use std::ffi::{CString, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Once;

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::{context, device, enqueue, kernel, mem, platform, program, queue};

/// Devices whose zebins are checked in are told by name, and nothing is kept on disk.
fn set_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: tests that read the environment do so through the driver, which is used after this only.
        unsafe {
            std::env::set_var("VISA_JIT_DEVICE", "skl,pvc");
            std::env::set_var("VISA_JIT_CACHE_DIR", "off");
        }
    });
}

/// A code of C as it is named.
const SUCCESS: cl_int = CL_SUCCESS as cl_int;

/// Device, context and queue of a program.
struct Rig {
    platform: cl_platform_id,
    device: cl_device_id,
    context: cl_context,
    queue: cl_command_queue,
}

// SAFETY: OpenCL's objects may be used by any thread.
unsafe impl Send for Rig {}
// SAFETY: as above.
unsafe impl Sync for Rig {}

impl Rig {
    fn new() -> Rig {
        Rig::with_queue(0)
    }

    fn with_queue(properties: cl_command_queue_properties) -> Rig {
        set_up();
        Rig::of(0, properties)
    }

    /// With one of the devices, by its place among them.
    fn of(place: usize, properties: cl_command_queue_properties) -> Rig {
        let (mut platform, mut devices, mut code) = (null_mut(), [null_mut(); 8], 1);
        let mut count = 0;
        // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
        unsafe {
            assert_eq!(
                platform::clGetPlatformIDs(1, &mut platform, null_mut()),
                SUCCESS
            );
            let all = u64::from(CL_DEVICE_TYPE_ALL);
            let room = devices.len() as cl_uint;
            let got = device::clGetDeviceIDs(platform, all, room, devices.as_mut_ptr(), &mut count);
            assert_eq!(got, SUCCESS);
            assert!(place < count as usize, "{count} devices");
            let device = devices[place];
            let context = context::clCreateContext(null(), 1, &device, None, null_mut(), &mut code);
            assert_eq!(code, SUCCESS);
            let queue = queue::clCreateCommandQueue(context, device, properties, &mut code);
            assert_eq!(code, SUCCESS);
            Rig {
                platform,
                device,
                context,
                queue,
            }
        }
    }

    /// A program of a checked-in zebin, built.
    fn program(&self, name: &str) -> cl_program {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../tests/kernels/bin/skl")
            .join(name)
            .with_extension("zebin");
        self.program_of(name, &std::fs::read(path).unwrap())
    }

    /// A program of a zebin, built.
    fn program_of(&self, name: &str, bytes: &[u8]) -> cl_program {
        let (mut status, mut code) = (1, 1);
        // SAFETY: as above.
        unsafe {
            let program = program::clCreateProgramWithBinary(
                self.context,
                1,
                &self.device,
                &bytes.len(),
                &mut bytes.as_ptr(),
                &mut status,
                &mut code,
            );
            assert_eq!((status, code), (SUCCESS, SUCCESS), "{name}");
            let built = program::clBuildProgram(program, 0, null(), null(), None, null_mut());
            assert_eq!(built, SUCCESS, "{name}");
            program
        }
    }

    fn kernel(&self, program: cl_program, name: &str) -> cl_kernel {
        let name = CString::new(name).unwrap();
        let mut code = 1;
        // SAFETY: as above.
        let kernel = unsafe { kernel::clCreateKernel(program, name.as_ptr(), &mut code) };
        assert_eq!(code, SUCCESS);
        kernel
    }

    /// A buffer with these elements.
    fn buffer<T: Copy>(&self, elements: &[T]) -> cl_mem {
        let mut code = 1;
        let flags = u64::from(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
        // SAFETY: as above; the driver only reads what it copies from.
        let buffer = unsafe {
            mem::clCreateBuffer(
                self.context,
                flags,
                size_of_val(elements),
                elements.as_ptr().cast_mut().cast(),
                &mut code,
            )
        };
        assert_eq!(code, SUCCESS);
        buffer
    }

    /// What is in a buffer when all commands are done.
    fn read<T: Copy + Default>(&self, buffer: cl_mem, count: usize) -> Vec<T> {
        let mut all = vec![T::default(); count];
        // SAFETY: as above.
        let read = unsafe {
            enqueue::clEnqueueReadBuffer(
                self.queue,
                buffer,
                CL_TRUE,
                0,
                size_of_val(all.as_slice()),
                all.as_mut_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        assert_eq!(read, SUCCESS);
        all
    }

    /// Runs a kernel on some work-items of one dimension.
    fn launch(&self, kernel: cl_kernel, global: usize, local: Option<usize>) -> cl_int {
        // SAFETY: as above.
        unsafe {
            enqueue::clEnqueueNDRangeKernel(
                self.queue,
                kernel,
                1,
                null(),
                &global,
                local.as_ref().map_or(null(), |n| &raw const *n),
                0,
                null(),
                null_mut(),
            )
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // SAFETY: both were made with this rig.
        unsafe {
            assert_eq!(queue::clReleaseCommandQueue(self.queue), SUCCESS);
            assert_eq!(context::clReleaseContext(self.context), SUCCESS);
        }
    }
}

/// Sets an argument by value.
fn set<T>(kernel: cl_kernel, index: cl_uint, value: &T) -> cl_int {
    let value: *const T = value;
    // SAFETY: the value is as large as is said.
    unsafe { kernel::clSetKernelArg(kernel, index, size_of::<T>(), value.cast::<c_void>()) }
}
