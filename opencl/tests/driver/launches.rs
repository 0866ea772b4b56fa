//! Random launches of the checked-in kernels: what the driver leaves in buffers and images, and prints, is bit for bit what the engine
//! does that it is made of, called as `visa-jit run` calls it.
//!
//! A child process has the devices of all kernels, and one thread: what several groups do to one place has an order then.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};
use std::time::Duration;

use visa_fuzzing::files::{File, Given, Place, Recipe, checked_in};
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions};
use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::{enqueue, image, kernel, mem, program, queue};
use visa_jit_opencl::core::device::Device;
use visa_jit_opencl::core::engine::engine;
use visa_jit_opencl::core::find;
use visa_jit_opencl::core::mem::Mem;
use visa_runtime::{Addressing, Buffer, ImageKind, ImageShape, LaunchStatus, SamplerState};
use visa_test_common::{Rng, full};

use super::{Rig, SUCCESS};

unsafe extern "C" {
    fn fflush(file: *mut c_void) -> c_int;
}

/// Tells the child what to launch: `FIRST/STEP/TIMES/BYTES`. Files of at most `BYTES` bytes; each kernel is launched `TIMES` times.
const CHILD: &str = "VISA_JIT_TEST_LAUNCHES";
/// Where the child writes what the engine printed.
const PRINTED: &str = "VISA_JIT_TEST_PRINTED";
/// Launches that take longer say nothing: random arguments are number of rounds, too.
const LIMIT: Duration = Duration::from_secs(2);
/// Bytes of a zebin that is small enough for the plain tests.
const SMALL: usize = 30_000;

/// What the frame of tests says in the middle of a long one.
const SLOW: &[u8] = b"test launches::child has been running for over 60 seconds\n";

/// What launches came to.
#[derive(Default)]
struct Tally {
    same: usize,
    refused: usize,
    endless: usize,
    /// With images, which the device has not.
    imageless: usize,
    wrong: Vec<String>,
}

/// What a launch is given, as both sides see it.
struct Objects {
    /// The program's, one for each of the buffers of the recipe.
    mems: Vec<cl_mem>,
    /// Buffers that images were made in.
    below: Vec<cl_mem>,
    samplers: Vec<cl_sampler>,
    /// The engine's. Those that are no images are the same memory, so that addresses are the same.
    buffers: Vec<Buffer>,
    shapes: Vec<Option<ImageShape>>,
}

impl Objects {
    fn new(rig: &Rig, recipe: &Recipe) -> Objects {
        let mut all = Objects {
            mems: Vec::new(),
            below: Vec::new(),
            samplers: Vec::new(),
            buffers: Vec::new(),
            shapes: Vec::new(),
        };
        for (i, bytes) in recipe.contents.iter().enumerate() {
            let shape = recipe.given.iter().find_map(|(_, given)| match given {
                Given::Image(of, shape) if *of == i => Some(*shape),
                _ => None,
            });
            let buffer = rig.buffer(bytes);
            let memory = find::<Mem>(buffer).unwrap().buffer.clone();
            match shape {
                None => {
                    all.mems.push(buffer);
                    all.buffers.push(memory);
                }
                Some(shape) => {
                    let in_buffer = shape.kind == ImageKind::Buffer;
                    let below = if in_buffer { buffer } else { null_mut() };
                    all.mems.push(image_of(rig, shape, bytes, below));
                    let other = engine().unwrap().memory().alloc(bytes.len() as u64);
                    all.buffers.push(other.unwrap());
                    all.below.push(buffer);
                }
            }
            all.shapes.push(shape);
        }
        all
    }

