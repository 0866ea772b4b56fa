//! Load/store cache messages (docs/visa.md, "Text").

use super::super::error::ErrorKind;
use super::super::lexer::{Token, TokenKind};
use super::super::spelling::XYZW;
use super::symbols::Sym;
use super::{Mnemonic, PResult, Parser};
use crate::isa::lsc::*;
use crate::isa::{Exec, Opcode};
use crate::module::*;

/// Parts of a message in front of its operands.
struct Prefix {
    sfid: Sfid,
    caching: Caching,
}

/// `data:shape`.
struct Data {
    raw: Raw,
    size: DataSize,
    elems: u8,
    transposed: bool,
    channels: Channels,
}

/// `model(surface)[…]`, up to the address itself.
struct Space {
    model: AddrModel,
    surface: LscSurface,
}

fn names<T>(spellings: &'static [(&'static str, u8, T)]) -> Vec<&'static str> {
    spellings.iter().map(|(n, ..)| *n).collect()
}

impl<'s> Parser<'s> {
    /// Any LSC message but the fence. Typed ones are told by `.tgm`.
    pub(super) fn lsc(&mut self, m: &Mnemonic<'s>) -> PResult<(Opcode, Exec, Body)> {
        let Some(op) = LscOp::from_mnemonic(m.text) else {
            return Err(self.error(
                m.token,
                ErrorKind::Unsupported,
                format!("`{}` is not supported", m.text),
            ));
        };
        let sfid_token = self.peek2();
        let sfid = self.sfid()?;
        let caching = self.caching()?;
        let exec = self.exec()?;
        let p = Prefix { sfid, caching };
        if sfid == Sfid::Tgm {
            if !matches!(op, LscOp::LoadQuad | LscOp::StoreQuad | LscOp::Atomic(_)) {
                return Err(self.error_full(
                    sfid_token,
                    ErrorKind::Syntax,
                    format!("`{}` cannot be typed", m.text),
                    "typed messages are `lsc_load_quad`, `lsc_store_quad` and atomics".into(),
                    None,
                ));
            }
            return Ok((Opcode::LscTyped, exec, self.lsc_typed(op, p)?));
        }
        let body = match op {
            LscOp::LoadBlock2d | LscOp::StoreBlock2d => self.lsc_block2d(op, p)?,
            op => self.lsc_untyped(op, p)?,
        };
        Ok((Opcode::Lsc, exec, body))
    }

    fn sfid(&mut self) -> PResult<Sfid> {
        self.suffix_of(
            "a shared function",
            &names(Sfid::SPELLINGS),
            Sfid::from_name,
        )
    }

    /// `[.L1.L3]`.
    fn caching(&mut self) -> PResult<Caching> {
        if !self.is(b'.') {
            return Ok(Caching::default());
        }
        let control = |s: &str| {
            let code = CACHE_CONTROLS.iter().position(|c| *c == s)?;
            u8::try_from(code).ok()
        };
        let l1 = self.suffix_of("an L1 cache control", &CACHE_CONTROLS, control)?;
        let l3 = self.suffix_of("an L3 cache control", &CACHE_CONTROLS, control)?;
        Ok(Caching { l1, l3 })
    }

    /// `.sfid.op.scope`.
    pub(super) fn lsc_fence(&mut self) -> PResult<(Exec, Body)> {
        let sfid = self.sfid()?;
        let op = self.suffix_of("a cache operation", &FENCE_OPS, |s| {
            let code = FENCE_OPS.iter().position(|o| *o == s)?;
            u8::try_from(code).ok()
        })?;
        let scope = self.suffix_of("a scope", &names(Scope::SPELLINGS), Scope::from_name)?;
        Ok((Exec::SCALAR, Body::LscFence { sfid, op, scope }))
    }

