//! Functions written line by line, and what they leave in their frame.

use std::fmt::Write;

use visa_jit::passes::run_pass;
use visa_jit::ssa::eval::{Bytes, Inputs, Outcome, Thread, run};
use visa_jit::ssa::{Function, parse};

/// The text of a function; values have as many lanes as it.
pub struct Text {
    out: String,
    lanes: usize,
    next: usize,
}

impl Text {
    pub fn new(lanes: usize) -> Text {
        let out = format!("function \"f\" simd {lanes} frame 1024\n\nbb0:\n");
        Text {
            out,
            lanes,
            next: 0,
        }
    }

    /// Lanes of each value.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%{}", self.next - 1)
    }

    /// The type of values of this lane.
    fn ty(&self, lane: &str) -> String {
        match self.lanes {
            1 => lane.to_owned(),
            n => format!("<{n} x {lane}>"),
        }
    }

    /// An operation with a result of this lane.
    pub fn line(&mut self, lane: &str, what: &str) -> String {
        self.typed(&self.ty(lane), what)
    }

    /// An operation with a result of this type.
    pub fn typed(&mut self, ty: &str, what: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.out, "  {name}: {ty} = {what}");
        name
    }

    /// An operation without a result, or the end of a block.
    pub fn effect(&mut self, what: &str) {
        let _ = writeln!(self.out, "  {what}");
    }

    /// Ends a block and begins another one, with parameters of these lanes.
    pub fn block(&mut self, end: &str, next: &str, params: &[&str]) -> Vec<String> {
        self.effect(end);
        let names: Vec<String> = params.iter().map(|_| self.name()).collect();
        let typed = names.iter().zip(params);
        let typed: Vec<String> = typed
            .map(|(name, lane)| format!("{name}: {}", self.ty(lane)))
            .collect();
        let _ = match typed.as_slice() {
            [] => writeln!(self.out, "{next}:"),
            all => writeln!(self.out, "{next}({}):", all.join(", ")),
        };
        names
    }

    /// A constant.
    pub fn number(&mut self, lane: &str, n: impl std::fmt::Debug) -> String {
        match self.lanes {
            1 => self.line(lane, &format!("const {n:?}")),
            _ => self.line(lane, &format!("vconst [{n:?} ...]")),
        }
    }

    /// A float of these bits.
    pub fn float(&mut self, bits: u32) -> String {
        self.number("f32", f32::from_bits(bits))
    }

    /// This many vectors of floats, one after the other in the payload.
    pub fn inputs(&mut self, count: usize) -> Vec<String> {
        let bytes = 4 * self.lanes;
        let vectors = (0..count).map(|n| format!("input.payload[{}]", n * bytes));
        let vectors: Vec<String> = vectors.collect();
        vectors.iter().map(|what| self.line("f32", what)).collect()
    }

    /// Ends with these values in the frame.
    pub fn function(mut self, values: &[String]) -> Function {
        for (n, v) in values.iter().enumerate() {
            let at = n * 4 * self.lanes;
            let _ = writeln!(self.out, "  framestore[{at}] {v}");
        }
        self.out.push_str("  return\n");
        parse(&self.out).unwrap_or_else(|e| panic!("{e}\n{}", self.out))
    }
}

/// The frame after a run with this payload.
pub fn results(f: &Function, payload: &[u8]) -> Vec<u8> {
    let inputs = Inputs {
        payload: payload.to_vec(),
        dispatch_mask: u32::MAX,
        ..Inputs::default()
    };
    let mut thread = Thread::new(f);
    let outcome = run(f, &inputs, &mut thread, &mut Bytes::default(), 1000);
    assert_eq!(outcome, Outcome::Done);
    thread.frame
}

/// What a pass makes of a function, if it changes it.
pub fn changed(pass: &str, f: &Function) -> Option<Function> {
    let mut g = f.clone();
    assert!(run_pass(&mut g, pass) && run_pass(&mut g, "dce"));
    let mut same = f.clone();
    assert!(run_pass(&mut same, "dce"));
    visa_jit::ssa::verify(&g).unwrap_or_else(|e| panic!("{}\n{g}", e[0]));
    (g != same).then_some(g)
}
