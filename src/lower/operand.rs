//! Operands: which lanes of which bytes, channel masks, address registers.

use super::Lowerer;
use super::build::Builder;
use super::error::Fail;
use super::regs::Pattern;
use super::variables::Var;
use crate::isa::{SrcModifier, Type};
use crate::module::Inst;
use crate::module::*;
use crate::ssa::Input;
use crate::ssa::*;

/// Which channels of an instruction are enabled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChannelMask {
    /// All.
    All,
    /// All or none, by a scalar condition.
    Uniform(Value),
    /// One bit a channel.
    Lanes(Value),
}

impl ChannelMask {
    /// As an optional mask for register writes.
    pub(crate) fn value(self) -> Option<Value> {
        match self {
            ChannelMask::All => None,
            ChannelMask::Uniform(v) | ChannelMask::Lanes(v) => Some(v),
        }
    }

    /// As a mask of `n` lanes.
    pub(crate) fn lanes(self, b: &mut Builder, n: u16) -> Value {
        match self {
            ChannelMask::All if n == 1 => b.bool(true),
            ChannelMask::All => b.vec_const(Lane::I1, vec![1; n as usize]),
            ChannelMask::Uniform(v) => b.splat(v, n),
            ChannelMask::Lanes(v) => v,
        }
    }

    fn and(self, b: &mut Builder, other: ChannelMask) -> ChannelMask {
        match (self, other) {
            (ChannelMask::All, m) | (m, ChannelMask::All) => m,
            (ChannelMask::Uniform(x), ChannelMask::Uniform(y)) => {
                ChannelMask::Uniform(b.bin(BinOp::And, x, y))
            }
            (
                ChannelMask::Uniform(x) | ChannelMask::Lanes(x),
                ChannelMask::Uniform(y) | ChannelMask::Lanes(y),
            ) => ChannelMask::Lanes(b.bin(BinOp::And, x, y)),
        }
    }
}

/// A source as read: lanes (or a scalar for all lanes), its type and its modifier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    /// Lanes of the type's lane.
    pub value: Value,
    /// Element type.
    pub ty: Type,
    /// Modifier not applied yet.
    pub modifier: SrcModifier,
}

/// Lane type that holds elements of a type; 16-bit floats are carried as bits.
pub(super) fn lane_of(ty: Type) -> Lane {
    match ty {
        Type::F | Type::Vf => Lane::F32,
        Type::Df => Lane::F64,
        Type::Ub | Type::B | Type::Bool => Lane::I8,
        Type::Uw | Type::W | Type::Hf | Type::Bf | Type::V | Type::Uv => Lane::I16,
        Type::Ud | Type::D => Lane::I32,
        Type::Uq | Type::Q => Lane::I64,
    }
}

/// Decodes one 8-bit restricted float of a `:vf` immediate (sign, 3-bit exponent with bias 3, 4-bit mantissa).
pub(super) fn restricted_float(byte: u8) -> f32 {
    let sign = if byte & 0x80 != 0 { -1.0 } else { 1.0 };
    if byte & 0x7f == 0 {
        return sign * 0.0;
    }
    let exponent = i32::from((byte >> 4) & 7) - 3;
    let mantissa = 1.0 + f32::from(byte & 15) / 16.0;
    sign * mantissa * 2f32.powi(exponent)
}