    fn lsc_untyped(&mut self, op: LscOp, p: Prefix) -> PResult<Body> {
        let quad = matches!(op, LscOp::LoadQuad | LscOp::StoreQuad);
        let store = op.stores();
        let strided = matches!(op, LscOp::LoadStrided | LscOp::StoreStrided);
        let mut data = if store {
            None
        } else {
            Some(self.lsc_data(quad)?)
        };
        let space = self.space()?;
        let (scale, addr, offset) = self.scaled_address()?;
        let stride = if strided && self.eat(b',') {
            Some(self.lsc_scalar()?)
        } else {
            None
        };
        let addr_size = self.close_address()?;
        if store {
            data = Some(self.lsc_data(quad)?);
        }
        let Some(data) = data else {
            return Err(self.unexpected(&["the data operand"]));
        };
        let (src1, src2) = match op {
            LscOp::Atomic(_) => (self.lsc_raw()?, self.lsc_raw()?),
            _ => (Raw::NULL, Raw::NULL),
        };
        Ok(Body::Lsc(Lsc {
            op,
            sfid: p.sfid,
            caching: p.caching,
            model: space.model,
            surface: space.surface,
            scale,
            offset,
            addr_size,
            data_size: data.size,
            transposed: data.transposed,
            elems: data.elems,
            channels: data.channels,
            addr,
            stride,
            data: data.raw,
            src1,
            src2,
        }))
    }

    fn lsc_typed(&mut self, op: LscOp, p: Prefix) -> PResult<Body> {
        let quad = !matches!(op, LscOp::Atomic(_));
        let store = op.stores();
        let mut data = if store {
            None
        } else {
            Some(self.lsc_data(quad)?)
        };
        let space = self.space()?;
        let mut coords = [Raw::NULL; 4];
        for (i, coord) in coords.iter_mut().enumerate() {
            if i == 0 || self.eat(b',') {
                *coord = self.lsc_raw()?;
            }
        }
        let addr_size = self.close_address()?;
        if store {
            data = Some(self.lsc_data(quad)?);
        }
        let Some(data) = data else {
            return Err(self.unexpected(&["the data operand"]));
        };
        let (src1, src2) = if quad {
            (Raw::NULL, Raw::NULL)
        } else {
            (self.lsc_raw()?, self.lsc_raw()?)
        };
        Ok(Body::LscTyped(LscTyped {
            op,
            caching: p.caching,
            model: space.model,
            surface: space.surface,
            addr_size,
            data_size: data.size,
            channels: data.channels,
            coords,
            data: data.raw,
            src1,
            src2,
        }))
    }

    /// `data:size[xN][t]`, or `data:size.xyzw` of quad messages.
    fn lsc_data(&mut self, quad: bool) -> PResult<Data> {
        let raw = self.lsc_raw()?;
        self.expect(b':', "`:` and the shape of the data")?;
        let (token, text) = self.word("the shape of the data")?;
        let Some((size, elems, transposed)) = shape(text) else {
            return Err(self.bad_shape(token, text));
        };
        let channels = if quad {
            self.channels(XYZW)?
        } else {
            Channels(0)
        };
        Ok(Data {
            raw,
            size,
            elems,
            transposed,
            channels,
        })
    }

    fn bad_shape(&mut self, token: Token, text: &str) -> super::Reported {
        self.error_full(
            token,
            ErrorKind::Syntax,
            format!("malformed data shape `{text}`"),
            "expected `d8`, `d16`, `d32`, `d64`, `d8c32`, `d16c32` or `d16c32h`, then `x<length>`, then `t`".into(),
            Some("lengths are 1, 2, 3, 4, 8, 16, 32 and 64".into()),
        )
    }

    /// `flat[`, `bti(3)[`, `ss(V)[`, `bss(V(0,1))[`, `arg[`.
    fn space(&mut self) -> PResult<Space> {
        let all = names(AddrModel::SPELLINGS);
        let what = format!("an address model: {}", super::cursor::list(&all));
        let (token, text) = self.word(&what)?;
        let Some(model) = AddrModel::from_name(text) else {
            return Err(self.not_one_of(token, "an address model", text, &all));
        };
        let surface = match model {
            AddrModel::Flat | AddrModel::Arg => LscSurface::None,
            _ => {
                self.expect(b'(', "`(surface)`")?;
                let surface = match self.lsc_scalar()? {
                    LscScalar::Imm(v) => LscSurface::Imm(v),
                    LscScalar::Var(origin) => LscSurface::Var(origin),
                };
                self.expect(b')', "`)`")?;
                surface
            }
        };
        self.expect(b'[', "`[` and the address")?;
        Ok(Space { model, surface })
    }

