//! What an entry point is tried with, and what its tries are held against: the specification's lists, and the dispatch table.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::fmt::Write as _;
use std::ptr::{dangling_mut, null, null_mut};

use super::world::World;
use crate::SUCCESS;
use visa_jit_opencl::abi::*;
use visa_test_common::full;

/// Codes by entry point, one a line, in the order of the specification: OpenCL 3.0, of July 2026, API, "Otherwise, it returns one of
/// the following errors".
const SPECIFICATION: &str = include_str!("specification.txt");

/// Codes that no entry point can be made to give, and why.
const NEVER: [(&str, &str); 2] = [
    (
        "CL_OUT_OF_HOST_MEMORY",
        "the process ends when the host's memory does",
    ),
    (
        "CL_OUT_OF_RESOURCES",
        "nothing but the host's memory and threads is needed",
    ),
];

/// Codes of extensions that are not there.
const WITHOUT: [(&str, &str); 2] = [
    ("CL_INVALID_MIP_LEVEL", "cl_khr_mipmap_image"),
    (
        "CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR",
        "cl_khr_gl_sharing",
    ),
];

pub type Call = fn(&World) -> cl_int;
pub type Handle = fn(&World, *mut c_void) -> cl_int;
pub type Command = fn(&World, cl_command_queue, cl_uint, *const cl_event) -> cl_int;
pub type Query = fn(&World, cl_uint, usize, *mut c_void, *mut usize) -> cl_int;

/// A code by its name and number.
pub type Code = (&'static str, cl_int);

/// Whether a try needs a compiler, or that there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Compiler(bool),
}

/// All that is known of an entry point.
pub struct Row {
    name: &'static str,
    right: Vec<(Call, Needs)>,
    wrong: Vec<(Code, &'static str, Call, Needs)>,
    handles: Vec<(Code, Handle)>,
    commands: Vec<Command>,
    blocking: Vec<Command>,
    queries: Vec<(cl_uint, Query)>,
    never: Vec<(&'static str, &'static str)>,
}

impl Row {
    pub fn new(name: &'static str) -> Row {
        Row {
            name,
            right: Vec::new(),
            wrong: Vec::new(),
            handles: Vec::new(),
            commands: Vec::new(),
            blocking: Vec::new(),
            queries: Vec::new(),
            never: Vec::new(),
        }
    }

    /// As it should be.
    pub fn right(mut self, call: Call) -> Row {
        self.right.push((call, Needs::Nothing));
        self
    }

    /// As it should be, with a compiler.
    pub fn compiled(mut self, call: Call) -> Row {
        self.right.push((call, Needs::Compiler(true)));
        self
    }

    /// What gives a code.
    pub fn wrong(mut self, code: Code, what: &'static str, call: Call) -> Row {
        self.wrong.push((code, what, call, Needs::Nothing));
        self
    }

    /// The same, with a compiler.
    pub fn refused(mut self, code: Code, what: &'static str, call: Call) -> Row {
        self.wrong.push((code, what, call, Needs::Compiler(true)));
        self
    }

    /// The same, where there is no compiler.
    pub fn uncompiled(mut self, code: Code, what: &'static str, call: Call) -> Row {
        self.wrong.push((code, what, call, Needs::Compiler(false)));
        self
    }

    /// Takes a handle, and gives a code for what is none.
    pub fn handle(mut self, code: Code, call: Handle) -> Row {
        self.handles.push((code, call));
        self
    }

    /// Enqueues something, with a queue and a wait list.
    pub fn command(mut self, call: Command) -> Row {
        self.commands.push(call);
        self
    }

    /// The same, and waits for it.
    pub fn blocking(mut self, call: Command) -> Row {
        self.blocking.push(call);
        self
    }

    /// Answers queries; one of them.
    pub fn query(mut self, known: cl_uint, call: Query) -> Row {
        self.queries.push((known, call));
        self
    }

