//! The parser: statement by statement, the opcode table's `Form` chooses the routine.
//!
//! A routine that meets an error reports it at once and returns [`Reported`]; the statement is dropped and
//! reading goes on at the next line. Nothing is reported twice: a name whose declaration failed is known
//! as such, an undefined name is reported at its first use.

mod alu;
mod cursor;
mod directives;
mod expr;
mod flow;
mod literal;
mod lsc;
mod memory;
mod misc;
mod operands;
mod sampler;
mod symbols;

use super::error::{Diagnostics, ErrorKind, TextError};
use super::lexer::{Head, Lexer, Token, TokenKind};
use crate::isa::{Exec, Form, Opcode, OpcodeInfo, PredKind, Status, Versions};
use crate::limits::{MAX_ERRORS, MAX_INSTS, MAX_TEXT_BYTES};
use crate::module::{Body, Inst, Module};
use symbols::Symbols;

/// An error has been recorded; the statement is lost.
#[derive(Debug)]
struct Reported;

/// Result of a parsing routine.
type PResult<T> = Result<T, Reported>;

/// State of one run.
struct Parser<'s> {
    src: &'s str,
    lexer: Lexer<'s>,
    tokens: Vec<Token>,
    at: usize,
    head: Head,
    symbols: Symbols<'s>,
    errors: Vec<TextError>,
    module: Module,
    versions: Versions,
    seen_version: bool,
    seen_kernel: bool,
    /// An error after which the rest means nothing.
    given_up: bool,
}

/// What is known of an instruction when its operands are parsed.
struct Mnemonic<'s> {
    row: &'static OpcodeInfo,
    text: &'s str,
    token: Token,
}

/// Reads a program of a known version.
///
/// `file_name` is used in error messages only. Either the whole program was understood, or every error
/// found (up to [`crate::limits::MAX_ERRORS`]) is returned.
pub fn parse(file_name: &str, source: &str) -> Result<Module, Diagnostics> {
    parse_with(file_name, source, Versions::Known)
}

/// The same of a program of any of these versions.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(
    file_name: &str,
    source: &str,
    versions: Versions,
) -> Result<Module, Diagnostics> {
    parse_at(file_name, source, 1, None, versions)
}

/// Reads a module that starts at a line, with a version that holds if it says none itself.
fn parse_at(
    file_name: &str,
    source: &str,
    line: u32,
    version: Option<(u32, u32)>,
    versions: Versions,
) -> Result<Module, Diagnostics> {
    let mut parser = Parser::new(source, line, versions);
    if let Some(version) = version {
        parser.module.version = version;
        parser.seen_version = true;
    }
    if source.len() > MAX_TEXT_BYTES {
        let start = Token {
            kind: TokenKind::End,
            start: 0,
            end: 0,
        };
        parser.error(
            start,
            ErrorKind::Limit,
            format!("the file is larger than {MAX_TEXT_BYTES} bytes"),
        );
    } else {
        parser.run();
    }
    parser.finish(file_name)
}

/// Reads a file of one or more modules: a kernel and the functions that it calls, say. Each starts with `.version` in the first
/// column or, of the version of the one in front, with `.kernel` or `.global_function`. Lines are counted through the whole file.
///
/// # Errors
/// Those of the first module that has some.
pub fn parse_all(
    file_name: &str,
    source: &str,
    versions: Versions,
) -> Result<Vec<Module>, Diagnostics> {
    let mut modules: Vec<Module> = Vec::new();
    let mut line = 1u32;
    let mut start = 0;
    for next in starts(source).into_iter().skip(1).chain([source.len()]) {
        let part = source.get(start..next).unwrap_or("");
        let own = part.lines().any(|line| line.starts_with(".version"));
        let version = modules.last().filter(|_| !own).map(|m| m.version);
        modules.push(parse_at(file_name, part, line, version, versions)?);
        let lines = part.bytes().filter(|&b| b == b'\n').count();
        line = line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        start = next;
    }
    Ok(modules)
}

/// Where modules start. What stands in front of the first one belongs to it.
fn starts(source: &str) -> Vec<usize> {
    let mut starts = vec![0];
    let (mut at, mut versioned, mut named) = (0usize, false, false);
    for line in source.split_inclusive('\n') {
        let version = line.starts_with(".version");
        let name = line.starts_with(".kernel ") || line.starts_with(".global_function ");
        // A second one of a kind begins another module.
        if version && (versioned || named) || name && named {
            starts.push(at);
            (versioned, named) = (false, false);
        }
        versioned |= version;
        named |= name;
        at = at.saturating_add(line.len());
    }
    starts
}

