//! Random kernels over the opcode table: arithmetic on aliased registers, address registers, predicates,
//! divergence, subroutines, messages to surfaces, local memory and flat addresses.
//!
//! A kernel is a tree of statements, so that a failing one can be made smaller by dropping some
//! ([`reduce`]) and kept as a file test ([`filetest`]). It is deterministic: lanes that store go to places of
//! their own, and floats never become integers bit by bit, because the payload of a NaN is not defined.

pub mod filetest;
pub mod generate;
pub mod image;
mod message;
mod port;
pub mod reduce;
mod send;
mod texel;

use std::fmt::Write;

use visa_jit::isa::{Platform, Type};

use crate::engines::{Input, Launch, Region};
use crate::sweep::values::value;
use visa_test_common::Rng;

/// Elements of a variable.
pub const ELEMENTS: u32 = 64;
/// Surface that variables are loaded from.
pub const INITIAL: usize = 0;
/// Surface that messages of integers work on; also reached by flat addresses.
pub const MEMORY: usize = 1;
/// Surface that variables are stored to at the end.
pub const RESULT: usize = 2;
/// Surface that messages of `f` work on.
pub const FLOATS: usize = 3;
/// Bytes of the surfaces that messages work on.
pub const MEMORY_BYTES: u32 = 2048;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Instructions that belong together.
    Lines(Vec<String>),
    /// `setup`, then `goto` over the first body into the second one.
    Branch {
        /// Makes the predicate.
        setup: Vec<String>,
        /// `(P1) goto (M1, 16)`, without the label.
        goto: String,
        /// Lanes that do not branch.
        body: Vec<Node>,
        /// The others; empty without an `else`.
        other: Vec<Node>,
    },
    /// A loop whose lanes leave one after the other.
    Loop {
        /// Nesting, which chooses counter and predicate.
        depth: usize,
        /// Lanes turn as often as their counter says: one to this many times.
        most: u32,
        /// Body.
        body: Vec<Node>,
    },
}

/// A variable with its own storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// First byte in the surfaces that it is loaded from and stored to.
    pub at: u32,
}

impl Variable {
    /// Block messages between the variable and its place in a surface.
    fn copy(&self, op: &str, surface: &str) -> Vec<String> {
        let bytes = ELEMENTS * self.ty.bytes();
        let (name, n) = (&self.name, bytes.min(128));
        let line = |b: u32| {
            format!(
                "{op} ({}) {surface} {:#x}:ud {name}.{b}",
                n / 16,
                (self.at + b) / 16
            )
        };
        (0..bytes).step_by(128).map(line).collect()
    }
}

/// A second name for a part of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Name.
    pub name: String,
    /// Type; both are integers, or it is the variable's.
    pub ty: Type,
    /// The variable.
    pub of: String,
    /// First byte.
    pub offset: u32,
    /// Elements.
    pub elements: u32,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Device.
    pub platform: Platform,
    /// Lanes of a thread.
    pub simd: u32,
    /// `%cr0`.
    pub mode: u32,
    /// Has images.
    pub images: bool,
    /// Variables.
    pub variables: Vec<Variable>,
    /// Their aliases.
    pub aliases: Vec<Alias>,
    /// Statements.
    pub body: Vec<Node>,
    /// Statements of the subroutine.
    pub subroutine: Vec<Node>,
}

struct Printer {
    out: String,
    labels: usize,
    simd: u32,
}

impl Printer {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.out, "    {line}");
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for n in nodes {
            self.node(n);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Lines(lines) => lines.iter().for_each(|l| self.line(l)),
            Node::Branch {
                setup,
                goto,
                body,
                other,
            } => {
                let (l, simd) = (self.labels, self.simd);
                self.labels += 1;
                setup.iter().for_each(|l| self.line(l));
                self.line(&format!("{goto} else_{l}"));
                self.nodes(body);
                if other.is_empty() {
                    let _ = writeln!(self.out, "else_{l}:");
                } else {
                    self.line(&format!("goto (M1, {simd}) end_{l}"));
                    let _ = writeln!(self.out, "else_{l}:");
                    self.nodes(other);
                    let _ = writeln!(self.out, "end_{l}:");
                }
            }
            Node::Loop { depth, most, body } => {
                let (l, simd) = (self.labels, self.simd);
                self.labels += 1;
                self.line(&format!(
                    "and (M1, {simd}) CNT{depth}(0,0)<1> LANE(0,0)<1;1,0> {:#x}:ud",
                    most - 1
                ));
                let _ = writeln!(self.out, "loop_{l}:");
                self.nodes(body);
                self.line(&format!(
                    "add (M1, {simd}) CNT{depth}(0,0)<1> CNT{depth}(0,0)<1;1,0> -1:d"
                ));
                self.line(&format!(
                    "cmp.ge (M1, {simd}) PL{depth} CNT{depth}(0,0)<1;1,0> 0x0:d"
                ));
                self.line(&format!("(PL{depth}) goto (M1, {simd}) loop_{l}"));
            }
        }
    }
}