impl Lowerer<'_> {
    /// Enabled channels of an instruction: execution mask and guard.
    pub(crate) fn channel_mask(&mut self, inst: &Inst) -> Result<ChannelMask, Fail> {
        let exec = self.exec_mask(inst);
        let guard = match inst.pred {
            Some(p) => self.guard(inst, p)?,
            None => ChannelMask::All,
        };
        Ok(exec.and(&mut self.b, guard))
    }

    /// The execution mask as the instruction sees it.
    pub(crate) fn exec_mask(&mut self, inst: &Inst) -> ChannelMask {
        if inst.exec.mask.no_mask {
            return ChannelMask::All;
        }
        let em = self.b.read(self.em);
        let (first, n) = (inst.exec.mask.first_lane() as u16, inst.exec.lanes() as u16);
        if n == 1 {
            let lane = self.b.lane(em, first.min(self.simd - 1));
            ChannelMask::Uniform(lane)
        } else {
            ChannelMask::Lanes(
                self.b
                    .slice(em, first, n.min(self.simd - first.min(self.simd - 1))),
            )
        }
    }

    /// A predicate as channels of the instruction.
    pub(crate) fn guard(&mut self, inst: &Inst, p: Predicate) -> Result<ChannelMask, Fail> {
        let whole = self.read_pred(p.var)?;
        let bits = self.b.ty(whole).lanes;
        let (first, n) = (inst.exec.mask.first_lane() as u16, inst.exec.lanes() as u16);
        let (v, uniform) = match p.control {
            PredControl::Any => (self.b.any(whole), true),
            PredControl::All => (self.b.all(whole), true),
            PredControl::Lanes if bits == 1 => (whole, true),
            PredControl::Lanes if n == 1 => (self.b.lane(whole, first), true),
            PredControl::Lanes => (self.b.slice(whole, first, n), false),
        };
        let v = if p.inverted {
            self.b.un(UnOp::Not, v)
        } else {
            v
        };
        Ok(if uniform {
            ChannelMask::Uniform(v)
        } else {
            ChannelMask::Lanes(v)
        })
    }

    pub(super) fn start_of(&self, o: Origin) -> Result<(crate::valid::RootId, u32, Type), Fail> {
        let Some(ty) = self.kernel.module().vars.ty(o.var) else {
            return Fail::malformed("unknown variable");
        };
        let place = self.kernel.root_offset(o.var);
        let at = place.offset + u32::from(o.row) * self.grf + u32::from(o.col) * ty.bytes();
        Ok((place.root, at, ty))
    }

    /// Reads a source of `lanes` channels.
    pub(crate) fn read(&mut self, s: &Src, lanes: u32) -> Result<Operand, Fail> {
        match s {
            Src::General {
                origin,
                region,
                modifier,
            } => {
                let (root, start, ty) = self.start_of(*origin)?;
                let value = if origin.var == VarId::TSC {
                    self.read_tsc(*origin)
                } else if origin.var == VarId::CE0 {
                    let em = self.b.read(self.em);
                    self.b.op(Op::MaskToBits, vec![em], Ty::I32)
                } else {
                    let offsets = (0..lanes)
                        .map(|l| start + region.element(l) * ty.bytes())
                        .collect();
                    let p = Pattern {
                        root,
                        offsets,
                        lane: lane_of(ty),
                        soft: false,
                    };
                    self.regs.read(&mut self.b, &p)?
                };
                Ok(Operand {
                    value,
                    ty,
                    modifier: *modifier,
                })
            }
            Src::Indirect {
                indirect,
                region,
                modifier,
            } => {
                let value = self.read_indirect(indirect, *region, lanes)?;
                Ok(Operand {
                    value,
                    ty: indirect.ty,
                    modifier: *modifier,
                })
            }
            Src::Imm { bits, ty } => Ok(self.immediate(*bits, *ty, lanes)),
            Src::Pred(p) => {
                let m = self.read_pred(*p)?;
                let value = if self.b.ty(m).is_scalar() {
                    self.b.conv(Conv::ZExt, m, Lane::I32)
                } else {
                    self.b.op(Op::MaskToBits, vec![m], Ty::I32)
                };
                Ok(Operand {
                    value,
                    ty: Type::Ud,
                    modifier: SrcModifier::None,
                })
            }
            Src::Address { addr, index, .. } => {
                let var = self.addr_var(*addr)?;
                let v = self.b.read(var);
                let total = self.b.ty(v).lanes;
                let n = (lanes as u16).min(total.saturating_sub(u16::from(*index)));
                if n == 0 || u32::from(n) < lanes {
                    return Fail::malformed("address operand is shorter than the execution size");
                }
                let value = self.b.slice(v, u16::from(*index), n);
                Ok(Operand {
                    value,
                    ty: Type::Uw,
                    modifier: SrcModifier::None,
                })
            }
            Src::AddressOf { var, offset } => {
                let place = self.kernel.root_offset(*var);
                let at = self.regs.address(place.root) + place.offset + offset;
                let value = self.b.bits(Lane::I16, u64::from(at));
                Ok(Operand {
                    value,
                    ty: Type::Uw,
                    modifier: SrcModifier::None,
                })
            }
            Src::Surface(s, first) => self.read_surface(*s, *first, lanes),
            Src::Sampler(s, first) => {
                let elements = state_elements(self.samplers.get(s.0 as usize), *first, lanes)?;
                Ok(self.read_state(&elements))
            }
            Src::AddressOfSurface { .. } => Fail::unsupported("address of a surface"),
        }
    }

    fn read_surface(&mut self, s: SurfaceId, first: u8, lanes: u32) -> Result<Operand, Fail> {
        let Some(index) = s.0.checked_sub(SurfaceId::FIRST_USER) else {
            // Predefined surfaces have fixed binding-table indices (docs/visa.md, "Registers and regions").
            let index = match s {
                SurfaceId::SLM => 254,
                SurfaceId::BSS => 252,
                SurfaceId::SCRATCH => 255,
                other => other.0,
            };
            return Ok(Operand {
                value: self.b.i32(index),
                ty: Type::Ud,
                modifier: SrcModifier::None,
            });
        };
        let elements = state_elements(self.surfaces.get(index as usize), first, lanes)?;
        Ok(self.read_state(&elements))
    }

    fn read_state(&mut self, elements: &[Var]) -> Operand {
        let n = elements.len() as u16;
        let mut value = self.b.read(elements[0]);
        if n > 1 {
            value = self.b.splat(value, n);
        }
        for (k, &e) in elements.iter().enumerate().skip(1) {
            let one = self.b.read(e);
            let ty = self.b.ty(value);
            value = self.b.op(Op::InsertLane(k as u16), vec![value, one], ty);
        }
        Operand {
            value,
            ty: Type::Ud,
            modifier: SrcModifier::None,
        }
    }

    fn write_state(&mut self, elements: &[Var], value: Value, mask: ChannelMask) {
        for (k, &e) in elements.iter().enumerate() {
            let new = self.b.lane(value, k as u16);
            let new = match mask {
                ChannelMask::All => new,
                ChannelMask::Uniform(m) => {
                    let old = self.b.read(e);
                    self.b.select(m, new, old)
                }
                ChannelMask::Lanes(m) => {
                    let (enabled, old) = (self.b.lane(m, k as u16), self.b.read(e));
                    self.b.select(enabled, new, old)
                }
            };
            self.b.write(e, new);
        }
    }

    fn read_tsc(&mut self, o: Origin) -> Value {
        let t = self.b.op(Op::Input(Input::Tsc), vec![], Ty::I64);
        let part = match o.col {
            0 => t,
            1 => self.b.bin_imm(BinOp::LShr, t, 32),
            _ => return self.b.i32(0),
        };
        self.b.conv(Conv::Trunc, part, Lane::I32)
    }

    fn immediate(&mut self, bits: u64, ty: Type, lanes: u32) -> Operand {
        let (value, ty) = match ty {
            Type::V | Type::Uv => {
                let lane = |l: u32| {
                    let nibble = (bits >> (4 * (l % 8))) & 15;
                    if ty == Type::V && nibble >= 8 {
                        nibble | 0xfff0
                    } else {
                        nibble
                    }
                };
                let v = self.b.vec_const(Lane::I16, (0..lanes).map(lane).collect());
                (v, if ty == Type::V { Type::W } else { Type::Uw })
            }
            Type::Vf => {
                let lane =
                    |l: u32| u64::from(restricted_float((bits >> (8 * (l % 4))) as u8).to_bits());
                (
                    self.b.vec_const(Lane::F32, (0..lanes).map(lane).collect()),
                    Type::F,
                )
            }
            _ => (self.b.bits(lane_of(ty), bits), ty),
        };
        Operand {
            value,
            ty,
            modifier: SrcModifier::None,
        }
    }

    fn addr_var(&self, a: AddrId) -> Result<Var, Fail> {
        match self.addrs.get(a.0 as usize) {
            Some(&v) => Ok(v),
            None => Fail::malformed("unknown address variable"),
        }
    }

    /// Byte offsets in register storage that an indirect operand names, as 32-bit lanes.
    fn indirect_offsets(&mut self, i: &Indirect, steps: &[(u16, u32)]) -> Result<Value, Fail> {
        let var = self.addr_var(i.addr)?;
        let v = self.b.read(var);
        let total = self.b.ty(v).lanes;
        if steps.iter().any(|&(k, _)| u16::from(i.index) + k >= total) {
            return Fail::malformed("address element out of range");
        }
        let picked = if steps.iter().all(|&(k, _)| k == steps[0].0) {
            self.b.lane(v, u16::from(i.index) + steps[0].0)
        } else {
            self.b.shuffle(
                v,
                steps.iter().map(|&(k, _)| u16::from(i.index) + k).collect(),
            )
        };
        let add = self.b.vec_const(
            Lane::I16,
            steps
                .iter()
                .map(|&(_, o)| u64::from((i64::from(i.offset) + i64::from(o)) as u16))
                .collect(),
        );
        let sum = self.b.bin(BinOp::Add, picked, add);
        Ok(self.b.conv(Conv::ZExt, sum, Lane::I32))
    }

    /// Register storage also holds the activations that recursive calls save: addresses do not reach them.
    fn inside_storage(&mut self, addr: Value, size: u32, mask: Value) -> Value {
        if self.ctl.depth.is_none() {
            return mask;
        }
        match self.regs.memory_bytes().checked_sub(size) {
            Some(last) => {
                let last = self.b.i32(last);
                let inside = self.b.icmp(ICond::Ule, addr, last);
                self.b.bin(BinOp::And, mask, inside)
            }
            None => {
                let lanes = self.b.ty(mask).lanes;
                self.b.vec_const(Lane::I1, vec![0; lanes.into()])
            }
        }
    }

    fn read_indirect(
        &mut self,
        i: &Indirect,
        region: IndirectRegion,
        lanes: u32,
    ) -> Result<Value, Fail> {
        let size = i.ty.bytes();
        let steps: Vec<(u16, u32)> = (0..lanes)
            .map(|l| match region {
                IndirectRegion::Single(r) => (0, r.element(l) * size),
                IndirectRegion::VxH { width, hstride } => {
                    let w = u32::from(width.max(1));
                    ((l / w) as u16, (l % w) * u32::from(hstride) * size)
                }
            })
            .collect();
        let uniform = steps.iter().all(|s| *s == steps[0]);
        let steps = if uniform { &steps[..1] } else { &steps[..] };
        let addr = self.indirect_offsets(i, steps)?;
        let n = steps.len() as u16;
        let mask = ChannelMask::All.lanes(&mut self.b, n);
        let mask = self.inside_storage(addr, size, mask);
        let elem = lane_of(i.ty).as_int();
        let access = MemAccess {
            space: Space::Regs,
            elem,
            comps: 1,
            site: u32::MAX,
        };
        let v = self
            .b
            .op(Op::Load(access), vec![mask, addr], Ty::vector(elem, n));
        Ok(self.b.recast(v, lane_of(i.ty)))
    }

    /// Writes a value of the destination's own lane type under the channel mask.
    pub(crate) fn write(
        &mut self,
        d: &Dst,
        lanes: u32,
        value: Value,
        mask: ChannelMask,
    ) -> Result<(), Fail> {
        match d {
            Dst::General { origin, region } => {
                if origin.var == VarId::NULL {
                    return Ok(());
                }
                let (root, start, ty) = self.start_of(*origin)?;
                let p = Pattern::strided(
                    root,
                    start,
                    lanes,
                    u32::from(region.hstride) * ty.bytes(),
                    lane_of(ty),
                );
                self.regs.write(&mut self.b, &p, value, mask.value())
            }
            Dst::Indirect { indirect, region } => {
                let size = indirect.ty.bytes();
                let steps: Vec<(u16, u32)> = (0..lanes)
                    .map(|l| (0, l * u32::from(region.hstride) * size))
                    .collect();
                let addr = self.indirect_offsets(indirect, &steps)?;
                let n = lanes as u16;
                let value = self.b.splat(value, n);
                let value = self.b.recast(value, lane_of(indirect.ty).as_int());
                let mask = mask.lanes(&mut self.b, n);
                let mask = self.inside_storage(addr, size, mask);
                let access = MemAccess {
                    space: Space::Regs,
                    elem: self.b.ty(value).lane,
                    comps: 1,
                    site: u32::MAX,
                };
                self.b.effect(Op::Store(access), vec![mask, addr, value]);
                Ok(())
            }
            Dst::Address { addr, index, .. } => {
                let var = self.addr_var(*addr)?;
                let old = self.b.read(var);
                let total = self.b.ty(old).lanes;
                let n = lanes as u16;
                if u16::from(*index) + n > total {
                    return Fail::malformed(
                        "address destination is shorter than the execution size",
                    );
                }
                let value = self.b.splat(value, n);
                let part = self.b.slice(old, u16::from(*index), n);
                let value = match mask.value() {
                    Some(m) => self.b.select(m, value, part),
                    None => value,
                };
                let new = insert(&mut self.b, old, value, u16::from(*index));
                self.b.write(var, new);
                Ok(())
            }
            Dst::Surface(s, first) => {
                let all = self.surface_elements(*s);
                if all.is_none() && s.0 < SurfaceId::FIRST_USER {
                    return Fail::malformed("write to a predefined surface");
                }
                let elements = state_elements(all, *first, lanes)?;
                self.write_state(&elements, value, mask);
                Ok(())
            }
            Dst::Sampler(s, first) => {
                let elements = state_elements(self.samplers.get(s.0 as usize), *first, lanes)?;
                self.write_state(&elements, value, mask);
                Ok(())
            }
            Dst::Pred(p) => self.write_pred(*p, lanes, value, mask, 0),
        }
    }

    /// Element type of a destination that holds numbers.
    pub(crate) fn dst_type(&self, d: &Dst) -> Result<Type, Fail> {
        match d {
            Dst::General { origin, .. } => match self.kernel.module().vars.ty(origin.var) {
                Some(t) => Ok(t),
                None => Fail::malformed("unknown variable"),
            },
            Dst::Indirect { indirect, .. } => Ok(indirect.ty),
            Dst::Address { .. } => Ok(Type::Uw),
            Dst::Surface(..) | Dst::Sampler(..) => Ok(Type::Ud),
            Dst::Pred(_) => Fail::malformed("predicate destination"),
        }
    }

    /// Writes bits `first .. first + lanes` of a predicate.
    pub(crate) fn write_pred(
        &mut self,
        p: PredId,
        lanes: u32,
        value: Value,
        mask: ChannelMask,
        first: u16,
    ) -> Result<(), Fail> {
        let Some(&var) = self.preds.get((p.0 as usize).wrapping_sub(1)) else {
            return Fail::malformed("unknown predicate");
        };
        let old = self.b.read(var);
        let bits = self.b.ty(old).lanes;
        // Bits past the variable do not exist.
        let n = (lanes as u16).min(bits.saturating_sub(first));
        if n == 0 {
            return Ok(());
        }
        let value = self.b.splat(value, lanes as u16);
        let part = self.b.slice(old, first, n);
        let value = self.b.slice(value, 0, n);
        let value = match mask {
            ChannelMask::All => value,
            ChannelMask::Uniform(m) => self.b.select(m, value, part),
            ChannelMask::Lanes(m) => {
                let m = self.b.slice(m, 0, n);
                self.b.select(m, value, part)
            }
        };
        let new = insert(&mut self.b, old, value, first);
        self.b.write(var, new);
        Ok(())
    }

    /// A scalar integer operand in a given width, modifier applied.
    pub(crate) fn scalar_int(&mut self, s: &Src, lane: Lane) -> Result<Value, Fail> {
        let o = self.read(s, 1)?;
        self.int(o, lane)
    }
}

/// Elements `first .. first + lanes` of a surface or sampler variable.
fn state_elements(var: Option<&Vec<Var>>, first: u8, lanes: u32) -> Result<Vec<Var>, Fail> {
    let first = usize::from(first);
    match var.and_then(|v| v.get(first..first + lanes as usize)) {
        Some(elements) => Ok(elements.to_vec()),
        None => Fail::malformed("more elements than the state variable has"),
    }
}

/// `old` with lanes from `at` replaced.
pub(super) fn insert(b: &mut Builder, old: Value, value: Value, at: u16) -> Value {
    let (total, n) = (b.ty(old).lanes, b.ty(value).lanes);
    if n == total {
        return value;
    }
    if n == 1 {
        let ty = b.ty(old);
        return b.op(Op::InsertLane(at), vec![old, value], ty);
    }
    let idx = (0..total)
        .map(|l| {
            if l >= at && l < at + n {
                total + l - at
            } else {
                l
            }
        })
        .collect();
    b.shuffle2(old, value, idx)
}
