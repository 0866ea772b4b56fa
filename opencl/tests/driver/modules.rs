//! SPIR-V modules of every version that devices say they take, and zebins with a module in them. `spirv/*.spv` are the texts beside
//! them, assembled by `spirv-as` of Debian's `spirv-tools`.

use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::{context, device, kernel, mem, platform, program, queue};
use visa_test_common::full;

use super::{Rig, SUCCESS, set, set_up};

/// A device, context and queue: the first device is skl, the second pvc, which today's compiler knows too.
fn rig_on(at: usize) -> Rig {
    set_up();
    let (mut platform, mut devices, mut code) = (null_mut(), [null_mut(); 2], 1);
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let got = platform::clGetPlatformIDs(1, &mut platform, null_mut());
        assert_eq!(got, SUCCESS);
        let all = u64::from(CL_DEVICE_TYPE_ALL);
        let got = device::clGetDeviceIDs(platform, all, 2, devices.as_mut_ptr(), null_mut());
        assert_eq!(got, SUCCESS);
        let device = devices[at];
        let context = context::clCreateContext(null(), 1, &device, None, null_mut(), &mut code);
        assert_eq!(code, SUCCESS);
        let queue = queue::clCreateCommandQueue(context, device, 0, &mut code);
        assert_eq!(code, SUCCESS);
        Rig {
            platform,
            device,
            context,
            queue,
        }
    }
}

/// A device's answer as text.
fn text(rig: &Rig, query: cl_device_info) -> String {
    let mut room = vec![0_u8; 1 << 14];
    // SAFETY: there is room for the answer.
    let told = unsafe {
        let (size, to) = (room.len(), room.as_mut_ptr().cast());
        device::clGetDeviceInfo(rig.device, query, size, to, null_mut())
    };
    assert_eq!(told, SUCCESS);
    let text = CStr::from_bytes_until_nul(&room).unwrap();
    text.to_str().unwrap().to_owned()
}

/// Names and versions in a list.
fn names(rig: &Rig, query: cl_device_info) -> Vec<(String, u32)> {
    let mut room = vec![0_u8; 1 << 14];
    let mut needed = 0;
    // SAFETY: there is room for the answer.
    let told = unsafe {
        let (size, to) = (room.len(), room.as_mut_ptr().cast());
        device::clGetDeviceInfo(rig.device, query, size, to, &mut needed)
    };
    assert_eq!(told, SUCCESS);
    let entries = room[..needed].chunks_exact(size_of::<cl_name_version>());
    entries
        .map(|entry| {
            let version = u32::from_ne_bytes(entry[..4].try_into().unwrap());
            let name = CStr::from_bytes_until_nul(&entry[4..]).unwrap();
            (name.to_str().unwrap().to_owned(), version)
        })
        .collect()
}

/// The last minor version that a device says it takes.
fn last_minor(rig: &Rig) -> u32 {
    let versions = names(rig, CL_DEVICE_ILS_WITH_VERSION);
    let last = versions.len() as u32 - 1;
    for (minor, (name, version)) in versions.iter().enumerate() {
        assert_eq!(
            (name.as_str(), *version),
            ("SPIR-V", 1 << 22 | (minor as u32) << 12)
        );
    }
    let all: Vec<String> = (0..=last)
        .map(|minor| format!("SPIR-V_1.{minor}"))
        .collect();
    assert_eq!(text(rig, CL_DEVICE_IL_VERSION), all.join(" "));
    last
}

/// Builds a module; its log if that fails.
fn build(rig: &Rig, module: &[u8]) -> Result<cl_program, String> {
    build_with(rig, module, &[])
}

/// Whether there is a compiler for the device at a place; tried once for all tests.
fn compiles(rig: &Rig, at: usize) -> bool {
    static LOGS: [OnceLock<Option<String>>; 2] = [const { OnceLock::new() }; 2];
    let log = LOGS[at].get_or_init(|| match build(rig, PLUS_FIVE) {
        Ok(program) => {
            // SAFETY: it was made here.
            assert_eq!(unsafe { program::clReleaseProgram(program) }, SUCCESS);
            None
        }
        Err(log) => Some(log),
    });
    if let Some(log) = log {
        eprintln!("device {at} skipped: there is no compiler for it ({log})");
    }
    log.is_none()
}