impl Kernel {
    /// vISA text; declares and stores only what the statements use.
    pub fn text(&self) -> String {
        let mut p = Printer {
            out: String::new(),
            labels: 0,
            simd: self.simd,
        };
        p.nodes(&self.body);
        let body = std::mem::take(&mut p.out);
        p.nodes(&self.subroutine);
        let sub = std::mem::take(&mut p.out);
        let used = self.used(&format!("{body}{sub}"));
        let calls = body.contains("call (");
        p.out = self.head(&body, &sub, &used);
        p.out += &body;
        for v in &used {
            v.copy("oword_st", "T8").iter().for_each(|l| p.line(l));
        }
        p.line("ret (M1, 1)");
        if calls {
            p.out += ".function \"sub\"\n\nsub:\n";
            p.out += &sub;
            p.line("ret (M1, 1)");
        }
        p.out
    }

    fn used(&self, text: &str) -> Vec<&Variable> {
        let words: std::collections::HashSet<&str> = text
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .collect();
        let aliased = |v: &Variable| {
            self.aliases
                .iter()
                .any(|a| a.of == v.name && words.contains(a.name.as_str()))
        };
        let used = |v: &&Variable| words.contains(v.name.as_str()) || aliased(v);
        self.variables.iter().filter(used).collect()
    }

    /// Whether sampler messages name a second surface, as from version 4.2 on, which compilers have used since Xe2.
    fn paired_surfaces(&self) -> bool {
        self.platform >= Platform::Bmg
    }

    fn head(&self, body: &str, sub: &str, used: &[&Variable]) -> String {
        let (simd, text) = (self.simd, format!("{body}{sub}"));
        let version = if self.paired_surfaces() { "4.2" } else { "4.1" };
        let mut t =
            format!(".version {version}\n.kernel \"random\"\n.kernel_attr SimdSize={simd}\n");
        if text.contains("slm") || text.contains("raw_send") {
            t += ".kernel_attr SLMSize=2\n";
        }
        for v in used {
            let _ = writeln!(
                t,
                ".decl {} v_type=G type={} num_elts={ELEMENTS} align=GRF",
                v.name, v.ty
            );
        }
        for a in self
            .aliases
            .iter()
            .filter(|a| used.iter().any(|v| v.name == a.of))
        {
            let _ = writeln!(
                t,
                ".decl {} v_type=G type={} num_elts={} alias=<{}, {}>",
                a.name, a.ty, a.elements, a.of, a.offset
            );
        }
        for (name, ty, n) in [
            ("LANE", "ud", 32),
            ("OFF", "ud", 32),
            ("ADDR", "uq", 32),
            ("HEAP", "ud", 1),
            ("HEAD", "ud", 8),
            ("CNT0", "d", 32),
            ("CNT1", "d", 32),
        ] {
            let _ = writeln!(t, ".decl {name} v_type=G type={ty} num_elts={n} align=GRF");
        }
        t += ".decl STEPS v_type=G type=uw num_elts=32 align=GRF\n.decl BASE v_type=G type=uq num_elts=1 align=GRF\n\
              .decl OFF64 v_type=G type=uq num_elts=16 alias=<OFF, 0>\n\
              .decl HEAD64 v_type=G type=uq num_elts=4 alias=<HEAD, 0>\n";
        for p in ["P1", "P2", "P3", "P4", "PL0", "PL1"] {
            let _ = writeln!(t, ".decl {p} v_type=P num_elts=32");
        }
        t += ".decl A0 v_type=A num_elts=1\n.decl A1 v_type=A num_elts=16\n";
        for s in 6..10 {
            let _ = writeln!(t, ".decl T{s} v_type=T num_elts=1");
        }
        if self.images {
            for line in image::declarations() {
                let _ = writeln!(t, "{line}");
            }
        }
        t += ".input LANE offset=512 size=128\n.input STEPS offset=640 size=64\n.input BASE offset=704 size=8\n\
              .function \"main\"\n\nmain:\n";
        let mut line = |l: &str| t += &format!("    {l}\n");
        for s in 6..10 {
            line(&format!("movs (M1_NM, 1) T{s}(0) {:#x}:ud", s - 6));
        }
        if self.images {
            image::handles().iter().for_each(|l| line(l));
        }
        line("and (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0xfffffb0f:ud");
        line(&format!(
            "or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {:#x}:ud",
            self.mode
        ));
        for (i, p) in ["P1", "P2", "P3", "P4"].iter().enumerate() {
            line(&format!(
                "setp (M1_NM, 32) {p} LANE(0,{})<0;1,0>",
                8 * i + 5
            ));
        }
        for v in used {
            v.copy("oword_ld", "T6").iter().for_each(|l| line(l));
        }
        t
    }

