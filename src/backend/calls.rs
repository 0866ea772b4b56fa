//! Calls of the runtime in generated code, and why each is there.
//!
//! A code generator notes each call where it makes it: all go through one function. So nothing that is called is missing here, whatever
//! the plan says. The reasons are those of the plan for accesses, and of the IR's operations for everything else.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::offset_of;

use serde::Serialize;
use visa_runtime::abi::Helpers;

use super::access::{AFTER, AccessPlan, Called, consts};
use crate::ssa::fp_env::{CR0_PLAIN, CR0_ROUNDING};
use crate::ssa::{FpEnvOp, Function, Lane, Op, Value};

/// Calls of one function of the runtime from the code of one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuntimeCall {
    /// Line of vISA, 0 for none.
    pub line: u32,
    /// The function, by its name in the table of the runtime.
    pub function: &'static str,
    /// Calls in the code.
    pub calls: usize,
    /// Only code off the usual path calls it.
    pub rare: bool,
    /// Why it is called.
    pub reason: String,
}

impl fmt::Display for RuntimeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = match self.calls {
            1 => String::new(),
            n => format!(", {n} calls"),
        };
        let rarely = if self.rare { ", rarely" } else { "" };
        write!(
            f,
            "line {:<5} {}{times}{rarely}: {}",
            self.line, self.function, self.reason
        )
    }
}

/// What a code generator notes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    /// Line of vISA, 0 for none.
    pub line: u32,
    /// Where [`Helpers`] has the function.
    pub helper: usize,
}

/// Why a function is called that does the same wherever it is called.
enum Reason {
    /// A lane-wise access, as the plan says.
    Access(Called),
    /// A float operation.
    Float,
    /// Where something has gone wrong, or a test failed.
    Rare(&'static str),
    /// Always.
    Always(&'static str),
}

const CHECK: &str = "a check that `--check` asks for";
const NO_INSTRUCTION: &str = "no instruction does this";

macro_rules! helpers {
    ($($name:ident: $reason:expr,)*) => {
        /// All functions of the table: where they are, their names, and why they are called.
        const HELPERS: &[(usize, &str, Reason)] =
            &[$((offset_of!(Helpers, $name), stringify!($name), $reason),)*];
    };
}

helpers! {
    fp_env: Reason::Float,
    fault: Reason::Rare("a lane that is out of bounds is recorded"),
    tsc: Reason::Always("the time stamp counter is read"),
    atomic: Reason::Access(Called::Atomic),
    load: Reason::Access(Called::Load),
    store: Reason::Access(Called::Store),
    load_preserve_all: Reason::Rare(AFTER),
    store_preserve_all: Reason::Rare(AFTER),
    rectangle: Reason::Always(NO_INSTRUCTION),
    image: Reason::Always(NO_INSTRUCTION),
    named_barrier: Reason::Always("the runtime knows which threads wait at a named barrier"),
    fault_preserve_all: Reason::Rare("a lane that is out of bounds is recorded"),
    store_enabled: Reason::Always("a store of the enabled lanes: the code generator does not know the processor's instruction for it"),
    check: Reason::Always(CHECK),
    check_preserve_all: Reason::Rare("a check finds a lane outside of its buffer"),
    arrive: Reason::Always(CHECK),
    race: Reason::Always(CHECK),
    race_affine: Reason::Always(CHECK),
    race_reads: Reason::Always(CHECK),
    initialise: Reason::Always(CHECK),
    misaligned: Reason::Rare("a misaligned atomic is recorded"),
}

/// The calls of a function's code, by line, and why they are there.
pub(crate) fn explain(f: &Function, plan: &AccessPlan, calls: &[Call]) -> Vec<RuntimeCall> {
    let mut times: BTreeMap<Call, usize> = BTreeMap::new();
    for &call in calls {
        let n: &mut usize = times.entry(call).or_default();
        *n = n.saturating_add(1);
    }
    let explained = times.into_iter().map(|(call, calls)| {
        let known = HELPERS.iter().find(|(at, ..)| *at == call.helper);
        let (function, reasons) = match known {
            None => ("?", Vec::new()),
            Some((_, name, reason)) => (*name, reasons(f, plan, call.line, reason)),
        };
        RuntimeCall {
            line: call.line,
            function,
            calls,
            rare: reasons.iter().all(|(_, rare)| *rare) && !reasons.is_empty(),
            reason: joined(reasons),
        }
    });
    explained.collect()
}

/// Each reason once.
fn joined(reasons: Vec<(String, bool)>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (reason, _) in reasons {
        if !parts.contains(&reason) {
            parts.push(reason);
        }
    }
    parts.join("; ")
}

/// Why a function is called from the code of a line, and whether that is rare.
fn reasons(f: &Function, plan: &AccessPlan, line: u32, reason: &Reason) -> Vec<(String, bool)> {
    match reason {
        Reason::Always(why) => vec![((*why).to_owned(), false)],
        Reason::Rare(why) => vec![((*why).to_owned(), true)],
        Reason::Access(called) => {
            let whys = plan.calls(f, line, *called).into_iter();
            whys.map(|why| (why.to_owned(), why == AFTER)).collect()
        }
        Reason::Float => {
            let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
            let of_line = insts.filter(|&&i| f.inst(i).line == line);
            let whys = of_line.filter_map(|&i| {
                let data = f.inst(i);
                float_reason(f, &data.op, &data.args, *data.results.first()?)
            });
            whys.map(|why| (why, false)).collect()
        }
    }
}

/// Why a float operation is a call, if it can be one.
fn float_reason(f: &Function, op: &Op, args: &[Value], result: Value) -> Option<String> {
    let ty = f.ty(result);
    let why = match op {
        Op::Fma => "a fused product and sum, for which the processor has no instruction".to_owned(),
        Op::FpEnv(op) => {
            let what = fp_env_name(*op);
            let cr0 = args.first().and_then(|&v| consts::scalar(f, v));
            format!("{what} {}", environment(cr0, ty.lane))
        }
        _ => return None,
    };
    Some(why)
}

const fn fp_env_name(op: FpEnvOp) -> &'static str {
    match op {
        FpEnvOp::Add => "a sum",
        FpEnvOp::Mul => "a product",
        FpEnvOp::Div => "a quotient",
        FpEnvOp::Fma => "a fused product and sum",
        FpEnvOp::Sqrt => "a square root",
        FpEnvOp::SIToF | FpEnvOp::UIToF => "a conversion from integers",
        FpEnvOp::FToF => "a conversion between float types",
        FpEnvOp::Flush => "a flush of denormals",
    }
}

/// What about `%cr0` makes a float operation a call.
fn environment(cr0: Option<u64>, lane: Lane) -> &'static str {
    let (rounding, keeps) = (u64::from(CR0_ROUNDING), u64::from(CR0_PLAIN));
    match cr0 {
        None => "under a %cr0 that is not known to round to the nearest and keep denormals",
        Some(cr0) if cr0 & rounding != 0 => "that is not rounded to the nearest",
        Some(cr0) if cr0 & keeps == keeps && matches!(lane, Lane::I16) => {
            "of binary16, for which the code generator has no instruction"
        }
        Some(cr0) if cr0 & keeps == keeps => "that no instruction does",
        Some(_) => "that flushes denormals",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_functions_of_the_runtime_have_a_reason() {
        let all = size_of::<Helpers>() / size_of::<usize>();
        let mut known: Vec<usize> = HELPERS.iter().map(|(at, ..)| *at).collect();
        known.sort_unstable();
        let every: Vec<usize> = (0..all).map(|n| n * size_of::<usize>()).collect();
        assert_eq!(known, every);
    }
}
