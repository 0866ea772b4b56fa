//! The printer: the layout of the vendor's compiler, so that files can be compared with `diff` and given
//! to the vendor's tools.
//!
//! It never fails: an operand that names no variable (possible in a module built by hand) is printed as
//! `?<id>`, which no assembler takes.

mod header;
mod lsc;
mod memory;
mod operands;

use super::spelling::{
    self, FENCE_LETTERS, FENCE_LOCAL, FENCE_SOFTWARE, LAYOUT_4_2, RGBA, SAMPLE_FLAGS,
};
use crate::isa::dpas::precision_name;
use crate::isa::sampler::SamplerOp;
use crate::isa::{Form, Opcode};
use crate::module::*;
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Column at which the `/// $n` comment of an instruction starts, counted from 0.
const COMMENT: usize = 81;

/// Writes a module as text.
pub fn print(module: &Module) -> String {
    let mut printer = Printer {
        module,
        out: String::new(),
    };
    // Writing to a string cannot fail.
    let _ = printer.module();
    printer.out
}

struct Printer<'m> {
    module: &'m Module,
    out: String,
}

impl<'m> Printer<'m> {
    fn module(&mut self) -> fmt::Result {
        self.header()?;
        for (index, inst) in self.module.insts.iter().enumerate() {
            self.inst(index, inst)?;
        }
        Ok(())
    }

    fn inst(&mut self, index: usize, inst: &Inst) -> fmt::Result {
        let start = self.out.len();
        match (&inst.body, inst.op) {
            (Body::Label(id), Opcode::Subroutine) => {
                let name = self.label(*id);
                let quoted = quote(name);
                // The vendor's printer ends every subroutine but the first with a line of blanks.
                let gap = if index == 0 { "" } else { "    \n" };
                let (before, behind) = match self.module.version >= LAYOUT_4_2 {
                    true => ("\n", ""),
                    false => ("", "\n"),
                };
                write!(self.out, "{gap}{before}.function {quoted}\n{behind}")?;
                // The label repeats the name; a name that no label can have stands in the directive alone.
                return if spelling::is_label(name) {
                    writeln!(self.out, "{name}:")
                } else {
                    Ok(())
                };
            }
            (Body::Label(id), _) => {
                let name = self.block_label(*id);
                return write!(self.out, "\n{name}:\n");
            }
            (Body::File(name), _) => return writeln!(self.out, "    FILE {}", quote(name)),
            (Body::Loc(line), _) => return writeln!(self.out, "    LOC {line}"),
            _ => {}
        }
        self.out.push_str("    ");
        if let Some(p) = inst.pred {
            self.predicate(p)?;
        }
        self.operands(inst)?;
        let width = self.out.get(start..).map_or(0, |s| s.chars().count());
        for _ in width..COMMENT {
            self.out.push(' ');
        }
        if width >= COMMENT.saturating_sub(1) && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        writeln!(self.out, "/// ${index}")
    }

    fn predicate(&mut self, p: Predicate) -> fmt::Result {
        let not = if p.inverted { "!" } else { "" };
        let name = self.pred_name(p.var);
        let control = match p.control {
            PredControl::Lanes => "",
            PredControl::Any => ".any",
            PredControl::All => ".all",
        };
        write!(self.out, "({not}{name}{control}) ")
    }

