//! The rules, one function a topic.

use super::place::Places;
use super::{Target, ValidError, rules, shapes};
use crate::isa::{Opcode, Type};
use crate::module::*;

/// Bytes of the payload of a 2D block message that are read: an address and five dwords.
const BLOCK_PAYLOAD_BYTES: u64 = 28;

fn error(errors: &mut Vec<ValidError>, pos: Pos, message: String) {
    errors.push(ValidError { pos, message });
}

/// Dispatch width: the `SimdSize` attribute, 8, 16 or 32 (1 for scalar kernels).
pub(super) fn simd(module: &Module, errors: &mut Vec<ValidError>) -> u32 {
    match module.int_attr("SimdSize") {
        Some(n @ (1 | 8 | 16 | 32)) => n as u32,
        Some(n) => {
            error(
                errors,
                Pos::default(),
                format!("SimdSize={n}: expected 1, 8, 16 or 32"),
            );
            32
        }
        // Hand-written text often omits it; the widest thread any instruction needs is safe.
        None => module
            .insts
            .iter()
            .map(|i| i.exec.mask.first_lane() + i.exec.lanes())
            .max()
            .map_or(8, |n| {
                if n <= 8 {
                    8
                } else if n <= 16 {
                    16
                } else {
                    32
                }
            }),
    }
}

/// Every label that is used is defined, and refers to a label instruction.
pub(super) fn labels(module: &Module, errors: &mut Vec<ValidError>) {
    for label in &module.labels {
        let ok = label
            .def
            .and_then(|i| module.insts.get(i as usize))
            .is_some_and(|i| matches!(i.body, Body::Label(_)));
        if !ok {
            error(
                errors,
                Pos::default(),
                format!("label `{}` is never defined", label.name),
            );
        }
    }
}

/// Inputs name existing variables and fit them.
pub(super) fn inputs(module: &Module, places: &Places, errors: &mut Vec<ValidError>) {
    for input in &module.inputs {
        if let InputVar::General(v) = input.var {
            if !places.exists(v) {
                error(
                    errors,
                    input.pos,
                    "input of a variable that does not exist".into(),
                );
            } else {
                input_fits(module, places, input, v, errors);
            }
        }
    }
    let mut placed: Vec<_> = module.inputs.iter().filter(|i| i.size != 0).collect();
    placed.sort_by_key(|i| i.offset);
    for pair in placed.windows(2) {
        let end = u64::from(pair[0].offset) + u64::from(pair[0].size);
        if end > u64::from(pair[1].offset) {
            let message = format!(
                "inputs overlap: one ends at byte {end} of the payload, another begins at {}",
                pair[1].offset
            );
            error(errors, pair[1].pos, message);
        }
    }
}

fn input_fits(
    module: &Module,
    places: &Places,
    input: &Input,
    v: VarId,
    errors: &mut Vec<ValidError>,
) {
    let room = module
        .vars
        .general(v)
        .map_or(places.room(v), |g| g.elements.saturating_mul(g.ty.bytes()));
    if input.size != room {
        let message = format!(
            "input of {} bytes into a variable of {room} bytes",
            input.size
        );
        error(errors, input.pos, message);
    }
    let element = module.vars.ty(v).map_or(1, Type::bytes);
    if !input.offset.is_multiple_of(element) {
        let message = format!(
            "input at byte {} of the payload, which is no multiple of its elements' {element} bytes",
            input.offset
        );
        error(errors, input.pos, message);
    }
}

struct Ctx<'a> {
    module: &'a Module,
    places: &'a Places,
    target: Target,
    lanes: u32,
    pos: Pos,
    errors: &'a mut Vec<ValidError>,
}

/// Rules of one instruction.
pub(super) fn inst(
    module: &Module,
    places: &Places,
    target: Target,
    simd: u32,
    inst: &Inst,
    errors: &mut Vec<ValidError>,
) {
    for message in rules::broken(module, target, inst) {
        error(errors, inst.pos, message);
    }
    shapes::check(module, target, inst, errors);
    let mut c = Ctx::new(module, places, target, inst, errors);
    c.exec(inst, simd);
    if let Some(p) = inst.pred {
        c.pred_exists(p.var);
        // A predicate narrower than the channels it guards would leave channels undecided.
        let need = match p.control {
            PredControl::Lanes => inst.exec.mask.first_lane() + c.lanes,
            _ => 1,
        };
        c.pred_bits(p.var, need);
    }
    c.operands(inst);
}

/// Operands of an instruction that a hardware message was read as: they lie inside their variables.
pub(super) fn message(
    module: &Module,
    places: &Places,
    target: Target,
    inst: &Inst,
    errors: &mut Vec<ValidError>,
) {
    Ctx::new(module, places, target, inst, errors).operands(inst);
}