impl<'s> Parser<'s> {
    fn new(src: &'s str, line: u32, versions: Versions) -> Parser<'s> {
        Parser {
            src,
            lexer: Lexer::at_line(src, line),
            tokens: Vec::new(),
            at: 0,
            head: Head { line: 1, start: 0 },
            symbols: Symbols::new(),
            errors: Vec::new(),
            module: Module::empty(),
            versions,
            seen_version: false,
            seen_kernel: false,
            given_up: false,
        }
    }

    fn run(&mut self) {
        while self.errors.len() < MAX_ERRORS && !self.given_up {
            let Some(head) = self.lexer.statement(&mut self.tokens) else {
                self.at_end();
                return;
            };
            self.head = head;
            self.at = 0;
            // An error is recorded already; the next statement starts afresh.
            let _: PResult<()> = self.statement();
        }
    }

    fn finish(mut self, file_name: &str) -> Result<Module, Diagnostics> {
        if self.errors.is_empty() {
            return Ok(self.module);
        }
        let stopped = self.errors.len() >= MAX_ERRORS;
        self.errors.truncate(MAX_ERRORS);
        self.errors.sort_by_key(|e| (e.pos.line, e.pos.col));
        Err(Diagnostics {
            file: file_name.to_string(),
            errors: self.errors,
            stopped,
        })
    }

    fn statement(&mut self) -> PResult<()> {
        self.reject_bad_tokens()?;
        let first = self.peek();
        if !self.seen_version {
            self.seen_version = true;
            if !(first.kind == TokenKind::Punct(b'.') && self.nth_text(1) == "version") {
                self.error(
                    first,
                    ErrorKind::Syntax,
                    "a file must start with `.version <major>.<minor>`".into(),
                );
            }
        }
        match first.kind {
            TokenKind::Label => self.label_definition(),
            TokenKind::Punct(b'.') => self.directive(),
            TokenKind::Punct(b'{' | b'}') => self.scope(),
            _ => self.instruction(),
        }
    }

    /// What only the whole file shows: a missing header, undefined labels, open scopes.
    fn at_end(&mut self) {
        let end = u32::try_from(self.src.len()).unwrap_or(u32::MAX);
        let eof = Token {
            kind: TokenKind::End,
            start: end,
            end,
        };
        if !self.seen_version {
            self.error(
                eof,
                ErrorKind::Syntax,
                "the file is empty: expected `.version <major>.<minor>`".into(),
            );
        } else if !self.seen_kernel && self.errors.is_empty() {
            self.error(
                eof,
                ErrorKind::Syntax,
                "no `.kernel` or `.global_function` in this file".into(),
            );
        }
        if self.symbols.depth() > 1 {
            self.error(
                eof,
                ErrorKind::Syntax,
                "a scope that `{` opened is still open at the end of the file".into(),
            );
        }
        self.undefined_labels();
    }

    fn instruction(&mut self) -> PResult<()> {
        let first = self.peek();
        let pos = self.pos(first);
        let pred = if self.is(b'(') {
            Some(self.predicate()?)
        } else {
            None
        };
        let whole = Token {
            end: self.previous_end(first),
            ..first
        };
        let m = self.mnemonic()?;
        let pred = match (pred, m.row.predicate) {
            (Some(_), PredKind::None) => {
                let message = format!("`{}` takes no predicate", m.text);
                return Err(self.error(whole, ErrorKind::Syntax, message));
            }
            (Some(_), PredKind::Ignored) => None,
            (pred, _) => pred,
        };
        let (op, exec, body) = self.operands(&m)?;
        self.end_of_statement()?;
        self.push(Inst {
            op,
            pred,
            exec,
            body,
            written: None,
            pos,
        })
    }

    /// Appends an instruction.
    fn push(&mut self, inst: Inst) -> PResult<()> {
        if self.module.insts.len() >= MAX_INSTS {
            let at = self.first();
            let message = format!("more than {MAX_INSTS} instructions");
            return Err(self.error(at, ErrorKind::Limit, message));
        }
        self.module.insts.push(inst);
        Ok(())
    }

    fn mnemonic(&mut self) -> PResult<Mnemonic<'s>> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return Err(self.unexpected(&["an instruction", "a directive", "a label in column 1"]));
        }
        self.bump();
        let mut text = self.text(token);
        let mut op = Opcode::from_mnemonic(text);
        if op == Some(Opcode::Add3) && self.suffix_is("o") {
            let o = self.suffix();
            op = Some(Opcode::Add3o);
            text = o.map_or(text, |(t, _)| self.src_range(token.start, t.end));
        }
        let Some(op) = op else {
            return Err(self.unknown_mnemonic(token, text));
        };
        let row = op.info();
        if row.status == Status::Rejected || row.form == Form::Unparsed {
            return Err(self.error_full(
                token,
                ErrorKind::Unsupported,
                format!("`{text}` is not supported"),
                row.semantics.to_string(),
                Some("instructions of media and graphics kernels, and of hardware after Ponte Vecchio, are not run".into()),
            ));
        }
        Ok(Mnemonic { row, text, token })
    }

    fn unknown_mnemonic(&mut self, token: Token, text: &str) -> Reported {
        let lower = text.to_ascii_lowercase();
        let (label, hint) = if lower != text && Opcode::from_mnemonic(&lower).is_some() {
            (
                "mnemonics are lower-case".to_string(),
                Some(format!("did you mean `{lower}`?")),
            )
        } else if self.peek().kind == TokenKind::Punct(b':') {
            (
                String::new(),
                Some("a label must start in the first column".into()),
            )
        } else {
            let names = Opcode::ALL.iter().flat_map(|o| o.info().mnemonics);
            let near = symbols::closest(&lower, names.copied());
            (String::new(), near.map(|n| format!("did you mean `{n}`?")))
        };
        self.error_full(
            token,
            ErrorKind::Syntax,
            format!("unknown instruction `{text}`"),
            label,
            hint,
        )
    }

    /// Operands by form. The opcode returned differs from the row's only for typed LSC messages, which
    /// share their mnemonics with the untyped ones.
    fn operands(&mut self, m: &Mnemonic<'s>) -> PResult<(Opcode, Exec, Body)> {
        let op = m.row.opcode;
        let (exec, body) = match m.row.form {
            Form::Alu | Form::AluPair | Form::Cmp | Form::Bfn => self.alu(m)?,
            Form::Branch => self.branch()?,
            Form::Ret => (self.exec()?, Body::Ret),
            Form::SwitchJmp => self.switch_jmp()?,
            Form::Fcall => self.fcall()?,
            Form::Ifcall => self.ifcall()?,
            Form::Faddr => self.faddr()?,
            Form::Oword => self.oword()?,
            Form::Media => self.media()?,
            Form::Gather => self.gather()?,
            Form::Gather4Scaled => self.gather4_scaled()?,
            Form::GatherScaled => self.gather_scaled()?,
            Form::Typed => self.typed()?,
            Form::DwordAtomic => self.dword_atomic()?,
            Form::TypedAtomic => self.typed_atomic()?,
            Form::Qword => self.qword()?,
            Form::SvmBlock => self.svm_block()?,
            Form::SvmGather => self.svm_gather()?,
            Form::SvmGather4Scaled => self.svm_gather4_scaled()?,
            Form::SvmAtomic => self.svm_atomic()?,
            Form::Lsc => return self.lsc(m),
            Form::LscFence => self.lsc_fence()?,
            Form::Sample3d | Form::Load3d => self.sample(m)?,
            Form::Info3d => self.sample_info(m)?,
            Form::RawSend => self.raw_send(m)?,
            Form::RawSends => self.raw_sends(m)?,
            Form::Dpas => self.dpas()?,
            Form::Fence => (Exec::SCALAR, self.fence(m)?),
            Form::Nullary => (Exec::SCALAR, Body::Nullary),
            Form::Wait => (Exec::SCALAR, Body::Wait(self.scalar()?)),
            Form::Sbarrier => (Exec::SCALAR, Body::Sbarrier(self.signal_or_wait()?)),
            Form::Nbarrier => (Exec::SCALAR, self.nbarrier()?),
            Form::File => (Exec::SCALAR, self.file()?),
            Form::Loc => (Exec::SCALAR, self.loc()?),
            Form::Lifetime => (Exec::SCALAR, self.lifetime()?),
            Form::Label | Form::SampleLegacy | Form::Unparsed => {
                return Err(self.unknown_mnemonic(m.token, m.text));
            }
        };
        Ok((op, exec, body))
    }
}
