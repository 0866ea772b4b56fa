//! Reads the text form that [`super::print`] writes; used by tests and by files of pass tests.
//!
//! Value and block numbers are kept, so that printing a parsed function gives the same text. What
//! is read is well formed as a data structure (every number is defined once); whether it is a valid
//! function is for [`super::verify()`] to say. Any text gives a function or an error in time and
//! memory linear in its length.

use super::func::{Block, BlockCall, BlockData, Function, InstData, Term, Value, ValueData};
use super::func::{Exchange, Inst, ValueDef};
use super::names;
use super::site::Site;
use super::types::{Lane, Ty};
use crate::isa::Opcode;

/// Why a text is not a function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct ParseError {
    /// Line from 1.
    pub line: u32,
    /// Column in bytes from 1.
    pub column: u32,
    /// What is wrong.
    pub kind: ParseErrorKind,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// Something else should stand here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// Not an operation with these parts.
    #[error("unknown operation `{0}`")]
    UnknownOperation(String),
    /// Not a number, or one that does not fit.
    #[error("`{0}` is not a number that fits here")]
    BadNumber(String),
    /// A site's opcode that no memory instruction has.
    #[error("unknown memory opcode `{0}`")]
    UnknownOpcode(String),
    /// Defined before.
    #[error("`{0}` is defined twice")]
    Duplicate(String),
    /// Used, never defined.
    #[error("`{0}` is not defined")]
    Undefined(String),
    /// A number far larger than the text is long.
    #[error("number of `{0}` is too large for a text of this length")]
    TooLarge(String),
}

/// Reads one function.
///
/// # Errors
/// [`ParseError`] at the first place where the text departs from the form.
pub fn parse(text: &str) -> Result<Function, ParseError> {
    let mut p = Parser {
        cursor: Cursor { text, at: 0 },
        func: Function::new("", 1),
        values: Vec::new(),
        blocks: Vec::new(),
        value_uses: Vec::new(),
        block_uses: Vec::new(),
    };
    p.func.order.clear();
    p.func.blocks.clear();
    p.function()?;
    p.check_uses()?;
    Ok(p.func)
}

pub(super) type Parsed<T> = Result<T, ParseError>;

