//! OpenCL runtimes, through the system's loader and by the platform's name. Nothing of OpenCL is needed to build this.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::time::Instant;

use libloading::{Library, Symbol};

use crate::cases::{Argument, Case};
use crate::worker::{Loaded, microseconds};

type Handle = *mut c_void;
type Status = c_int;

const DEVICE_TYPE_CPU: u64 = 1 << 1;
const PLATFORM_NAME: c_uint = 0x0902;
const PLATFORM_VENDOR: c_uint = 0x0903;
const PROGRAM_BUILD_LOG: c_uint = 0x1183;
const MEM_READ_WRITE: u64 = 1;
const BLOCKING: c_uint = 1;

/// The functions that are used.
struct Api {
    // Declared first, so that it is not unloaded; it never is, as runtimes do not survive that.
    library: &'static Library,
}

macro_rules! call {
    ($api:expr, $name:literal, ($($ty:ty),*) -> $ret:ty, $($value:expr),* $(,)?) => {{
        type F = unsafe extern "C" fn($($ty),*) -> $ret;
        let library = $api.library;
        // SAFETY: OpenCL declares the function with this type.
        let f: Result<Symbol<'_, F>, _> = unsafe { library.get($name) };
        // SAFETY: handles come from OpenCL, and pointers are to values that live during the call.
        f.map(|f| unsafe { f($($value),*) }).map_err(|e| e.to_string())
    }};
}

fn checked(what: &str, status: Status) -> Result<(), String> {
    match status {
        0 => Ok(()),
        status => Err(format!("{what}: OpenCL error {status}")),
    }
}

/// A runtime with a CPU device.
pub struct Platform {
    api: Api,
    context: Handle,
    device: Handle,
    queue: Handle,
}

impl Platform {
    /// The platform whose name or vendor has this in it, with its CPU.
    pub fn named(name: &str) -> Result<Platform, String> {
        // SAFETY: the loader runs its own initialisation and that of the runtimes the user installed.
        let library = ["libOpenCL.so.1", "libOpenCL.so"]
            .into_iter()
            .find_map(|name| unsafe { Library::new(name) }.ok())
            .ok_or("libOpenCL.so.1 is not installed (apt-get install ocl-icd-libopencl1)")?;
        let api = Api {
            library: Box::leak(Box::new(library)),
        };
        let (mut platforms, mut count) = ([null_mut(); 16], 0);
        let status = call!(api, b"clGetPlatformIDs", (c_uint, *mut Handle, *mut c_uint) -> Status,
                           16, platforms.as_mut_ptr(), &mut count)?;
        // The loader's code for no platform at all.
        if status != -1001 {
            checked("clGetPlatformIDs", status)?;
        }
        let wanted = match name {
            "PoCL" => "Portable Computing Language",
            other => other,
        };
        for &platform in platforms.iter().take(count as usize) {
            let text = [PLATFORM_NAME, PLATFORM_VENDOR].map(|what| api.text(platform, what));
            if !text.iter().any(|text| text.contains(wanted)) {
                continue;
            }
            let (mut device, mut found) = (null_mut(), 0);
            let status = call!(api, b"clGetDeviceIDs",
                               (Handle, u64, c_uint, *mut Handle, *mut c_uint) -> Status,
                               platform, DEVICE_TYPE_CPU, 1, &mut device, &mut found)?;
            if status == 0 && found > 0 {
                return Platform::open(api, device);
            }
        }
        Err(format!("no OpenCL platform `{wanted}` with a CPU"))
    }

    fn open(api: Api, device: Handle) -> Result<Platform, String> {
        let mut status = 0;
        let context = call!(api, b"clCreateContext",
                            (*const isize, c_uint, *const Handle, *const c_void, *const c_void, *mut Status) -> Handle,
                            null(), 1, &device, null(), null(), &mut status)?;
        checked("clCreateContext", status)?;
        let queue = call!(api, b"clCreateCommandQueue", (Handle, Handle, u64, *mut Status) -> Handle,
                          context, device, 0, &mut status)?;
        checked("clCreateCommandQueue", status)?;
        Ok(Platform {
            api,
            context,
            device,
            queue,
        })
    }

    /// Builds a case's kernel and its buffers.
    pub fn load(
        &self,
        case: &Case,
        source: &str,
        arguments: Vec<Argument>,
    ) -> Result<(Box<dyn Loaded>, f64), String> {
        let api = Api {
            library: self.api.library,
        };
        let start = Instant::now();
        let program = self.build(source)?;
        let built = microseconds(start);
        let name = CString::new(case.kernel).map_err(|e| e.to_string())?;
        let mut status = 0;
        let kernel = call!(api, b"clCreateKernel", (Handle, *const c_char, *mut Status) -> Handle,
                           program, name.as_ptr(), &mut status)?;
        checked("clCreateKernel", status)?;
        let mut loaded = OnDevice {
            api,
            queue: self.queue,
            kernel,
            program,
            global: case.global,
            local: case.local,
            buffers: Vec::new(),
        };
        for (i, argument) in arguments.into_iter().enumerate() {
            let (size, value) = match &argument {
                Argument::Buffer(bytes) => {
                    let len = bytes.as_slice().len();
                    let buffer = call!(loaded.api, b"clCreateBuffer",
                                       (Handle, u64, usize, *const c_void, *mut Status) -> Handle,
                                       self.context, MEM_READ_WRITE, len, null(), &mut status)?;
                    checked("clCreateBuffer", status)?;
                    loaded.buffers.push((i, buffer, bytes.as_slice().to_vec()));
                    let (_, buffer, _) = &loaded.buffers[loaded.buffers.len() - 1];
                    (size_of::<Handle>(), std::ptr::from_ref(buffer).cast())
                }
                Argument::Value(bytes) => (bytes.len(), bytes.as_ptr().cast()),
                Argument::Local(bytes) => (*bytes, null()),
            };
            let status = call!(loaded.api, b"clSetKernelArg",
                               (Handle, c_uint, usize, *const c_void) -> Status,
                               kernel, i as c_uint, size, value)?;
            checked("clSetKernelArg", status)?;
        }
        loaded.reset()?;
        // Some compile when a kernel first runs with a size of groups.
        let start = Instant::now();
        loaded.run(1)?;
        let first = microseconds(start);
        let start = Instant::now();
        loaded.run(1)?;
        let again = microseconds(start);
        Ok((Box::new(loaded), built + (first - again).max(0.0)))
    }

