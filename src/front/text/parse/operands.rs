//! Operands (docs/visa.md, "Text").

use super::super::error::ErrorKind;
use super::super::lexer::{Token, TokenKind};
use super::symbols::Sym;
use super::{PResult, Parser};
use crate::isa::{Classes, DstRegion, Exec, ExecMask, ExecSize, SrcModifier, SrcRegion};
use crate::module::*;

const SIZES: [u8; 6] = [1, 2, 4, 8, 16, 32];

impl<'s> Parser<'s> {
    /// `([!]P[.any|.all])`.
    pub(super) fn predicate(&mut self) -> PResult<Predicate> {
        self.expect(b'(', "`(`")?;
        let inverted = self.eat(b'!');
        let (token, sym) = self.variable("a predicate variable")?;
        let Sym::Pred(var) = sym else {
            return Err(self.wrong_class(token, sym, "a predicate variable"));
        };
        let control = if self.is(b'.') {
            self.suffix_of("a predicate control", &["any", "all"], |s| match s {
                "any" => Some(PredControl::Any),
                "all" => Some(PredControl::All),
                _ => None,
            })?
        } else {
            PredControl::Lanes
        };
        self.expect(b')', "`)`")?;
        Ok(Predicate {
            var,
            inverted,
            control,
        })
    }

    /// `(Mk[_NM], N)`, `(NoMask, N)` or `(N)`.
    pub(super) fn exec(&mut self) -> PResult<Exec> {
        self.expect(b'(', "the execution size `(mask, lanes)`")?;
        let mut mask = ExecMask::M1;
        if self.peek().kind == TokenKind::Word {
            mask = self.exec_mask()?;
            self.expect(b',', "`,` and the number of lanes")?;
        }
        let lanes = self.int_of("the number of lanes", &SIZES)?;
        self.expect(b')', "`)`")?;
        Ok(Exec {
            mask,
            size: ExecSize::new(u32::from(lanes)).unwrap_or(ExecSize::ONE),
        })
    }

    fn exec_mask(&mut self) -> PResult<ExecMask> {
        let (token, text) = self.word("an execution mask")?;
        if text == "NoMask" {
            return Ok(ExecMask::M1_NM);
        }
        let (base, no_mask) = match text.strip_suffix("_NM") {
            Some(base) => (base, true),
            None => (text, false),
        };
        let quarter = match base.as_bytes() {
            [b'M', k @ b'1'..=b'8'] => k.checked_sub(b'1'),
            _ => None,
        };
        match quarter {
            Some(quarter) => Ok(ExecMask { quarter, no_mask }),
            None => {
                let names = ["M1", "M1_NM", "NoMask"];
                let reported = self.error_full(
                    token,
                    ErrorKind::Syntax,
                    format!("unknown execution mask `{text}`"),
                    "expected `M1` to `M8`, `M1_NM` to `M8_NM` or `NoMask`".into(),
                    super::symbols::closest(text, names.into_iter())
                        .map(|n| format!("did you mean `{n}`?")),
                );
                Err(reported)
            }
        }
    }

    /// A source of one of the `classes`.
    pub(super) fn src(&mut self, classes: Classes) -> PResult<Src> {
        let token = self.peek();
        match token.kind {
            _ if self.at_immediate() && classes.immediate() => self.immediate(),
            TokenKind::Punct(b'(') if classes.general() => self.modified_source(),
            TokenKind::Punct(b'&') if classes.address() => self.address_of(),
            TokenKind::Word if self.at_indirect() && classes.general() => {
                self.register_source(SrcModifier::None)
            }
            TokenKind::Word => self.variable_source(classes),
            _ => {
                let what = format!("a source operand ({})", classes.names().join(", "));
                Err(self.unexpected(&[&what]))
            }
        }
    }

    /// A general or immediate source, as messages take them.
    pub(super) fn scalar(&mut self) -> PResult<Src> {
        self.src(Classes::GEN_IMM)
    }

