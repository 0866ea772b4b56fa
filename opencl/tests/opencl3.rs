//! A program with the crate `opencl3`, which others use for OpenCL, through the system's loader: from the platform to results, by
//! buffers, shared memory and images, with times of events.
#![allow(
    unsafe_code,
    reason = "the crate leaves it to programs that arguments and memory are right"
)]

use std::process::Command;
use std::ptr::null_mut;

use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_GPU, Device};
use opencl3::error_codes::DLOPEN_RUNTIME_LOAD_FAILED;
use opencl3::event::Event;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{
    Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE,
    CL_RGBA, CL_UNSIGNED_INT8, Image,
};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::svm::SvmVec;
use opencl3::types::{CL_BLOCKING, cl_image_desc, cl_image_format};
use visa_test_common::zebin;

/// Says that this is the process whose loader finds the driver.
const INSIDE: &str = "VISA_JIT_TEST_INSIDE";
const COUNT: usize = 1000;

/// Loaders read the environment when they are loaded: so the program is a process of its own.
#[test]
fn a_program_with_the_crate_runs() {
    if std::env::var_os(INSIDE).is_some() {
        return journey();
    }
    if get_platforms().is_err_and(|error| error.0 == DLOPEN_RUNTIME_LOAD_FAILED) {
        eprintln!("skipped: there is no loader of OpenCL drivers");
        return;
    }
    let tests = std::env::current_exe().expect("this test's own file");
    let library = tests.with_file_name("libvisa_jit_opencl.so");
    assert!(library.is_file(), "cargo builds {}", library.display());
    let output = Command::new(tests)
        .args(["--exact", "--nocapture", "a_program_with_the_crate_runs"])
        .env(INSIDE, "1")
        .env("OCL_ICD_VENDORS", &library)
        .env("OCL_ICD_FILENAMES", &library)
        .envs([("VISA_JIT_DEVICE", "skl"), ("VISA_JIT_CACHE_DIR", "off")])
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    eprintln!("{errors}");
    assert!(output.status.success(), "{}: {errors}", output.status);
}

fn journey() {
    let platforms = get_platforms().unwrap();
    let platform = platforms.first().expect("a platform");
    assert_eq!(platform.name().unwrap(), "visa-jit");
    let devices = platform.get_devices(CL_DEVICE_TYPE_GPU).unwrap();
    let device = Device::new(devices[0]);
    assert!(device.name().unwrap().contains("Intel"));
    assert_eq!(device.vendor_id().unwrap(), 0x8086);
    assert!(device.version().unwrap().starts_with("OpenCL 3.0"));
    let context = Context::from_device(&device).unwrap();
    let queue =
        CommandQueue::create_default_with_properties(&context, CL_QUEUE_PROFILING_ENABLE, 0);
    let queue = queue.unwrap();
    let from_zebin =
        |name| Program::create_and_build_from_binary(&context, &[&zebin("skl", name)], "").unwrap();
    let saxpy = Kernel::create(&from_zebin("saxpy"), "saxpy").unwrap();
    assert_eq!(saxpy.num_args().unwrap(), 3);
    buffers(&context, &queue, &saxpy);
    shared(&context, &queue, &saxpy);
    let images = from_zebin("image_access");
    assert!(images.kernel_names().contains("store_uint"));
    image(&context, &queue, &images);
    source(&context, &queue);
}

/// Times are those of a command that has run.
fn check_times(event: &Event) {
    let times = [
        event.profiling_command_queued().unwrap(),
        event.profiling_command_submit().unwrap(),
        event.profiling_command_start().unwrap(),
        event.profiling_command_end().unwrap(),
    ];
    assert!(times[0] > 0 && times.is_sorted(), "{times:?}");
}

fn buffers(context: &Context, queue: &CommandQueue, saxpy: &Kernel) {
    let (x, y): (Vec<f32>, Vec<f32>) = (0..COUNT).map(|i| (i as f32, 1.0)).unzip();
    let mut got = vec![0.0_f32; COUNT];
    // SAFETY: sizes are those of the vectors, and the crate waits for what blocks.
    let event = unsafe {
        let none = null_mut();
        let mut bx = Buffer::<f32>::create(context, CL_MEM_READ_ONLY, COUNT, none).unwrap();
        let mut by = Buffer::<f32>::create(context, CL_MEM_READ_WRITE, COUNT, none).unwrap();
        let write = |buffer: &mut Buffer<f32>, values: &[f32]| {
            queue.enqueue_write_buffer(buffer, CL_BLOCKING, 0, values, &[])
        };
        write(&mut bx, &x).unwrap();
        write(&mut by, &y).unwrap();
        let event = ExecuteKernel::new(saxpy)
            .set_arg(&by)
            .set_arg(&bx)
            .set_arg(&2.0_f32)
            .set_global_work_size(COUNT)
            .enqueue_nd_range(queue)
            .unwrap();
        let after = [event.get()];
        queue
            .enqueue_read_buffer(&by, CL_BLOCKING, 0, &mut got, &after)
            .unwrap();
        event
    };
    assert!(
        got.iter()
            .enumerate()
            .all(|(i, v)| *v == 2.0 * i as f32 + 1.0)
    );
    check_times(&event);
}