    /// `]:a64`.
    fn close_address(&mut self) -> PResult<AddrSize> {
        self.expect(b']', "`]`")?;
        self.expect(b':', "`:` and the address size")?;
        let all = names(AddrSize::SPELLINGS);
        let what = format!("an address size: {}", super::cursor::list(&all));
        let (token, text) = self.word(&what)?;
        AddrSize::from_name(text)
            .ok_or_else(|| self.not_one_of(token, "an address size", text, &all))
    }

    /// `[scale *] address [± imm]`.
    fn scaled_address(&mut self) -> PResult<(u16, Raw, i32)> {
        let mut scale = 1;
        if self.peek().kind == TokenKind::Int {
            scale = self.uint16("an address scale")?;
            self.expect(b'*', "`*` and the address")?;
        }
        let addr = self.lsc_raw()?;
        let negative = match self.peek().kind {
            TokenKind::Punct(b'+') => false,
            TokenKind::Punct(b'-') => true,
            _ => return Ok((scale, addr, 0)),
        };
        self.bump();
        let magnitude = self.int(
            "an address offset",
            i64::from(i32::MIN),
            i64::from(i32::MAX),
        )?;
        let offset = if negative {
            magnitude.saturating_neg()
        } else {
            magnitude
        };
        Ok((scale, addr, i32::try_from(offset).unwrap_or(i32::MAX)))
    }

    /// An integer, or a register element: `V`, `V(r,c)`, and with later tools `V(r,c)<0;1,0>`.
    fn lsc_scalar(&mut self) -> PResult<LscScalar> {
        if self.peek().kind == TokenKind::Int {
            let token = self.bump();
            let value = self.int_value(token)?;
            if self.eat(b':') {
                self.type_name("the type of the immediate")?;
            }
            return Ok(LscScalar::Imm(value));
        }
        let start = self.at;
        let (token, sym) = self.variable("a register element or an integer")?;
        let Sym::General(var) = sym else {
            return Err(self.wrong_class(token, sym, "a register element or an integer"));
        };
        if !self.is(b'(') {
            let (row, col) = (0, 0);
            return Ok(LscScalar::Var(Origin { var, row, col }));
        }
        self.at = start;
        let origin = self.origin("a general variable")?;
        if self.eat(b'<') {
            for (c, what) in [(b';', "`;`"), (b',', "`,`"), (b'>', "`>`")] {
                self.uint8("a stride", 32)?;
                self.expect(c, what)?;
            }
        }
        Ok(LscScalar::Var(origin))
    }

    fn lsc_block2d(&mut self, op: LscOp, p: Prefix) -> PResult<Body> {
        let mut data = if op.stores() {
            None
        } else {
            Some(self.block_data()?)
        };
        let token = self.peek();
        let space = self.space()?;
        if space.model != AddrModel::Flat {
            return Err(self.error_full(
                token,
                ErrorKind::Syntax,
                "2D block messages have no surface".into(),
                "expected `flat[base, width, height, pitch, x, y]`".into(),
                None,
            ));
        }
        let address = self.block_address()?;
        self.expect(b']', "`]`")?;
        if op.stores() {
            data = Some(self.block_data()?);
        }
        let Some((raw, shape)) = data else {
            return Err(self.unexpected(&["the data operand"]));
        };
        Ok(Body::LscBlock2d(LscBlock2d {
            op,
            sfid: p.sfid,
            caching: p.caching,
            data_size: shape.size,
            blocks: shape.blocks,
            width: shape.width,
            height: shape.height,
            transpose: shape.transpose,
            vnni: shape.vnni,
            address,
            data: raw,
        }))
    }

