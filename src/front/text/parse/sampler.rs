//! Sampler messages (docs/visa.md, "Images").

use super::super::error::ErrorKind;
use super::super::lexer::TokenKind;
use super::super::spelling::{LAYOUT_4_2, RGBA, SAMPLE_FLAGS};
use super::{Mnemonic, PResult, Parser};
use crate::isa::sampler::SamplerOp;
use crate::isa::{Exec, Form};
use crate::limits::MAX_SAMPLE_PARAMS;
use crate::module::{Body, Sample};

impl<'s> Parser<'s> {
    fn variant(&self, m: &Mnemonic<'s>) -> u8 {
        SamplerOp::from_mnemonic(m.text).map_or(0, |op| op.code)
    }

    /// `[.pixel_null_mask][.cps][.divS].channels (exec) aoffimmi [sampler] surface dst params…`.
    pub(super) fn sample(&mut self, m: &Mnemonic<'s>) -> PResult<(Exec, Body)> {
        let mut flags = 0;
        for (name, bit) in SAMPLE_FLAGS {
            if self.eat_suffix(name) {
                flags |= bit;
            }
        }
        let channels = self.channels(RGBA)?;
        let exec = self.exec()?;
        let aoffimmi = Some(self.scalar()?);
        let sampler = match m.row.form {
            Form::Load3d => None,
            _ => Some(self.sampler()?),
        };
        let surface = self.surface()?;
        let dst = self.raw()?;
        if self.module.version >= LAYOUT_4_2 {
            let token = self.peek();
            if !self.raw()?.is_null() {
                let message = "a paired surface is not supported".to_owned();
                return Err(self.error(token, ErrorKind::Unsupported, message));
            }
        }
        let mut params = Vec::new();
        while self.peek().kind != TokenKind::End {
            if params.len() >= MAX_SAMPLE_PARAMS {
                let token = self.peek();
                let message = format!("more than {MAX_SAMPLE_PARAMS} parameters");
                return Err(self.error(token, ErrorKind::Limit, message));
            }
            params.push(self.raw()?);
        }
        Ok((
            exec,
            Body::Sample(Sample {
                variant: self.variant(m),
                flags,
                channels,
                aoffimmi,
                sampler,
                surface,
                dst,
                params,
            }),
        ))
    }

    /// `resinfo.channels (exec) surface lod dst`, `sampleinfo.channels (exec) surface dst`.
    pub(super) fn sample_info(&mut self, m: &Mnemonic<'s>) -> PResult<(Exec, Body)> {
        let channels = self.channels(RGBA)?;
        let exec = self.exec()?;
        let surface = self.surface()?;
        let params = if m.text == "resinfo" {
            vec![self.raw()?]
        } else {
            Vec::new()
        };
        let dst = self.raw()?;
        Ok((
            exec,
            Body::Sample(Sample {
                variant: self.variant(m),
                flags: 0,
                channels,
                aoffimmi: None,
                sampler: None,
                surface,
                dst,
                params,
            }),
        ))
    }
}