fn shared(context: &Context, queue: &CommandQueue, saxpy: &Kernel) {
    let mut x = SvmVec::<f32>::allocate(context, COUNT).unwrap();
    let mut y = SvmVec::<f32>::allocate(context, COUNT).unwrap();
    assert!(x.is_fine_grained(), "the host sees the same memory");
    for (i, (x, y)) in x.iter_mut().zip(y.iter_mut()).enumerate() {
        (*x, *y) = (i as f32, 3.0);
    }
    // SAFETY: both have as many elements as there are work-items.
    let event = unsafe {
        let event = ExecuteKernel::new(saxpy)
            .set_arg_svm(y.as_mut_ptr())
            .set_arg_svm(x.as_ptr())
            .set_arg(&4.0_f32)
            .set_global_work_size(COUNT)
            .enqueue_nd_range(queue)
            .unwrap();
        event.wait().unwrap();
        // Programs for other devices map it.
        let flags = CL_MAP_READ | CL_MAP_WRITE;
        queue
            .enqueue_svm_map(CL_BLOCKING, flags, &mut y, &[])
            .unwrap();
        event
    };
    assert!(
        y.iter()
            .enumerate()
            .all(|(i, v)| *v == 4.0 * i as f32 + 3.0)
    );
    // SAFETY: it was mapped.
    unsafe { queue.enqueue_svm_unmap(&y, &[]) }
        .unwrap()
        .wait()
        .unwrap();
    check_times(&event);
}

/// A kernel writes texels, a fill covers some, and the host reads all.
fn image(context: &Context, queue: &CommandQueue, program: &Program) {
    const SIDE: usize = 8;
    let kernel = Kernel::create(program, "store_uint").unwrap();
    let format = cl_image_format {
        image_channel_order: CL_RGBA,
        image_channel_data_type: CL_UNSIGNED_INT8,
    };
    let desc = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: SIDE,
        image_height: SIDE,
        image_depth: 1,
        image_array_size: 1,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    };
    let all = 0..SIDE * SIDE;
    let at: Vec<[i32; 2]> = all
        .clone()
        .map(|i| [(i % SIDE) as i32, (i / SIDE) as i32])
        .collect();
    let values: Vec<[u32; 4]> = all.clone().map(|i| [i as u32, 1, 2, 3]).collect();
    let mut texels = vec![[0_u8; 4]; SIDE * SIDE];
    // SAFETY: sizes are those of the vectors, and the crate waits for what blocks.
    unsafe {
        let none = null_mut();
        let mut image = Image::create(context, CL_MEM_READ_WRITE, &format, &desc, none).unwrap();
        let mut places =
            Buffer::<[i32; 2]>::create(context, CL_MEM_READ_ONLY, at.len(), none).unwrap();
        let mut colours =
            Buffer::<[u32; 4]>::create(context, CL_MEM_READ_ONLY, at.len(), none).unwrap();
        queue
            .enqueue_write_buffer(&mut places, CL_BLOCKING, 0, &at, &[])
            .unwrap();
        queue
            .enqueue_write_buffer(&mut colours, CL_BLOCKING, 0, &values, &[])
            .unwrap();
        let written = ExecuteKernel::new(&kernel)
            .set_arg(&image)
            .set_arg(&places)
            .set_arg(&colours)
            .set_global_work_size(SIDE * SIDE)
            .enqueue_nd_range(queue)
            .unwrap();
        let colour = [11_u32, 22, 33, 44];
        let (origin, region) = ([2, 3, 0], [4, 2, 1]);
        let filled = queue
            .enqueue_fill_image(
                &mut image,
                colour.as_ptr().cast(),
                origin.as_ptr(),
                region.as_ptr(),
                &[written.get()],
            )
            .unwrap();
        queue
            .enqueue_read_image(
                &image,
                CL_BLOCKING,
                [0; 3].as_ptr(),
                [SIDE, SIDE, 1].as_ptr(),
                0,
                0,
                texels.as_mut_ptr().cast(),
                &[filled.get()],
            )
            .unwrap();
    }
    for (i, texel) in texels.into_iter().enumerate() {
        let inside = (2..6).contains(&(i % SIDE)) && (3..5).contains(&(i / SIDE));
        let want = if inside {
            [11, 22, 33, 44]
        } else {
            [i as u8, 1, 2, 3]
        };
        assert_eq!(texel, want, "{i}");
    }
}

/// What needs a compiler is tried if there is one.
fn source(context: &Context, queue: &CommandQueue) {
    let text =
        "kernel void square(global int *a) { size_t i = get_global_id(0); a[i] = a[i] * a[i]; }";
    let program = match Program::create_and_build_from_source(context, text, "") {
        Ok(program) => program,
        Err(why) => return eprintln!("from source: skipped, there is no compiler: {why}"),
    };
    let kernel = Kernel::create(&program, "square").unwrap();
    let mut values = SvmVec::<i32>::allocate(context, COUNT).unwrap();
    values.iter_mut().zip(0..).for_each(|(v, i)| *v = i);
    // SAFETY: there are as many elements as work-items.
    let event = unsafe {
        ExecuteKernel::new(&kernel)
            .set_arg_svm(values.as_mut_ptr())
            .set_global_work_size(COUNT)
            .enqueue_nd_range(queue)
    };
    event.unwrap().wait().unwrap();
    assert!(values.iter().zip(0..).all(|(v, i)| *v == i * i));
    let wrong = Program::create_and_build_from_source(context, "kernel void f() { nonsense; }", "");
    let log = wrong.expect_err("it is no OpenCL C");
    assert!(log.contains("nonsense"), "{log}");
}