    /// Brings the program's to what the recipe says.
    fn reset(&self, rig: &Rig, recipe: &Recipe) {
        for ((mem, shape), bytes) in self.mems.iter().zip(&self.shapes).zip(&recipe.contents) {
            let (from, origin) = (bytes.as_ptr().cast(), [0; 3]);
            // SAFETY: there are as many bytes as are written.
            let code = unsafe {
                match shape {
                    None => enqueue::clEnqueueWriteBuffer(
                        rig.queue,
                        *mem,
                        CL_TRUE,
                        0,
                        bytes.len(),
                        from,
                        0,
                        null(),
                        null_mut(),
                    ),
                    Some(shape) => image::clEnqueueWriteImage(
                        rig.queue,
                        *mem,
                        CL_TRUE,
                        origin.as_ptr(),
                        region(shape).as_ptr(),
                        0,
                        0,
                        from,
                        0,
                        null(),
                        null_mut(),
                    ),
                }
            };
            assert_eq!(code, SUCCESS);
        }
    }

    /// What is in the program's.
    fn read(&self, rig: &Rig, recipe: &Recipe) -> Vec<Vec<u8>> {
        let all = self.mems.iter().zip(&self.shapes).zip(&recipe.contents);
        let read = |((mem, shape), bytes): ((&cl_mem, &Option<ImageShape>), &Vec<u8>)| {
            let Some(shape) = shape else {
                return rig.read(*mem, bytes.len());
            };
            let mut texels = vec![0; shape_bytes(shape)];
            // SAFETY: there is room for all texels.
            let code = unsafe {
                image::clEnqueueReadImage(
                    rig.queue,
                    *mem,
                    CL_TRUE,
                    [0; 3].as_ptr(),
                    region(shape).as_ptr(),
                    0,
                    0,
                    texels.as_mut_ptr().cast(),
                    0,
                    null(),
                    null_mut(),
                )
            };
            assert_eq!(code, SUCCESS);
            texels
        };
        all.map(read).collect()
    }

    /// Sets the arguments of a kernel.
    fn set(&mut self, rig: &Rig, kernel: cl_kernel, recipe: &Recipe) {
        for (place, given) in &recipe.given {
            let Place::Argument(index) = place else {
                unreachable!("containers have arguments");
            };
            let handle = size_of::<usize>();
            let (size, value) = match given {
                Given::Bytes(bytes) => (bytes.len(), bytes.as_ptr()),
                Given::Structure(..) => unreachable!("only launches with addresses have them"),
                Given::Local(bytes) => (*bytes as usize, null()),
                Given::Buffer(i) | Given::Image(i, _) => {
                    (handle, (&raw const self.mems[*i]).cast())
                }
                Given::Sampler(state) => {
                    self.samplers.push(sampler(rig, state));
                    let last = self.samplers.last().map_or(null(), |s| &raw const *s);
                    (handle, last.cast())
                }
            };
            // SAFETY: the value has as many bytes.
            let code = unsafe { kernel::clSetKernelArg(kernel, *index, size, value.cast()) };
            assert_eq!(code, SUCCESS, "argument {index}: {given:?}");
        }
    }

    fn release(self) {
        // SAFETY: all were made here.
        unsafe {
            for mem in self.mems.into_iter().chain(self.below) {
                assert_eq!(mem::clReleaseMemObject(mem), SUCCESS);
            }
            for sampler in self.samplers {
                assert_eq!(image::clReleaseSampler(sampler), SUCCESS);
            }
        }
    }
}

/// Both formats of recipes have four bytes.
fn shape_bytes(shape: &ImageShape) -> usize {
    region(shape).iter().product::<usize>() * 4
}

fn region(shape: &ImageShape) -> [usize; 3] {
    shape.extent.map(|n| n as usize)
}

