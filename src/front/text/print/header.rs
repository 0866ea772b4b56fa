//! Directives and declarations.

use super::super::spelling::{IMPLICIT_KINDS, LAYOUT_4_2};
use super::{Printer, quote};
use crate::module::*;
use std::fmt::{self, Write};

impl Printer<'_> {
    /// Everything in front of the instructions.
    pub(super) fn header(&mut self) -> fmt::Result {
        let m = self.module;
        writeln!(self.out, ".version {}.{}", m.version.0, m.version.1)?;
        if m.version >= LAYOUT_4_2 {
            self.out.push('\n');
        }
        let directive = match m.kind {
            ModuleKind::Kernel => "kernel",
            ModuleKind::Function => "global_function",
        };
        writeln!(self.out, ".{directive} {}", quote(&m.name))?;
        for name in &m.funcdecls {
            writeln!(self.out, ".funcdecl {}", quote(name))?;
        }
        self.predefined()?;
        self.declarations()?;
        for input in &m.inputs {
            self.input(input)?;
        }
        for (i, attr) in m.attrs.iter().enumerate() {
            write!(self.out, ".kernel_attr {}", attr_text(attr))?;
            // The vendor's printer leaves the indent of the next line after the last attribute.
            let last = i.saturating_add(1) == m.attrs.len();
            self.out.push_str(if last { "    \n" } else { "\n" });
        }
        Ok(())
    }

    /// A comment that lists what is always there, as the vendor's printer does.
    fn predefined(&mut self) -> fmt::Result {
        self.out.push_str("\n/// VISA Predefined Variables\n");
        for p in &PREDEFINED {
            writeln!(self.out, "// .decl V{} v_type=G v_name={}", p.id.0, p.name)?;
        }
        if self.module.version >= LAYOUT_4_2 {
            // No variable here: no kernel reads it, and what it holds is the finalizer's affair.
            self.out
                .push_str("// .decl V21 v_type=G v_name=%scratchloc\n");
        }
        for (i, name) in PREDEFINED_SURFACES.iter().enumerate() {
            writeln!(self.out, "// .decl T{i} v_type=T v_name={name}")?;
        }
        self.out.push('\n');
        Ok(())
    }

    fn declarations(&mut self) -> fmt::Result {
        let vars = &self.module.vars;
        for v in &vars.general {
            write!(
                self.out,
                ".decl {} v_type=G type={} num_elts={}",
                v.name, v.ty, v.elements
            )?;
            if v.align != Align::Byte {
                write!(self.out, " align={}", v.align.name())?;
            }
            if let Some((parent, offset)) = v.alias {
                write!(self.out, " alias=<{}, {offset}>", self.var_name(parent))?;
            }
            self.attrs(&v.attrs)?;
        }
        for (class, list) in [
            ('A', &vars.address),
            ('P', &vars.predicate),
            ('S', &vars.sampler),
            ('T', &vars.surface),
        ] {
            for v in list.iter().filter(|v| !v.predefined) {
                write!(
                    self.out,
                    ".decl {} v_type={class} num_elts={}",
                    v.name, v.elements
                )?;
                if let Some(name) = &v.v_name {
                    write!(self.out, " v_name={}", super::symbol(name))?;
                }
                self.attrs(&v.attrs)?;
            }
        }
        Ok(())
    }

    /// ` attrs={…}` if there are any, and the end of the line.
    fn attrs(&mut self, attrs: &[Attr]) -> fmt::Result {
        if !attrs.is_empty() {
            let list: Vec<String> = attrs.iter().map(attr_text).collect();
            write!(self.out, " attrs={{{}}}", list.join(", "))?;
        }
        self.out.push('\n');
        Ok(())
    }

    fn input(&mut self, input: &Input) -> fmt::Result {
        let named = IMPLICIT_KINDS.iter().find(|(_, k)| *k == input.implicit);
        match (input.implicit, named) {
            (0, _) => self.out.push_str(".input "),
            (_, Some((name, _))) => write!(self.out, ".implicit_{name} ")?,
            (n, None) => write!(self.out, ".implicit_UNDEFINED_{n} ")?,
        }
        let name = match input.var {
            InputVar::General(v) => self.var_name(v),
            InputVar::Sampler(s) => self.sampler_name(s),
            InputVar::Surface(s) => self.surface_name(s),
        };
        writeln!(
            self.out,
            "{name} offset={} size={}",
            input.offset, input.size
        )
    }
}

fn attr_text(attr: &Attr) -> String {
    match &attr.value {
        AttrValue::Flag => attr.name.clone(),
        AttrValue::Int(v) => format!("{}={v}", attr.name),
        AttrValue::Str(s) => format!("{}={}", attr.name, quote(s)),
    }
}