impl<'a> Ctx<'a> {
    fn new(
        module: &'a Module,
        places: &'a Places,
        target: Target,
        inst: &Inst,
        errors: &'a mut Vec<ValidError>,
    ) -> Ctx<'a> {
        Ctx {
            module,
            places,
            target,
            lanes: inst.exec.lanes(),
            pos: inst.pos,
            errors,
        }
    }
}

impl Ctx<'_> {
    fn err(&mut self, message: String) {
        error(self.errors, self.pos, message);
    }

    fn exec(&mut self, inst: &Inst, simd: u32) {
        let end = inst.exec.mask.first_lane() + self.lanes;
        if end > 32 {
            self.err(format!(
                "{} covers lanes up to {end}; a thread has at most 32",
                inst.exec
            ));
        } else if end > simd && !inst.exec.mask.no_mask && self.lanes > 1 {
            self.err(format!(
                "{} covers lanes up to {end}; the kernel has SimdSize {simd}",
                inst.exec
            ));
        } else if end > simd && !inst.exec.mask.no_mask && !matches!(inst.body, Body::Alu(_)) {
            // The assembler takes one lane anywhere; computing for a lane that no thread has does nothing.
            self.err(format!(
                "{} is a lane that no thread has; the kernel has SimdSize {simd}",
                inst.exec
            ));
        }
    }

    fn pred_exists(&mut self, p: PredId) -> bool {
        let ok = self.module.vars.pred_bits(p).is_some();
        if !ok {
            self.err(format!("predicate P{} does not exist", p.0));
        }
        ok
    }

    fn pred_bits(&mut self, p: PredId, need: u32) {
        if let Some(bits) = self.module.vars.pred_bits(p)
            && bits < need
            && bits != 1
        {
            self.err(format!(
                "predicate P{} has {bits} bits; the instruction uses {need}",
                p.0
            ));
        }
    }

    fn var(&mut self, v: VarId) -> Option<Type> {
        if !self.places.exists(v) {
            self.err(format!("variable {} does not exist", v.0));
            return None;
        }
        self.module.vars.ty(v)
    }

    /// Bytes `lo .. hi` relative to the variable lie in its storage.
    fn within(&mut self, v: VarId, hi: u64) {
        if v == VarId::NULL {
            return;
        }
        let room = u64::from(self.places.room(v));
        if hi > room {
            let name = self
                .module
                .vars
                .general(v)
                .map_or_else(|| format!("V{}", v.0), |g| g.name.clone());
            self.err(format!(
                "operand reaches byte {hi} of `{name}`, which has {room}"
            ));
        }
    }

    fn origin(&mut self, o: Origin, last_element: u32) {
        if let Some(ty) = self.var(o.var) {
            let start = u64::from(o.row) * u64::from(self.target.grf())
                + u64::from(o.col) * u64::from(ty.bytes());
            self.within(
                o.var,
                start + (u64::from(last_element) + 1) * u64::from(ty.bytes()),
            );
        }
    }

    fn raw(&mut self, r: Raw) {
        if self.var(r.var).is_some() && !r.is_null() {
            self.within(r.var, u64::from(r.offset) + 1);
        }
    }

    fn address(&mut self, a: AddrId, last: u32) {
        match self.module.vars.address.get(a.0 as usize) {
            None => self.err(format!("address variable A{} does not exist", a.0)),
            Some(v) if last >= v.elements => {
                self.err(format!(
                    "element {last} of A{}, which has {}",
                    a.0, v.elements
                ));
            }
            Some(_) => {}
        }
    }

    fn surface(&mut self, s: SurfaceId) {
        if let Some(var) = s.as_word() {
            self.var(var);
        } else if s.as_entry().is_none()
            && s.0 >= SurfaceId::FIRST_USER + self.module.vars.surface.len() as u32
        {
            self.err(format!("surface T{} does not exist", s.0));
        }
    }

    fn sampler(&mut self, s: SamplerId) {
        if s.0 as usize >= self.module.vars.sampler.len() {
            self.err(format!("sampler S{} does not exist", s.0));
        }
    }

    fn src(&mut self, s: &Src) {
        match s {
            Src::General { origin, region, .. } => {
                if u32::from(region.width) > self.lanes {
                    self.err(format!(
                        "a region of {} elements in a row, for {} lanes",
                        region.width, self.lanes
                    ));
                }
                let last = (0..self.lanes)
                    .map(|l| region.element(l))
                    .max()
                    .unwrap_or(0);
                self.origin(*origin, last);
            }
            Src::Indirect {
                indirect, region, ..
            } => {
                let last = match region {
                    IndirectRegion::Single(_) => 0,
                    IndirectRegion::VxH { width, .. } => {
                        (self.lanes - 1) / u32::from((*width).max(1))
                    }
                };
                self.address(indirect.addr, u32::from(indirect.index) + last);
            }
            Src::Pred(p) => {
                self.pred_exists(*p);
            }
            Src::Address { addr, index, .. } => self.address(*addr, u32::from(*index)),
            Src::AddressOf { var, offset } => {
                if self.var(*var).is_some() {
                    self.within(*var, u64::from(*offset));
                }
            }
            Src::AddressOfSurface { surface, .. } | Src::Surface(surface, _) => {
                self.surface(*surface)
            }
            Src::Sampler(s, _) => self.sampler(*s),
            Src::Imm { .. } => {}
        }
    }

    fn dst(&mut self, d: &Dst) {
        match d {
            Dst::General { origin, region } => {
                self.origin(*origin, (self.lanes - 1) * u32::from(region.hstride));
                if matches!(
                    origin.var,
                    VarId::R0 | VarId::SR0 | VarId::CE0 | VarId::HW_ID | VarId::TSC
                ) {
                    self.err(format!(
                        "{} is read-only",
                        PREDEFINED[origin.var.0 as usize].name
                    ));
                }
            }
            Dst::Indirect { indirect, .. } => {
                self.address(indirect.addr, u32::from(indirect.index))
            }
            Dst::Pred(p) => {
                self.pred_exists(*p);
            }
            Dst::Address { addr, index, width } => {
                self.address(
                    *addr,
                    (u32::from(*index) + u32::from(*width)).saturating_sub(1),
                );
            }
            Dst::Surface(s, _) => self.surface(*s),
            Dst::Sampler(s, _) => self.sampler(*s),
        }
    }

    /// A scalar operand: one element whatever the execution size.
    fn scalar(&mut self, s: &Src) {
        let lanes = std::mem::replace(&mut self.lanes, 1);
        self.src(s);
        self.lanes = lanes;
    }

    /// A source of an instruction that may look at more elements than it has channels.
    fn neighbours(&mut self, op: Opcode, i: usize, s: &Src) {
        use Opcode as O;
        let lanes = self.lanes;
        let (read, packed) = match (op, i) {
            (O::Plane, 0) => (4, true),
            (O::Plane, _) => (lanes.div_ceil(8) * 16, true),
            (O::Line, 0) => (4, false),
            (O::Dp2 | O::Dp3 | O::Dp4 | O::Dph, _) => (lanes.max(4), false),
            (O::Sad2, _) | (O::Sad2add, 0 | 1) => (lanes.max(2), false),
            _ => (lanes, false),
        };
        if packed && let Src::General { origin, .. } = s {
            return self.origin(*origin, read - 1);
        }
        self.lanes = read;
        self.src(s);
        self.lanes = lanes;
    }

    fn operands(&mut self, inst: &Inst) {
        let mut source = 0;
        inst.operands(|operand| match operand {
            Operand::Dst(d) => self.dst(d),
            Operand::ScalarDst(d) => {
                let lanes = std::mem::replace(&mut self.lanes, 1);
                self.dst(d);
                self.lanes = lanes;
            }
            Operand::Src(s) => {
                self.neighbours(inst.op, source, s);
                source += 1;
            }
            Operand::Scalar(s) => self.scalar(s),
            Operand::Address(r) | Operand::Read(r) | Operand::Written(r) => self.raw(*r),
            Operand::Element(o) => self.origin(*o, 0),
            Operand::Surface(s) => self.surface(*s),
            Operand::Sampler(s) => self.sampler(*s),
            // Guards are checked before, labels with the flow.
            Operand::Guard(_)
            | Operand::Label(_)
            | Operand::Var(_)
            | Operand::AddressVar(_)
            | Operand::PredVar(_) => {}
        });
        self.numbers(inst);
    }

    /// Rules of single forms that their operands alone do not say.
    fn numbers(&mut self, inst: &Inst) {
        match &inst.body {
            Body::Mem(Mem {
                kind: MemKind::Media {
                    modifier, plane, ..
                },
                ..
            }) => {
                if *plane > 3 {
                    self.err(format!("there is no plane {plane}; planes are 0 to 3"));
                }
                if inst.stores() && *modifier > 3 {
                    self.err("`media_st` has no such modifier".into());
                }
            }
            Body::LscBlock2d(LscBlock2d {
                address: BlockAddress::Payload { payload, .. },
                ..
            }) => {
                let end = u64::from(payload.offset) + BLOCK_PAYLOAD_BYTES;
                self.within(payload.var, end);
            }
            Body::Sample(Sample {
                aoffimmi: Some(offsets),
                ..
            }) => {
                let ty = match offsets {
                    Src::General { origin, .. } => self.module.vars.ty(origin.var),
                    Src::Imm { ty, .. } => Some(*ty),
                    _ => None,
                };
                if ty.is_some_and(|ty| !ty.is_int()) {
                    self.err("offsets of texels are integers".into());
                }
            }
            _ => {}
        }
    }
}
