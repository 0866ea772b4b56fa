//! Control flow: labels, branches, calls.

use super::super::error::ErrorKind;
use super::super::lexer::TokenKind;
use super::{PResult, Parser};
use crate::isa::{Classes, Exec, Opcode};
use crate::limits::MAX_SWITCH_TARGETS;
use crate::module::{Body, Inst, LabelId};
use std::borrow::Cow;

impl<'s> Parser<'s> {
    /// `name:` in column 1.
    ///
    /// After `.function "name"` the same label on the next line belongs to the subroutine: the vendor's
    /// printer writes both for one instruction.
    pub(super) fn label_definition(&mut self) -> PResult<()> {
        let token = self.bump();
        let pos = self.pos(token);
        let name = self.text(token);
        let id = self.label_id(token, Cow::Borrowed(name))?;
        let follows_function = self
            .module
            .insts
            .last()
            .is_some_and(|i| i.op == Opcode::Subroutine && i.body == Body::Label(id));
        if !follows_function {
            self.define_label(token, id, false)?;
            self.push(Inst {
                op: Opcode::Label,
                pred: None,
                exec: Exec::SCALAR,
                body: Body::Label(id),
                written: None,
                pos,
            })?;
        }
        self.end_of_statement()
    }

    /// `.function name`, after the directive's name.
    pub(super) fn function(&mut self) -> PResult<()> {
        let pos = self.pos(self.first());
        let (token, name) = self.name("the name of a subroutine")?;
        let id = self.label_id(token, name)?;
        self.define_label(token, id, true)?;
        self.push(Inst {
            op: Opcode::Subroutine,
            pred: None,
            exec: Exec::SCALAR,
            body: Body::Label(id),
            written: None,
            pos,
        })
    }

    fn define_label(&mut self, token: super::Token, id: LabelId, subroutine: bool) -> PResult<()> {
        let here = u32::try_from(self.module.insts.len()).unwrap_or(u32::MAX);
        let Some(label) = self.module.labels.get_mut(id.0 as usize) else {
            return Ok(());
        };
        if let Some(at) = label.def {
            let name = label.name.clone();
            let line = self.module.insts.get(at as usize).map_or(0, |i| i.pos.line);
            return Err(self.error_full(
                token,
                ErrorKind::Name,
                format!("label `{name}` is defined twice"),
                format!("it is defined on line {line} already"),
                None,
            ));
        }
        label.def = Some(here);
        label.subroutine = subroutine;
        Ok(())
    }

    fn target(&mut self) -> PResult<LabelId> {
        let (token, name) = self.name("a label")?;
        self.label_id(token, name)
    }

    /// `(exec) label`.
    pub(super) fn branch(&mut self) -> PResult<(Exec, Body)> {
        let exec = self.exec()?;
        Ok((exec, Body::Branch(self.target()?)))
    }

    /// `(exec) index (label, …)`.
    pub(super) fn switch_jmp(&mut self) -> PResult<(Exec, Body)> {
        let exec = self.exec()?;
        let index = self.scalar()?;
        self.expect(b'(', "`(` and the targets")?;
        let mut targets = vec![self.target()?];
        while self.eat(b',') {
            if targets.len() >= MAX_SWITCH_TARGETS {
                let token = self.peek();
                let message = format!("more than {MAX_SWITCH_TARGETS} targets");
                return Err(self.error(token, ErrorKind::Limit, message));
            }
            targets.push(self.target()?);
        }
        self.expect(b')', "`,` or `)`")?;
        Ok((exec, Body::SwitchJmp { index, targets }))
    }

    /// `(exec) name args rets`.
    pub(super) fn fcall(&mut self) -> PResult<(Exec, Body)> {
        let exec = self.exec()?;
        let (_, name) = self.name("the name of a function")?;
        let (args, rets) = self.call_registers()?;
        Ok((
            exec,
            Body::Fcall {
                name: name.into_owned(),
                args,
                rets,
            },
        ))
    }

    fn call_registers(&mut self) -> PResult<(u8, u8)> {
        let args = self.uint8("the number of argument registers", u8::MAX)?;
        let rets = self.uint8("the number of return registers", u8::MAX)?;
        Ok((args, rets))
    }

    /// `ifcall[.uniform][.noreturn] (exec) addr args rets`. The suffixes of later tools are hints.
    pub(super) fn ifcall(&mut self) -> PResult<(Exec, Body)> {
        self.eat_suffix("uniform");
        self.eat_suffix("noreturn");
        let exec = self.exec()?;
        let addr = self.scalar()?;
        let (args, rets) = self.call_registers()?;
        Ok((exec, Body::Ifcall { addr, args, rets }))
    }

    /// `symbol dst`.
    pub(super) fn faddr(&mut self) -> PResult<(Exec, Body)> {
        let (_, name) = self.name("a symbol")?;
        if self.peek().kind == TokenKind::End {
            return Err(self.unexpected(&["the destination of the address"]));
        }
        let dst = self.dst(Classes::GEN)?;
        Ok((
            Exec::SCALAR,
            Body::Faddr {
                name: name.into_owned(),
                dst,
            },
        ))
    }
}
