//! Rules that the opcode table states: operand classes and types, `.sat`, modifiers, predicates, platforms.
//!
//! Messages name the instruction, the operand as the text counts it, what it is, and what the row allows.

use super::Target;
use crate::isa::{Classes, Form, Modifiers, OpcodeInfo, PredKind, SrcModifier, Type, TypeClass};
use crate::module::*;

/// What the rules are asked about.
pub(super) struct Rules<'a> {
    module: &'a Module,
    target: Target,
    inst: &'a Inst,
    row: &'static OpcodeInfo,
    broken: Vec<String>,
}

/// Rules of the table that an instruction breaks, as messages.
pub(super) fn broken(module: &Module, target: Target, inst: &Inst) -> Vec<String> {
    let mut rules = Rules {
        module,
        target,
        inst,
        row: inst.op.info(),
        broken: Vec::new(),
    };
    rules.check();
    let name = inst.mnemonic();
    let named = |rule: String| format!("`{name}`: {rule}");
    rules.broken.into_iter().map(named).collect()
}

impl Rules<'_> {
    fn breaks(&mut self, rule: String) {
        self.broken.push(rule);
    }

    fn check(&mut self) {
        // What else is wrong with an instruction that is not there does not matter.
        if let Some(rule) = self.row.platform_rule(self.target.platform, &[]) {
            self.breaks(rule);
            return;
        }
        if self.inst.pred.is_some() && self.row.predicate == PredKind::None {
            self.breaks("no predicate is allowed in front".into());
        }
        let inst = self.inst;
        let (mut scalars, mut payloads) = (Vec::new(), Vec::new());
        inst.operands(|operand| match operand {
            Operand::Src(s) | Operand::Scalar(s) => scalars.push(s),
            Operand::Address(r) | Operand::Read(r) | Operand::Written(r) => payloads.push(r.var),
            Operand::Element(o) => payloads.push(o.var),
            _ => {}
        });
        self.payloads(&payloads);
        match &inst.body {
            Body::Alu(a) => self.alu(a),
            Body::Faddr { dst, .. } => {
                self.dst(dst, self.row.dst);
                self.types(Some(dst), &[]);
            }
            // Texel offsets have rules of their own.
            Body::Sample(_) => {}
            _ => self.scalars(&scalars),
        }
    }

    /// Operands of messages and branches that are one element.
    fn scalars(&mut self, srcs: &[&Src]) {
        for (i, s) in srcs.iter().enumerate() {
            self.src(i, s);
        }
        self.types(None, srcs);
    }

    fn payloads(&mut self, vars: &[VarId]) {
        for (i, &v) in vars.iter().enumerate() {
            let allowed = self.row.payload(i);
            if let Some(ty) = self.var(v)
                && allowed != TypeClass::Any
                && !allowed.contains(ty)
            {
                let types = allowed.describe();
                self.breaks(format!("payload {i} has type `{ty}`; allowed: {types}"));
            }
        }
    }

    fn alu(&mut self, a: &Alu) {
        let (first, second) = destinations(self.row);
        self.dst(&a.dst, first);
        match (&a.dst2, second) {
            (Some(d), Some(classes)) => self.dst(d, classes),
            (None, None) => {}
            (_, Some(_)) => self.breaks("a second destination is missing".into()),
            (_, None) => self.breaks("there is no second destination".into()),
        }
        if a.srcs.len() != usize::from(self.row.sources) {
            let n = self.row.sources;
            self.breaks(format!("takes {n} sources, not {}", a.srcs.len()));
        }
        for (i, s) in a.srcs.iter().enumerate() {
            self.src(i, s);
        }
        if a.sat && !self.row.saturation {
            self.breaks("no `.sat` is allowed".into());
        }
        let srcs: Vec<&Src> = a.srcs.iter().collect();
        self.types(Some(&a.dst), &srcs);
        if let Some(d @ (Dst::General { .. } | Dst::Indirect { .. })) = &a.dst2 {
            self.types(Some(d), &srcs);
        }
        self.predicates(a);
    }

    /// Predicates as data: `and or xor not` among themselves, and `mov` of all bits to one integer.
    fn predicates(&mut self, a: &Alu) {
        let is_pred = |s: &Src| matches!(s, Src::Pred(_));
        if !a.srcs.iter().any(is_pred) {
            if matches!(a.dst, Dst::Pred(_)) && self.row.src(0).predicate() {
                self.breaks("the operands are all predicates or none is".into());
            }
            return;
        }
        let alone = self.inst.pred.is_none() && !a.sat;
        if !alone {
            self.breaks("predicates as data allow no predicate in front and no `.sat`".into());
        }
        if self.row.dst.predicate() {
            if !matches!(a.dst, Dst::Pred(_)) || !a.srcs.iter().all(is_pred) {
                self.breaks("the operands are all predicates or none is".into());
            }
            return;
        }
        let to = self.dst_type(&a.dst);
        if self.inst.exec.lanes() != 1 || to.is_some_and(|t| !t.is_int() || t.bytes() > 4) {
            self.breaks(
                "a predicate goes to one integer of at most 32 bits, with execution size 1".into(),
            );
        }
    }

    fn dst(&mut self, d: &Dst, allowed: Classes) {
        let (class, name) = match d {
            Dst::General { .. } | Dst::Indirect { .. } => (Classes::GEN, "general variable"),
            Dst::Pred(_) => (Classes::PRED, "predicate"),
            Dst::Address { .. } => (Classes::ADDR, "address"),
            Dst::Surface(..) | Dst::Sampler(..) => (Classes::STATE, "surface or sampler"),
        };
        if !allowed.has(class) {
            let names = allowed.names().join(", ");
            self.breaks(format!("the destination is a {name}; allowed: {names}"));
        }
    }

    fn src(&mut self, i: usize, s: &Src) {
        let (class, name) = match s {
            Src::General { .. } | Src::Indirect { .. } => (Classes::GEN, "general variable"),
            Src::Imm { .. } => (Classes::IMM, "immediate"),
            Src::Pred(_) => (Classes::PRED, "predicate"),
            Src::Address { .. } | Src::AddressOf { .. } | Src::AddressOfSurface { .. } => {
                (Classes::ADDR, "address")
            }
            Src::Surface(..) | Src::Sampler(..) => (Classes::STATE, "surface or sampler"),
        };
        let allowed = self.row.src(i);
        if !allowed.has(class) {
            let names = allowed.names().join(", ");
            self.breaks(format!("source {i} is a {name}; allowed: {names}"));
        }
        self.modifier(i, s);
    }

    fn modifier(&mut self, i: usize, s: &Src) {
        let (Src::General { modifier, .. } | Src::Indirect { modifier, .. }) = s else {
            return;
        };
        let (allowed, which) = match self.row.modifiers {
            Modifiers::None => (false, "none is allowed"),
            Modifiers::Arith => (*modifier != SrcModifier::Not, "allowed: (-), (abs), (-abs)"),
            Modifiers::Logic => (*modifier == SrcModifier::Not, "allowed: (~)"),
        };
        if *modifier != SrcModifier::None && !allowed {
            self.breaks(format!("modifier of source {i}; {which}"));
        }
    }

    fn types(&mut self, dst: Option<&Dst>, srcs: &[&Src]) {
        let dst = dst.and_then(|d| self.dst_type(d));
        let srcs: Vec<Option<Type>> = srcs.iter().map(|s| self.src_type(s)).collect();
        let rule = self.row.type_rule(dst, &srcs);
        let all: Vec<Type> = srcs.into_iter().chain([dst]).flatten().collect();
        let rule = rule.or_else(|| self.row.platform_rule(self.target.platform, &all));
        if let Some(rule) = rule {
            self.breaks(rule);
        }
    }

    /// Element type of a variable; `%null` has any.
    fn var(&self, v: VarId) -> Option<Type> {
        self.module.vars.ty(v).filter(|_| v != VarId::NULL)
    }

    fn dst_type(&self, d: &Dst) -> Option<Type> {
        match d {
            Dst::General { origin, .. } => self.var(origin.var),
            Dst::Indirect { indirect, .. } => Some(indirect.ty),
            _ => None,
        }
    }

    fn src_type(&self, s: &Src) -> Option<Type> {
        match s {
            Src::General { origin, .. } => self.var(origin.var),
            Src::Indirect { indirect, .. } => Some(indirect.ty),
            Src::Imm { ty, .. } => Some(*ty),
            _ => None,
        }
    }
}

/// Classes of the destinations. The second is a carry of the same kind, or the predicate of a macro
/// operation; then the first is general.
fn destinations(row: &OpcodeInfo) -> (Classes, Option<Classes>) {
    match row.form {
        Form::AluPair if row.dst.predicate() => (Classes::GEN, Some(Classes::PRED)),
        Form::AluPair => (row.dst, Some(row.dst)),
        _ => (row.dst, None),
    }
}
