//! The operand and result rule of each operation, as its doc in [`super::op`] states it.

use super::func::{Function, InstData, Value};
use super::op::{
    Access2d, AlignCheck, BarrierCheck, BinOp, BufferCheck, Conv, FpEnvOp, ICond, ImageAccess,
    Input, Op, RaceAccess, RaceCheck, Space, UnOp,
};
use super::types::{Lane, Ty};
use super::verify::Rule;

/// Most lanes of a mask.
const MASK_LANES: u16 = 32;

/// A broken rule and what was wrong.
pub(super) type Broken = (Rule, String);

/// Checks one instruction by itself.
pub(super) fn check(f: &Function, data: &InstData) -> Result<(), Broken> {
    let tys = |values: &[Value]| -> Vec<Ty> { values.iter().map(|&v| f.ty(v)).collect() };
    let (args, results) = (tys(&data.args), tys(&data.results));
    if let Some(t) = args.iter().chain(&results).find(|t| !lanes_ok(**t)) {
        return Err((Rule::Lanes, format!("{t} has an impossible lane count")));
    }
    let shape = OpTypes {
        op: &data.op,
        args: &args,
        results: &results,
    };
    match &data.op {
        Op::Load(_) | Op::Store(_) | Op::BlockLoad(_) | Op::BlockStore(_) | Op::Atomic(_) => {
            shape.memory(f)
        }
        Op::Load2d(m) | Op::Store2d(m) => shape.rectangle(f, *m),
        Op::CheckBuffer(m) => shape.check_buffer(f, *m),
        Op::CheckAligned(m) => shape.check_aligned(f, *m),
        Op::CheckRace(m) => shape.check_race(f, *m),
        Op::Suspect => shape.suspect(),
        Op::Decide => {
            let ([a], []) = shape.exactly()?;
            shape.require(a.lane == Lane::I1, "needs a condition")
        }
        Op::Initialise(m) => shape.initialise(f, *m),
        Op::CheckBarrier(m) => shape.check_barrier(f, *m),
        Op::Image(m) => shape.image(f, *m),
        Op::FrameStore(at) => frame(f, *at, shape.exactly::<1, 0>()?.0[0]),
        Op::FrameLoad(at) => frame(f, *at, shape.exactly::<0, 1>()?.1[0]),
        Op::Fence | Op::Poll => shape.exactly::<0, 0>().map(|_| ()),
        Op::Barrier => shape.exactly::<0, 0>().and_then(|_| shape.waits(f)),
        Op::Exchange => shape.exchange(f),
        Op::NamedBarrier(_) => {
            let (args, results) = shape.exactly::<4, 1>()?;
            match args.iter().chain(&results).all(|&t| t == Ty::I32) {
                true => Ok(()),
                false => Err((Rule::Types, "operands and result are i32".into())),
            }
        }
        Op::Input(input) => shape.input(f, *input),
        _ => shape.pure(),
    }
}

fn lanes_ok(t: Ty) -> bool {
    (1..=Ty::MAX_LANES).contains(&t.lanes)
}

fn frame(f: &Function, at: u32, ty: Ty) -> Result<(), Broken> {
    let end = u64::from(at) + u64::from(ty.frame_bytes());
    let mask_fits = ty.lane != Lane::I1 || ty.lanes <= MASK_LANES;
    if at >= f.regs_bytes && end <= u64::from(f.frame_bytes) && mask_fits {
        return Ok(());
    }
    let (regs, frame) = (f.regs_bytes, f.frame_bytes);
    Err((
        Rule::Frame,
        format!("{ty} at {at} is outside the saved values {regs}..{frame} of the frame"),
    ))
}

struct OpTypes<'a> {
    op: &'a Op,
    args: &'a [Ty],
    results: &'a [Ty],
}

const fn is_int(lane: Lane) -> bool {
    !lane.is_float() && !matches!(lane, Lane::I1)
}