    fn variable_source(&mut self, classes: Classes) -> PResult<Src> {
        let start = self.at;
        let (token, sym) = self.variable("a source operand")?;
        match sym {
            Sym::General(_) if classes.general() => {
                self.at = start;
                self.register_source(SrcModifier::None)
            }
            Sym::Pred(p) if classes.predicate() => Ok(Src::Pred(p)),
            Sym::Address(addr) if classes.address() => {
                let (index, width) = self.address_region()?;
                Ok(Src::Address { addr, index, width })
            }
            Sym::Surface(s) if classes.state() => Ok(Src::Surface(s, self.state_index()?)),
            Sym::Sampler(s) if classes.state() => Ok(Src::Sampler(s, self.state_index()?)),
            _ => {
                let wanted = format!("a source operand ({})", classes.names().join(", "));
                Err(self.wrong_class(token, sym, &wanted))
            }
        }
    }

    /// `(-)`, `(abs)`, `(-abs)` or `(~)`, then a register.
    fn modified_source(&mut self) -> PResult<Src> {
        self.expect(b'(', "`(`")?;
        let modifier = if self.eat(b'~') {
            SrcModifier::Not
        } else if self.eat(b'-') {
            if self.nth_text(0) == "abs" {
                self.bump();
                SrcModifier::NegAbs
            } else {
                SrcModifier::Neg
            }
        } else if self.nth_text(0) == "abs" {
            self.bump();
            SrcModifier::Abs
        } else {
            return Err(self.unexpected(&["`-`", "`abs`", "`-abs`", "`~`"]));
        };
        self.expect(b')', "`)`")?;
        if self.at_immediate() {
            let token = self.peek();
            return Err(self.error_full(
                token,
                ErrorKind::Syntax,
                "an immediate takes no modifier".into(),
                String::new(),
                Some("write the modified value itself".into()),
            ));
        }
        self.register_source(modifier)
    }

    /// True at `r[`. `r` is no keyword: without the bracket it may be a variable.
    fn at_indirect(&self) -> bool {
        self.nth_text(0) == "r" && self.peek2().kind == TokenKind::Punct(b'[')
    }

    /// `V(r,c)<v;w,h>` or `r[A0(k),imm]<…>:type`.
    fn register_source(&mut self, modifier: SrcModifier) -> PResult<Src> {
        if self.at_indirect() {
            return self.indirect_source(modifier);
        }
        let origin = self.origin("a general variable")?;
        let region = self.src_region()?;
        Ok(Src::General {
            origin,
            region,
            modifier,
        })
    }

    /// `V(r,c)`.
    pub(super) fn origin(&mut self, what: &str) -> PResult<Origin> {
        let var = self.general(what)?;
        let (row, col) = self.row_col()?;
        Ok(Origin { var, row, col })
    }

    /// `(r,c)`.
    fn row_col(&mut self) -> PResult<(u16, u16)> {
        self.expect(b'(', "`(row, column)`")?;
        let row = self.uint16("a row")?;
        self.expect(b',', "`,`")?;
        let col = self.uint16("a column")?;
        self.expect(b')', "`)`")?;
        Ok((row, col))
    }

    /// A general variable by name.
    pub(super) fn general(&mut self, what: &str) -> PResult<VarId> {
        match self.variable(what)? {
            (_, Sym::General(var)) => Ok(var),
            (token, sym) => Err(self.wrong_class(token, sym, what)),
        }
    }

    fn src_region(&mut self) -> PResult<SrcRegion> {
        self.expect(b'<', "`<`, the region `<vstride;width,hstride>`")?;
        let vstride = self.int_of("the vertical stride", &[0, 1, 2, 4, 8, 16, 32])?;
        self.expect(b';', "`;` and the width")?;
        let width = self.int_of("the width", &[1, 2, 4, 8, 16])?;
        self.expect(b',', "`,` and the horizontal stride")?;
        let hstride = self.int_of("the horizontal stride", &[0, 1, 2, 4])?;
        self.expect(b'>', "`>`")?;
        Ok(SrcRegion {
            vstride,
            width,
            hstride,
        })
    }

    fn dst_region(&mut self) -> PResult<DstRegion> {
        self.expect(b'<', "`<`, the destination stride `<hstride>`")?;
        let hstride = self.int_of("the destination stride", &[1, 2, 4])?;
        self.expect(b'>', "`>`")?;
        Ok(DstRegion { hstride })
    }