fn image_of(rig: &Rig, shape: ImageShape, bytes: &[u8], buffer: cl_mem) -> cl_mem {
    let float = shape.format == "r32float".parse().unwrap();
    let format = cl_image_format {
        image_channel_order: if float { CL_R } else { CL_RGBA },
        image_channel_data_type: if float { CL_FLOAT } else { CL_UNORM_INT8 },
    };
    let [x, y, z] = region(&shape);
    let (kind, layers) = match shape.kind {
        ImageKind::D1 => (CL_MEM_OBJECT_IMAGE1D, 0),
        ImageKind::Buffer => (CL_MEM_OBJECT_IMAGE1D_BUFFER, 0),
        ImageKind::D2 => (CL_MEM_OBJECT_IMAGE2D, 0),
        ImageKind::D1Array => (CL_MEM_OBJECT_IMAGE1D_ARRAY, y),
        ImageKind::D3 => (CL_MEM_OBJECT_IMAGE3D, 0),
        ImageKind::D2Array => (CL_MEM_OBJECT_IMAGE2D_ARRAY, z),
    };
    let desc = cl_image_desc {
        image_type: kind,
        image_width: x,
        image_height: y,
        image_depth: z,
        image_array_size: layers,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        __bindgen_anon_1: _cl_image_desc__bindgen_ty_1 { buffer },
    };
    let (flags, host) = match buffer.is_null() {
        true => (CL_MEM_COPY_HOST_PTR, bytes.as_ptr().cast_mut().cast()),
        false => (0, null_mut()),
    };
    let mut code = 1;
    // SAFETY: the image is smaller than the bytes.
    let made = unsafe {
        let flags = u64::from(CL_MEM_READ_WRITE | flags);
        image::clCreateImage(rig.context, flags, &format, &desc, host, &mut code)
    };
    assert_eq!(code, SUCCESS, "{shape:?}");
    made
}

fn sampler(rig: &Rig, state: &SamplerState) -> cl_sampler {
    let addressing = match state.addressing {
        Addressing::Border => CL_ADDRESS_CLAMP,
        Addressing::Edge => CL_ADDRESS_CLAMP_TO_EDGE,
        other => unreachable!("{other:?}"),
    };
    let filter = if state.linear {
        CL_FILTER_LINEAR
    } else {
        CL_FILTER_NEAREST
    };
    let mut code = 1;
    // SAFETY: there is room for the code.
    let made = unsafe {
        let normalized = u32::from(state.normalized);
        image::clCreateSampler(rig.context, normalized, addressing, filter, &mut code)
    };
    assert_eq!(code, SUCCESS);
    made
}

/// Runs the recipe through the driver. The code, if the driver refuses it.
fn enqueue_and_finish(rig: &Rig, kernel: cl_kernel, recipe: &Recipe) -> cl_int {
    let sizes = |of: [u32; 3]| of.map(|n| n as usize);
    let (global, local) = (sizes(recipe.global), sizes(recipe.local));
    let mut event = null_mut();
    // SAFETY: three dimensions have three sizes.
    unsafe {
        let code = enqueue::clEnqueueNDRangeKernel(
            rig.queue,
            kernel,
            3,
            null(),
            global.as_ptr(),
            local.as_ptr(),
            0,
            null(),
            &mut event,
        );
        if code != SUCCESS {
            return code;
        }
        let code = visa_jit_opencl::api::event::clWaitForEvents(1, &event);
        assert_eq!(visa_jit_opencl::api::event::clReleaseEvent(event), SUCCESS);
        assert_eq!(queue::clFinish(rig.queue), SUCCESS);
        code
    }
}

/// How both sides of a launch went, if they went the same way.
enum Side {
    Same,
    Refused,
    Endless,
}

/// A kernel, for both sides.
struct Both<'a> {
    rig: &'a Rig,
    direct: &'a visa_jit::Kernel,
    kernel: cl_kernel,
    /// What the engine printed.
    printed: &'a mut Vec<u8>,
}

