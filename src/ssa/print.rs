//! Text form of a function, for people, golden files and [`super::parse()`].
//!
//! ```text
//! function "saxpy" simd 16 frame 64 states 1
//! site 0 = read surface 4 "gather4_scaled" line 12
//!
//! bb0:
//!   %0: <16 x i1> = input.dispatchmask
//!   %1: i32 = const 3
//!   %2: <16 x i32> = splat %1  ; line 9
//!   %3: <16 x i32> = load.surface.i32x1[0] %0, %2, %1  ; line 12 gather4_scaled
//!   jump bb1(%3)
//! bb1(%4: <16 x i32>):
//!   return
//! ```
//!
//! Numbers are those of the arenas, so that a message about `%12` can be found in the text. Dead
//! instructions, values and blocks are not printed; shapes of accesses are comments. Printing never fails, also on functions that
//! the verifier rejects.

use std::fmt;

use super::func::{Block, BlockCall, Function, Inst, InstData, Term, Value};
use super::names::{self, spell};
use super::op::{BarrierStep, ImageOp, Input, Op, Space};
use super::shape::Shape;
use super::site::Site;
use super::types::{Lane, Ty};

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bb{}", self.0)
    }
}

impl fmt::Display for BlockCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.block)?;
        if !self.args.is_empty() {
            write!(f, "({})", List(&self.args))?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::None => write!(f, "none"),
            Term::Jump(to) => write!(f, "jump {to}"),
            Term::Branch { cond, then, other } => write!(f, "branch {cond}, {then}, {other}"),
            Term::Switch {
                index,
                targets,
                default,
            } => write!(f, "switch {index}, [{}], {default}", List(targets)),
            Term::Return => write!(f, "return"),
            Term::Suspend(state) => write!(f, "suspend {state}"),
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        header(self, f)?;
        each_line(self, |_, line| line.fmt(f))
    }
}

/// One line of a function's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The text, without its end.
    pub text: String,
    /// Line of vISA that it came from, 0 for none.
    pub line: u32,
}

impl Function {
    /// The text without its head, line by line.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        // Writing to a string does not fail.
        let _ = each_line(self, |line, text| {
            let text = text.to_string().trim_end().to_owned();
            lines.push(Line { text, line });
            Ok(())
        });
        lines
    }
}

impl Function {
    /// Name of an operation without its operands and its place in the table of memory instructions.
    pub fn op_name(&self, inst: Inst) -> String {
        let op = &self.inst(inst).op;
        let text = OpText(op, Ty::scalar(Lane::I64)).to_string();
        let name = text.split_once('[').map_or(text.as_str(), |(name, _)| name);
        name.to_owned()
    }
}

/// Hands out the lines of a function with the lines of vISA they came from.
fn each_line(
    func: &Function,
    mut to: impl FnMut(u32, &dyn fmt::Display) -> fmt::Result,
) -> fmt::Result {
    for &b in &func.order {
        let block = func.block(b);
        to(
            0,
            &fmt::from_fn(|f| {
                write!(f, "{b}")?;
                if !block.params.is_empty() {
                    write!(f, "({})", Typed(func, &block.params))?;
                }
                writeln!(f, ":")
            }),
        )?;
        for &i in &block.insts {
            let data = func.inst(i);
            to(data.line, &fmt::from_fn(|f| inst(func, data, f)))?;
            if let Some(shape) = func.shapes.get(&i) {
                to(data.line, &fmt::from_fn(|f| writeln!(f, "  ; {shape}")))?;
            }
        }
        to(
            block.term_line,
            &fmt::from_fn(|f| {
                write!(f, "  {}", block.term)?;
                comment(block.term_line, "", f)
            }),
        )?;
    }
    Ok(())
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shape:")?;
        if let Some(a) = self.addr {
            write!(f, " base {} stride {}", a.base, a.stride)?;
            if let Some(guard) = a.guard {
                write!(f, " if {guard}")?;
            }
        }
        if let Some(stride) = self.speculative {
            write!(f, " speculative {stride}")?;
        }
        if let Some(all) = self.mask_all {
            write!(f, " all {all}")?;
        }
        Ok(())
    }
}

fn header(func: &Function, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "function {:?} simd {}", func.name, func.simd)?;
    let fields = [
        ("row", func.row.map_or(0, u32::from)),
        ("regs", func.regs_bytes),
        ("frame", func.frame_bytes),
        ("states", func.states),
        ("slm", func.slm_bytes),
    ];
    for (name, n) in fields.into_iter().filter(|&(_, n)| n != 0) {
        write!(f, " {name} {n}")?;
    }
    writeln!(f)?;
    if let Some(e) = &func.exchange {
        writeln!(
            f,
            "exchange {} bytes at {} lines [{}]",
            e.bytes,
            e.offset,
            List(&e.lines)
        )?;
    }
    for (i, s) in func.sites.iter().enumerate() {
        let (kind, space) = (spell(names::KIND, &s.kind), spell(names::SPACE, &s.space));
        write!(
            f,
            "site {i} = {kind} {space} {} \"{}\" line {}",
            s.bytes, s.opcode, s.line
        )?;
        if s.alignment != Site::usual_alignment(s.kind, s.bytes) {
            write!(f, " align {}", s.alignment)?;
        }
        if s.first_lane != 0 {
            write!(f, " lane {}", s.first_lane)?;
        }
        if !s.parts.is_empty() {
            write!(f, " of [{}]", List(&s.parts))?;
        }
        writeln!(f)?;
    }
    writeln!(f)
}

