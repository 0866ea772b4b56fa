//! Register-to-register instructions: one routine, told by the table row what operands to expect.

use super::super::error::ErrorKind;
use super::{Mnemonic, PResult, Parser};
use crate::isa::{Classes, CmpCond, Exec, Form, Opcode};
use crate::module::{Alu, Body};

impl<'s> Parser<'s> {
    /// `mnemonic[.cond|.xHH][.sat] (exec) dst [dst2] srcs…`.
    pub(super) fn alu(&mut self, m: &Mnemonic<'s>) -> PResult<(Exec, Body)> {
        let row = m.row;
        let cond = match row.form {
            Form::Cmp => Some(self.condition()?),
            _ => None,
        };
        let bfn = match row.form {
            Form::Bfn => self.truth_table()?,
            _ => 0,
        };
        let sat = self.saturation(m)?;
        let exec = self.exec()?;
        let (first, second) = destinations(m);
        let dst = self.dst(first)?;
        let dst2 = match second {
            Some(classes) => Some(self.dst(classes)?),
            None => None,
        };
        let mut srcs = Vec::with_capacity(usize::from(row.sources));
        for i in 0..row.sources {
            srcs.push(self.src(row.src(usize::from(i)))?);
        }
        Ok((
            exec,
            Body::Alu(Alu {
                sat,
                cond,
                bfn,
                dst,
                dst2,
                srcs,
            }),
        ))
    }

    fn condition(&mut self) -> PResult<CmpCond> {
        let names: Vec<&str> = CmpCond::ALL.iter().map(|c| c.name()).collect();
        self.suffix_of("a condition", &names, |s| {
            CmpCond::ALL.into_iter().find(|c| c.name() == s)
        })
    }

    fn truth_table(&mut self) -> PResult<u8> {
        self.suffix_of("a truth table", &["x00", "x01", "…", "xff"], |s| {
            let hex = s.strip_prefix("0x").or(s.strip_prefix('x'))?;
            u8::from_str_radix(hex, 16).ok()
        })
    }

    /// `.sat`, on anything that computes a value; whether the opcode has it is for validation to say.
    fn saturation(&mut self, m: &Mnemonic<'s>) -> PResult<bool> {
        let Some((token, text)) = self.suffix() else {
            return Ok(false);
        };
        let value = matches!(m.row.form, Form::Alu | Form::AluPair | Form::Bfn)
            && !matches!(m.row.opcode, Opcode::Movs | Opcode::Setp | Opcode::AddrAdd);
        if text == "sat" && value {
            return Ok(true);
        }
        let message = format!("unknown suffix `.{text}` of `{}`", m.text);
        let label = if value {
            "expected `.sat` or none".to_string()
        } else {
            format!("`{}` takes no further suffix", m.text)
        };
        Err(self.error_full(token, ErrorKind::Syntax, message, label, None))
    }
}

/// Classes of the destinations. The second is a carry of the same kind, or the predicate of a macro
/// operation; then the first is general.
fn destinations(m: &Mnemonic<'_>) -> (Classes, Option<Classes>) {
    match m.row.form {
        Form::AluPair if m.row.dst.predicate() => (Classes::GEN, Some(Classes::PRED)),
        Form::AluPair => (m.row.dst, Some(m.row.dst)),
        _ => (m.row.dst, None),
    }
}