impl Both<'_> {
    /// Launches on the engine and through the driver, each with memory as it is given. What differs, if anything.
    fn launch(
        &mut self,
        recipe: &Recipe,
        objects: &Objects,
        memory: Option<&[u8]>,
    ) -> Result<Side, String> {
        let (rig, kernel) = (self.rig, self.kernel);
        restore(memory);
        for (buffer, bytes) in objects.buffers.iter().zip(&recipe.contents) {
            buffer.write(0, bytes).map_err(|e| e.to_string())?;
        }
        let launch = recipe
            .launch(&objects.buffers)
            .deadline(LIMIT)
            .dimensions(3);
        let report = match self.direct.launch(&launch) {
            Ok(report) if report.status == LaunchStatus::Completed => report,
            Ok(_) | Err(visa_jit::Error::Stopped { .. }) => return Ok(Side::Endless),
            Err(error) => {
                return match enqueue_and_finish(rig, kernel, recipe) {
                    SUCCESS => Err(format!("only the engine refuses: {error}")),
                    _ => Ok(Side::Refused),
                };
            }
        };
        let want: Vec<Vec<u8>> = objects.buffers.iter().map(Buffer::to_vec).collect();
        self.printed.extend(report.printed);
        restore(memory);
        objects.reset(rig, recipe);
        let code = enqueue_and_finish(rig, kernel, recipe);
        if code != SUCCESS {
            return Err(format!("only the driver refuses: {code}"));
        }
        let got = objects.read(rig, recipe);
        for (i, (want, got)) in want.iter().zip(&got).enumerate() {
            // Of images there are fewer bytes than were given.
            if let Some(at) = got.iter().zip(want).position(|(a, b)| a != b) {
                let (want, got) = (want[at], got[at]);
                return Err(format!(
                    "byte {at:#x} of buffer {i}, {want:02x} and {got:02x}"
                ));
            }
        }
        Ok(Side::Same)
    }
}

/// All that kernels can reach.
fn snapshot() -> Vec<u8> {
    let memory = engine().unwrap().memory();
    let mut bytes = vec![0; usize::try_from(memory.size()).unwrap()];
    memory.read_at(memory.base(), &mut bytes).unwrap();
    bytes
}

fn restore(bytes: Option<&[u8]>) {
    if let Some(bytes) = bytes {
        let memory = engine().unwrap().memory();
        memory.write_at(memory.base(), bytes).unwrap();
    }
}

/// Launches every kernel of a file, some times.
fn launches(file: &File, times: usize, tally: &mut Tally, printed: &mut Vec<u8>) {
    let place = Platform::ALL.iter().position(|p| *p == file.platform);
    let rig = Rig::of(place.unwrap(), 0);
    let images = find::<Device>(rig.device).unwrap().has_images();
    let memory = engine().unwrap().memory().clone();
    let other = Engine::with_memory(EngineOptions::default(), memory).unwrap();
    let direct = other.program_from_zebin(&file.bytes, None).unwrap();
    let program = rig.program_of(&file.name, &file.bytes);
    for (n, direct) in direct.kernels().iter().enumerate() {
        let kernel = rig.kernel(program, direct.name());
        let mut rng = Rng::new(n as u64);
        for _ in 0..times {
            let Some(recipe) = Recipe::random(direct, &mut rng) else {
                continue;
            };
            let shows = |given: &Given| matches!(given, Given::Image(..) | Given::Sampler(_));
            if !images && recipe.given.iter().any(|(_, given)| shows(given)) {
                tally.imageless += 1;
                continue;
            }
            let mut objects = Objects::new(&rig, &recipe);
            objects.set(&rig, kernel, &recipe);
            let mut both = Both {
                rig: &rig,
                direct,
                kernel,
                printed,
            };
            let mut went = both.launch(&recipe, &objects, None);
            if went.is_err() {
                // Flat addresses reach what the first run left behind buffers: the same memory for both then.
                went = both.launch(&recipe, &objects, Some(&snapshot()));
            }
            match went {
                Ok(Side::Same) => tally.same += 1,
                Ok(Side::Refused) => tally.refused += 1,
                Ok(Side::Endless) => tally.endless += 1,
                Err(what) => {
                    let name = direct.name();
                    let line = format!("{} `{name}`, {recipe}: {what}", file.name);
                    tally.wrong.push(line);
                }
            }
            objects.release();
        }
        // SAFETY: it was made here.
        assert_eq!(unsafe { kernel::clReleaseKernel(kernel) }, SUCCESS);
    }
    // SAFETY: it was made here.
    assert_eq!(unsafe { program::clReleaseProgram(program) }, SUCCESS);
}

