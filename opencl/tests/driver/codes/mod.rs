//! Every entry point of the dispatch table, once right and once for each code that the specification lists for it.
//!
//! Rows are by family. They are tried twice: through the table of the driver in this process, and through the system's loader.
//! Compilers are not needed; what needs one is tried if there is one.

mod buffers;
mod devices;
mod events;
mod frame;
mod images;
mod kernels;
mod loader;
mod programs;
mod shared;
mod world;

use frame::Row;
use visa_jit_opencl::abi::cl_icd_dispatch;
use visa_jit_opencl::api::DISPATCH;
use world::World;

const WORDS: usize = size_of::<cl_icd_dispatch>() / size_of::<usize>();

fn rows() -> Vec<Row> {
    let families = [
        devices::rows(),
        buffers::rows(),
        images::rows(),
        shared::rows(),
        programs::rows(),
        kernels::rows(),
        events::rows(),
    ];
    families.into_iter().flatten().collect()
}

/// Names of all entry points that loaders know, in the order of the table.
fn names() -> Vec<String> {
    let source = include_str!("../../../src/abi/bindings.rs");
    let (_, rest) = source.split_once("pub struct _cl_icd_dispatch {").unwrap();
    let (members, _) = rest.split_once('}').unwrap();
    let names = members
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub "));
    let names = names.filter_map(|line| line.split_once(':'));
    let names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names.len(), WORDS);
    names
}

/// The driver's own table.
fn table() -> cl_icd_dispatch {
    // SAFETY: the table is that, and nothing else.
    unsafe { (&raw const DISPATCH).cast::<cl_icd_dispatch>().read() }
}

/// The names that the driver has functions for.
fn filled() -> Vec<String> {
    // SAFETY: all members are pointers, or options of such.
    let words: [usize; WORDS] = unsafe { std::mem::transmute(table()) };
    let names = names().into_iter().zip(words);
    names
        .filter(|(_, word)| *word != 0)
        .map(|(name, _)| name)
        .collect()
}

fn try_all(w: &World, how: &str) {
    let mut says = 0;
    let query = visa_jit_opencl::abi::CL_DEVICE_COMPILER_AVAILABLE;
    let code = frame::go!(w.clGetDeviceInfo(
        w.device,
        query,
        size_of_val(&says),
        (&raw mut says).cast(),
        std::ptr::null_mut()
    ));
    let there = w.compiles != Some(false);
    assert_eq!((code, says == 1), (0, there), "whether there is a compiler");
    let tally = frame::all(w, &rows(), &filled());
    println!("{}", tally.told(how));
    if w.compiles != Some(true) {
        eprintln!("{how}: what needs a compiler was skipped: there is none for the device");
    }
    assert!(tally.problems.is_empty(), "{}", tally.told(how));
}

#[test]
fn every_code_of_every_entry_point() {
    crate::set_up();
    assert!(filled().len() > 110, "{} entry points", filled().len());
    try_all(&World::new(table(), false), "called directly");
}

/// The test above fails for an entry point without a row, for a code without a try, and for a wrong code.
#[test]
fn what_is_missing_is_told() {
    crate::set_up();
    let w = World::new(table(), false);
    let filled = ["clFlush", "clFinish"].map(str::to_owned);
    let wrong: frame::Call = |_| 0;
    let flush = Row::new("clFlush").right(wrong);
    let tally = frame::all(&w, &[flush], &filled);
    let expected = [
        "clFlush: CL_INVALID_COMMAND_QUEUE is not tried and not explained",
        "clFinish has no row",
    ];
    assert_eq!(tally.problems, expected);
    let code = ("CL_INVALID_COMMAND_QUEUE", -36);
    let flush = Row::new("clFlush").wrong(code, "nothing wrong", wrong);
    let tally = frame::all(&w, &[flush], &filled[..1]);
    let expected = [
        "clFlush: nothing wrong: 0 instead of CL_INVALID_COMMAND_QUEUE -36",
        "clFlush is never called right",
    ];
    assert_eq!(tally.problems, expected);
}