    /// A code that cannot be had, and why.
    pub fn never(mut self, code: Code, why: &'static str) -> Row {
        self.never.push((code.0, why));
        self
    }
}

/// Counts, and what went wrong.
#[derive(Default)]
pub struct Tally {
    entries: usize,
    calls: usize,
    /// Tries that need a compiler.
    compiled: usize,
    codes: BTreeSet<(&'static str, &'static str)>,
    /// Codes that would be tried elsewhere: with a compiler, or without.
    skipped: BTreeSet<(&'static str, &'static str)>,
    explained: usize,
    pub problems: Vec<String>,
}

impl Tally {
    fn expect(&mut self, name: &'static str, what: &str, code: Code, got: cl_int) {
        self.calls += 1;
        if code.1 != SUCCESS {
            self.codes.insert((name, code.0));
        }
        if got != code.1 {
            let problem = format!("{name}: {what}: {got} instead of {} {}", code.0, code.1);
            self.problems.push(problem);
        }
    }
}

const RIGHT: Code = ("CL_SUCCESS", SUCCESS);
const WAIT_LIST: Code = ("CL_INVALID_EVENT_WAIT_LIST", CL_INVALID_EVENT_WAIT_LIST);
const QUEUE: Code = ("CL_INVALID_COMMAND_QUEUE", CL_INVALID_COMMAND_QUEUE);
const CONTEXT: Code = ("CL_INVALID_CONTEXT", CL_INVALID_CONTEXT);
const VALUE: Code = ("CL_INVALID_VALUE", CL_INVALID_VALUE);
const FAILED: Code = (
    "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
);

fn commands(w: &World, name: &'static str, call: Command, tally: &mut Tally) {
    let (none, event) = (null_mut(), [w.done]);
    let list = event.as_ptr();
    let mut expect = |what, code, got| tally.expect(name, what, code, got);
    expect("right", RIGHT, call(w, w.queue, 0, null()));
    expect("with an event", RIGHT, call(w, w.queue, 1, list));
    expect("no queue", QUEUE, call(w, none, 0, null()));
    let other = w.context.cast();
    expect("a context as queue", QUEUE, call(w, other, 0, null()));
    expect("no list", WAIT_LIST, call(w, w.queue, 1, null()));
    expect("no events", WAIT_LIST, call(w, w.queue, 0, list));
    let wrong = [null_mut()];
    expect(
        "a null event",
        WAIT_LIST,
        call(w, w.queue, 1, wrong.as_ptr()),
    );
    let wrong = [w.buffer.cast()];
    expect(
        "a buffer as event",
        WAIT_LIST,
        call(w, w.queue, 1, wrong.as_ptr()),
    );
    let far = [w.far_done];
    let got = call(w, w.queue, 1, far.as_ptr());
    expect("another context's event", CONTEXT, got);
}

fn queries(w: &World, name: &'static str, known: cl_uint, call: Query, tally: &mut Tally) {
    let (mut needed, mut room) = (0, [0_u64; 256]);
    let place: *mut c_void = room.as_mut_ptr().cast();
    let got = call(w, known, 0, null_mut(), &mut needed);
    tally.expect(name, "its size", RIGHT, got);
    assert!(needed != 0 && needed <= size_of_val(&room), "{name}");
    let got = call(w, known, needed, place, null_mut());
    tally.expect(name, "right", RIGHT, got);
    let got = call(w, known, needed - 1, place, null_mut());
    tally.expect(name, "too little room", VALUE, got);
    let got = call(w, 0xFFFF, size_of_val(&room), place, null_mut());
    tally.expect(name, "no such query", VALUE, got);
}

fn handles(w: &World, name: &'static str, code: Code, call: Handle, tally: &mut Tally) {
    // Null is the only platform.
    if code.1 != CL_INVALID_PLATFORM {
        tally.expect(name, "null", code, call(w, null_mut()));
    }
    let of_memory = code.1 == CL_INVALID_MEM_OBJECT;
    let other: *mut c_void = if of_memory {
        w.context.cast()
    } else {
        w.buffer.cast()
    };
    tally.expect(name, "an object of another kind", code, call(w, other));
    if !w.by_loader {
        // Loaders follow handles.
        let mut words = [0_u64; 32];
        let words = words.as_mut_ptr().cast();
        tally.expect(name, "no object", code, call(w, words));
        let nowhere = dangling_mut::<u64>().cast();
        tally.expect(name, "a wild pointer", code, call(w, nowhere));
    }
}

fn row(w: &World, row: &Row, tally: &mut Tally) {
    let name = row.name;
    let mut compiled = tally.compiled;
    let mut can = |needs| match needs {
        Needs::Nothing => true,
        // A plain run starts the compiler for every third try that needs it.
        Needs::Compiler(true) if w.compiles == Some(true) => {
            compiled += 1;
            full() || compiled % 3 == 1
        }
        Needs::Compiler(there) => w.compiles == Some(there),
    };
    tally.entries += 1;
    for (call, needs) in &row.right {
        if can(*needs) {
            tally.expect(name, "right", RIGHT, call(w));
        }
    }
    for (code, call) in &row.handles {
        handles(w, name, *code, *call, tally);
    }
    for call in row.commands.iter().chain(&row.blocking) {
        commands(w, name, *call, tally);
    }
    for call in &row.blocking {
        let failed = [w.failed];
        let got = call(w, w.queue, 1, failed.as_ptr());
        tally.expect(name, "waits for what failed", FAILED, got);
    }
    for (known, call) in &row.queries {
        queries(w, name, *known, *call, tally);
    }
    for (code, what, call, needs) in &row.wrong {
        if can(*needs) {
            tally.expect(name, what, *code, call(w));
        } else {
            tally.skipped.insert((name, code.0));
        }
    }
    tally.compiled = compiled;
    let tried = !row.right.is_empty() || !row.commands.is_empty() || !row.blocking.is_empty();
    if !tried && row.queries.is_empty() && row.never.iter().all(|(code, _)| *code != RIGHT.0) {
        tally.problems.push(format!("{name} is never called right"));
    }
}

/// Tries all that rows say. `filled` has the names of entry points in the dispatch table.
pub fn all(w: &World, rows: &[Row], filled: &[String]) -> Tally {
    let mut tally = Tally::default();
    let listed = SPECIFICATION.lines().map(|line| {
        let mut words = line.split(' ');
        (words.next().unwrap_or_default(), words.collect::<Vec<_>>())
    });
    let listed: BTreeMap<&str, Vec<&str>> = listed.collect();
    for one in rows {
        row(w, one, &mut tally);
    }
    for name in filled {
        let Some(one) = rows.iter().find(|row| row.name == name) else {
            tally.problems.push(format!("{name} has no row"));
            continue;
        };
        let Some(codes) = listed.get(name.as_str()) else {
            tally.problems.push(format!("{name} has no list of codes"));
            continue;
        };
        for code in codes {
            let is = |(of, _): &&(&str, &str)| of == code;
            let pair = (one.name, *code);
            let tried = tally.codes.contains(&pair) || tally.skipped.contains(&pair);
            let never = one.never.iter().any(|(of, _)| of == code);
            let without = WITHOUT.iter().find(is);
            let general = NEVER.iter().any(|(of, _)| of == code);
            if tried && never {
                let problem = format!("{name}: {code} is both tried and explained");
                tally.problems.push(problem);
            }
            match without {
                _ if tried || never => {}
                Some((_, extension)) if !w.has(extension) => {}
                _ if general => {}
                _ => tally
                    .problems
                    .push(format!("{name}: {code} is not tried and not explained")),
            }
            tally.explained += usize::from(!tried);
        }
    }
    tally
}

impl Tally {
    /// One line of counts; and problems, if there are any.
    pub fn told(&self, how: &str) -> String {
        let Tally { entries, calls, .. } = self;
        let (codes, explained) = (self.codes.len(), self.explained);
        let skipped = self.skipped.difference(&self.codes).count();
        let mut text = format!(
            "{how}: {entries} entry points, {calls} calls, {codes} codes, {skipped} skipped, {explained} that cannot be had"
        );
        for problem in &self.problems {
            let _ = write!(text, "\n{problem}");
        }
        text
    }
}

/// Calls an entry point.
macro_rules! go {
    ($w:ident.$f:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: arguments are as the specification says, or wrong in a way that it has a code for.
        unsafe { ($w.cl.$f.unwrap())($($arg),*) }
    };
}
pub(super) use go;

/// Calls one that makes an object, checks that there is one unless there is an error, and gives it back.
macro_rules! make {
    ($w:ident.$f:ident($($arg:expr),* $(,)?) $release:ident) => {{
        let mut code = 1;
        // SAFETY: as in `go`.
        let made = unsafe { ($w.cl.$f.unwrap())($($arg,)* &mut code) };
        assert_eq!(made.is_null(), code != $crate::SUCCESS, stringify!($f));
        if !made.is_null() {
            // SAFETY: it was made here.
            assert_eq!(unsafe { ($w.cl.$release.unwrap())(made) }, $crate::SUCCESS);
        }
        code
    }};
}
pub(super) use make;

/// Rows, each with the methods of [`Row`] and a semicolon behind each.
macro_rules! rows {
    ($($name:ident { $($body:tt)* })*) => {
        pub fn rows() -> Vec<$crate::codes::frame::Row> {
            vec![$($crate::codes::frame::one!(
                ($crate::codes::frame::Row::new(stringify!($name))) $($body)*
            )),*]
        }
    };
}
pub(super) use rows;

macro_rules! one {
    (($row:expr)) => { $row };
    (($row:expr) $kind:ident $code:ident $what:literal |$w:ident| $e:expr; $($rest:tt)*) => {
        $crate::codes::frame::one!(($row.$kind((stringify!($code), $code), $what, |$w| $e)) $($rest)*)
    };
    (($row:expr) never $code:ident $why:literal; $($rest:tt)*) => {
        $crate::codes::frame::one!(($row.never((stringify!($code), $code as _), $why)) $($rest)*)
    };
    (($row:expr) handle $code:ident |$w:ident, $h:ident| $e:expr; $($rest:tt)*) => {
        $crate::codes::frame::one!(($row.handle((stringify!($code), $code), |$w, $h| $e)) $($rest)*)
    };
    (($row:expr) query $known:ident |$w:ident, $($arg:ident),*| $e:expr; $($rest:tt)*) => {
        $crate::codes::frame::one!(($row.query($known, |$w, $($arg),*| $e)) $($rest)*)
    };
    (($row:expr) $kind:ident |$($arg:ident),*| $e:expr; $($rest:tt)*) => {
        $crate::codes::frame::one!(($row.$kind(|$($arg),*| $e)) $($rest)*)
    };
}
pub(super) use one;