/// Does what a child was started for. Nothing when the tests run as usual.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    let numbers: Vec<usize> = what.split('/').map(|n| n.parse().unwrap()).collect();
    let [first, step, times, most] = numbers[..] else {
        panic!("{what}");
    };
    let (mut tally, mut printed) = (Tally::default(), Vec::new());
    let files = checked_in();
    let small = files.iter().filter(|file| file.bytes.len() <= most);
    for file in small.skip(first).step_by(step) {
        launches(file, times, &mut tally, &mut printed);
    }
    // What kernels printed waits in C's buffer, and is to come before what this test says at its end.
    // SAFETY: null is for all buffers.
    assert_eq!(unsafe { fflush(null_mut()) }, 0);
    std::fs::write(std::env::var(PRINTED).unwrap(), printed).unwrap();
    let Tally {
        same,
        refused,
        endless,
        imageless,
        wrong,
    } = tally;
    eprintln!(
        "{same} same, {refused} refused, {endless} endless, {imageless} with images that there are not, {} differ",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(same > 0, "nothing was launched");
}

/// A text without the one place where it has another.
fn without(text: &[u8], part: &[u8]) -> Vec<u8> {
    let at = text.windows(part.len()).position(|w| w == part);
    let (before, after) = match at {
        Some(at) => (&text[..at], &text[at + part.len()..]),
        None => (text, &[][..]),
    };
    [before, after].concat()
}

/// Has children launch each `step`th file, each kernel `times`. How many launches there were.
fn children(processes: usize, step: usize, times: usize, most: usize) -> usize {
    let devices = Platform::ALL.map(Platform::device).join(",");
    let start = |n: usize| {
        let name = format!("printed-{}-{step}-{n}", std::process::id());
        let printed = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let what = format!("{n}/{step}/{times}/{most}");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "launches::child", "--quiet", "--nocapture"])
            .envs([(CHILD, what.as_str()), ("VISA_JIT_DEVICE", &devices)])
            .envs([("VISA_JIT_CACHE_DIR", "off"), ("VISA_JIT_THREADS", "1")])
            .env("VISA_JIT_TIMEOUT", "60")
            .env(PRINTED, &printed)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        (child.unwrap(), printed)
    };
    let all: Vec<_> = (0..processes).map(start).collect();
    // No child is left behind when one fails.
    let ended = all
        .into_iter()
        .map(|(child, printed)| (child.wait_with_output(), printed));
    let ended: Vec<_> = ended.collect();
    let mut same = 0;
    for (output, printed) in ended {
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", output.status);
        println!("{said}");
        let first = said.split(' ').next().and_then(|n| n.parse::<usize>().ok());
        same += first.expect("a number of launches");
        let want = std::fs::read(&printed).unwrap();
        std::fs::remove_file(&printed).unwrap();
        let stdout = without(&output.stdout, SLOW);
        let printed = stdout.windows(want.len().max(1)).any(|w| w == want);
        assert!(want.is_empty() || printed, "what kernels printed differs");
    }
    same
}

#[test]
fn some_launches_do_as_the_engine_does() {
    let (step, times, least) = if full() { (4, 2, 10) } else { (8, 1, 5) };
    let same = children(1, step, times, SMALL);
    assert!(same >= least, "{same} launches");
}

#[test]
#[ignore = "minutes: every kernel of every device"]
fn all_launches_do_as_the_engine_does() {
    let same = children(2, 2, 1, usize::MAX);
    println!("{same} launches did the same through the driver");
    assert!(same >= 1500, "{same} launches");
}
