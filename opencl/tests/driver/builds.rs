//! Builds that the program does not wait for, what linking misses, and options with quotes.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::{kernel, program};
use visa_jit_opencl::core::find;
use visa_jit_opencl::core::program::Program;
use visa_test_common::full;

use super::{Rig, SUCCESS, set};

/// Calls that came back: programs, and threads they came on.
#[derive(Default)]
struct Calls {
    all: Mutex<Vec<(usize, ThreadId)>>,
    more: Condvar,
}

impl Calls {
    fn data(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    /// Waits for the first call, and a while for others that should not come.
    fn only(&self) -> (usize, ThreadId) {
        let all = self.all.lock().unwrap();
        let limit = Duration::from_secs(100);
        let none = |all: &mut Vec<_>| all.is_empty();
        let (all, _) = self.more.wait_timeout_while(all, limit, none).unwrap();
        drop(all);
        std::thread::sleep(Duration::from_millis(20));
        let all = self.all.lock().unwrap();
        assert_eq!(all.len(), 1, "one call");
        all[0]
    }
}

unsafe extern "C" fn ended(program: cl_program, data: *mut c_void) {
    // SAFETY: tests pass `Calls`, and wait for the call.
    let calls = unsafe { &*data.cast::<Calls>() };
    let call = (program.addr(), std::thread::current().id());
    calls.all.lock().unwrap().push(call);
    calls.more.notify_all();
}

fn status(rig: &Rig, program: cl_program) -> cl_int {
    let mut status = 1;
    // SAFETY: there is room for the answer.
    let got = unsafe {
        program::clGetProgramBuildInfo(
            program,
            rig.device,
            CL_PROGRAM_BUILD_STATUS,
            size_of::<cl_int>(),
            (&raw mut status).cast(),
            null_mut(),
        )
    };
    assert_eq!(got, SUCCESS);
    status
}

pub fn log(rig: &Rig, program: cl_program) -> String {
    let mut room = vec![0_u8; 1 << 16];
    // SAFETY: as above.
    let got = unsafe {
        let (len, at) = (room.len(), room.as_mut_ptr().cast());
        let query = CL_PROGRAM_BUILD_LOG;
        program::clGetProgramBuildInfo(program, rig.device, query, len, at, null_mut())
    };
    assert_eq!(got, SUCCESS);
    CStr::from_bytes_until_nul(&room)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

pub fn source(rig: &Rig, text: &CStr) -> cl_program {
    let mut code = 1;
    // SAFETY: the text ends in NUL.
    let made = unsafe {
        program::clCreateProgramWithSource(rig.context, 1, &mut text.as_ptr(), null(), &mut code)
    };
    assert_eq!(code, SUCCESS);
    made
}

fn release(program: cl_program) {
    // SAFETY: it was made by the caller.
    assert_eq!(unsafe { program::clReleaseProgram(program) }, SUCCESS);
}

pub fn build(program: cl_program, options: &CStr) -> cl_int {
    let options = options.as_ptr();
    // SAFETY: the options end in NUL.
    unsafe { program::clBuildProgram(program, 0, null(), options, None, null_mut()) }
}

fn compile(program: cl_program) -> cl_int {
    // SAFETY: there are no headers.
    unsafe {
        let (none, no_names) = (null(), null_mut());
        program::clCompileProgram(
            program,
            0,
            none,
            null(),
            0,
            null(),
            no_names,
            None,
            null_mut(),
        )
    }
}

fn build_later(program: cl_program, calls: &Calls) -> cl_int {
    // SAFETY: callers wait for the call.
    unsafe { program::clBuildProgram(program, 0, null(), null(), Some(ended), calls.data()) }
}

/// Whether there is a compiler for the device; tried once for all tests.
fn compiles(rig: &Rig) -> bool {
    static BUILT: OnceLock<cl_int> = OnceLock::new();
    let built = *BUILT.get_or_init(|| {
        let program = source(rig, c"kernel void nothing() {}");
        let built = build(program, c"");
        release(program);
        built
    });
    if built != SUCCESS {
        eprintln!("skipped: there is no compiler for the device ({built})");
    }
    built == SUCCESS
}

#[test]
fn builds_are_told_when_they_end() {
    let rig = Rig::new();
    let (good, bad) = (rig.program("saxpy"), source(&rig, c"nonsense"));
    for (program, expected) in [(good, SUCCESS), (bad, CL_BUILD_ERROR)] {
        let calls = Calls::default();
        assert_eq!(build_later(program, &calls), SUCCESS);
        let (told, thread) = calls.only();
        assert_eq!(told, program.addr());
        assert_ne!(thread, std::thread::current().id());
        assert_eq!(status(&rig, program), expected);
    }
    let kernel = rig.kernel(good, "saxpy");
    let calls = Calls::default();
    // What is wrong at once is told at once, and only so.
    assert_eq!(build_later(good, &calls), CL_INVALID_OPERATION);
    std::thread::sleep(Duration::from_millis(20));
    assert!(calls.all.lock().unwrap().is_empty());
    // SAFETY: it was made here.
    assert_eq!(unsafe { kernel::clReleaseKernel(kernel) }, SUCCESS);
    // The build keeps the program.
    assert_eq!(build_later(good, &calls), SUCCESS);
    release(good);
    assert_eq!(calls.only().0, good.addr());
    release(bad);
}

#[test]
fn compiling_and_linking_are_told_when_they_end() {
    let rig = Rig::new();
    let module = [0x0723_0203_u32, 0x0001_0000, 0, 1, 0];
    let (compiled, linked) = (Calls::default(), Calls::default());
    let mut code = 1;
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed; calls are waited for.
    unsafe {
        let (at, len) = (module.as_ptr().cast(), size_of_val(&module));
        let il = program::clCreateProgramWithIL(rig.context, at, len, &mut code);
        assert_eq!(code, SUCCESS);
        let got = program::clCompileProgram(
            il,
            0,
            null(),
            null(),
            0,
            null(),
            null_mut(),
            Some(ended),
            compiled.data(),
        );
        assert_eq!(got, SUCCESS);
        assert_eq!(compiled.only().0, il.addr());
        let library = program::clLinkProgram(
            rig.context,
            0,
            null(),
            c"-create-library".as_ptr(),
            1,
            &il,
            Some(ended),
            linked.data(),
            &mut code,
        );
        assert_eq!(code, SUCCESS);
        assert_eq!(linked.only().0, library.addr());
        assert_eq!(status(&rig, library), SUCCESS);
        release(library);
        release(il);
    }
}

#[test]
fn a_program_is_built_once_at_a_time() {
    let rig = Rig::new();
    let program = rig.program("saxpy");
    let object = find::<Program>(program).unwrap();
    let begun = Program::build(&object, &object.devices, "").unwrap();
    assert_eq!(status(&rig, program), CL_BUILD_IN_PROGRESS);
    assert_eq!(build(program, c""), CL_INVALID_OPERATION);
    let calls = Calls::default();
    assert_eq!(build_later(program, &calls), CL_INVALID_OPERATION);
    let mut code = 1;
    // SAFETY: the name ends in NUL.
    let none = unsafe { kernel::clCreateKernel(program, c"saxpy".as_ptr(), &mut code) };
    assert_eq!(
        (none.is_null(), code),
        (true, CL_INVALID_PROGRAM_EXECUTABLE)
    );
    assert_eq!(begun.finish(), Ok(()));
    assert_eq!(status(&rig, program), SUCCESS);
    assert_eq!(build(program, c""), SUCCESS);
    let begun = Program::build(&object, &object.devices, "").unwrap();
    drop(begun);
    assert_eq!(status(&rig, program), CL_BUILD_ERROR);
    assert!(calls.all.lock().unwrap().is_empty());
    release(program);
}

#[test]
fn what_linking_misses_is_named() {
    let rig = Rig::new();
    if !compiles(&rig) {
        return;
    }
    let user = source(
        &rig,
        c"int other(int); kernel void use(global int *a) { *a = other(1); }",
    );
    let maker = source(&rig, c"int other(int a) { return a + 41; }");
    assert_eq!((compile(user), compile(maker)), (SUCCESS, SUCCESS));
    let link = |options: &CStr, inputs: &[cl_program]| {
        let mut code = 1;
        // SAFETY: every pointer is to what it should be.
        let made = unsafe {
            let (count, list) = (inputs.len() as cl_uint, inputs.as_ptr());
            let options = options.as_ptr();
            program::clLinkProgram(
                rig.context,
                0,
                null(),
                options,
                count,
                list,
                None,
                null_mut(),
                &mut code,
            )
        };
        (made, code)
    };
    let (linked, code) = link(c"", &[user]);
    assert_eq!(
        (code, status(&rig, linked)),
        (CL_LINK_PROGRAM_FAILURE, CL_BUILD_ERROR)
    );
    assert!(
        log(&rig, linked).contains("`other`"),
        "{}",
        log(&rig, linked)
    );
    release(linked);
    let (library, code) = link(c"-create-library", &[user]);
    assert_eq!(code, SUCCESS);
    let (linked, code) = link(c"", &[library, maker]);
    assert_eq!(code, SUCCESS, "{}", log(&rig, linked));
    let (kernel, out) = (rig.kernel(linked, "use"), rig.buffer(&[0_i32]));
    assert_eq!(
        (set(kernel, 0, &out), rig.launch(kernel, 1, None)),
        (SUCCESS, SUCCESS)
    );
    assert_eq!(rig.read::<i32>(out, 1), [42]);
    // SAFETY: it was made here.
    assert_eq!(unsafe { kernel::clReleaseKernel(kernel) }, SUCCESS);
    let whole = source(
        &rig,
        c"int other(int); kernel void use(global int *a) { *a = other(1); }",
    );
    assert_eq!(build(whole, c""), CL_BUILD_PROGRAM_FAILURE);
    assert!(log(&rig, whole).contains("`other`"));
    for program in [library, linked, user, maker, whole] {
        release(program);
    }
}

#[test]
fn folders_of_headers_may_have_blanks() {
    let rig = Rig::new();
    if !compiles(&rig) {
        return;
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("with a blank");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("seven.h"), "#define SEVEN 7\n").unwrap();
    let program = source(
        &rig,
        c"#include \"seven.h\"\nkernel void seven(global int *a) { *a = SEVEN + SIX; }",
    );
    let folder = folder.display();
    let all = [
        format!("-I \"{folder}\" -D SIX=6"),
        format!("-D SIX=6 -I\"{folder}\""),
        format!("\"-I{folder}\" -DSIX=\"5 + 1\" -D \"UNUSED='a b'\""),
    ];
    // A plain run leaves out the middle one.
    for options in all.into_iter().step_by(if full() { 1 } else { 2 }) {
        let options = CString::new(options).unwrap();
        assert_eq!(build(program, &options), SUCCESS, "{}", log(&rig, program));
    }
    assert_eq!(build(program, c"-D SIX=6"), CL_BUILD_PROGRAM_FAILURE);
    release(program);
}

/// An instruction that cannot be compiled is named when the kernel is made, in the log, and not first when it is launched.
#[test]
fn what_is_refused_is_named() {
    let rig = Rig::new();
    let mut zebin = visa_test_common::zebin("skl", "saxpy");
    let known = b"gather4_scaled.R (M1, 16) T6 0x0:ud V0054.0 V0056.0";
    let unknown = b"raw_send (M1, 16) 0x2 1 1 0x10:ud V0054.0 V0056.0  ";
    let at = zebin.windows(known.len()).position(|w| w == known);
    let at = at.expect("a load");
    zebin[at..at + known.len()].copy_from_slice(unknown);
    let program = rig.program_of("saxpy with another instruction", &zebin);
    for _ in 0..2 {
        let mut code = 1;
        // SAFETY: the name ends in NUL.
        let none = unsafe { kernel::clCreateKernel(program, c"saxpy".as_ptr(), &mut code) };
        assert_eq!((none.is_null(), code), (true, CL_OUT_OF_RESOURCES));
    }
    let log = log(&rig, program);
    assert_eq!(log.matches("raw_send").count(), 1, "{log}");
    assert!(log.starts_with("kernel `saxpy` is refused: "), "{log}");
    release(program);
}
