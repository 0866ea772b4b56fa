//! Random statements.

use visa_jit::isa::{Family, Form, Opcode, OpcodeInfo, Platform, PredKind, Type, TypeClass};

use super::{Alias, ELEMENTS, Kernel, Node, Variable, message};
use crate::sweep::inst::{Indirect, Registers, Shape, Types, exists, instruction, types};
use crate::sweep::rows;
use visa_test_common::Rng;

/// Types that integers are chosen from, besides `ud`.
const INTS: [Type; 7] = [
    Type::D,
    Type::Uw,
    Type::W,
    Type::Ub,
    Type::B,
    Type::Uq,
    Type::Q,
];

/// Why no random kernel has a row that runs.
pub fn exception(row: &OpcodeInfo) -> Option<&'static str> {
    if row.opcode == Opcode::Dpasw {
        // `tests/dpas/fused.rs` runs groups of several.
        return Some("a random kernel runs in one thread, which is fused with none");
    }
    match row.family {
        Family::Arith | Family::Logic | Family::Move | Family::Compare | Family::Address => None,
        Family::Flow => match row.opcode {
            Opcode::Goto | Opcode::Call | Opcode::Ret | Opcode::Label | Opcode::Subroutine => None,
            // See `crate::flow`; functions of their own need several kernels in a file.
            _ => Some("uniform jumps and stack calls"),
        },
        Family::Memory | Family::Svm | Family::Lsc | Family::Sampler | Family::Misc
            if message::generated(row.form) || row.accesses_images() =>
        {
            None
        }
        Family::Memory | Family::Svm | Family::Lsc | Family::Sampler => {
            Some("messages without a generator")
        }
        Family::Sync => match row.form {
            Form::Nullary | Form::Fence if row.opcode != Opcode::SamplerCacheFlush => None,
            _ => Some("no result to compare"),
        },
        Family::Misc => Some("no result to compare"),
    }
}

/// Statements nest this deep.
const DEPTH: usize = 2;

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut rng = Rng::new(seed ^ 0xfeed);
    let platform = *rng.pick(&Platform::ALL);
    let mut kernel = Kernel {
        platform,
        simd: *rng.pick(&[8, 16, 16, 32]),
        mode: *rng.pick(&[0x4c0, 0x4c0, 0x4c0, 0x4c0, 0x4f0, 0x4d0, 0]),
        // Not of all kernels, as the evaluator has no images.
        images: Rng::new(seed ^ 0x1a6e).chance(25),
        variables: Vec::new(),
        aliases: Vec::new(),
        body: Vec::new(),
        subroutine: Vec::new(),
    };
    variables(&mut kernel, &mut rng);
    let mut g = Generator {
        rows: rows()
            .into_iter()
            .filter(|r| r.platforms.contains(platform))
            .collect(),
        messages: message::rows(platform, kernel.images),
        kernel: &kernel,
        rng,
        loops: 0,
        calls: false,
    };
    let count = 3 + g.rng.below(3);
    let subroutine = g.statements(count, 1);
    g.calls = true;
    let count = 8 + g.rng.below(14);
    let mut body = g.statements(count, 0);
    g.rng = Rng::new(seed ^ 0xba22);
    g.waits(&mut body);
    kernel.body = body;
    kernel.subroutine = subroutine;
    kernel
}

/// Rows of messages with a generator.
pub fn message_rows() -> Vec<&'static OpcodeInfo> {
    let of = |p| message::rows(p, true);
    let mut all: Vec<_> = Platform::ALL.into_iter().flat_map(of).collect();
    all.sort_by_key(|r| r.opcode);
    all.dedup_by_key(|r| r.opcode);
    // Matrices are no message to memory, and long to compile.
    all.retain(|r| r.form != Form::Dpas);
    all
}