    /// `r[A0(k)[,imm]]`, without region and type.
    fn indirect(&mut self) -> PResult<(AddrId, u8, i16)> {
        self.bump();
        self.expect(b'[', "`[`")?;
        let (token, sym) = self.variable("an address variable")?;
        let Sym::Address(addr) = sym else {
            return Err(self.wrong_class(token, sym, "an address variable"));
        };
        self.expect(b'(', "`(index)`")?;
        let index = self.uint8("an address element", u8::MAX)?;
        self.expect(b')', "`)`")?;
        let offset = if self.eat(b',') {
            self.int("a byte offset", i64::from(i16::MIN), i64::from(i16::MAX))?
        } else {
            0
        };
        self.expect(b']', "`]`")?;
        Ok((addr, index, i16::try_from(offset).unwrap_or(0)))
    }

    fn indirect_type(&mut self) -> PResult<crate::isa::Type> {
        self.expect(b':', "`:` and the element type")?;
        self.type_name("the element type")
    }

    fn indirect_source(&mut self, modifier: SrcModifier) -> PResult<Src> {
        let (addr, index, offset) = self.indirect()?;
        // `<w,h>` and `<v;w,h>` differ at the second token of the region.
        let single = self.nth_text(2) == ";";
        let region = if single {
            IndirectRegion::Single(self.src_region()?)
        } else {
            self.expect(
                b'<',
                "the region `<width,hstride>` or `<vstride;width,hstride>`",
            )?;
            let width = self.int_of("the width", &[1, 2, 4, 8, 16])?;
            self.expect(b',', "`,` and the horizontal stride, or `;` and the width")?;
            let hstride = self.int_of("the horizontal stride", &[0, 1, 2, 4])?;
            self.expect(b'>', "`>`")?;
            IndirectRegion::VxH { width, hstride }
        };
        let ty = self.indirect_type()?;
        Ok(Src::Indirect {
            indirect: Indirect {
                addr,
                index,
                offset,
                ty,
            },
            region,
            modifier,
        })
    }

    /// `&V[offset]`.
    fn address_of(&mut self) -> PResult<Src> {
        self.expect(b'&', "`&`")?;
        let (token, sym) = self.variable("a variable")?;
        if !matches!(sym, Sym::General(_) | Sym::Surface(_)) {
            return Err(self.wrong_class(token, sym, "a general variable or a surface"));
        }
        if self.is(b'(') && self.glued() {
            let at = self.peek();
            let hint = format!("write the offset in bytes: `&{}[32]`", self.text(token));
            return Err(self.error_full(
                at,
                ErrorKind::Syntax,
                "an address has no row and column".into(),
                "expected `[bytes]` or the next operand".into(),
                Some(hint),
            ));
        }
        let offset = if self.eat(b'[') {
            let offset = self.uint32("a byte offset")?;
            self.expect(b']', "`]`")?;
            offset
        } else {
            0
        };
        Ok(match sym {
            Sym::Surface(surface) => Src::AddressOfSurface { surface, offset },
            Sym::General(var) => Src::AddressOf { var, offset },
            _ => Src::AddressOf {
                var: VarId::NULL,
                offset,
            },
        })
    }

    /// `(k)<n>` of an address operand.
    fn address_region(&mut self) -> PResult<(u8, u8)> {
        self.expect(b'(', "`(index)` of the address element")?;
        let index = self.uint8("an address element", u8::MAX)?;
        self.expect(b')', "`)`")?;
        self.expect(b'<', "`<`, the number of elements")?;
        let width = self.int_of("the number of address elements", &SIZES)?;
        self.expect(b'>', "`>`")?;
        Ok((index, width))
    }

    /// `(k)` of a surface or sampler operand.
    fn state_index(&mut self) -> PResult<u8> {
        self.expect(b'(', "`(index)`")?;
        let index = self.uint8("an index", u8::MAX)?;
        self.expect(b')', "`)`")?;
        Ok(index)
    }