    /// Lines of the statements that are no branches.
    pub fn lines(&self) -> impl Iterator<Item = &String> {
        let flat = self.body.iter().chain(&self.subroutine);
        flat.flat_map(|n| match n {
            Node::Lines(lines) => lines.as_slice(),
            _ => &[],
        })
    }

    /// Number of instructions, apart from loading and storing.
    pub fn size(&self) -> usize {
        fn count(nodes: &[Node]) -> usize {
            let one = |n: &Node| match n {
                Node::Lines(lines) => lines.len(),
                Node::Branch {
                    setup, body, other, ..
                } => 1 + setup.len() + count(body) + count(other),
                Node::Loop { body, .. } => 4 + count(body),
            };
            nodes.iter().map(one).sum()
        }
        count(&self.body) + count(&self.subroutine)
    }

    fn bytes(&self) -> u32 {
        self.variables
            .iter()
            .map(|v| v.at + ELEMENTS * v.ty.bytes())
            .max()
            .unwrap_or(0)
    }

    /// A launch of the kernel. Only the variables that are used get numbers.
    pub fn launch(&self, seed: u64) -> Launch {
        let mut rng = Rng::new(seed ^ 0x1a0c);
        let body = format!("{:?}{:?}", self.body, self.subroutine);
        let used = self.used(&body);
        let mut initial = vec![0; self.bytes() as usize];
        for v in &self.variables {
            // Drawn for all of them, so that a smaller kernel sees the same numbers.
            let size = v.ty.bytes() as usize;
            for i in 0..ELEMENTS as usize {
                let bits = value(&mut rng, v.ty).to_le_bytes();
                if used.contains(&v) {
                    let at = v.at as usize + i * size;
                    initial[at..at + size].copy_from_slice(&bits[..size]);
                }
            }
        }
        let words = |rng: &mut Rng, ty: Type| -> Vec<u8> {
            (0..MEMORY_BYTES / 4)
                .flat_map(|_| (value(rng, ty) as u32).to_le_bytes())
                .collect()
        };
        let (memory, floats) = (words(&mut rng, Type::Ud), words(&mut rng, Type::F));
        // Lane numbers in the low bits, random ones above.
        let lane = (0..32u32)
            .flat_map(|l| (l | (rng.bits() as u32) << 5).to_le_bytes())
            .collect();
        let steps = (0..32)
            .flat_map(|_| (8 * rng.below(11) as u16).to_le_bytes())
            .collect();
        let short = rng.below(self.simd as usize) as u32;
        let lanes = if rng.chance(60) {
            self.simd
        } else {
            self.simd - short
        };
        let mut launch = Launch {
            lanes,
            surfaces: vec![initial, memory, vec![0; self.bytes() as usize], floats],
            inputs: vec![
                ("LANE".into(), Input::Bytes(lane)),
                ("STEPS".into(), Input::Bytes(steps)),
                ("BASE".into(), Input::Address(MEMORY as u32)),
            ],
            ..Launch::default()
        };
        if self.images {
            for (i, image) in image::IMAGES.iter().enumerate() {
                let number = |_| (value(&mut rng, image.region) as u32).to_le_bytes();
                launch
                    .surfaces
                    .push((0..image.dwords()).flat_map(number).collect());
                launch
                    .images
                    .push(((image::FIRST + i) as u32, image.shape()));
            }
            launch.samplers = image::SAMPLERS.to_vec();
        }
        launch
    }

    /// What engines must agree on.
    pub fn regions(&self) -> Vec<Region> {
        let variable = |v: &Variable| Region {
            surface: RESULT,
            at: v.at as usize,
            count: ELEMENTS as usize,
            ty: v.ty,
        };
        let memory = |surface, ty| Region {
            surface,
            at: 0,
            count: MEMORY_BYTES as usize / 4,
            ty,
        };
        let mut out: Vec<Region> = self.variables.iter().map(variable).collect();
        out.push(memory(MEMORY, Type::Ud));
        out.push(memory(FLOATS, Type::F));
        if self.images {
            for (i, image) in image::IMAGES.iter().enumerate() {
                out.push(Region {
                    surface: image::FIRST + i,
                    at: 0,
                    count: image.dwords() as usize,
                    ty: image.region,
                });
            }
        }
        out
    }
}

/// Mnemonics of a text's instructions, without suffixes.
pub fn mnemonics(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter_map(|l| l.strip_prefix("    "));
    lines.map(|line| {
        let guarded = line.split_once(") ").filter(|_| line.starts_with('('));
        let line = guarded.map_or(line, |(_, rest)| rest);
        line.split([' ', '.']).next().unwrap_or("").to_owned()
    })
}