/// Values of specialisation constants, by number.
type Values<'a> = &'a [(u32, &'a [u8])];

/// Builds a module with values for specialisation constants.
fn build_with(rig: &Rig, module: &[u8], values: Values) -> Result<cl_program, String> {
    let mut code = 1;
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let (at, len) = (module.as_ptr().cast(), module.len());
        let made = program::clCreateProgramWithIL(rig.context, at, len, &mut code);
        assert_eq!(code, SUCCESS);
        for &(id, value) in values {
            let (len, value) = (value.len(), value.as_ptr().cast());
            let set = program::clSetProgramSpecializationConstant(made, id, len, value);
            assert_eq!(set, SUCCESS, "constant {id}");
        }
        match program::clBuildProgram(made, 0, null(), null(), None, null_mut()) {
            SUCCESS => Ok(made),
            built => {
                let log = log(rig, made);
                assert_eq!(program::clReleaseProgram(made), SUCCESS);
                Err(format!("{built}: {log}"))
            }
        }
    }
}

fn log(rig: &Rig, made: cl_program) -> String {
    let mut room = vec![0_u8; 1 << 16];
    // SAFETY: there is room for the answer.
    unsafe {
        let (len, at) = (room.len(), room.as_mut_ptr().cast());
        let query = CL_PROGRAM_BUILD_LOG;
        program::clGetProgramBuildInfo(made, rig.device, query, len, at, null_mut());
    }
    let text = CStr::from_bytes_until_nul(&room).unwrap();
    text.to_str().unwrap().to_owned()
}

/// What the kernel `k` makes of the numbers from 1 to 8.
fn run(rig: &Rig, program: cl_program) -> Vec<u32> {
    let kernel = rig.kernel(program, "k");
    let buffer = rig.buffer(&[1_u32, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(set(kernel, 0, &buffer), SUCCESS);
    assert_eq!(rig.launch(kernel, 8, Some(8)), SUCCESS);
    let all = rig.read(buffer, 8);
    // SAFETY: all were made here, or are the caller's to give away.
    unsafe {
        assert_eq!(mem::clReleaseMemObject(buffer), SUCCESS);
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
    all
}

const PLUS_FIVE: &[u8] = include_bytes!("spirv/plus_five.spv");
const AFTER_FIVE: [u32; 8] = [6, 7, 8, 9, 10, 11, 12, 13];

/// The module as one of another version.
fn of_version(minor: u8) -> Vec<u8> {
    let mut module = PLUS_FIVE.to_vec();
    module[5] = minor;
    module
}

#[test]
fn versions_of_spirv_are_those_that_are_taken() {
    for at in [0, 1] {
        let rig = rig_on(at);
        let last = last_minor(&rig);
        if !compiles(&rig, at) {
            continue;
        }
        // A plain run has the first and the last version, each on one of the devices.
        let few = [0, last];
        let all: Vec<u32> = (0..=last).collect();
        for &minor in if full() { &all } else { &few[at..=at] } {
            let built = build(&rig, &of_version(minor as u8)).expect("it says that it takes it");
            assert_eq!(run(&rig, built), AFTER_FIVE, "1.{minor}");
        }
        let log = build(&rig, &of_version(9)).expect_err("there is no such version");
        let words = format!("SPIR-V 1.9; this compiler takes SPIR-V 1.0 to 1.{last}");
        assert!(log.contains(&words), "{log}");
        // Instructions that later versions brought.
        let scan: &[u8] = include_bytes!("spirv/scan.spv");
        let pointer_equal = include_bytes!("spirv/pointer_equal.spv");
        let dot_product = include_bytes!("spirv/dot_product.spv");
        for (n, (minor, module, after)) in [
            (3, scan, [1, 3, 6, 10, 15, 21, 28, 36]),
            (4, pointer_equal, [3, 2, 3, 4, 5, 6, 7, 8]),
            (6, dot_product, [1, 4, 9, 16, 25, 36, 49, 64]),
        ]
        .into_iter()
        .enumerate()
        {
            if minor <= last && (full() || n % 2 != at) {
                let built = build(&rig, module).expect("it says that it takes it");
                assert_eq!(run(&rig, built), after, "1.{minor}");
            }
        }
    }
}

/// `x + (on ? add + add : add) + (big >> 16)`, where `add` is 5, `big` 2^32 and `on` false unless they are set.
#[test]
fn specialisation_constants_have_the_values_that_are_set() {
    let module = include_bytes!("spirv/special.spv");
    for at in [0, 1] {
        let rig = rig_on(at);
        if !compiles(&rig, at) {
            continue;
        }
        let (three, big, on) = (3_u32.to_le_bytes(), (7_u64 << 16).to_le_bytes(), [1]);
        let cases: [(Values, u32); 4] = [
            (&[], 5 + 0x10000),
            (&[(3, &three)], 3 + 0x10000),
            (&[(40, &big), (3, &three), (7, &on)], 6 + 7),
            (&[(7, &on), (3, &on.repeat(4)), (3, &three)], 6 + 0x10000),
        ];
        // In a plain run each device has its own of the cases.
        let (from, every) = if full() { (0, 1) } else { (at, 2) };
        for (values, added) in cases.into_iter().skip(from).step_by(every) {
            let built = build_with(&rig, module, values).expect("it is a module as others");
            let expected: Vec<u32> = (1..=8).map(|n| n + added).collect();
            assert_eq!(run(&rig, built), expected, "{values:?}");
        }
    }
}

/// What is for another device is compiled again if there is SPIR-V in it, and refused otherwise.
#[test]
fn modules_in_zebins_are_compiled_for_other_devices() {
    let (from, to) = (rig_on(0), rig_on(1));
    let (Ok(made), Ok(other)) = (build(&from, PLUS_FIVE), build(&to, PLUS_FIVE)) else {
        eprintln!("skipped: there is no compiler for both devices");
        return;
    };
    let mut size = 0_usize;
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let query = CL_PROGRAM_BINARY_SIZES;
        let told = program::clGetProgramInfo(made, query, 8, (&raw mut size).cast(), null_mut());
        assert_eq!(told, SUCCESS);
        let mut zebin = vec![0_u8; size];
        let (query, mut place) = (CL_PROGRAM_BINARIES, zebin.as_mut_ptr());
        let told = program::clGetProgramInfo(made, query, 8, (&raw mut place).cast(), null_mut());
        assert_eq!(told, SUCCESS);
        for program in [made, other] {
            assert_eq!(program::clReleaseProgram(program), SUCCESS);
        }
        let with = |zebin: &[u8], code: &mut cl_int| {
            let (n, device, len) = (1, &raw const to.device, zebin.len());
            let mut at = zebin.as_ptr();
            program::clCreateProgramWithBinary(
                to.context,
                n,
                device,
                &len,
                &mut at,
                null_mut(),
                code,
            )
        };
        let mut code = 1;
        let again = with(&zebin, &mut code);
        assert_eq!(code, SUCCESS);
        let built = program::clBuildProgram(again, 0, null(), null(), None, null_mut());
        assert_eq!(built, SUCCESS, "{}", log(&to, again));
        assert_eq!(run(&to, again), AFTER_FIVE);
        // Without its first word the module is none.
        let start = zebin.windows(4).position(|word| word == &PLUS_FIVE[..4]);
        zebin[start.expect("compilers leave the module in the file")] ^= 1;
        assert!(with(&zebin, &mut code).is_null());
        assert_eq!(code, CL_INVALID_BINARY);
    }
}

/// Atomics of floats are there with today's compiler: queries, the extension and the macros agree.
#[test]
fn atomics_of_floats_agree() {
    for at in [0, 1] {
        let rig = rig_on(at);
        let can = |query| {
            let mut bits = u64::MAX;
            // SAFETY: the value is as large as is said.
            let told = unsafe {
                let to = (&raw mut bits).cast();
                device::clGetDeviceInfo(rig.device, query, 8, to, null_mut())
            };
            assert_eq!(told, SUCCESS);
            bits
        };
        let bits = [
            (32, can(CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT)),
            (64, can(CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT)),
            (16, can(CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT)),
        ];
        let there = text(&rig, CL_DEVICE_EXTENSIONS).contains("cl_ext_float_atomics");
        assert_eq!(bits.iter().any(|(_, can)| *can != 0), there);
        let features = names(&rig, CL_DEVICE_OPENCL_C_FEATURES);
        for (width, can) in bits {
            for (shift, space) in [(0, "global"), (16, "local")] {
                for (bit, what) in [(0, "load_store"), (1, "add"), (2, "min_max")] {
                    let name = format!("__opencl_c_ext_fp{width}_{space}_atomic_{what}");
                    let named = features.iter().any(|(feature, _)| *feature == name);
                    assert_eq!(named, can >> shift >> bit & 1 != 0, "{name}");
                }
            }
        }
    }
}