/// Position in the text.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// Position of what comes next, for errors about it.
    pub(super) fn mark(&mut self) -> usize {
        self.blanks();
        self.at
    }

    pub(super) fn error<T>(&self, kind: ParseErrorKind) -> Parsed<T> {
        self.error_at(self.at, kind)
    }

    pub(super) fn error_at<T>(&self, at: usize, kind: ParseErrorKind) -> Parsed<T> {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.bytes().filter(|&b| b == b'\n').count() as u32 + 1;
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        Err(ParseError {
            line,
            column: (before.len() - start) as u32 + 1,
            kind,
        })
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip(&mut self, keep: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let len = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or("")
    }

    fn blanks(&mut self) {
        self.skip(|c| matches!(c, ' ' | '\t' | '\r'));
    }

    /// Skips blanks, line ends and comments.
    fn trivia(&mut self) {
        loop {
            self.skip(|c| c.is_ascii_whitespace());
            if !self.rest().starts_with(';') {
                return;
            }
            self.skip(|c| c != '\n');
        }
    }

    pub(super) fn peek(&mut self, c: char) -> bool {
        self.blanks();
        self.rest().starts_with(c)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn need(&mut self, text: &'static str) -> Parsed<()> {
        if self.eat(text) {
            Ok(())
        } else {
            self.error(ParseErrorKind::Expected(text))
        }
    }

    pub(super) fn word(&mut self) -> &'t str {
        self.blanks();
        self.skip(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    }

    /// A number with the characters of integers and floats.
    fn number_text(&mut self) -> &'t str {
        self.blanks();
        self.skip(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'))
    }

    pub(super) fn number<T: TryFrom<u64>>(&mut self) -> Parsed<T> {
        let at = self.mark();
        let text = self.skip(|c| c.is_ascii_digit());
        let n = text.parse::<u64>().ok().and_then(|n| n.try_into().ok());
        match n {
            Some(n) => Ok(n),
            None => self.error_at(at, ParseErrorKind::BadNumber(text.into())),
        }
    }

    /// Bits of a constant of this lane.
    pub(super) fn literal(&mut self, lane: Lane) -> Parsed<u64> {
        let at = self.mark();
        let text = self.number_text();
        let bits = if let Some(hex) = text.strip_prefix("0x") {
            u64::from_str_radix(hex, 16).ok()
        } else if lane == Lane::F32 {
            text.parse::<f32>().ok().map(|x| u64::from(x.to_bits()))
        } else if lane == Lane::F64 {
            text.parse::<f64>().ok().map(f64::to_bits)
        } else {
            let n = text.parse::<i128>().ok();
            let fits = n.filter(|n| (-(1i128 << 63)..1i128 << 64).contains(n));
            fits.map(|n| n as u64 & if n < 0 { lane.mask() } else { u64::MAX })
        };
        match bits {
            Some(bits) => Ok(bits),
            None => self.error_at(at, ParseErrorKind::BadNumber(text.into())),
        }
    }

    /// Quoted text with the escapes of Rust.
    fn string(&mut self) -> Parsed<String> {
        self.need("\"")?;
        let mut out = String::new();
        loop {
            out.push_str(self.skip(|c| !matches!(c, '"' | '\\' | '\n')));
            if self.eat_exact("\"") {
                return Ok(out);
            }
            if !self.eat_exact("\\") {
                return self.error(ParseErrorKind::Expected("a closing quote"));
            }
            out.push(self.escape()?);
        }
    }

    fn eat_exact(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn escape(&mut self) -> Parsed<char> {
        if self.eat_exact("u{") {
            let hex = self.skip(|c| c.is_ascii_hexdigit());
            let c = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
            if let (Some(c), true) = (c, self.eat_exact("}")) {
                return Ok(c);
            }
        }
        let simple = [('n', '\n'), ('r', '\r'), ('t', '\t'), ('0', '\0')];
        let same = [('"', '"'), ('\\', '\\'), ('\'', '\'')];
        let next = self.rest().chars().next();
        match simple.iter().chain(&same).find(|(c, _)| Some(*c) == next) {
            Some(&(c, value)) => {
                self.at += c.len_utf8();
                Ok(value)
            }
            None => self.error(ParseErrorKind::Expected("an escape")),
        }
    }

    /// The end of a line with its `; line 12` comment; 0 without one.
    fn end_of_line(&mut self) -> Parsed<u32> {
        self.blanks();
        let comment = if self.peek(';') {
            self.skip(|c| c != '\n')
        } else {
            ""
        };
        if !self.rest().is_empty() && !self.eat("\n") {
            return self.error(ParseErrorKind::Expected("the end of the line"));
        }
        let mut words = comment.trim_start_matches(';').split_ascii_whitespace();
        let line = match (words.next(), words.next()) {
            (Some("line"), Some(n)) => n.parse().ok(),
            _ => None,
        };
        Ok(line.unwrap_or(0))
    }
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    func: Function,
    /// Which values and blocks are defined.
    values: Vec<bool>,
    blocks: Vec<bool>,
    value_uses: Vec<(Value, usize)>,
    block_uses: Vec<(Block, usize)>,
}

impl Parser<'_> {
    fn function(&mut self) -> Parsed<()> {
        self.cursor.trivia();
        self.header()?;
        loop {
            self.cursor.trivia();
            if self.cursor.rest().is_empty() {
                break;
            }
            self.block()?;
        }
        if self.blocks.first() != Some(&true) {
            return self.cursor.error(ParseErrorKind::Undefined("bb0".into()));
        }
        Ok(())
    }

    fn header(&mut self) -> Parsed<()> {
        self.cursor.need("function")?;
        self.func.name = self.cursor.string()?;
        self.cursor.need("simd")?;
        self.func.simd = self.cursor.number()?;
        while !self.cursor.peek('\n') && !self.cursor.peek(';') && !self.cursor.rest().is_empty() {
            let field = match self.cursor.word() {
                "row" => {
                    self.func.row = Some(self.cursor.number()?);
                    continue;
                }
                "regs" => &mut self.func.regs_bytes,
                "frame" => &mut self.func.frame_bytes,
                "states" => &mut self.func.states,
                "slm" => &mut self.func.slm_bytes,
                _ => return self.cursor.error(ParseErrorKind::Expected("a field")),
            };
            *field = self.cursor.number()?;
        }
        self.cursor.trivia();
        if self.cursor.eat("exchange") {
            self.func.exchange = Some(self.exchange()?);
        }
        loop {
            self.cursor.trivia();
            if !self.cursor.eat("site") {
                return Ok(());
            }
            self.site()?;
        }
    }

    /// `64 bytes at 16 lines [12, 15]`.
    fn exchange(&mut self) -> Parsed<Exchange> {
        let bytes = self.cursor.number()?;
        self.cursor.need("bytes at")?;
        let offset = self.cursor.number()?;
        self.cursor.need("lines")?;
        Ok(Exchange {
            offset,
            bytes,
            lines: super::parse_op::indices(&mut self.cursor)?.into(),
        })
    }

    fn site(&mut self) -> Parsed<()> {
        let n: usize = self.cursor.number()?;
        if n != self.func.sites.len() {
            return self.cursor.error(ParseErrorKind::Expected("the next site"));
        }
        self.cursor.need("=")?;
        let Some(kind) = names::find(names::KIND, self.cursor.word()) else {
            return self
                .cursor
                .error(ParseErrorKind::Expected("an access kind"));
        };
        let Some(space) = names::find(names::SPACE, self.cursor.word()) else {
            return self.cursor.error(ParseErrorKind::Expected("a memory"));
        };
        let bytes = self.cursor.number()?;
        let at = self.cursor.mark();
        let name = self.cursor.string()?;
        let Some(opcode) = Opcode::known_mnemonic(&name) else {
            return self
                .cursor
                .error_at(at, ParseErrorKind::UnknownOpcode(name));
        };
        self.cursor.need("line")?;
        let line = self.cursor.number()?;
        let alignment = match self.cursor.eat("align") {
            true => self.cursor.number()?,
            false => Site::usual_alignment(kind, bytes),
        };
        if !u32::is_power_of_two(alignment) {
            return self
                .cursor
                .error(ParseErrorKind::Expected("a power of two"));
        }
        let first_lane = if self.cursor.eat("lane") {
            self.cursor.number()?
        } else {
            0
        };
        let parts = if self.cursor.eat("of") {
            super::parse_op::indices(&mut self.cursor)?.into()
        } else {
            Vec::new()
        };
        self.func.sites.push(Site {
            line,
            opcode,
            space,
            kind,
            bytes,
            alignment,
            first_lane,
            parts,
        });
        Ok(())
    }

    fn block(&mut self) -> Parsed<()> {
        let at = self.cursor.at;
        let block = self.block_number()?;
        self.define_block(block, at)?;
        if self.cursor.eat("(") {
            let mut index = 0;
            while !self.cursor.eat(")") {
                if index > 0 {
                    self.cursor.need(",")?;
                }
                let param = self.definition(ValueDef::Param(block, index))?;
                self.func.block_mut(block).params.push(param);
                index = index.saturating_add(1);
            }
        }
        self.cursor.need(":")?;
        self.cursor.end_of_line()?;
        loop {
            self.cursor.trivia();
            if let Some(term) = self.term()? {
                let line = self.cursor.end_of_line()?;
                let data = self.func.block_mut(block);
                data.term = term;
                data.term_line = line;
                return Ok(());
            }
            let inst = self.inst()?;
            self.func.block_mut(block).insts.push(inst);
        }
    }

    fn inst(&mut self) -> Parsed<Inst> {
        let id = Inst(self.func.insts.len() as u32);
        let mut results = Vec::new();
        while self.cursor.peek('%') {
            let def = ValueDef::Result(id, results.len() as u16);
            results.push(self.definition(def)?);
            if !self.cursor.eat(",") {
                break;
            }
        }
        if !results.is_empty() {
            self.cursor.need("=")?;
        }
        let ty = results.first().map(|&v| self.func.ty(v));
        let op = super::parse_op::operation(&mut self.cursor, ty)?;
        let args = if self.cursor.peek('%') {
            self.values_until(|c| !c.eat(","))?
        } else {
            Vec::new()
        };
        let line = self.cursor.end_of_line()?;
        self.func.insts.push(InstData {
            op,
            args,
            results,
            line,
        });
        Ok(id)
    }

    fn term(&mut self) -> Parsed<Option<Term>> {
        let start = self.cursor.at;
        let term = match self.cursor.word() {
            "none" => Term::None,
            "return" => Term::Return,
            "suspend" => Term::Suspend(self.cursor.number()?),
            "jump" => Term::Jump(self.call()?),
            "branch" => {
                let cond = self.value()?;
                self.cursor.need(",")?;
                let then = self.call()?;
                self.cursor.need(",")?;
                let other = self.call()?;
                Term::Branch { cond, then, other }
            }
            "switch" => self.switch()?,
            _ => {
                self.cursor.at = start;
                return Ok(None);
            }
        };
        Ok(Some(term))
    }

    fn switch(&mut self) -> Parsed<Term> {
        let index = self.value()?;
        self.cursor.need(",")?;
        self.cursor.need("[")?;
        let mut targets = Vec::new();
        while !self.cursor.eat("]") {
            if !targets.is_empty() {
                self.cursor.need(",")?;
            }
            targets.push(self.call()?);
        }
        self.cursor.need(",")?;
        let default = self.call()?;
        Ok(Term::Switch {
            index,
            targets,
            default,
        })
    }

    fn call(&mut self) -> Parsed<BlockCall> {
        let at = self.cursor.mark();
        let block = self.block_number()?;
        self.block_uses.push((block, at));
        let args = if self.cursor.eat("(") {
            let args = self.values_until(|c| !c.eat(","))?;
            self.cursor.need(")")?;
            args
        } else {
            Vec::new()
        };
        Ok(BlockCall { block, args })
    }

    fn block_number(&mut self) -> Parsed<Block> {
        self.cursor.need("bb")?;
        Ok(Block(self.cursor.number()?))
    }

    fn value(&mut self) -> Parsed<Value> {
        let at = self.cursor.mark();
        self.cursor.need("%")?;
        let v = Value(self.cursor.number()?);
        self.value_uses.push((v, at));
        Ok(v)
    }

    fn values_until(&mut self, end: impl Fn(&mut Cursor) -> bool) -> Parsed<Vec<Value>> {
        let mut values = vec![self.value()?];
        while !end(&mut self.cursor) {
            values.push(self.value()?);
        }
        Ok(values)
    }

    /// `%4: <16 x i32>` where a value is defined.
    fn definition(&mut self, def: ValueDef) -> Parsed<Value> {
        let at = self.cursor.mark();
        self.cursor.need("%")?;
        let v = Value(self.cursor.number()?);
        self.cursor.need(":")?;
        let ty = self.ty()?;
        self.define_value(v, at, ValueData { ty, def })?;
        Ok(v)
    }

    fn ty(&mut self) -> Parsed<Ty> {
        let lanes = if self.cursor.eat("<") {
            let lanes = self.cursor.number()?;
            self.cursor.need("x")?;
            Some(lanes)
        } else {
            None
        };
        let Some(lane) = names::find(names::LANE, self.cursor.word()) else {
            return self.cursor.error(ParseErrorKind::Expected("a lane type"));
        };
        if lanes.is_some() {
            self.cursor.need(">")?;
        }
        Ok(Ty::vector(lane, lanes.unwrap_or(1)))
    }

    /// Numbers allowed by the text's length: dead ones are not printed, so gaps are normal.
    fn limit(&self) -> usize {
        self.cursor.text.len() * 4 + 4096
    }

    fn define_value(&mut self, v: Value, at: usize, data: ValueData) -> Parsed<()> {
        let i = v.0 as usize;
        if i >= self.limit() {
            let kind = ParseErrorKind::TooLarge(v.to_string());
            return self.cursor.error_at(at, kind);
        }
        if i >= self.values.len() {
            // Gaps belong to no instruction; nothing in a block refers to them.
            let gap = ValueData {
                ty: Ty::BOOL,
                def: ValueDef::Param(Function::ENTRY, u32::MAX),
            };
            self.values.resize(i + 1, false);
            self.func.values.resize(i + 1, gap);
        }
        if std::mem::replace(&mut self.values[i], true) {
            let kind = ParseErrorKind::Duplicate(v.to_string());
            return self.cursor.error_at(at, kind);
        }
        self.func.values[i] = data;
        Ok(())
    }

    fn define_block(&mut self, b: Block, at: usize) -> Parsed<()> {
        let i = b.0 as usize;
        if i >= self.limit() {
            let kind = ParseErrorKind::TooLarge(b.to_string());
            return self.cursor.error_at(at, kind);
        }
        if i >= self.blocks.len() {
            let gap = BlockData {
                params: Vec::new(),
                insts: Vec::new(),
                term: Term::None,
                term_line: 0,
            };
            self.blocks.resize(i + 1, false);
            self.func.blocks.resize(i + 1, gap);
        }
        if std::mem::replace(&mut self.blocks[i], true) {
            let kind = ParseErrorKind::Duplicate(b.to_string());
            return self.cursor.error_at(at, kind);
        }
        self.func.order.push(b);
        Ok(())
    }

    fn check_uses(&self) -> Parsed<()> {
        let missing = |defined: &[bool], i: u32| defined.get(i as usize) != Some(&true);
        for &(v, at) in &self.value_uses {
            if missing(&self.values, v.0) {
                let kind = ParseErrorKind::Undefined(v.to_string());
                return self.cursor.error_at(at, kind);
            }
        }
        for &(b, at) in &self.block_uses {
            if missing(&self.blocks, b.0) {
                let kind = ParseErrorKind::Undefined(b.to_string());
                return self.cursor.error_at(at, kind);
            }
        }
        Ok(())
    }
}