/// A kernel of messages of one row, one after the other, without anything in between but what computes their addresses.
pub fn messages(seed: u64, row: &'static OpcodeInfo, count: usize) -> Kernel {
    let mut rng = Rng::new(seed ^ 0x3e55);
    let all: Vec<Platform> = Platform::ALL
        .into_iter()
        .filter(|p| {
            message::rows(*p, true)
                .iter()
                .any(|r| r.opcode == row.opcode)
        })
        .collect();
    let mut kernel = Kernel {
        platform: *rng.pick(&all),
        simd: *rng.pick(&[8, 16, 16, 32]),
        mode: 0x4c0,
        images: row.accesses_images() || (message::sends(row.form) && rng.chance(40)),
        variables: Vec::new(),
        aliases: Vec::new(),
        body: Vec::new(),
        subroutine: Vec::new(),
    };
    variables(&mut kernel, &mut rng);
    let mut g = Generator {
        rows: Vec::new(),
        messages: vec![row],
        kernel: &kernel,
        rng,
        loops: 0,
        calls: false,
    };
    let mut body = Vec::new();
    for _ in 0..20 * count {
        body.extend(g.message());
        if body.len() == count {
            break;
        }
    }
    kernel.body = body;
    kernel
}

fn variables(kernel: &mut Kernel, rng: &mut Rng) {
    let mut all = vec![Type::Ud, Type::Ud, Type::F, Type::F, Type::D];
    for _ in 0..3 {
        all.push(*rng.pick(&INTS));
    }
    all.push(*rng.pick(&[Type::Hf, Type::Df, Type::Bf]));
    all.push(*rng.pick(&[Type::Hf, Type::Df]));
    let mut at = 0;
    for (i, ty) in all.into_iter().enumerate() {
        kernel.variables.push(Variable {
            name: format!("V{i}_{ty}"),
            ty,
            at,
        });
        at += ELEMENTS * ty.bytes();
    }
    for i in 0..3 {
        let of = rng.pick(&kernel.variables).clone();
        let ty = if of.ty.is_float() {
            of.ty
        } else {
            *rng.pick(&INTS)
        };
        // Not always at an element of the variable, but at one of its own.
        let half = ELEMENTS * of.ty.bytes() / 2;
        let offset = rng.below((half / ty.bytes()) as usize) as u32 * ty.bytes();
        let elements = (ELEMENTS * of.ty.bytes() - offset) / ty.bytes();
        let name = format!("W{i}_{ty}");
        kernel.aliases.push(Alias {
            name,
            ty,
            of: of.name,
            offset,
            elements,
        });
    }
}

pub(super) struct Generator<'k> {
    rows: Vec<&'static OpcodeInfo>,
    messages: Vec<&'static OpcodeInfo>,
    pub kernel: &'k Kernel,
    pub rng: Rng,
    loops: usize,
    calls: bool,
}

impl Registers for Kernel {
    fn source(&self, rng: &mut Rng, ty: Type) -> Option<(String, u32)> {
        let variables = self.variables.iter().filter(|v| v.ty == ty);
        let mut all: Vec<(String, u32)> = variables.map(|v| (v.name.clone(), ELEMENTS)).collect();
        let aliases = self.aliases.iter().filter(|a| a.ty == ty);
        all.extend(aliases.map(|a| (a.name.clone(), a.elements)));
        if all.is_empty() {
            None
        } else {
            Some(rng.pick(&all).clone())
        }
    }

    fn predicate(&self, rng: &mut Rng, _: u32) -> String {
        rng.pick(&["P1", "P2", "P3", "P4"]).to_string()
    }

    fn indirect(&self, rng: &mut Rng, ty: Type, lines: &mut Vec<String>) -> Option<Indirect> {
        let of: Vec<&Variable> = self
            .variables
            .iter()
            .filter(|v| v.ty == ty && ty.bytes() >= 2)
            .collect();
        if of.is_empty() {
            return None;
        }
        let name = &rng.pick(&of).name;
        if rng.chance(50) && self.simd >= 16 {
            // As compilers write it where not all lanes get an address.
            if rng.chance(30) {
                lines.push("mov (M1_NM, 16) A1(0)<1> 0x0:uw".into());
            }
            lines.push(format!(
                "addr_add (M1_NM, 16) A1(0)<1> &{name} STEPS(0,0)<1;1,0>"
            ));
            return Some(Indirect {
                text: "r[A1(0),0]".into(),
                vector: true,
                elements: 1,
            });
        }
        let at = rng.below(8) as u32 * ty.bytes();
        lines.push(format!("addr_add (M1_NM, 1) A0(0)<1> &{name} {at:#x}:uw"));
        Some(Indirect {
            text: "r[A0(0),0]".into(),
            vector: false,
            elements: ELEMENTS - 8,
        })
    }
}

