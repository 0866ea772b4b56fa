//! Runs cases on an OpenCL driver, as any program would.
#![allow(
    unsafe_code,
    reason = "the crate leaves it to programs that arguments and memory are right"
)]

use std::ptr::null_mut;
use std::time::Instant;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{
    self, CL_FLOAT, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE, CL_RGBA, CL_UNORM_INT8, ClMem, Image,
};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_image_desc, cl_image_format, cl_mem};

use crate::content::Type;
use crate::format::{Case, Launch, Need, Step};

/// A driver with its first device.
pub struct Client {
    queue: CommandQueue,
    context: Context,
    device: Device,
}

fn said<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

impl Client {
    /// The platform whose name has this in it.
    ///
    /// # Errors
    /// There is no loader, no such platform, or it has no device.
    pub fn named(name: &str) -> Result<Client, String> {
        let platforms = get_platforms().map_err(said("clGetPlatformIDs"))?;
        let wanted = |text: Result<String, _>| text.is_ok_and(|text| text.contains(name));
        let platform = platforms.iter().find(|platform| wanted(platform.name()));
        let platform = platform.ok_or(format!("no OpenCL platform `{name}`"))?;
        let devices = platform
            .get_devices(CL_DEVICE_TYPE_ALL)
            .map_err(said("clGetDeviceIDs"))?;
        let device = Device::new(*devices.first().ok_or(format!("`{name}` has no device"))?);
        let context = Context::from_device(&device).map_err(said("clCreateContext"))?;
        let queue = CommandQueue::create_default_with_properties(&context, 0, 0);
        let queue = queue.map_err(said("clCreateCommandQueueWithProperties"))?;
        Ok(Client {
            queue,
            context,
            device,
        })
    }

    /// What a case needs and the device has not.
    pub fn missing(&self, case: &Case) -> Option<Need> {
        let extensions = self.device.extensions().unwrap_or_default();
        let has = |need: &Need| match need {
            Need::Fp64 => extensions.contains("cl_khr_fp64"),
            Need::Fp16 => extensions.contains("cl_khr_fp16"),
            Need::Subgroups => ["cl_khr_subgroups", "cl_intel_subgroups"]
                .iter()
                .any(|e| extensions.contains(e)),
            Need::Images => self.device.image_support().unwrap_or(false),
        };
        case.needs.iter().copied().find(|need| !has(need))
    }

    /// Builds a case, and makes its memory.
    ///
    /// # Errors
    /// What the driver said, with the log of a build.
    pub fn load<'a>(&'a self, case: &'a Case) -> Result<Loaded<'a>, String> {
        let mut program = Program::create_from_source(&self.context, &case.source)
            .map_err(said("clCreateProgramWithSource"))?;
        let built = program.build(&[self.device.id()], &case.options);
        built.map_err(|error| {
            let log = program.get_build_log(self.device.id()).unwrap_or_default();
            format!(
                "clBuildProgram: {error}: {}",
                log.trim().replace('\n', "; ")
            )
        })?;
        let kernels = case.launches.iter().map(|launch| {
            let kernel =
                Kernel::create(&program, &launch.kernel).map_err(said("clCreateKernel"))?;
            match kernel.num_args() {
                Ok(count) if count as usize != launch.args.len() => Err(format!(
                    "`{}` has {count} arguments, not {}",
                    launch.kernel,
                    launch.args.len()
                )),
                _ => Ok(kernel),
            }
        });
        let kernels = kernels.collect::<Result<_, _>>()?;
        let contents = case.contents();
        let memory = case.buffers.iter().zip(&contents);
        let memory = memory.map(|(buffer, bytes)| self.memory(buffer.image, buffer.ty, bytes));
        let memory = memory.collect::<Result<_, _>>()?;
        let mut loaded = Loaded {
            client: self,
            case,
            kernels,
            memory,
            contents,
        };
        loaded.write(|_| true)?;
        Ok(loaded)
    }