fn inst(func: &Function, data: &InstData, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "  ")?;
    if !data.results.is_empty() {
        write!(f, "{} = ", Typed(func, &data.results))?;
    }
    let ty = data
        .results
        .first()
        .map_or(Ty::scalar(Lane::I64), |&v| func.ty(v));
    write!(f, "{}", OpText(&data.op, ty))?;
    if !data.args.is_empty() {
        write!(f, " {}", List(&data.args))?;
    }
    let site = data.op.site().and_then(|s| func.sites.get(s as usize));
    comment(data.line, site.map_or("", |s| s.opcode), f)
}

fn comment(line: u32, note: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (line, note) {
        (0, "") => writeln!(f),
        (0, _) => writeln!(f, "  ; {note}"),
        (_, "") => writeln!(f, "  ; line {line}"),
        _ => writeln!(f, "  ; line {line} {note}"),
    }
}

struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{item}")?;
        }
        Ok(())
    }
}

struct Typed<'a>(&'a Function, &'a [Value]);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, &v) in self.1.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{v}: {}", self.0.ty(v))?;
        }
        Ok(())
    }
}

/// An operation with its immediates, before its operands.
struct OpText<'a>(&'a Op, Ty);

impl fmt::Display for OpText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpText(op, ty) = *self;
        match op {
            Op::Const(bits) => write!(f, "const {}", Literal(*bits, ty.lane)),
            Op::VecConst(bits) => vec_const(bits, ty.lane, f),
            Op::Input(input) => write!(f, "input.{input}"),
            Op::Unary(op) => f.write_str(spell(names::UNARY, op)),
            Op::Binary(op) => f.write_str(spell(names::BINARY, op)),
            Op::Fma => f.write_str("fma"),
            Op::Dot4(signs) => {
                let sign = |signed| if signed { 's' } else { 'u' };
                write!(f, "dot4.{}{}", sign(signs.a), sign(signs.b))
            }
            Op::ICmp(c) => write!(f, "icmp.{}", spell(names::ICOND, c)),
            Op::FCmp(c) => write!(f, "fcmp.{}", spell(names::FCOND, c)),
            Op::Select => f.write_str("select"),
            Op::Convert(c) => f.write_str(spell(names::CONVERT, c)),
            Op::Bitcast => f.write_str("bitcast"),
            Op::Splat => f.write_str("splat"),
            Op::ExtractLane(k) => write!(f, "extractlane[{k}]"),
            Op::InsertLane(k) => write!(f, "insertlane[{k}]"),
            Op::Shuffle(indices) => write!(f, "shuffle[{}]", List(indices)),
            Op::MaskAny => f.write_str("maskany"),
            Op::MaskAll => f.write_str("maskall"),
            Op::MaskToBits => f.write_str("masktobits"),
            Op::BitsToMask => f.write_str("bitstomask"),
            Op::FpEnv(op) => write!(f, "fpenv.{}", spell(names::FPENV, op)),
            Op::Fence => f.write_str("fence"),
            Op::Barrier => f.write_str("barrier"),
            Op::Exchange => f.write_str("exchange"),
            Op::NamedBarrier(BarrierStep::Signal) => f.write_str("namedbarrier.signal"),
            Op::NamedBarrier(BarrierStep::Pass) => f.write_str("namedbarrier.pass"),
            Op::FrameStore(at) => write!(f, "framestore[{at}]"),
            Op::FrameLoad(at) => write!(f, "frameload[{at}]"),
            Op::Poll => f.write_str("poll"),
            Op::Decide => f.write_str("decide"),
            Op::Suspect => f.write_str("suspect"),
            _ => memory(op, f),
        }
    }
}