impl OpTypes<'_> {
    fn broken<T>(&self, rule: Rule, what: impl Into<String>) -> Result<T, Broken> {
        Err((rule, what.into()))
    }

    fn require(&self, ok: bool, what: &str) -> Result<(), Broken> {
        if ok {
            return Ok(());
        }
        let (args, results) = (self.args, self.results);
        let list = |tys: &[Ty]| tys.iter().map(Ty::to_string).collect::<Vec<_>>().join(", ");
        let (args, results) = (list(args), list(results));
        let text = format!("{what}; operands ({args}), results ({results})");
        self.broken(Rule::Types, text)
    }

    fn exactly<const A: usize, const R: usize>(&self) -> Result<([Ty; A], [Ty; R]), Broken> {
        match (self.args.try_into(), self.results.try_into()) {
            (Ok(args), Ok(results)) => Ok((args, results)),
            _ => {
                let what = format!("needs {A} operands and {R} results");
                self.require(false, &what)?;
                self.broken(Rule::Types, what)
            }
        }
    }

    fn constant(&self, bits: &[u64], t: Ty) -> Result<(), Broken> {
        if bits.len() != usize::from(t.lanes) {
            let text = format!("{} constants for {t}", bits.len());
            return self.broken(Rule::Constants, text);
        }
        match bits.iter().find(|&&b| b & !t.lane.mask() != 0) {
            Some(b) => self.broken(Rule::Constants, format!("{b:#x} does not fit {t}")),
            None => Ok(()),
        }
    }

    fn pure(&self) -> Result<(), Broken> {
        match self.op {
            Op::Const(bits) => self.constant(&[*bits], self.exactly::<0, 1>()?.1[0]),
            Op::VecConst(bits) => self.constant(bits, self.exactly::<0, 1>()?.1[0]),
            Op::Unary(op) => self.unary(*op),
            Op::Binary(op) => self.binary(*op),
            Op::Fma => {
                let ([a, b, c], [r]) = self.exactly()?;
                let same = a == b && b == c && c == r && a.lane.is_float();
                self.require(same, "needs one float type")
            }
            Op::Dot4(_) => {
                let ([c, a, b], [r]) = self.exactly()?;
                let same = a == b && b == c && c == r && a.lane == Lane::I32;
                self.require(same, "needs one type of 32-bit integers")
            }
            Op::ICmp(cond) => {
                let ([a, b], [r]) = self.exactly()?;
                let lane =
                    is_int(a.lane) || a.lane == Lane::I1 && matches!(cond, ICond::Eq | ICond::Ne);
                let ok = a == b && lane && r == a.with_lane(Lane::I1);
                self.require(ok, "compares integers of one type to a mask")
            }
            Op::FCmp(_) => {
                let ([a, b], [r]) = self.exactly()?;
                let ok = a == b && a.lane.is_float() && r == a.with_lane(Lane::I1);
                self.require(ok, "compares floats of one type to a mask")
            }
            Op::Select => {
                let ([m, a, b], [r]) = self.exactly()?;
                let mask = m == Ty::BOOL || m == a.with_lane(Lane::I1);
                self.require(
                    a == b && a == r && mask,
                    "selects by a mask of as many lanes",
                )
            }
            Op::Convert(c) => self.convert(*c),
            Op::Bitcast => {
                let ([a], [r]) = self.exactly()?;
                let masks = a.lane == Lane::I1 || r.lane == Lane::I1;
                let ok = a == r || a.bits() == r.bits() && !masks;
                self.require(ok, "keeps the total size, not for masks")
            }
            Op::FpEnv(op) => self.fp_env(*op),
            _ => self.lanes(),
        }
    }

    fn unary(&self, op: UnOp) -> Result<(), Broken> {
        let ([a], [r]) = self.exactly()?;
        let lane = match op {
            UnOp::Not => !a.lane.is_float(),
            UnOp::Neg | UnOp::Clz | UnOp::Ctz | UnOp::Popcnt | UnOp::BitRev => is_int(a.lane),
            _ => a.lane.is_float(),
        };
        self.require(a == r && lane, "has one operand of the result's type")
    }

    fn binary(&self, op: BinOp) -> Result<(), Broken> {
        let ([a, b], [r]) = self.exactly()?;
        let lane = match op {
            BinOp::And | BinOp::Or | BinOp::Xor => !a.lane.is_float(),
            BinOp::FAdd | BinOp::FSub | BinOp::FMul | BinOp::FDiv => a.lane.is_float(),
            BinOp::FScale => a.lane == Lane::F32,
            _ => is_int(a.lane),
        };
        let same = a == b || op.is_shift() && b == Ty::scalar(a.lane);
        self.require(
            a == r && lane && same,
            "has two operands of the result's type",
        )
    }

    fn convert(&self, c: Conv) -> Result<(), Broken> {
        let ([a], [r]) = self.exactly()?;
        let (from, to) = (a.lane, r.lane);
        let floats = from.is_float() && to.is_float();
        let ok = match c {
            Conv::SExt | Conv::ZExt => {
                !from.is_float() && !to.is_float() && from.bits() < to.bits()
            }
            Conv::Trunc => !from.is_float() && !to.is_float() && from.bits() > to.bits(),
            Conv::SIToF | Conv::UIToF => is_int(from) && to.is_float(),
            Conv::FToSI | Conv::FToUI => from.is_float() && is_int(to),
            Conv::FPromote => floats && from.bits() < to.bits(),
            Conv::FDemote => floats && from.bits() > to.bits(),
            Conv::F16ToF => from == Lane::I16 && to.is_float(),
            Conv::FToF16 => from.is_float() && to == Lane::I16,
        };
        self.require(ok && a.lanes == r.lanes, "cannot convert so")
    }

    fn fp_env(&self, op: FpEnvOp) -> Result<(), Broken> {
        let ([r], [cr0, args @ ..]) = (self.results, self.args) else {
            return self.require(false, "needs a control register and one result");
        };
        let float = |t: Ty| t.lane.is_float() || t.lane == Lane::I16;
        let count = match op {
            FpEnvOp::Add | FpEnvOp::Mul | FpEnvOp::Div => 2,
            FpEnvOp::Fma => 3,
            _ => 1,
        };
        let args_ok = args.iter().all(|a| match op {
            FpEnvOp::SIToF | FpEnvOp::UIToF => is_int(a.lane) && a.lanes == r.lanes,
            FpEnvOp::FToF => float(*a) && a.lanes == r.lanes,
            _ => a == r,
        });
        let ok = *cr0 == Ty::I32 && args.len() == count && args_ok && float(*r);
        self.require(ok, "needs the control register and float operands")
    }

    fn lanes(&self) -> Result<(), Broken> {
        match self.op {
            Op::Splat => {
                let ([a], [r]) = self.exactly()?;
                self.require(a == Ty::scalar(r.lane), "repeats a scalar")
            }
            Op::ExtractLane(k) => {
                let ([a], [r]) = self.exactly()?;
                self.lane_number(*k, a.lanes)?;
                self.require(r == Ty::scalar(a.lane), "gives a scalar")
            }
            Op::InsertLane(k) => {
                let ([a, s], [r]) = self.exactly()?;
                self.lane_number(*k, a.lanes)?;
                let ok = r == a && s == Ty::scalar(a.lane);
                self.require(ok, "puts a scalar into a vector")
            }
            Op::Shuffle(indices) => self.shuffle(indices),
            Op::MaskAny | Op::MaskAll => {
                let ([a], [r]) = self.exactly()?;
                self.require(a.lane == Lane::I1 && r == Ty::BOOL, "reduces a mask")
            }
            Op::MaskToBits | Op::BitsToMask => {
                let ([a], [r]) = self.exactly()?;
                let (mask, bits) = match self.op {
                    Op::MaskToBits => (a, r),
                    _ => (r, a),
                };
                let ok = mask.lane == Lane::I1 && mask.lanes <= MASK_LANES && bits == Ty::I32;
                self.require(ok, "is between a mask of at most 32 lanes and i32")
            }
            _ => self.require(false, "is not an operation of this group"),
        }
    }

    fn lane_number(&self, k: u16, lanes: u16) -> Result<(), Broken> {
        if k < lanes {
            Ok(())
        } else {
            self.broken(Rule::LaneNumbers, format!("lane {k} of {lanes}"))
        }
    }

    fn shuffle(&self, indices: &[u16]) -> Result<(), Broken> {
        let ([first, ..], [r]) = (self.args, self.results) else {
            return self.require(false, "needs operands and one result");
        };
        let same = self.args.iter().all(|a| a.lane == r.lane) && self.args.len() <= 2;
        self.require(
            same && first.lane == r.lane,
            "has one or two operands of one lane",
        )?;
        let lanes = self.args.iter().map(|a| a.lanes).sum();
        for &i in indices {
            self.lane_number(i, lanes)?;
        }
        let ok = indices.len() == usize::from(r.lanes);
        self.require(ok, "needs one index for each result lane")
    }

    fn input(&self, f: &Function, input: Input) -> Result<(), Broken> {
        let ([], [r]) = self.exactly()?;
        if let Some(ty) = input.ty() {
            self.require(r == ty, "has another type")?;
        }
        let ok = match input {
            Input::LocalId { dim, lane } => dim < 3 && u16::from(lane) < MASK_LANES,
            Input::LocalIds { dim, first } => {
                let type_ok = r.lane == Lane::I16;
                dim < 3 && type_ok && u16::from(first) + r.lanes <= MASK_LANES
            }
            Input::DispatchMask => r == Ty::mask(f.simd),
            Input::Payload(_) => r.lane != Lane::I1,
            Input::R0(n) => n < 16,
            Input::Sr0(n) => n < 4,
            Input::State if f.states == 0 => {
                return self.broken(Rule::Suspend, "state of a function without barriers");
            }
            Input::Thread | Input::State | Input::HwId | Input::Tsc | Input::Unset => true,
        };
        if ok {
            return Ok(());
        }
        self.broken(Rule::Inputs, format!("input.{input} does not exist as {r}"))
    }

    fn waits(&self, f: &Function) -> Result<(), Broken> {
        if f.states > 0 {
            return self.broken(
                Rule::Suspend,
                "a thread waits here in a function that suspends",
            );
        }
        Ok(())
    }

    fn exchange(&self, f: &Function) -> Result<(), Broken> {
        let ([given], [got]) = self.exactly()?;
        let dwords = given.lane == Lane::I32 && given == got;
        self.require(dwords, "needs one type of dwords")?;
        self.waits(f)
    }

    fn rectangle(&self, f: &Function, m: Access2d) -> Result<(), Broken> {
        if m.site as usize >= f.sites.len() {
            let n = f.sites.len();
            return self.broken(Rule::Sites, format!("site {} of {n}", m.site));
        }
        if !m.is_possible() {
            return self.broken(Rule::Memory, "no such block");
        }
        let head = [
            Ty::scalar(Lane::I1),
            Ty::I64,
            Ty::I32,
            Ty::I32,
            Ty::I32,
            Ty::I32,
            Ty::I32,
        ];
        let Some((given, values)) = self.args.split_at_checked(head.len()) else {
            return self.broken(Rule::Memory, "operands are missing");
        };
        let register = Ty::vector(m.elem, m.lanes() as u16);
        let (moved, none) = match self.op {
            Op::Load2d(_) => (self.results, values),
            _ => (values, self.results),
        };
        let all = moved.len() == m.registers() as usize && moved.iter().all(|t| *t == register);
        if given == head && none.is_empty() && all {
            return Ok(());
        }
        let text = format!("needs {} registers of {register}", m.registers());
        self.broken(Rule::Memory, text)
    }

    fn check_barrier(&self, f: &Function, m: BarrierCheck) -> Result<(), Broken> {
        let ([lanes], []) = self.exactly()?;
        if m.site as usize >= f.sites.len() {
            let n = f.sites.len();
            return self.broken(Rule::Sites, format!("site {} of {n}", m.site));
        }
        match lanes == Ty::I32 {
            true => Ok(()),
            false => self.broken(Rule::Types, "needs bits of lanes as i32"),
        }
    }

    fn check_buffer(&self, f: &Function, m: BufferCheck) -> Result<(), Broken> {
        let ([mask, addr], []) = self.exactly()?;
        if m.site as usize >= f.sites.len() {
            let n = f.sites.len();
            return self.broken(Rule::Sites, format!("site {} of {n}", m.site));
        }
        if !is_int(m.elem) || m.count == 0 {
            return self.broken(Rule::Memory, "needs integer elements, at least 1");
        }
        let masked = mask.lane == Lane::I1 && mask.lanes <= MASK_LANES;
        if masked && addr == Ty::vector(Lane::I64, mask.lanes) {
            return Ok(());
        }
        self.broken(Rule::Memory, "needs a mask and an address for each lane")
    }

    fn check_aligned(&self, f: &Function, m: AlignCheck) -> Result<(), Broken> {
        if m.site as usize >= f.sites.len() {
            let n = f.sites.len();
            return self.broken(Rule::Sites, format!("site {} of {n}", m.site));
        }
        let fits = match self.args {
            [mask, addr] => !m.space.has_surface() && self.is_lanes(*mask, *addr, m.space),
            [mask, addr, surface] => {
                m.space.has_surface() && *surface == Ty::I32 && self.is_lanes(*mask, *addr, m.space)
            }
            _ => false,
        };
        match fits && self.results.is_empty() {
            true => Ok(()),
            false => self.broken(Rule::Memory, "needs a mask and an address for each lane"),
        }
    }

    /// Whether these are a mask and addresses of a space.
    fn is_lanes(&self, mask: Ty, addr: Ty, space: Space) -> bool {
        let masked = mask.lane == Lane::I1 && mask.lanes <= MASK_LANES;
        masked && addr == Ty::vector(space.addr(), mask.lanes)
    }

    fn check_race(&self, f: &Function, m: RaceCheck) -> Result<(), Broken> {
        if m.site as usize >= f.sites.len() {
            let n = f.sites.len();
            return self.broken(Rule::Sites, format!("site {} of {n}", m.site));
        }
        let fixed = if m.space.has_surface() { 3 } else { 2 };
        let Some((&[mask, addr, ref surface @ ..], values)) = self.args.split_at_checked(fixed)
        else {
            return self.broken(Rule::Memory, "operands are missing");
        };
        let shared = matches!(m.space, Space::Surface | Space::Slm | Space::Flat);
        let lanes = mask.lane == Lane::I1 && mask.lanes <= MASK_LANES;
        let one = !m.block || mask.lanes == 1;
        let place = addr == Ty::vector(m.space.addr(), mask.lanes);
        let (count, data) = match m.block {
            true => (1, Ty::vector(m.elem, m.count)),
            false => (usize::from(m.count), Ty::vector(m.elem, mask.lanes)),
        };
        let count = if m.access == RaceAccess::Write {
            count
        } else {
            0
        };
        let left = values.len() == count && values.iter().all(|&t| t == data);
        let surface = surface.iter().all(|&s| s == Ty::I32);
        let elements = is_int(m.elem) && m.count != 0;
        if shared && lanes && one && place && left && surface && elements && self.results.is_empty()
        {
            return Ok(());
        }
        self.broken(
            Rule::Memory,
            "needs the operands of an access to shared memory",
        )
    }

    fn suspect(&self) -> Result<(), Broken> {
        let ints = |t: &Ty| is_int(t.lane) || *t == Ty::scalar(Lane::I1);
        let ok = !self.args.is_empty() && self.args.iter().all(ints) && self.results.is_empty();
        self.require(ok, "needs marks or a condition")
    }

    fn initialise(&self, f: &Function, m: RaceCheck) -> Result<(), Broken> {
        if m.site as usize >= f.sites.len() {
            let n = f.sites.len();
            return self.broken(Rule::Sites, format!("site {} of {n}", m.site));
        }
        let fixed = if m.space.has_surface() { 3 } else { 2 };
        let Some((&[mask, addr, ref surface @ ..], marks)) = self.args.split_at_checked(fixed)
        else {
            return self.broken(Rule::Memory, "operands are missing");
        };
        let lanes = mask.lane == Lane::I1 && mask.lanes <= MASK_LANES;
        let place = addr == Ty::vector(m.space.addr(), mask.lanes) && m.space.marks().is_some();
        let surface = surface.iter().all(|&s| s == Ty::I32);
        let marks = !marks.is_empty() && marks.iter().all(|t| is_int(t.lane));
        let ok = lanes && place && surface && marks && self.results.is_empty();
        self.require(ok, "needs the operands of a store, and marks")
    }

    fn memory(&self, f: &Function) -> Result<(), Broken> {
        let (space, elem, comps) = match self.op {
            Op::Load(m) | Op::Store(m) => (m.space, m.elem, u16::from(m.comps)),
            Op::BlockLoad(m) | Op::BlockStore(m) => (m.space, m.elem, 1),
            Op::Atomic(m) => (m.space, m.elem, 1),
            _ => return self.require(false, "is no memory operation"),
        };
        let site = self.op.site().unwrap_or(u32::MAX);
        // Register storage cannot fault, so its accesses need no site.
        if space.data() != Space::Regs && site as usize >= f.sites.len() {
            let n = f.sites.len();
            return self.broken(Rule::Sites, format!("site {site} of {n}"));
        }
        let fixed = if space.has_surface() { 3 } else { 2 };
        if self.args.len() < fixed {
            return self.broken(Rule::Memory, "operands are missing");
        }
        let (head, values) = self.args.split_at(fixed);
        let (mask, addr) = (head[0], head[1]);
        let block = matches!(self.op, Op::BlockLoad(_) | Op::BlockStore(_));
        let lanes_ok = mask.lanes <= MASK_LANES && (!block || mask.lanes == 1);
        if mask.lane != Lane::I1 || !lanes_ok {
            return self.broken(Rule::Memory, format!("{mask} is no lane mask"));
        }
        if addr != Ty::vector(space.addr(), mask.lanes) {
            let text = format!("{addr} is no address of {space:?} for {} lanes", mask.lanes);
            return self.broken(Rule::Memory, text);
        }
        if head.get(2).is_some_and(|&s| s != Ty::I32) {
            return self.broken(Rule::Memory, "the surface is a scalar i32");
        }
        if !is_int(elem) || !(1..=8).contains(&comps) {
            return self.broken(Rule::Memory, "needs integer elements, 1 to 8 a lane");
        }
        self.memory_values(
            Ty::vector(elem, mask.lanes),
            usize::from(comps),
            space,
            values,
        )
    }

    fn image(&self, f: &Function, m: ImageAccess) -> Result<(), Broken> {
        if m.site as usize >= f.sites.len() {
            let n = f.sites.len();
            return self.broken(Rule::Sites, format!("site {} of {n}", m.site));
        }
        let &[mask, u, surface, sampler, ref values @ ..] = self.args else {
            return self.broken(Rule::Memory, "operands are missing");
        };
        let data = Ty::vector(Lane::I32, mask.lanes);
        let lanes = mask.lane == Lane::I1 && mask.lanes <= MASK_LANES;
        let count = values.len() == 2 + m.op.operands() && self.results.len() == m.op.results();
        let same = values.iter().chain(self.results).all(|&t| t == data);
        if lanes && count && same && u == data && [surface, sampler] == [Ty::I32; 2] {
            return Ok(());
        }
        self.broken(
            Rule::Memory,
            "operands or results do not fit the image access",
        )
    }

    fn memory_values(
        &self,
        data: Ty,
        comps: usize,
        space: Space,
        values: &[Ty],
    ) -> Result<(), Broken> {
        let all = |tys: &[Ty], n: usize, ty: Ty| tys.len() == n && tys.iter().all(|&t| t == ty);
        let results = self.results;
        let writable = space != Space::Args;
        let ok = match self.op {
            Op::Load(_) => all(values, 0, data) && all(results, comps, data),
            Op::Store(_) => writable && all(values, comps, data) && results.is_empty(),
            Op::BlockLoad(m) => all(values, 0, data) && all(results, 1, data.with_lanes(m.n)),
            Op::BlockStore(m) => {
                writable && all(values, 1, data.with_lanes(m.n)) && results.is_empty()
            }
            Op::Atomic(m) => {
                let place = writable && space != Space::Regs && m.elem != Lane::I8;
                place && all(values, m.op.sources(), data) && all(results, 1, data)
            }
            _ => false,
        };
        if ok {
            return Ok(());
        }
        let list = |tys: &[Ty]| tys.iter().map(Ty::to_string).collect::<Vec<_>>().join(", ");
        let text = format!(
            "elements do not match: {} moved, values ({}), results ({})",
            data,
            list(values),
            list(results)
        );
        self.broken(Rule::Memory, text)
    }
}