    fn operands(&mut self, inst: &Inst) -> fmt::Result {
        let name = inst.op.mnemonic();
        match &inst.body {
            Body::Alu(alu) => self.alu(inst, alu),
            Body::Label(_) | Body::File(_) | Body::Loc(_) => Ok(()),
            Body::Branch(label) => {
                let target = self.target(*label);
                write!(self.out, "{name} {} {target}", inst.exec)
            }
            Body::Ret => write!(self.out, "{name} {}", inst.exec),
            Body::SwitchJmp { index, targets } => {
                write!(self.out, "{name} {} ", inst.exec)?;
                self.src(index)?;
                let targets: Vec<String> = targets.iter().map(|t| self.target(*t)).collect();
                write!(self.out, " ({})", targets.join(", "))
            }
            Body::Fcall {
                name: callee,
                args,
                rets,
            } => {
                let callee = symbol(callee);
                write!(self.out, "{name} {} {callee} {args} {rets}", inst.exec)
            }
            Body::Ifcall { addr, args, rets } => {
                write!(self.out, "{name} {} ", inst.exec)?;
                self.src(addr)?;
                write!(self.out, " {args} {rets}")
            }
            Body::Faddr { name: of, dst } => {
                write!(self.out, "{name} {} ", symbol(of))?;
                self.dst(dst)
            }
            Body::Mem(mem) => self.mem(inst, mem),
            Body::Svm(svm) => self.svm(inst, svm),
            Body::Lsc(lsc) => self.lsc(inst, lsc),
            Body::LscBlock2d(block) => self.lsc_block2d(inst, block),
            Body::LscTyped(typed) => self.lsc_typed(inst, typed),
            Body::LscFence { sfid, op, scope } => self.lsc_fence(*sfid, *op, *scope),
            Body::Sample(sample) => self.sample(inst, sample),
            Body::RawSend(send) => self.raw_send(inst, send),
            Body::Dpas(dpas) => self.dpas(inst, dpas),
            Body::Fence(mask) => self.fence(*mask),
            Body::Nullary => self.out.write_str(name),
            Body::Wait(mask) => {
                write!(self.out, "{name} ")?;
                self.src(mask)
            }
            Body::Sbarrier(signal) => write!(self.out, "{name}.{}", action(*signal)),
            Body::Nbarrier { id, step } => {
                let signal = !matches!(step, NamedBarrier::Wait);
                write!(self.out, "{name}.{} ", action(signal))?;
                self.src(id)?;
                for operand in step.operands() {
                    self.out.push(' ');
                    self.src(operand)?;
                }
                Ok(())
            }
            Body::Lifetime { start, var } => {
                let end = if *start { "start" } else { "end" };
                let of = match var {
                    LifetimeVar::General(v) => self.var_name(*v),
                    LifetimeVar::Address(v) => self.addr_name(*v),
                    LifetimeVar::Pred(v) => self.pred_name(*v),
                };
                write!(self.out, "{name}.{end} {of}")
            }
        }
    }

    fn alu(&mut self, inst: &Inst, alu: &Alu) -> fmt::Result {
        self.out.write_str(inst.op.mnemonic())?;
        if let Some(cond) = alu.cond {
            write!(self.out, ".{}", cond.name())?;
        }
        if inst.op.info().form == Form::Bfn {
            write!(self.out, ".x{:x}", alu.bfn)?;
        }
        if alu.sat {
            self.out.push_str(".sat");
        }
        write!(self.out, " {} ", inst.exec)?;
        self.dst(&alu.dst)?;
        if let Some(dst) = &alu.dst2 {
            self.out.push(' ');
            self.dst(dst)?;
        }
        for src in &alu.srcs {
            self.out.push(' ');
            self.src(src)?;
        }
        Ok(())
    }

    fn sample(&mut self, inst: &Inst, s: &Sample) -> fmt::Result {
        let name =
            SamplerOp::from_code(inst.op, s.variant).map_or(inst.op.mnemonic(), |o| o.mnemonic);
        self.out.write_str(name)?;
        for (suffix, bit) in SAMPLE_FLAGS {
            if s.flags & bit != 0 {
                write!(self.out, ".{suffix}")?;
            }
        }
        write!(self.out, ".{} {} ", letters(s.channels, RGBA), inst.exec)?;
        if let Some(offset) = &s.aoffimmi {
            if inst.op != Opcode::Gather43d {
                self.out.push(' ');
            }
            self.src(offset)?;
        }
        if let Some(sampler) = s.sampler {
            write!(self.out, " {}", self.sampler_name(sampler))?;
        }
        write!(self.out, " {}", self.surface_name(s.surface))?;
        let info = inst.op.info().form == Form::Info3d;
        if !info {
            self.spaced_raw(s.dst)?;
            if self.module.version >= LAYOUT_4_2 {
                self.spaced_raw(Raw::NULL)?;
            }
        }
        for p in &s.params {
            self.spaced_raw(*p)?;
        }
        if info {
            self.spaced_raw(s.dst)?;
        }
        Ok(())
    }

