//! A graph as vISA text, and its launches.

use std::fmt::Write;

use super::{FACTOR, Form, Given, Graph, How, Lanes, Term, Test, Trace, Uniform};
use crate::engines::{Input, Launch};

struct Writer<'a> {
    graph: &'a Graph,
    out: String,
}

/// The kernel.
pub fn text(graph: &Graph) -> String {
    let mut w = Writer {
        graph,
        out: String::new(),
    };
    w.head();
    for sub in 0..graph.subs.len() {
        w.sub(sub);
    }
    w.out
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.out, "    {line}");
    }

    fn head(&mut self) {
        let n = self.graph.simd;
        self.out.push_str(".version 4.1\n.kernel \"graph\"\n");
        let (marks, given, all) = (4 * n, 4 * n + 16, 4 * n + 32);
        let _ = write!(
            self.out,
            ".decl TRACE v_type=G type=ud num_elts={} align=GRF\n.input TRACE offset=512 size={all}\n\
             .decl HASH v_type=G type=ud num_elts={n} alias=<TRACE, 0>\n\
             .decl MARKS v_type=G type=ud num_elts=4 alias=<TRACE, {marks}>\n\
             .decl GIVEN v_type=G type=ud num_elts=1 alias=<TRACE, {given}>\n\
             .decl FUEL v_type=G type=d num_elts={n} align=GRF\n.input FUEL offset=768 size={}\n\
             .decl T v_type=G type=ud num_elts={n} align=GRF\n\
             .decl U v_type=G type=ud num_elts=1 align=dword\n\
             .decl P1 v_type=P num_elts={n}\n.decl P2 v_type=P num_elts={n}\n.decl P3 v_type=P num_elts={n}\n\
             .decl T6 v_type=T num_elts=1\n.kernel_attr SimdSize={n}\n",
            all / 4,
            4 * n
        );
    }

    fn sub(&mut self, sub: usize) {
        let _ = write!(self.out, ".function \"s{sub}\"\n\ns{sub}:\n");
        if sub == 0 {
            self.line("movs (M1_NM, 1) T6(0) 0x0:ud");
        }
        let blocks = &self.graph.subs[sub];
        for (i, block) in blocks.iter().enumerate() {
            let _ = writeln!(self.out, "L{sub}_{i}:");
            let (id, xor) = (block.id, block.xor);
            let (word, bit) = (id / 32, id % 32);
            self.line(&format!(
                "or (M1_NM, 1) MARKS(0,{word})<1> MARKS(0,{word})<0;1,0> {:#x}:ud",
                1u32 << bit
            ));
            self.trace(id, xor);
            self.term(sub, &block.term);
        }
    }

    /// An instruction on all lanes, in parts; `{d}` and `{s}` stand for the origins of destination and source.
    fn lanes(&mut self, text: &str, dst: &str, src: &str) {
        let (n, split) = (self.graph.simd, self.graph.split.min(self.graph.simd));
        for first in (0..n).step_by(split as usize) {
            let (head, tail) = text.split_once(' ').unwrap_or((text, ""));
            let line = format!("{head} (M{}, {split}) {tail}", first / 4 + 1)
                .replace("{d}", &format!("{dst}(0,{first})<1>"))
                .replace("{s}", &format!("{src}(0,{first})<1;1,0>"));
            self.line(&line);
        }
    }

    fn trace(&mut self, id: u32, xor: bool) {
        if xor {
            self.lanes(&format!("mul {{d}} {{s}} {FACTOR:#x}:ud"), "HASH", "HASH");
            self.lanes(&format!("xor {{d}} {{s}} {id:#x}:ud"), "HASH", "HASH");
        } else {
            self.lanes(
                &format!("mad {{d}} {{s}} {FACTOR:#x}:ud {id:#x}:ud"),
                "HASH",
                "HASH",
            );
        }
        self.lanes("add {d} {s} -1:d", "FUEL", "FUEL");
    }

    /// Sets `P1` for a lane-wise decision; gives the predicate.
    fn lane_test(&mut self, l: Lanes) -> String {
        match l.test {
            Test::Hash { mask, value } => {
                self.lanes(&format!("and {{d}} {{s}} {mask:#x}:ud"), "T", "HASH");
                self.lanes(&format!("cmp.eq P1 {{s}} {value:#x}:ud"), "", "T");
            }
            Test::Tired => self.lanes("cmp.le P1 {s} 0x0:d", "", "FUEL"),
        }
        let n = self.graph.simd;
        match (l.fuel, l.inverted) {
            (true, false) => {
                self.lanes("cmp.gt P2 {s} 0x0:d", "", "FUEL");
                self.line(&format!("and (M1, {n}) P1 P1 P2"));
            }
            (true, true) => {
                self.lanes("cmp.le P2 {s} 0x0:d", "", "FUEL");
                self.line(&format!("or (M1, {n}) P1 P2 P1"));
            }
            _ => {}
        }
        format!("({}P1) ", if l.inverted { "!" } else { "" })
    }

    /// Sets all bits of `P3` alike; gives the predicate and the execution size.
    fn uniform_test(&mut self, u: Uniform) -> (String, u32) {
        let n = self.graph.simd;
        self.line(&format!(
            "and (M1_NM, 1) U(0,0)<1> GIVEN(0,0)<0;1,0> {:#x}:ud",
            1u32 << u.bit
        ));
        self.line(&format!("cmp.ne (M1_NM, {n}) P3 U(0,0)<0;1,0> 0x0:ud"));
        let not = if u.inverted { "!" } else { "" };
        match u.form {
            Form::Scalar => (format!("({not}P3) "), 1),
            Form::Any => (format!("({not}P3.any) "), n),
            Form::All => (format!("({not}P3.all) "), n),
        }
    }

    fn how(&mut self, how: How) -> (String, u32) {
        let n = self.graph.simd;
        match how {
            How::Always { wide } => (String::new(), if wide { n } else { 1 }),
            How::Uniform(u) => self.uniform_test(u),
            How::Lanes(l) => (self.lane_test(l), n),
        }
    }

    fn term(&mut self, sub: usize, term: &Term) {
        match term {
            Term::Fall => {}
            Term::Goto(how, to) => {
                let (pred, n) = self.how(*how);
                self.line(&format!("{pred}goto (M1, {n}) L{sub}_{to}"));
            }
            Term::Jmp(how, to) => {
                let pred = how.map_or_else(String::new, |u| self.uniform_test(u).0);
                self.line(&format!("{pred}jmp (M1, 1) L{sub}_{to}"));
            }
            Term::Switch { shift, targets } => {
                let names: Vec<String> = targets.iter().map(|t| format!("L{sub}_{t}")).collect();
                self.line(&format!(
                    "shr (M1_NM, 1) U(0,0)<1> GIVEN(0,0)<0;1,0> {shift:#x}:ud"
                ));
                self.line(&format!(
                    "and (M1_NM, 1) U(0,0)<1> U(0,0)<0;1,0> {:#x}:ud",
                    targets.len() - 1
                ));
                self.line(&format!(
                    "switchjmp (M1, 1) U(0,0)<0;1,0> ({})",
                    names.join(", ")
                ));
            }
            Term::Call(how, callee) => {
                let (pred, n) = self.how(*how);
                self.line(&format!("{pred}call (M1, {n}) s{callee}"));
            }
            Term::Ret(how) => {
                let (pred, n) = self.how(*how);
                if sub == 0 {
                    self.store();
                }
                self.line(&format!("{pred}ret (M1, {n})"));
            }
        }
    }

    /// All lanes' registers go to memory, of those that left before too: theirs must not have changed since.
    fn store(&mut self) {
        // Each message costs as much code as several blocks, so one takes all if it can.
        let n = self.graph.simd;
        if n == 8 {
            return self.line("oword_st (4) T6 0x0:ud TRACE.0");
        }
        self.line(&format!("oword_st ({}) T6 0x0:ud TRACE.0", n / 4));
        self.line(&format!("oword_st (1) T6 {:#x}:ud TRACE.{}", n / 4, 4 * n));
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

impl Given {
    /// The registers of `TRACE` with hashes and marks, as memory has them at the end.
    fn trace(&self, graph: &Graph, hash: &[u32; 32], marks: &[u32; 4]) -> Vec<u8> {
        let mut out = words(&hash[..graph.simd as usize]);
        out.extend(words(marks));
        out.extend(words(&[self.uniform, 0, 0, 0]));
        out
    }

    /// As a launch of the graph.
    pub fn launch(&self, graph: &Graph) -> Launch {
        let trace = self.trace(graph, &self.hash, &[0; 4]);
        let fuel = words(&self.fuel.map(|f| f as u32)[..graph.simd as usize]);
        Launch {
            lanes: self.lanes,
            surfaces: vec![vec![0; trace.len()]],
            inputs: vec![
                ("TRACE".into(), Input::Bytes(trace)),
                ("FUEL".into(), Input::Bytes(fuel)),
            ],
            ..Launch::default()
        }
    }

    /// The surface that a launch with this trace leaves.
    pub fn expected(&self, graph: &Graph, trace: &Trace) -> Vec<u8> {
        let mut out = self.trace(graph, &trace.hash, &trace.marks);
        if graph.simd != 8 {
            let end = out.len() - 16;
            out[end..].fill(0);
        }
        out
    }
}

impl Trace {
    /// What a surface holds.
    pub fn from_bytes(graph: &Graph, bytes: &[u8]) -> Trace {
        let simd = graph.simd as usize;
        let word = |i: usize| {
            let bytes = bytes.get(4 * i..4 * i + 4);
            bytes.map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        };
        Trace {
            hash: std::array::from_fn(|i| if i < simd { word(i) } else { 0 }),
            marks: std::array::from_fn(|i| word(simd + i)),
            steps: 0,
        }
    }
}