    fn memory(&self, image: Option<[usize; 2]>, ty: Type, bytes: &[u8]) -> Result<Memory, String> {
        let Some([width, height]) = image else {
            // SAFETY: no memory of the host is given.
            let made = unsafe {
                memory::Buffer::create(&self.context, CL_MEM_READ_WRITE, bytes.len(), null_mut())
            };
            return made.map(Memory::Buffer).map_err(said("clCreateBuffer"));
        };
        let format = cl_image_format {
            image_channel_order: CL_RGBA,
            image_channel_data_type: if ty == Type::F32 {
                CL_FLOAT
            } else {
                CL_UNORM_INT8
            },
        };
        let size = cl_image_desc {
            image_type: CL_MEM_OBJECT_IMAGE2D,
            image_width: width,
            image_height: height,
            image_depth: 1,
            image_array_size: 1,
            image_row_pitch: 0,
            image_slice_pitch: 0,
            num_mip_levels: 0,
            num_samples: 0,
            buffer: null_mut(),
        };
        // SAFETY: both descriptions live during the call, and no memory of the host is given.
        let made =
            unsafe { Image::create(&self.context, CL_MEM_READ_WRITE, &format, &size, null_mut()) };
        let made = made.map_err(said("clCreateImage"))?;
        Ok(Memory::Image(made, [width, height, 1]))
    }
}

enum Memory {
    Buffer(memory::Buffer<u8>),
    Image(Image, [usize; 3]),
}

impl Memory {
    fn handle(&self) -> cl_mem {
        match self {
            Memory::Buffer(buffer) => buffer.get(),
            Memory::Image(image, _) => image.get(),
        }
    }
}

/// A case that is ready to run.
pub struct Loaded<'a> {
    client: &'a Client,
    case: &'a Case,
    kernels: Vec<Kernel>,
    memory: Vec<Memory>,
    contents: Vec<Vec<u8>>,
}

