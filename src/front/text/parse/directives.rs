//! Directives (docs/visa.md, "Text"). The order of fields is fixed, as in the vendor's grammar.

use super::super::error::ErrorKind;
use super::super::lexer::{Token, TokenKind};
use super::super::spelling::{IMPLICIT_KINDS, VERSIONS};
use super::symbols::Sym;
use super::{PResult, Parser};
use crate::isa::versions::OVERRIDE;
use crate::isa::{Exec, Opcode, Type};
use crate::limits::{MAX_DIRECTIVES, MAX_ELEMENTS, MAX_VARS};
use crate::module::*;

/// Every directive, for suggestions.
const DIRECTIVES: [&str; 14] = [
    "version",
    "kernel",
    "global_function",
    "funcdecl",
    "function",
    "decl",
    "input",
    "kernel_attr",
    "parameter",
    "loc",
    "implicit_LOCAL_SIZE",
    "implicit_GROUP_COUNT",
    "implicit_LOCAL_ID",
    "implicit_PSEUDO_INPUT",
];

impl<'s> Parser<'s> {
    /// `.name …`.
    pub(super) fn directive(&mut self) -> PResult<()> {
        let dot = self.bump();
        let (word, name) = self.word("the name of a directive")?;
        let token = Token {
            start: dot.start,
            ..word
        };
        match name {
            "version" => self.version(token)?,
            "kernel" => self.kernel(token, ModuleKind::Kernel)?,
            "global_function" => self.kernel(token, ModuleKind::Function)?,
            "funcdecl" => self.funcdecl(token)?,
            "function" => self.function()?,
            "decl" => self.decl()?,
            "input" => self.input(token, 0)?,
            "parameter" => self.parameter(token)?,
            "kernel_attr" => self.kernel_attr(token)?,
            "loc" => {
                let body = self.loc()?;
                let pos = self.pos(token);
                self.push(Inst {
                    op: Opcode::Loc,
                    pred: None,
                    exec: Exec::SCALAR,
                    body,
                    written: None,
                    pos,
                })?;
            }
            _ => match name.strip_prefix("implicit_") {
                Some(kind) => {
                    let implicit = self.implicit_kind(word, kind)?;
                    self.input(token, implicit)?;
                }
                None => return Err(self.unknown_directive(token, name)),
            },
        }
        self.end_of_statement()
    }

    fn unknown_directive(&mut self, token: Token, name: &str) -> super::Reported {
        let hint = match name {
            "attribute" => Some("attributes are written `.kernel_attr`".to_string()),
            _ => super::symbols::closest(name, DIRECTIVES.into_iter())
                .map(|d| format!("did you mean `.{d}`?")),
        };
        let message = format!("unknown directive `.{name}`");
        self.error_full(token, ErrorKind::Syntax, message, String::new(), hint)
    }