    /// A destination of one of the `classes`.
    pub(super) fn dst(&mut self, classes: Classes) -> PResult<Dst> {
        if self.at_indirect() && classes.general() {
            let (addr, index, offset) = self.indirect()?;
            let region = self.dst_region()?;
            let ty = self.indirect_type()?;
            return Ok(Dst::Indirect {
                indirect: Indirect {
                    addr,
                    index,
                    offset,
                    ty,
                },
                region,
            });
        }
        let wanted = format!("a destination operand ({})", classes.names().join(", "));
        let (token, sym) = self.variable(&wanted)?;
        match sym {
            Sym::General(var) if classes.general() => {
                let (row, col) = if self.is(b'(') {
                    self.row_col()?
                } else {
                    (0, 0)
                };
                Ok(Dst::General {
                    origin: Origin { var, row, col },
                    region: self.dst_region()?,
                })
            }
            Sym::Pred(p) if classes.predicate() => Ok(Dst::Pred(p)),
            Sym::Address(addr) if classes.address() => {
                let (index, width) = self.address_region()?;
                Ok(Dst::Address { addr, index, width })
            }
            Sym::Surface(s) if classes.state() => Ok(Dst::Surface(s, self.state_index()?)),
            Sym::Sampler(s) if classes.state() => Ok(Dst::Sampler(s, self.state_index()?)),
            _ => Err(self.wrong_class(token, sym, &wanted)),
        }
    }

    /// `V.offset`, the payload of a message.
    pub(super) fn raw(&mut self) -> PResult<Raw> {
        let token = self.peek();
        let var = self.general("a payload operand `V.offset`")?;
        if !self.is(b'.') {
            let name = self.text(token);
            let hint =
                format!("a payload has no region and no type, only a byte offset: `{name}.0`");
            let at = self.peek();
            return Err(self.error_full(
                at,
                ErrorKind::Syntax,
                "malformed payload operand".into(),
                "expected `.` and a byte offset".into(),
                Some(hint),
            ));
        }
        self.raw_offset(var)
    }

    /// `V[.offset]`, the payload of an LSC message.
    pub(super) fn lsc_raw(&mut self) -> PResult<Raw> {
        let var = self.general("a payload operand `V` or `V.offset`")?;
        if self.is(b'.') {
            self.raw_offset(var)
        } else {
            Ok(Raw { var, offset: 0 })
        }
    }

    fn raw_offset(&mut self, var: VarId) -> PResult<Raw> {
        self.expect(b'.', "`.`")?;
        let offset = self.uint32("a byte offset")?;
        Ok(Raw { var, offset })
    }

    /// A surface by name.
    pub(super) fn surface(&mut self) -> PResult<SurfaceId> {
        match self.variable("a surface")? {
            (_, Sym::Surface(s)) => Ok(s),
            (token, sym) => Err(self.wrong_class(token, sym, "a surface")),
        }
    }

    /// A sampler by name.
    pub(super) fn sampler(&mut self) -> PResult<SamplerId> {
        match self.variable("a sampler")? {
            (_, Sym::Sampler(s)) => Ok(s),
            (token, sym) => Err(self.wrong_class(token, sym, "a sampler")),
        }
    }

    /// `.RGBA` or `.xyzw`: a channel suffix in the given letters.
    pub(super) fn channels(&mut self, letters: [char; 4]) -> PResult<Channels> {
        let all: String = letters.into_iter().collect();
        let Some((token, text)) = self.suffix() else {
            let what = format!("`.` and channels, such as `.{all}`");
            return Err(self.unexpected(&[&what]));
        };
        self.channel_letters(token, text, letters)
    }

    pub(super) fn channel_letters(
        &mut self,
        token: Token,
        text: &str,
        letters: [char; 4],
    ) -> PResult<Channels> {
        let mut mask = 0u8;
        let mut next = 0;
        for c in text.chars() {
            // Letters come in order, each at most once.
            match letters.iter().position(|l| *l == c) {
                Some(i) if i >= next => {
                    mask |= 1u8.checked_shl(u32::try_from(i).unwrap_or(0)).unwrap_or(0);
                    next = i.saturating_add(1);
                }
                _ => {
                    mask = 0;
                    break;
                }
            }
        }
        if mask == 0 {
            let all: String = letters.into_iter().collect();
            let message = format!("malformed channels `{text}`");
            let label = format!("expected letters of `{all}` in that order");
            return Err(self.error_full(token, ErrorKind::Syntax, message, label, None));
        }
        Ok(Channels(mask))
    }
}
