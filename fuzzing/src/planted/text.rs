//! The vISA text of a kernel.

use std::fmt::Write;

use super::{Below, Exchange, ITEMS, LOCAL, Planted, Space, Step};

impl Planted {
    /// Its vISA text.
    pub fn text(&self) -> String {
        let mut out = Text {
            simd: self.simd,
            out: String::new(),
            labels: 0,
        };
        out.head();
        if self.counts {
            out.clear_counts(!self.early);
        }
        for step in &self.steps {
            out.step(step);
        }
        if self.counts {
            out.read_counts();
        }
        out.line("ret (M1, 1)");
        out.out
    }
}

struct Text {
    simd: u32,
    out: String,
    labels: u32,
}

impl Text {
    fn line(&mut self, line: &str) {
        let line = line.replace("@N", &self.simd.to_string());
        let _ = writeln!(self.out, "    {line}");
    }

    fn lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.line(line);
        }
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("label{}", self.labels)
    }

    fn head(&mut self) {
        let simd = self.simd;
        let _ = write!(
            self.out,
            ".version 4.1\n.kernel \"planted\"\n.kernel_attr SimdSize={simd}\n.kernel_attr SLMSize=8\n"
        );
        for (name, ty, elements) in [
            ("N", "ud", 4),
            ("A", "uq", 1),
            ("O", "uq", 1),
            ("G", "uq", 1),
        ] {
            let _ = writeln!(
                self.out,
                ".decl {name} v_type=G type={ty} num_elts={elements} align=qword"
            );
        }
        for (name, ty, elements) in [
            ("ID", "ud", 1),
            ("ITEM", "ud", 1),
            ("X", "ud", 1),
            ("I", "d", 1),
            ("AT", "ud", 1),
            ("Y", "ud", 4),
            ("Q", "q", 1),
            ("W", "q", 1),
        ] {
            let _ = writeln!(
                self.out,
                ".decl {name} v_type=G type={ty} num_elts={} align=wordx32",
                elements * simd
            );
        }
        let _ = write!(
            self.out,
            ".decl P1 v_type=P num_elts={simd}\n.decl P2 v_type=P num_elts={simd}\n\
             .input A offset=64 size=8\n.input O offset=72 size=8\n.input G offset=80 size=8\n.function \"main\"\n"
        );
        // Local id, item, and a value that is another one for each.
        self.line("and (M1_NM, 1) N(0,0)<1> %r0(0,2)<0;1,0> 0xff:ud");
        let shift = self.simd.trailing_zeros();
        self.line(&format!(
            "shl (M1_NM, 1) N(0,0)<1> N(0,0)<0;1,0> {shift:#x}:ud"
        ));
        self.line("shl (M1_NM, 1) N(0,1)<1> %r0(0,1)<0;1,0> 0x6:ud");
        self.line("mov (M1_NM, 8) ID(0,0)<1> 0x76543210:uv");
        self.line("add (M1_NM, 8) ID(0,8)<1> ID(0,0)<1;1,0> 0x8:ud");
        if self.simd == 32 {
            self.line("add (M1_NM, 16) ID(1,0)<1> ID(0,0)<1;1,0> 0x10:ud");
        }
        self.lines(&[
            "add (M1, @N) ID(0,0)<1> ID(0,0)<1;1,0> N(0,0)<0;1,0>",
            "add (M1, @N) ITEM(0,0)<1> ID(0,0)<1;1,0> N(0,1)<0;1,0>",
            "mul (M1, @N) X(0,0)<1> ITEM(0,0)<1;1,0> 0x9e3779b1:ud",
            "add (M1, @N) X(0,0)<1> X(0,0)<1;1,0> 0x12345:ud",
        ]);
    }

    fn barrier(&mut self) {
        self.lines(&[
            "lsc_fence.slm.none.group",
            "lsc_fence.ugm.none.group",
            "barrier",
        ]);
    }

    /// Counts are the last bytes of local memory.
    fn clear_counts(&mut self, wait: bool) {
        self.lines(&[
            "shl (M1, @N) AT(0,0)<1> ID(0,0)<1;1,0> 0x2:ud",
            "add (M1, @N) AT(0,0)<1> AT(0,0)<1;1,0> 0x1000:ud",
            "mov (M1, @N) Y(0,0)<1> 0x0:ud",
            "lsc_store.slm (M1, @N) flat[AT]:a32 Y:d32",
        ]);
        if wait {
            self.barrier();
        }
    }

    fn read_counts(&mut self) {
        self.barrier();
        self.lines(&[
            "shl (M1, @N) AT(0,0)<1> ID(0,0)<1;1,0> 0x2:ud",
            "add (M1, @N) AT(0,0)<1> AT(0,0)<1;1,0> 0x1000:ud",
            "lsc_load.slm (M1, @N) Y:d32 flat[AT]:a32",
        ]);
        self.element("ITEM", 0, u32::MAX, (3 * ITEMS, 0), 1);
        self.address("O");
        self.line("lsc_store.ugm (M1, @N) flat[W]:a64 Y:d32");
    }

    /// `I = ((of ^ xor) & and) * words + first + delta`.
    fn element(&mut self, of: &str, xor: u32, and: u32, (first, delta): (u32, i32), words: u32) {
        self.line(&format!(
            "xor (M1, @N) I(0,0)<1> {of}(0,0)<1;1,0> {xor:#x}:ud"
        ));
        if and != u32::MAX {
            self.line(&format!("and (M1, @N) I(0,0)<1> I(0,0)<1;1,0> {and:#x}:ud"));
        }
        let shift = words.trailing_zeros();
        if shift != 0 {
            self.line(&format!(
                "shl (M1, @N) I(0,0)<1> I(0,0)<1;1,0> {shift:#x}:ud"
            ));
        }
        let add = (first as i32).wrapping_add(delta);
        if add != 0 {
            self.line(&format!("add (M1, @N) I(0,0)<1> I(0,0)<1;1,0> {add:#x}:d"));
        }
    }

    /// `W = base + 4 * I`.
    fn address(&mut self, base: &str) {
        self.lines(&[
            "mov (M1, @N) Q(0,0)<1> I(0,0)<1;1,0>",
            "shl (M1, @N) Q(0,0)<1> Q(0,0)<1;1,0> 0x2:q",
        ]);
        self.line(&format!(
            "add (M1, @N) W(0,0)<1> Q(0,0)<1;1,0> {base}(0,0)<0;1,0>"
        ));
    }

    fn local(&mut self) {
        self.line("shl (M1, @N) AT(0,0)<1> I(0,0)<1;1,0> 0x2:ud");
    }

    /// What stands in front of an access of some lanes.
    fn predicate(&mut self, below: Below) -> &'static str {
        match below {
            None => "",
            Some(n) => {
                self.line(&format!("cmp.lt (M1, @N) P1 ID(0,0)<1;1,0> {n:#x}:ud"));
                "(P1) "
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Compute(0) => self.line("add (M1, @N) X(0,0)<1> X(0,0)<1;1,0> 0x61c88647:ud"),
            Step::Compute(1) => self.line("xor (M1, @N) X(0,0)<1> X(0,0)<1;1,0> ID(0,0)<1;1,0>"),
            Step::Compute(2) => self.line("shr (M1, @N) X(0,0)<1> X(0,0)<1;1,0> 0x1:ud"),
            Step::Compute(3) => self.line("or (M1, @N) X(0,0)<1> X(0,0)<1;1,0> 0x10:ud"),
            Step::Compute(_) => self.line("and (M1, @N) X(0,0)<1> X(0,0)<1;1,0> 0xffff:ud"),
            Step::Load { xor, delta, below } => {
                self.element("ITEM", *xor, u32::MAX, (0, *delta), 1);
                self.address("A");
                self.line("mov (M1, @N) Y(0,0)<1> 0x7:ud");
                let p = self.predicate(*below);
                self.line(&format!("{p}lsc_load.ugm (M1, @N) Y:d32 flat[W]:a64"));
                self.line("add (M1, @N) X(0,0)<1> X(0,0)<1;1,0> Y(0,0)<1;1,0>");
            }
            Step::Store {
                region,
                xor,
                and,
                delta,
                below,
            } => {
                self.element("ITEM", *xor, *and, (region * ITEMS, *delta), 1);
                self.address("O");
                let p = self.predicate(*below);
                self.line(&format!("{p}lsc_store.ugm (M1, @N) flat[W]:a64 X:d32"));
            }
            Step::Branch(limit) => {
                let over = self.label();
                self.line("and (M1, @N) Y(0,0)<1> X(0,0)<1;1,0> 0xff:ud");
                self.line(&format!("cmp.lt (M1, @N) P2 Y(0,0)<1;1,0> {limit:#x}:ud"));
                self.line(&format!("(P2) goto (M1, @N) {over}"));
                self.line("add (M1, @N) X(0,0)<1> X(0,0)<1;1,0> 0x5:ud");
                let _ = writeln!(self.out, "{over}:");
            }
            Step::Count(and) => {
                self.line(&format!(
                    "and (M1, @N) AT(0,0)<1> ID(0,0)<1;1,0> {and:#x}:ud"
                ));
                self.lines(&[
                    "shl (M1, @N) AT(0,0)<1> AT(0,0)<1;1,0> 0x2:ud",
                    "add (M1, @N) AT(0,0)<1> AT(0,0)<1;1,0> 0x1000:ud",
                    "lsc_atomic_iadd.slm (M1, @N) %null:d32 flat[AT]:a32 X %null",
                ]);
            }
            Step::Exchange(e) => self.exchange(e),
        }
    }

    fn exchange(&mut self, e: &Exchange) {
        // A work-item writes words that all differ.
        let rows = e.words * self.simd / 16;
        for k in 0..e.words {
            let row = k * rows / e.words;
            self.line(&format!(
                "add (M1, @N) Y({row},0)<1> X(0,0)<1;1,0> {k:#x}:ud"
            ));
        }
        let vector = match e.words {
            1 => "d32".to_owned(),
            n => format!("d32x{n}"),
        };
        let (of, message, at) = match e.space {
            Space::Local => ("ID", "slm", "AT]:a32"),
            Space::Device => ("ITEM", "ugm", "W]:a64"),
        };
        let first = match e.space {
            Space::Local => e.region * LOCAL * 4,
            Space::Device => e.region * ITEMS * 4,
        };
        self.element(of, e.write, e.and, (first, e.delta), e.words);
        self.place(e.space);
        let p = self.predicate(e.writes);
        self.line(&format!(
            "{p}lsc_store.{message} (M1, @N) flat[{at} Y:{vector}"
        ));
        if e.waits {
            match e.arrive {
                None => self.barrier(),
                Some(n) => {
                    let over = self.label();
                    self.line(&format!("cmp.ge (M1, @N) P2 ID(0,0)<1;1,0> {n:#x}:ud"));
                    self.line(&format!("(P2) goto (M1, @N) {over}"));
                    self.barrier();
                    let _ = writeln!(self.out, "{over}:");
                }
            }
        }
        self.element(of, e.read, u32::MAX, (first, 0), e.words);
        self.place(e.space);
        self.line(&format!("lsc_load.{message} (M1, @N) Y:{vector} flat[{at}"));
        for k in 0..e.words {
            let row = k * rows / e.words;
            self.line(&format!(
                "add (M1, @N) X(0,0)<1> X(0,0)<1;1,0> Y({row},0)<1;1,0>"
            ));
        }
    }

    fn place(&mut self, space: Space) {
        match space {
            Space::Local => self.local(),
            Space::Device => self.address("G"),
        }
    }
}