    /// `.version major.minor`: one token that looks like a fraction.
    fn version(&mut self, token: Token) -> PResult<()> {
        let number = self.peek();
        let (major, minor) = self
            .text(number)
            .split_once('.')
            .unwrap_or((self.text(number), "0"));
        if !matches!(number.kind, TokenKind::Float | TokenKind::Int) {
            return Err(self.unexpected(&["a version such as `4.1`"]));
        }
        self.bump();
        match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) if token.start == self.first().start => {
                match self.versions.read_as((major, minor), VERSIONS) {
                    Some(version) => self.module.version = version,
                    None => return Err(self.unknown_version(number)),
                }
                Ok(())
            }
            _ => {
                let message = format!("malformed version `{}`", self.text(number));
                let label = "expected `<major>.<minor>`".into();
                Err(self.error_full(number, ErrorKind::Syntax, message, label, None))
            }
        }
    }

    fn unknown_version(&mut self, number: Token) -> super::Reported {
        // What follows would be read by rules that may not be its own.
        self.given_up = true;
        let [first, last] = VERSIONS;
        let message = format!("vISA of version {} is not known", self.text(number));
        let label = format!(
            "versions {}.{} to {}.{} are supported",
            first.0, first.1, last.0, last.1
        );
        let hint = format!("{OVERRIDE} reads it as the nearest of them");
        self.error_full(number, ErrorKind::Unsupported, message, label, Some(hint))
    }

    fn kernel(&mut self, token: Token, kind: ModuleKind) -> PResult<()> {
        if self.seen_kernel {
            let message = "a file holds one `.kernel` or one `.global_function`".into();
            return Err(self.error(token, ErrorKind::Name, message));
        }
        self.seen_kernel = true;
        let (_, name) = self.name("a name")?;
        self.module.name = name.into_owned();
        self.module.kind = kind;
        Ok(())
    }

    fn funcdecl(&mut self, token: Token) -> PResult<()> {
        let (_, name) = self.name("the name of a function")?;
        self.bounded(token, self.module.funcdecls.len())?;
        self.module.funcdecls.push(name.into_owned());
        Ok(())
    }

    fn bounded(&mut self, token: Token, len: usize) -> PResult<()> {
        if len < MAX_DIRECTIVES {
            return Ok(());
        }
        let message = format!("more than {MAX_DIRECTIVES} directives of one kind");
        Err(self.error(token, ErrorKind::Limit, message))
    }

    /// Takes `key=`.
    fn key(&mut self, key: &str) -> PResult<()> {
        if !self.eat_key(key) {
            return Err(self.unexpected(&[&format!("`{key}=`")]));
        }
        Ok(())
    }

    fn eat_key(&mut self, key: &str) -> bool {
        let yes = self.nth_text(0) == key && self.peek2().kind == TokenKind::Punct(b'=');
        if yes {
            self.bump();
            self.bump();
        }
        yes
    }

    /// `.decl NAME v_type=… …`. A name whose declaration is wrong counts as known, so that its uses are
    /// not reported too.
    fn decl(&mut self) -> PResult<()> {
        let (token, name) = self.word("the name of a variable")?;
        let result = self.declaration(token, name);
        if result.is_err() {
            self.poison(name);
        }
        result
    }

    fn declaration(&mut self, token: Token, name: &'s str) -> PResult<()> {
        self.key("v_type")?;
        let (class_token, class) = self.word("a variable class")?;
        if !matches!(class, "G" | "A" | "P" | "S" | "T") {
            return Err(self.not_one_of(
                class_token,
                "a variable class",
                class,
                &["G", "A", "P", "S", "T"],
            ));
        }
        let pos = self.pos(token);
        if class == "G" {
            let var = self.general_fields(name, pos)?;
            self.only_end(&["align=", "alias=", "attrs="])?;
            let unique = self.declare(token, name)?;
            let index = self.room(token, self.module.vars.general.len())?;
            self.module.vars.general.push(GeneralVar {
                name: unique,
                ..var
            });
            let id = VarId(index.saturating_add(VarId::FIRST_USER));
            self.define(name, Sym::General(id));
            return Ok(());
        }
        let var = self.other_fields(class, pos)?;
        let fields: &[&str] = match class {
            "S" | "T" => &["v_name=", "attrs="],
            _ => &["attrs="],
        };
        self.only_end(fields)?;
        let unique = self.declare(token, name)?;
        let vars = &mut self.module.vars;
        let list = match class {
            "A" => &mut vars.address,
            "P" => &mut vars.predicate,
            "S" => &mut vars.sampler,
            _ => &mut vars.surface,
        };
        let len = list.len();
        if len < MAX_VARS {
            list.push(OtherVar {
                name: unique,
                ..var
            });
        }
        let index = self.room(token, len)?;
        let sym = match class {
            "A" => Sym::Address(AddrId(index)),
            "P" => Sym::Pred(PredId(index.saturating_add(1))),
            "S" => Sym::Sampler(SamplerId(index)),
            _ => Sym::Surface(SurfaceId(index.saturating_add(SurfaceId::FIRST_USER))),
        };
        self.define(name, sym);
        Ok(())
    }

    /// The index of the next variable.
    fn room(&mut self, token: Token, len: usize) -> PResult<u32> {
        match u32::try_from(len) {
            Ok(index) if len < MAX_VARS => Ok(index),
            _ => {
                let message = format!("more than {MAX_VARS} variables");
                Err(self.error(token, ErrorKind::Limit, message))
            }
        }
    }

    /// The end of the line; `fields` may have come before it, in this order.
    fn only_end(&mut self, fields: &[&str]) -> PResult<()> {
        if self.peek().kind == TokenKind::End {
            return Ok(());
        }
        let quoted: Vec<String> = fields.iter().map(|f| format!("`{f}`")).collect();
        let all = format!("{} in this order", quoted.join(", "));
        Err(self.unexpected(&["the end of the line", &all]))
    }

    /// `type=… num_elts=… [align=…] [alias=…] [attrs=…]`.
    fn general_fields(&mut self, name: &str, pos: Pos) -> PResult<GeneralVar> {
        self.key("type")?;
        let token = self.peek();
        let ty = self.type_name("an element type")?;
        if matches!(ty, Type::V | Type::Uv | Type::Vf) {
            let message = format!("a variable cannot have type `{ty}`");
            let label = "packed types are for immediates".into();
            return Err(self.error_full(token, ErrorKind::Value, message, label, None));
        }
        self.key("num_elts")?;
        let elements = self.expression("the number of elements", 1, i64::from(MAX_ELEMENTS))?;
        let align = if self.eat_key("align") {
            self.align()?
        } else {
            Align::Byte
        };
        let alias = if self.eat_key("alias") {
            Some(self.alias()?)
        } else {
            None
        };
        let attrs = if self.eat_key("attrs") {
            self.attrs()?
        } else {
            Vec::new()
        };
        Ok(GeneralVar {
            name: name.to_string(),
            ty,
            elements: u32::try_from(elements).unwrap_or(MAX_ELEMENTS),
            align,
            alias,
            attrs,
            pos,
        })
    }

    fn align(&mut self) -> PResult<Align> {
        let names: Vec<&str> = Align::ALL.iter().map(|(_, n)| *n).collect();
        let Some((token, text)) = self.glued_run() else {
            return Err(self.unexpected(&["an alignment"]));
        };
        Align::from_name(text).ok_or_else(|| self.not_one_of(token, "an alignment", text, &names))
    }

    /// `<PARENT, bytes>`.
    fn alias(&mut self) -> PResult<(VarId, u32)> {
        if self.is(b'(') {
            let token = self.peek();
            return Err(self.error_full(
                token,
                ErrorKind::Syntax,
                "unexpected `(`".into(),
                "expected `<`".into(),
                Some("an alias is written `alias=<V0032, 0>`".into()),
            ));
        }
        self.expect(b'<', "`<parent, byte offset>`")?;
        let parent = self.general("a general variable")?;
        self.expect(b',', "`,` and a byte offset")?;
        let offset = self.expression_u32("a byte offset")?;
        self.expect(b'>', "`>`")?;
        Ok((parent, offset))
    }

    /// `num_elts=… [v_name=…] [attrs=…]`.
    fn other_fields(&mut self, class: &str, pos: Pos) -> PResult<OtherVar> {
        self.key("num_elts")?;
        let token = self.peek();
        let elements = self.expression("the number of elements", 1, i64::from(MAX_ELEMENTS))?;
        if class == "P" && !matches!(elements, 1 | 2 | 4 | 8 | 16 | 32) {
            return Err(self.not_allowed(token, "the size of a predicate", &[1, 2, 4, 8, 16, 32]));
        }
        let v_name = if matches!(class, "S" | "T") && self.eat_key("v_name") {
            let (_, name) = self.name("a name")?;
            Some(name.into_owned())
        } else {
            None
        };
        let attrs = if self.eat_key("attrs") {
            self.attrs()?
        } else {
            Vec::new()
        };
        Ok(OtherVar {
            name: String::new(),
            elements: u32::try_from(elements).unwrap_or(MAX_ELEMENTS),
            v_name,
            attrs,
            predefined: false,
            pos,
        })
    }

    /// `{a, b=1, c="s"}`.
    fn attrs(&mut self) -> PResult<Vec<Attr>> {
        self.expect(b'{', "`{`")?;
        let mut attrs = Vec::new();
        loop {
            let (_, name) = self.word("the name of an attribute")?;
            let value = self.attr_value()?;
            attrs.push(Attr {
                name: name.to_string(),
                value,
            });
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}', "`,` or `}`")?;
        Ok(attrs)
    }

    /// `[=[value]]`.
    fn attr_value(&mut self) -> PResult<AttrValue> {
        if !self.eat(b'=') {
            return Ok(AttrValue::Flag);
        }
        match self.peek().kind {
            TokenKind::Str => Ok(AttrValue::Str(self.string("a string")?)),
            TokenKind::Int | TokenKind::Punct(b'-' | b'(' | b'~') => Ok(AttrValue::Int(
                self.expression("the value of an attribute", i64::MIN, i64::MAX)?,
            )),
            _ => Ok(AttrValue::Flag),
        }
    }

    fn kernel_attr(&mut self, token: Token) -> PResult<()> {
        let (_, name) = self.word("the name of an attribute")?;
        let value = self.attr_value()?;
        self.bounded(token, self.module.attrs.len())?;
        self.module.attrs.push(Attr {
            name: name.to_string(),
            value,
        });
        Ok(())
    }

    fn implicit_kind(&mut self, token: Token, kind: &str) -> PResult<u8> {
        let named = IMPLICIT_KINDS
            .iter()
            .find(|(n, _)| *n == kind)
            .map(|(_, k)| *k);
        let number = kind
            .strip_prefix("UNDEFINED_")
            .and_then(|n| n.parse::<u8>().ok())
            .filter(|n| *n < 32);
        match named.or(number) {
            Some(kind) => Ok(kind),
            None => {
                let mut names: Vec<&str> = IMPLICIT_KINDS.iter().map(|(n, _)| *n).collect();
                names.push("UNDEFINED_<0 to 31>");
                Err(self.not_one_of(token, "an implicit input", kind, &names))
            }
        }
    }

    /// `NAME [offset=…] [size=…]`.
    fn input(&mut self, directive: Token, implicit: u8) -> PResult<()> {
        let (token, sym) = self.variable("a variable")?;
        let (var, declared) = match sym {
            Sym::General(id) => (InputVar::General(id), self.bytes_of(id)),
            Sym::Sampler(id) => (InputVar::Sampler(id), 4),
            Sym::Surface(id) => (InputVar::Surface(id), 4),
            _ => {
                return Err(self.wrong_class(
                    token,
                    sym,
                    "a general variable, a sampler or a surface",
                ));
            }
        };
        let offset = if self.eat_key("offset") {
            self.expression_u32("a byte offset")?
        } else {
            0
        };
        let size = if self.eat_key("size") {
            self.expression_u32("a size in bytes")?
        } else {
            declared
        };
        self.bounded(directive, self.module.inputs.len())?;
        let pos = self.pos(directive);
        self.module.inputs.push(Input {
            var,
            offset,
            size,
            implicit,
            pos,
        });
        Ok(())
    }

    /// `NAME size=…`, the oldest spelling of an input at offset 0.
    fn parameter(&mut self, directive: Token) -> PResult<()> {
        self.input(directive, 0)
    }

    fn bytes_of(&self, id: VarId) -> u32 {
        let vars = &self.module.vars;
        let bytes = vars.ty(id).map_or(0, Type::bytes);
        vars.elements(id).unwrap_or(0).saturating_mul(bytes)
    }
}