fn memory(op: &Op, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let space = |s: &Space| spell(names::SPACE, s);
    match op {
        Op::Load(m) | Op::Store(m) => {
            let name = if matches!(op, Op::Load(_)) {
                "load"
            } else {
                "store"
            };
            let (space, elem) = (space(&m.space), m.elem.name());
            write!(f, "{name}.{space}.{elem}x{}[{}]", m.comps, m.site)
        }
        Op::BlockLoad(m) | Op::BlockStore(m) => {
            let name = if matches!(op, Op::BlockLoad(_)) {
                "blockload"
            } else {
                "blockstore"
            };
            let (space, elem) = (space(&m.space), m.elem.name());
            write!(f, "{name}.{space}.{elem}x{}[{}]", m.n, m.site)
        }
        Op::CheckBuffer(m) => {
            let aligned = if m.aligned { "a" } else { "" };
            let writes = if m.writes { "w" } else { "" };
            let (elem, count) = (m.elem.name(), m.count);
            write!(f, "check.{elem}x{count}{aligned}{writes}[{}]", m.site)
        }
        Op::CheckAligned(m) => write!(f, "check.aligned.{}[{}]", space(&m.space), m.site),
        Op::CheckRace(m) => {
            let access = spell(names::RACE, &m.access);
            let block = if m.block { "b" } else { "" };
            let (space, elem, count) = (space(&m.space), m.elem.name(), m.count);
            write!(f, "check.{access}.{space}.{elem}x{count}{block}")?;
            if let Some(pointer) = m.pointer {
                write!(f, ".p{pointer}")?;
            }
            write!(f, "[{}]", m.site)
        }
        Op::Initialise(m) => {
            let block = if m.block { "b" } else { "" };
            let (space, elem, count) = (space(&m.space), m.elem.name(), m.count);
            write!(f, "init.{space}.{elem}x{count}{block}[{}]", m.site)
        }
        Op::CheckBarrier(m) => {
            let step = if m.waits { "barrier" } else { "signal" };
            write!(f, "check.{step}[{}]", m.site)
        }
        Op::Load2d(m) | Op::Store2d(m) => {
            let name = if matches!(op, Op::Load2d(_)) {
                "load2d"
            } else {
                "store2d"
            };
            let letter = |yes| if yes { 't' } else { 'n' };
            let order = [letter(m.transpose), letter(m.packed)];
            write!(
                f,
                "{name}.{}.{}x{}x{}{}{}.{}[{}]",
                m.elem.name(),
                m.blocks,
                m.width,
                m.height,
                order[0],
                order[1],
                m.register,
                m.site
            )
        }
        Op::Atomic(m) => {
            let (space, elem) = (space(&m.space), m.elem.name());
            let op = spell(names::ATOMIC, &m.op);
            write!(f, "atomic.{space}.{op}.{elem}[{}]", m.site)
        }
        Op::Image(m) => {
            let (channels, site) = (m.channels, m.site);
            match &m.op {
                ImageOp::Atomic(op) => {
                    let op = spell(names::ATOMIC, op);
                    write!(f, "image.atomic.{op}x{channels}[{site}]")
                }
                ImageOp::AtomicShort(op) => {
                    let op = spell(names::ATOMIC, op);
                    write!(f, "image.atomic16.{op}x{channels}[{site}]")
                }
                op => write!(f, "image.{}x{channels}[{site}]", spell(names::IMAGE, op)),
            }
        }
        _ => f.write_str("?"),
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dim = |d: u8| names::DIMS.get(usize::from(d)).copied().unwrap_or("?");
        match *self {
            Input::LocalId { dim: d, lane } => write!(f, "localid.{}[{lane}]", dim(d)),
            Input::LocalIds { dim: d, first } => write!(f, "localids.{}[{first}]", dim(d)),
            Input::Thread => f.write_str("thread"),
            Input::DispatchMask => f.write_str("dispatchmask"),
            Input::Payload(at) => write!(f, "payload[{at}]"),
            Input::R0(n) => write!(f, "r0[{n}]"),
            Input::Sr0(n) => write!(f, "sr0[{n}]"),
            Input::HwId => f.write_str("hwid"),
            Input::Tsc => f.write_str("tsc"),
            Input::State => f.write_str("state"),
            Input::Unset => f.write_str("unset"),
        }
    }
}

fn vec_const(bits: &[u64], lane: Lane, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let [first, rest @ ..] = bits
        && rest.len() > 1
        && rest.iter().all(|b| b == first)
    {
        return write!(f, "vconst [{} ...]", Literal(*first, lane));
    }
    let items: Vec<Literal> = bits.iter().map(|&b| Literal(b, lane)).collect();
    write!(f, "vconst [{}]", List(&items))
}

/// Bits of a constant: small integers in decimal, floats with a point where that is exact, else hex.
struct Literal(u64, Lane);

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Literal(bits, lane) = *self;
        if bits & !lane.mask() != 0 {
            return write!(f, "{bits:#x}");
        }
        let signed = lane.sign_extend(bits);
        match lane {
            Lane::F32 if f32::from_bits(bits as u32).is_normal() => {
                write!(f, "{:?}", f32::from_bits(bits as u32))
            }
            Lane::F64 if f64::from_bits(bits).is_normal() => {
                write!(f, "{:?}", f64::from_bits(bits))
            }
            Lane::F32 | Lane::F64 if bits == 0 => write!(f, "0.0"),
            Lane::F32 | Lane::F64 => write!(f, "{bits:#x}"),
            Lane::I1 => write!(f, "{bits}"),
            _ if (-4096..=65535).contains(&signed) => write!(f, "{signed}"),
            _ => write!(f, "{bits:#x}"),
        }
    }
}