    /// `base, width, height, pitch, x, y`, or `payload + (x,y)`.
    fn block_address(&mut self) -> PResult<BlockAddress> {
        let start = self.at;
        if self.peek().kind != TokenKind::Int {
            let payload = self.lsc_raw()?;
            if self.eat(b'+') {
                self.expect(b'(', "`(x,y)`")?;
                let x = self.block_offset("a column")?;
                self.expect(b',', "`,` and a row")?;
                let y = self.block_offset("a row")?;
                self.expect(b')', "`)`")?;
                return Ok(BlockAddress::Payload { payload, x, y });
            }
            self.at = start;
        }
        let mut params = vec![self.lsc_scalar()?];
        for what in ["width - 1", "height - 1", "pitch - 1", "x", "y"] {
            self.expect(b',', &format!("`,` and {what}"))?;
            params.push(self.lsc_scalar()?);
        }
        Ok(BlockAddress::Operands(params))
    }

    fn block_offset(&mut self, what: &str) -> PResult<i32> {
        let offset = self.int(what, i64::from(i32::MIN), i64::from(i32::MAX))?;
        Ok(i32::try_from(offset).unwrap_or(0))
    }

    /// `data:d16.[blocks x]width x height<t|n><t|n>`.
    fn block_data(&mut self) -> PResult<(Raw, BlockShape)> {
        let raw = self.lsc_raw()?;
        self.expect(b':', "`:` and the shape of the data")?;
        let (token, text) = self.word("the element size")?;
        let Some((size, 1, false)) = shape(text) else {
            return Err(self.bad_shape(token, text));
        };
        let Some((token, text)) = self.suffix() else {
            return Err(self.unexpected(&["`.` and the block, such as `.2x16x16nn`"]));
        };
        match block_shape(size, text) {
            Some(shape) => Ok((raw, shape)),
            None => Err(self.error_full(
                token,
                ErrorKind::Syntax,
                format!("malformed block `{text}`"),
                "expected `[blocks x]width x height`, then `t` or `n` twice, such as `2x16x16nn`"
                    .into(),
                None,
            )),
        }
    }
}

/// Shape of a 2D block.
struct BlockShape {
    size: DataSize,
    blocks: u8,
    width: u16,
    height: u16,
    transpose: bool,
    vnni: bool,
}

/// `d32x4t`: element size, vector length, transposed.
fn shape(text: &str) -> Option<(DataSize, u8, bool)> {
    /// Longest first; later tools spell the converting sizes with a `u`.
    const SIZES: [(&str, DataSize); 10] = [
        ("d16c32h", DataSize::D16c32h),
        ("d16u32h", DataSize::D16c32h),
        ("d16c32", DataSize::D16c32),
        ("d16u32", DataSize::D16c32),
        ("d8c32", DataSize::D8c32),
        ("d8u32", DataSize::D8c32),
        ("d16", DataSize::D16),
        ("d32", DataSize::D32),
        ("d64", DataSize::D64),
        ("d8", DataSize::D8),
    ];
    let (size, rest) = SIZES
        .iter()
        .find_map(|(name, size)| Some((*size, text.strip_prefix(name)?)))?;
    let (rest, transposed) = match rest.strip_suffix('t') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let elems = match rest.strip_prefix('x') {
        Some(n) => n.parse::<u8>().ok()?,
        None if rest.is_empty() => 1,
        None => return None,
    };
    VECTOR_LENGTHS
        .contains(&elems)
        .then_some((size, elems, transposed))
}

fn block_shape(size: DataSize, text: &str) -> Option<BlockShape> {
    let letter = |c: char| match c {
        't' => Some(true),
        'n' => Some(false),
        _ => None,
    };
    let mut chars = text.chars();
    let vnni = letter(chars.next_back()?)?;
    let transpose = letter(chars.next_back()?)?;
    let parts: Vec<&str> = chars.as_str().split('x').collect();
    let (blocks, width, height) = match parts.as_slice() {
        [b, w, h] => (b.parse().ok()?, w, h),
        [w, h] => (1, w, h),
        _ => return None,
    };
    Some(BlockShape {
        size,
        blocks,
        width: width.parse().ok()?,
        height: height.parse().ok()?,
        transpose,
        vnni,
    })
}