    /// Builds a program, in the language's first version that takes it.
    fn build(&self, source: &str) -> Result<Handle, String> {
        let first = self.build_as(source, c"");
        first.or_else(|_| self.build_as(source, c"-cl-std=CL2.0"))
    }

    fn build_as(&self, source: &str, options: &CStr) -> Result<Handle, String> {
        let (text, len) = (source.as_ptr().cast::<c_char>(), source.len());
        let mut status = 0;
        let program = call!(self.api, b"clCreateProgramWithSource",
                            (Handle, c_uint, *const *const c_char, *const usize, *mut Status) -> Handle,
                            self.context, 1, &text, &len, &mut status)?;
        checked("clCreateProgramWithSource", status)?;
        let status = call!(self.api, b"clBuildProgram",
                           (Handle, c_uint, *const Handle, *const c_char, *const c_void, *const c_void) -> Status,
                           program, 1, &self.device, options.as_ptr(), null(), null())?;
        if status != 0 {
            let mut log = vec![0_u8; 1 << 16];
            let mut len = 0;
            call!(self.api, b"clGetProgramBuildInfo",
                  (Handle, Handle, c_uint, usize, *mut u8, *mut usize) -> Status,
                  program, self.device, PROGRAM_BUILD_LOG, log.len(), log.as_mut_ptr(), &mut len)?;
            log.truncate(len.saturating_sub(1));
            let log = String::from_utf8_lossy(&log).replace('\n', "; ");
            return Err(format!("clBuildProgram: OpenCL error {status}: {log}"));
        }
        Ok(program)
    }
}

impl Api {
    fn text(&self, platform: Handle, what: c_uint) -> String {
        let (mut text, mut len) = ([0_u8; 256], 0);
        let status = call!(self, b"clGetPlatformInfo",
                           (Handle, c_uint, usize, *mut u8, *mut usize) -> Status,
                           platform, what, text.len(), text.as_mut_ptr(), &mut len);
        match status {
            Ok(0) => String::from_utf8_lossy(&text[..len.saturating_sub(1)]).into_owned(),
            _ => String::new(),
        }
    }
}

struct OnDevice {
    api: Api,
    queue: Handle,
    kernel: Handle,
    program: Handle,
    global: [usize; 3],
    local: [usize; 3],
    buffers: Vec<(usize, Handle, Vec<u8>)>,
}

impl Loaded for OnDevice {
    fn reset(&mut self) -> Result<(), String> {
        for (_, buffer, bytes) in &self.buffers {
            let status = call!(self.api, b"clEnqueueWriteBuffer",
                (Handle, Handle, c_uint, usize, usize, *const u8, c_uint, *const Handle, *mut Handle) -> Status,
                self.queue, *buffer, BLOCKING, 0, bytes.len(), bytes.as_ptr(), 0, null(), null_mut())?;
            checked("clEnqueueWriteBuffer", status)?;
        }
        Ok(())
    }

    fn run(&mut self, times: u32) -> Result<(), String> {
        for _ in 0..times {
            let status = call!(self.api, b"clEnqueueNDRangeKernel",
                (Handle, Handle, c_uint, *const usize, *const usize, *const usize, c_uint, *const Handle, *mut Handle)
                    -> Status,
                self.queue, self.kernel, 3, null(), self.global.as_ptr(), self.local.as_ptr(), 0, null(), null_mut())?;
            checked("clEnqueueNDRangeKernel", status)?;
        }
        checked(
            "clFinish",
            call!(self.api, b"clFinish", (Handle) -> Status, self.queue)?,
        )
    }

    fn result(&self, argument: usize) -> Result<Vec<u8>, String> {
        let found = self.buffers.iter().find(|(i, ..)| *i == argument);
        let (_, buffer, bytes) = found.ok_or("no such buffer")?;
        let mut bytes = vec![0; bytes.len()];
        let status = call!(self.api, b"clEnqueueReadBuffer",
            (Handle, Handle, c_uint, usize, usize, *mut u8, c_uint, *const Handle, *mut Handle) -> Status,
            self.queue, *buffer, BLOCKING, 0, bytes.len(), bytes.as_mut_ptr(), 0, null(), null_mut())?;
        checked("clEnqueueReadBuffer", status)?;
        Ok(bytes)
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        for (_, buffer, _) in &self.buffers {
            let _ = call!(self.api, b"clReleaseMemObject", (Handle) -> Status, *buffer);
        }
        let _ = call!(self.api, b"clReleaseKernel", (Handle) -> Status, self.kernel);
        let _ = call!(self.api, b"clReleaseProgram", (Handle) -> Status, self.program);
    }
}
