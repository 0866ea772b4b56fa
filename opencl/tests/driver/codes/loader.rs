//! The same through the system's loader.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;

use super::world::World;
use super::{WORDS, names, try_all};
use visa_jit_opencl::abi::{cl_icd_dispatch, cl_platform_id};
use visa_jit_opencl::core::compiler::COMMAND_ENV;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

/// The loader's functions; none if there is no loader.
fn table() -> Option<cl_icd_dispatch> {
    // SAFETY: the names end in NUL.
    let library = unsafe { dlopen(c"libOpenCL.so.1".as_ptr(), RTLD_NOW) };
    if library.is_null() {
        return None;
    }
    let mut words = [0_usize; WORDS];
    for (word, name) in words.iter_mut().zip(names()) {
        let name = CString::new(name).unwrap();
        // SAFETY: the library is there as long as the process.
        *word = unsafe { dlsym(library, name.as_ptr()) }.expose_provenance();
    }
    let transmute = |words| {
        // SAFETY: all members are pointers, or options of such, and each word is null or the function of the member's name.
        unsafe { std::mem::transmute::<[usize; WORDS], cl_icd_dispatch>(words) }
    };
    // Khronos' loader has functions of extensions only by this way.
    if let Some(platform) = platform(&transmute(words))
        && let Some(find) = transmute(words).clGetExtensionFunctionAddressForPlatform
    {
        for (word, name) in words
            .iter_mut()
            .zip(names())
            .filter(|(word, _)| **word == 0)
        {
            let name = CString::new(name).unwrap();
            // SAFETY: the name ends in NUL.
            *word = unsafe { find(platform, name.as_ptr()) }.expose_provenance();
        }
    }
    Some(transmute(words))
}

/// The driver's platform; none where the loader finds no driver.
fn platform(table: &cl_icd_dispatch) -> Option<cl_platform_id> {
    let mut platform = null_mut();
    // SAFETY: there is room for one.
    let code = unsafe { table.clGetPlatformIDs?(1, &mut platform, null_mut()) };
    (code == 0).then_some(platform)
}

/// Says that this is the process in which a loader finds the driver.
const INSIDE: &str = "VISA_JIT_TEST_INSIDE";

/// Loaders read the environment when they are loaded, and have a driver of their own: so this runs in a new process.
#[test]
fn every_code_of_every_entry_point_through_the_loader() {
    if std::env::var_os(INSIDE).is_some() {
        let table = table().expect("the other process had a loader");
        return try_all(&World::new(table, true), "through the loader");
    }
    if table().is_none() {
        eprintln!("skipped: there is no libOpenCL.so.1");
        return;
    }
    let tests = std::env::current_exe().expect("this test's own file");
    let library = tests.with_file_name("libvisa_jit_opencl.so");
    assert!(library.is_file(), "cargo builds {}", library.display());
    // Some codes are had with a compiler only, some without. A plain run tries those of the first kind directly.
    if visa_test_common::full() {
        run(Command::new(&tests), &library);
    }
    let mut without = Command::new(&tests);
    without.env(COMMAND_ENV, "/nonexistent");
    run(without, &library);
}

fn run(mut inside: Command, library: &Path) {
    inside.args(["--exact", "--nocapture"]);
    inside.arg("codes::loader::every_code_of_every_entry_point_through_the_loader");
    inside.env(INSIDE, "1");
    inside.env("OCL_ICD_VENDORS", library);
    inside.env("OCL_ICD_FILENAMES", library);
    inside.env("VISA_JIT_DEVICE", "skl,pvc");
    inside.env("VISA_JIT_CACHE_DIR", "off");
    let output = inside.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let status = output.status;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(status.success(), "{status}\n{said}\n{errors}");
}