    fn raw_send(&mut self, inst: &Inst, s: &RawSend) -> fmt::Result {
        let c = if s.conditional { "c" } else { "" };
        let [src0, src1, dst] = s.sizes;
        if s.split {
            let eot = if s.eot { "_eot" } else { "" };
            // The vendor's grammar takes no sfid after the conditional mnemonics.
            let sfid = if s.conditional && s.sfid == 0 {
                String::new()
            } else {
                format!(".{}", s.sfid)
            };
            write!(
                self.out,
                "raw_sends{c}{eot}{sfid}.{src0}.{src1}.{dst} {}  ",
                inst.exec
            )?;
            self.src(&s.ex_desc)?;
            self.out.push(' ');
            self.src(&s.desc)?;
            self.spaced_raw(s.src0)?;
            self.spaced_raw(s.src1)?;
            return self.spaced_raw(s.dst);
        }
        let ex_desc = match s.ex_desc {
            Src::Imm { bits, .. } => bits,
            _ => 0,
        };
        write!(
            self.out,
            "raw_send{c} {} 0x{ex_desc:x} {src0} {dst}  ",
            inst.exec
        )?;
        self.src(&s.desc)?;
        self.spaced_raw(s.src0)?;
        self.spaced_raw(s.dst)
    }

    fn dpas(&mut self, inst: &Inst, d: &Dpas) -> fmt::Result {
        let precision = |code| precision_name(code).unwrap_or("?");
        write!(
            self.out,
            "{}.{}.{}.{}.{} {}",
            inst.op.mnemonic(),
            precision(d.precision1),
            precision(d.precision2),
            d.depth,
            d.repeat,
            inst.exec
        )?;
        self.spaced_raw(d.dst)?;
        self.spaced_raw(d.src0)?;
        self.spaced_raw(d.src1)?;
        self.out.push(' ');
        self.origin(d.src2)
    }

    fn fence(&mut self, mask: u8) -> fmt::Result {
        if mask & FENCE_SOFTWARE != 0 {
            return self.out.write_str("fence_sw");
        }
        let place = if mask & FENCE_LOCAL != 0 {
            "local"
        } else {
            "global"
        };
        write!(self.out, "fence_{place}")?;
        let letters: String = FENCE_LETTERS
            .iter()
            .filter(|(_, bit)| mask & bit != 0)
            .map(|(name, _)| *name)
            .collect();
        if letters.is_empty() {
            Ok(())
        } else {
            write!(self.out, ".{letters}")
        }
    }

    fn label(&self, id: LabelId) -> &'m str {
        self.module
            .labels
            .get(id.0 as usize)
            .map_or("?", |l| l.name.as_str())
    }

    /// Name of a block. Binary programs may use characters that a label line cannot have.
    fn block_label(&self, id: LabelId) -> Cow<'m, str> {
        let name = self.label(id);
        if spelling::is_label(name) {
            return Cow::Borrowed(name);
        }
        let fit = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        Cow::Owned(format!("_{}", name.chars().map(fit).collect::<String>()))
    }

    fn target(&self, id: LabelId) -> String {
        let subroutine = self
            .module
            .labels
            .get(id.0 as usize)
            .is_some_and(|l| l.subroutine);
        if subroutine {
            symbol(self.label(id))
        } else {
            symbol(&self.block_label(id))
        }
    }
}

/// `signal` or `wait`.
fn action(signal: bool) -> &'static str {
    if signal { "signal" } else { "wait" }
}

/// Channel letters of a mask.
fn letters(channels: Channels, names: [char; 4]) -> String {
    (0u8..)
        .zip(names)
        .filter(|(i, _)| channels.0.checked_shr(u32::from(*i)).unwrap_or(0) & 1 != 0)
        .map(|(_, c)| c)
        .collect()
}

/// A name where the grammar takes an identifier or a string.
fn symbol(name: &str) -> String {
    if spelling::is_identifier(name) && !spelling::is_reserved(name) {
        name.to_string()
    } else {
        quote(name)
    }
}

/// A string literal.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