impl Generator<'_> {
    fn statements(&mut self, count: usize, depth: usize) -> Vec<Node> {
        let mut out = Vec::new();
        for _ in 0..count {
            out.extend(self.statement(depth));
        }
        out
    }

    fn statement(&mut self, depth: usize) -> Option<Node> {
        match self.rng.below(100) {
            0..=8 if depth < DEPTH => Some(self.branch(depth)),
            9..=12 if depth < DEPTH && self.loops < 2 => Some(self.repeat(depth)),
            13..=15 if self.calls => {
                let guard = *self.rng.pick(&["", "", "(P1) ", "(!P2) "]);
                Some(Node::Lines(vec![format!(
                    "{guard}call (M1, {}) sub",
                    self.kernel.simd
                )]))
            }
            16..=34 => self.message(),
            _ => self.compute(),
        }
    }

    fn branch(&mut self, depth: usize) -> Node {
        let simd = self.kernel.simd;
        let p = *self.rng.pick(&["P1", "P2", "P3", "P4"]);
        let mut setup = Vec::new();
        let not = if self.rng.chance(50) { "!" } else { "" };
        let goto = if self.rng.chance(20) {
            // All bits alike, whichever lanes are enabled.
            let at = self.rng.below(32);
            setup.push(format!(
                "cmp.gt (M1_NM, {simd}) {p} LANE(0,{at})<0;1,0> 0x80000000:ud"
            ));
            let form = *self.rng.pick(&["", ".any", ".all"]);
            // A bit for each lane of the thread, and none besides.
            let form = if simd == 32 { form } else { "" };
            format!("({not}{p}{form}) goto (M1, 1)")
        } else {
            if self.rng.chance(60) {
                let (name, _) = self
                    .kernel
                    .source(&mut self.rng, Type::Ud)
                    .unwrap_or_default();
                let value = self.rng.bits() as u32;
                setup.push(format!(
                    "cmp.lt (M1, {simd}) {p} {name}(0,0)<1;1,0> {value:#x}:ud"
                ));
            }
            format!("({not}{p}) goto (M1, {simd})")
        };
        let n = 1 + self.rng.below(4);
        let body = self.statements(n, depth + 1);
        let n = self.rng.below(4);
        let other = self.statements(n, depth + 1);
        Node::Branch {
            setup,
            goto,
            body,
            other,
        }
    }

    fn repeat(&mut self, depth: usize) -> Node {
        let n = 1 + self.rng.below(4);
        let counter = self.loops;
        self.loops += 1;
        let body = self.statements(n, depth + 1);
        self.loops -= 1;
        Node::Loop {
            depth: counter,
            most: *self.rng.pick(&[2, 4]),
            body,
        }
    }

    /// Puts barriers and what else orders memory between statements that all lanes come through: values stay
    /// what they are, though at a barrier the program returns and is called again.
    fn waits(&mut self, body: &mut Vec<Node>) {
        if self.rng.chance(60) {
            return;
        }
        for _ in 0..1 + self.rng.below(3) {
            let at = self.rng.below(body.len() + 1);
            let line = match self.rng.below(5) {
                0 => "yield",
                1 => "fence_global.E",
                2 if self.kernel.platform >= Platform::Dg2 => "lsc_fence.ugm.none.group",
                2 => "fence_local",
                _ => "barrier",
            };
            body.insert(at, Node::Lines(vec![line.to_owned()]));
        }
    }

    fn message(&mut self) -> Option<Node> {
        let row = *self.rng.pick(&self.messages);
        let mut lines = message::lines(self, row)?;
        if self.rng.chance(30)
            && let Some(halves) = lines.last().and_then(|line| self.halves(line))
        {
            lines.pop();
            lines.extend(halves);
        }
        Some(Node::Lines(lines))
    }

    /// An instruction for all lanes of a thread as two for half of them each, or one for the lower half of some lanes and the
    /// same for the upper one: so compilers write what is too wide for a device.
    fn halves(&self, line: &str) -> Option<[String; 2]> {
        let (before, rest) = line.split_once("(M")?;
        let (exec, behind) = rest.split_once(')')?;
        let (mask, lanes) = exec.split_once(", ")?;
        let (digits, mask) = match mask.split_once('_') {
            Some((digits, _)) => (digits, "_NM"),
            None => (mask, ""),
        };
        let (first, mut lanes): (u32, u32) = (digits.parse().ok()?, lanes.parse().ok()?);
        let first = 4 * (first - 1);
        // Descriptors say how many lanes there are.
        if lanes == self.kernel.simd && !before.contains("raw_send") {
            lanes /= 2;
        }
        let pair = lanes >= 8 && first.is_multiple_of(2 * lanes);
        let there = first + 2 * lanes <= self.kernel.simd;
        (pair && there).then(|| {
            let half = |first| format!("{before}(M{}{mask}, {lanes}){behind}", first / 4 + 1);
            [half(first), half(first + lanes)]
        })
    }

    /// Types of a row that this kernel has variables of.
    fn types(&mut self, row: &OpcodeInfo) -> Option<Types> {
        let mut known: Vec<Type> = self.kernel.variables.iter().map(|v| v.ty).collect();
        known.extend(self.kernel.aliases.iter().map(|a| a.ty));
        let mut all = types(row);
        all.retain(|t| exists(row, self.kernel.platform, t));
        all.retain(|t| t.srcs.iter().chain([&t.dst]).all(|t| known.contains(t)));
        if all.is_empty() {
            None
        } else {
            Some(self.rng.pick(&all).clone())
        }
    }

    fn destination(&mut self, ty: Type, shape: Shape, dense: bool) -> Option<String> {
        let (name, elements) = self.kernel.source(&mut self.rng, ty)?;
        if dense {
            // Two runs of whole registers from the start of a variable.
            return name.starts_with('V').then(|| format!("{name}(0,0)<1>"));
        }
        let stride = *self.rng.pick(&[1, 1, 1, 1, 2, 4]);
        let extent = (shape.lanes - 1) * stride;
        if extent >= elements {
            return None;
        }
        let at = if self.rng.chance(60) {
            0
        } else {
            self.rng.below((elements - extent) as usize)
        };
        Some(format!("{name}(0,{at})<{stride}>"))
    }

    fn compute(&mut self) -> Option<Node> {
        let row = *self.rng.pick(&self.rows);
        let types = self.types(row)?;
        let step = if self.kernel.platform.has_wide_registers() {
            8
        } else {
            4
        };
        let mut shape = Shape::any(&mut self.rng, self.kernel.simd, step);
        match row.opcode {
            Opcode::Plane => shape.lanes = shape.lanes.clamp(8, 16),
            Opcode::Madw => shape.lanes = shape.lanes.min(16),
            _ => {}
        }
        if shape.first + shape.lanes > self.kernel.simd {
            shape.first = 0;
        }
        let predicate = self.rng.pick(&["P1", "P2", "P3", "P4"]).to_string();
        let mut dsts = Vec::new();
        if row.dst_types == TypeClass::Predicate || (row.form == Form::Cmp && self.rng.chance(70)) {
            dsts.push(predicate);
        } else {
            let dense = row.opcode == Opcode::Madw;
            dsts.push(self.destination(types.dst, shape, dense)?);
            match (row.form, row.dst.predicate()) {
                (Form::AluPair, true) => dsts.push(predicate),
                (Form::AluPair, false) => dsts.push(self.destination(types.dst, shape, false)?),
                _ => {}
            }
        }
        let mut lines = Vec::new();
        instruction(
            &mut self.rng,
            row,
            &types,
            shape,
            &dsts,
            self.kernel,
            &mut lines,
        )?;
        // Two results in one place have no order.
        let clash = dsts.len() == 2
            && row.predicate != PredKind::Output
            && same_storage(self.kernel, &dsts);
        (!clash).then_some(Node::Lines(lines))
    }
}

/// True when two destinations may overlap.
fn same_storage(kernel: &Kernel, dsts: &[String]) -> bool {
    let root = |d: &String| {
        let name = d.split('(').next().unwrap_or("").to_owned();
        let alias = kernel.aliases.iter().find(|a| a.name == name);
        alias.map_or(name, |a| a.of.clone())
    };
    root(&dsts[0]) == root(&dsts[1])
}