impl Loaded<'_> {
    fn write(&mut self, wanted: impl Fn(usize) -> bool) -> Result<(), String> {
        let queue = &self.client.queue;
        let all = self.memory.iter_mut().zip(&self.contents).enumerate();
        for (_, (memory, bytes)) in all.filter(|(i, _)| wanted(*i)) {
            // SAFETY: the memory was made as large as the bytes, and the call blocks.
            let written = unsafe {
                match memory {
                    Memory::Buffer(buffer) => {
                        queue.enqueue_write_buffer(buffer, CL_BLOCKING, 0, bytes, &[])
                    }
                    Memory::Image(image, size) => {
                        let from = bytes.as_ptr().cast_mut().cast();
                        queue.enqueue_write_image(
                            image,
                            CL_BLOCKING,
                            [0_usize; 3].as_ptr(),
                            size.as_ptr(),
                            0,
                            0,
                            from,
                            &[],
                        )
                    }
                }
            };
            written.map_err(said("writing"))?;
        }
        Ok(())
    }

    /// Microseconds of one run, without what prepares it.
    ///
    /// # Errors
    /// What the driver said.
    pub fn run(&mut self) -> Result<f64, String> {
        let case = self.case;
        self.write(|i| case.buffers[i].restore)?;
        let launches = || case.launches.iter().zip(&self.kernels);
        for (launch, kernel) in launches().filter(|(launch, _)| launch.setup) {
            self.launch(launch, kernel, 0)?;
        }
        self.finish()?;
        let start = Instant::now();
        for round in 0..case.rounds {
            for (launch, kernel) in launches().filter(|(launch, _)| !launch.setup) {
                self.launch(launch, kernel, round)?;
            }
        }
        self.finish()?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    }

    fn finish(&self) -> Result<(), String> {
        self.client.queue.finish().map_err(said("clFinish"))
    }

    fn launch(&self, launch: &Launch, kernel: &Kernel, round: usize) -> Result<(), String> {
        for repetition in 0..launch.repeat {
            let mut run = ExecuteKernel::new(kernel);
            for argument in &launch.args {
                // SAFETY: the case says what the kernel takes, and the driver checks sizes.
                unsafe {
                    match argument.at(round * launch.repeat + repetition) {
                        Step::Buffer(at) => run.set_arg(&self.memory[at].handle()),
                        Step::Local(bytes) => run.set_arg_local_buffer(bytes),
                        Step::Value(bytes) => match bytes.len() {
                            1 => run.set_arg(&bytes[0]),
                            2 => run.set_arg(&[bytes[0], bytes[1]]),
                            4 => run.set_arg(&<[u8; 4]>::try_from(&bytes[..]).unwrap_or_default()),
                            _ => run.set_arg(&<[u8; 8]>::try_from(&bytes[..]).unwrap_or_default()),
                        },
                    }
                };
            }
            run.set_global_work_sizes(&launch.global);
            if let Some(local) = &launch.local {
                run.set_local_work_sizes(local);
            }
            // SAFETY: all arguments are set, of memory that lives as long as this.
            let event = unsafe { run.enqueue_nd_range(&self.client.queue) };
            event.map_err(|error| {
                format!("clEnqueueNDRangeKernel of `{}`: {error}", launch.kernel)
            })?;
        }
        Ok(())
    }

    /// Contents of the outputs, one after the other.
    ///
    /// # Errors
    /// What the driver said.
    pub fn outputs(&self) -> Result<Vec<Vec<u8>>, String> {
        let all = self
            .case
            .buffers
            .iter()
            .zip(&self.memory)
            .zip(&self.contents);
        let outputs = all.filter(|((buffer, _), _)| buffer.output);
        outputs
            .map(|((_, memory), bytes)| self.read(memory, bytes.len()))
            .collect()
    }

    fn read(&self, memory: &Memory, len: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; len];
        let queue = &self.client.queue;
        // SAFETY: the memory was made with as many bytes, and the call blocks.
        let read = unsafe {
            match memory {
                Memory::Buffer(buffer) => {
                    queue.enqueue_read_buffer(buffer, CL_BLOCKING, 0, &mut bytes, &[])
                }
                Memory::Image(image, size) => queue.enqueue_read_image(
                    image,
                    CL_BLOCKING,
                    [0_usize; 3].as_ptr(),
                    size.as_ptr(),
                    0,
                    0,
                    bytes.as_mut_ptr().cast(),
                    &[],
                ),
            }
        };
        read.map_err(said("reading"))?;
        Ok(bytes)
    }

    /// Runs twice, and gives the outputs.
    ///
    /// # Errors
    /// What the driver said, that a run changes nothing, or that a second run has other results: then the case does not restore
    /// what it changes.
    pub fn check(&mut self) -> Result<Vec<Vec<u8>>, String> {
        self.run()?;
        let first = self.outputs()?;
        let outputs = self.case.buffers.iter().zip(&self.contents);
        let outputs = outputs.filter(|(buffer, _)| buffer.output);
        for ((buffer, before), after) in outputs.zip(&first) {
            if before == after {
                return Err(format!("a run leaves `{}` as it was", buffer.name));
            }
        }
        self.run()?;
        let again = self.outputs()?;
        match self.difference(&first, &again) {
            None => Ok(first),
            Some(what) => Err(format!("a second run has another result: {what}")),
        }
    }

    fn difference(&self, wanted: &[Vec<u8>], found: &[Vec<u8>]) -> Option<String> {
        difference(self.case, wanted, found)
    }
}

/// The first difference between outputs of a case.
pub fn difference(case: &Case, wanted: &[Vec<u8>], found: &[Vec<u8>]) -> Option<String> {
    let outputs = case.buffers.iter().filter(|buffer| buffer.output);
    outputs
        .zip(wanted.iter().zip(found))
        .find_map(|(buffer, (wanted, found))| {
            let what = buffer.tolerance.difference(buffer.ty, wanted, found)?;
            Some(format!("{}{what}", buffer.name))
        })
}
