//! Puts a kernel and the stack-call functions that it can reach into one [`Module`].
//!
//! Each function becomes a subroutine with variables of its own; what functions share are the predefined
//! variables (`%arg`, `%retval`, `%sp`, `%fp`, `%r0` …). Guarantees that ids of the result are as valid as those
//! of the parts were. Does not resolve names: calls keep them, [`Module::functions`] says where they lead.

use super::*;

/// Address of the function with id 0. Function pointers are small numbers, none of them null.
const FIRST_ADDRESS: u32 = 64;
/// Distance between addresses.
const STEP: u32 = 64;

/// A function that was linked in.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedFunction {
    /// Name, as `fcall` and `faddr` spell it.
    pub name: String,
    /// Label of its first instruction.
    pub entry: LabelId,
    /// What `faddr` gives; the same in all kernels of a program.
    pub address: u32,
    /// Some code may hold its address: only such functions are called by address.
    pub address_taken: bool,
    /// First general, address, predicate, sampler and surface variable of its own, as indices into [`Vars`].
    pub first_vars: [u32; 5],
}

/// A function to link.
#[derive(Clone, Debug)]
pub struct Function {
    /// Number in the program, which decides the address.
    pub index: u32,
    /// The file says that its address is taken, in data perhaps.
    pub address_taken: bool,
    /// Its code.
    pub module: Module,
}

/// Address of the program's function number `index`.
pub fn function_address(index: u32) -> u32 {
    FIRST_ADDRESS.saturating_add(index.saturating_mul(STEP))
}

/// Number of the function at an address is `(address - FIRST_ADDRESS) / STEP`, exactly.
pub const ADDRESS_FORM: (u32, u32) = (FIRST_ADDRESS, STEP);

/// What is added to each class of ids.
struct Shift {
    general: u32,
    address: u32,
    predicate: u32,
    sampler: u32,
    surface: u32,
    label: u32,
}

/// Appends functions to a kernel.
pub fn link(mut kernel: Module, functions: Vec<Function>) -> Module {
    for f in functions {
        append(&mut kernel, f);
    }
    for inst in &kernel.insts {
        if let Body::Faddr { name, .. } = &inst.body {
            for f in kernel.functions.iter_mut().filter(|f| f.name == *name) {
                f.address_taken = true;
            }
        }
    }
    kernel
}

fn append(kernel: &mut Module, function: Function) {
    let Function {
        index,
        address_taken,
        module: mut f,
    } = function;
    let vars = &kernel.vars;
    let shift = Shift {
        general: vars.general.len() as u32,
        address: vars.address.len() as u32,
        predicate: vars.predicate.len() as u32,
        sampler: vars.sampler.len() as u32,
        surface: vars.surface.len() as u32,
        label: kernel.labels.len() as u32,
    };
    for v in &mut f.vars.general {
        if let Some((parent, _)) = &mut v.alias {
            shift.var(parent);
        }
    }
    let first = kernel.insts.len() as u32;
    let entry = match f.insts.first() {
        Some(Inst {
            op: Opcode::Subroutine,
            body: Body::Label(l),
            ..
        }) => LabelId(l.0 + shift.label),
        // A function that does not open with `.function` is given one.
        other => {
            let pos = other.map_or_else(Pos::default, |i| i.pos);
            let l = LabelId(f.labels.len() as u32);
            f.labels.push(Label {
                name: f.name.clone(),
                subroutine: true,
                def: None,
            });
            f.insts.insert(
                0,
                Inst {
                    op: Opcode::Subroutine,
                    pred: None,
                    exec: Exec::SCALAR,
                    body: Body::Label(l),
                    written: None,
                    pos,
                },
            );
            LabelId(l.0 + shift.label)
        }
    };
    for inst in &mut f.insts {
        shift.inst(inst);
    }
    kernel.vars.general.append(&mut f.vars.general);
    kernel.vars.address.append(&mut f.vars.address);
    kernel.vars.predicate.append(&mut f.vars.predicate);
    kernel.vars.sampler.append(&mut f.vars.sampler);
    kernel.vars.surface.append(&mut f.vars.surface);
    kernel.labels.append(&mut f.labels);
    kernel.insts.append(&mut f.insts);
    for (i, inst) in kernel.insts.iter().enumerate().skip(first as usize) {
        if let Body::Label(l) = inst.body
            && let Some(label) = kernel.labels.get_mut(l.0 as usize)
        {
            label.def = Some(i as u32);
        }
    }
    kernel.functions.push(LinkedFunction {
        name: f.name,
        entry,
        address: function_address(index),
        address_taken,
        first_vars: [
            shift.general,
            shift.address,
            shift.predicate,
            shift.sampler,
            shift.surface,
        ],
    });
}

impl Shift {
    fn var(&self, v: &mut VarId) {
        if !v.is_predefined() {
            v.0 += self.general;
        }
    }

    fn addr(&self, a: &mut AddrId) {
        a.0 += self.address;
    }

    fn pred(&self, p: &mut PredId) {
        p.0 += self.predicate;
    }

    fn surface(&self, s: &mut SurfaceId) {
        if s.0 >= SurfaceId::FIRST_USER {
            s.0 += self.surface;
        }
    }

    fn label(&self, l: &mut LabelId) {
        l.0 += self.label;
    }

    fn src(&self, s: &mut Src) {
        match s {
            Src::General { origin, .. } => self.var(&mut origin.var),
            Src::Indirect { indirect, .. } => self.addr(&mut indirect.addr),
            Src::Imm { .. } => {}
            Src::Pred(p) => self.pred(p),
            Src::Address { addr, .. } => self.addr(addr),
            Src::AddressOf { var, .. } => self.var(var),
            Src::AddressOfSurface { surface, .. } | Src::Surface(surface, _) => {
                self.surface(surface);
            }
            Src::Sampler(s, _) => s.0 += self.sampler,
        }
    }

    fn dst(&self, d: &mut Dst) {
        match d {
            Dst::General { origin, .. } => self.var(&mut origin.var),
            Dst::Indirect { indirect, .. } => self.addr(&mut indirect.addr),
            Dst::Pred(p) => self.pred(p),
            Dst::Address { addr, .. } => self.addr(addr),
            Dst::Surface(s, _) => self.surface(s),
            Dst::Sampler(s, _) => s.0 += self.sampler,
        }
    }

    fn inst(&self, inst: &mut Inst) {
        use OperandMut as O;
        inst.operands_mut(|operand| match operand {
            O::Guard(p) => self.pred(&mut p.var),
            O::Dst(d) | O::ScalarDst(d) => self.dst(d),
            O::Src(s) | O::Scalar(s) => self.src(s),
            O::Address(r) | O::Read(r) | O::Written(r) => self.var(&mut r.var),
            O::Element(o) => self.var(&mut o.var),
            O::Surface(s) => self.surface(s),
            O::Sampler(s) => s.0 += self.sampler,
            O::Label(l) => self.label(l),
            O::Var(v) => self.var(v),
            O::AddressVar(a) => self.addr(a),
            O::PredVar(p) => self.pred(p),
        });
    }
}

/// Names of functions that a module calls by name or takes the address of, and whether it calls by address.
pub fn references(module: &Module) -> (Vec<&str>, bool) {
    let mut names = Vec::new();
    let mut indirect = false;
    for inst in &module.insts {
        match &inst.body {
            Body::Fcall { name, .. } | Body::Faddr { name, .. } => names.push(name.as_str()),
            Body::Ifcall { .. } => indirect = true,
            _ => {}
        }
    }
    (names, indirect)
}
