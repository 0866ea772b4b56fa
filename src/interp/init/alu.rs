//! Instructions on registers: what of their results is not initialised.
//!
//! What they read is looked at before they are carried out, what they wrote is marked afterwards. By itself a written register is
//! initialised ([`Machine::store_bytes`]), so that most instructions end with the first look.

use super::rules::Sources;
use super::shadow::{Row, Unset};
use crate::interp::error::Halt;
use crate::interp::groups::{elements, is_group};
use crate::interp::lanes::{bit, bits, down, first, up};
use crate::interp::machine::{Machine, Operand};
use crate::interp::number::mask;
use crate::isa::{Opcode, SrcModifier, Type};
use crate::module::*;

/// What an instruction leaves that is not initialised.
pub(in crate::interp) struct Left {
    /// Channels that it writes.
    lanes: u32,
    first: Row,
    /// Of its second destination.
    second: Row,
}

/// The execution mask alone says which channels are written.
fn ignores_guard(inst: &Inst, a: &Alu) -> bool {
    use Opcode as O;
    let selects = matches!(
        inst.op,
        O::Sel | O::Min | O::Max | O::AddrAdd | O::Add3o | O::Setp
    );
    selects || is_pred_logic(inst, a)
}

fn is_pred_logic(inst: &Inst, a: &Alu) -> bool {
    use Opcode as O;
    matches!(inst.op, O::And | O::Or | O::Xor | O::Not) && matches!(a.dst, Dst::Pred(_))
}

impl Machine<'_, '_, '_> {
    /// A source for `n` channels.
    pub(super) fn unset_of(&self, s: &Src, n: u32) -> Result<Row, Halt> {
        let mut row = Row::NONE;
        let Some(init) = &self.t.init else {
            return Ok(row);
        };
        match s {
            Src::General { origin, region, .. } => {
                if matches!(origin.var, VarId::CE0 | VarId::TSC) {
                    return Ok(row);
                }
                let ty = self.var_type(origin.var)?;
                for i in 0..n as usize {
                    let at = self.element(*origin, ty, region.element(i as u32) as usize)?;
                    row.set(i, init.get(at, ty.bytes() as usize));
                }
            }
            Src::Indirect {
                indirect, region, ..
            } => {
                let bytes = indirect.ty.bytes();
                for i in 0..n as usize {
                    let (k, elements) = region.address_and_element(i);
                    let index = usize::from(indirect.index).saturating_add(k);
                    let address = init.address(indirect.addr, index);
                    // Which element it is depends on the address.
                    let whole = address.with(if address.any() { mask(bytes) } else { 0 });
                    let at = self.indirect_at(indirect, k, elements)?;
                    let own = at.map_or(Unset::NONE, |at| init.get(at, bytes as usize));
                    row.set(i, whole.or(own));
                }
            }
            Src::Pred(p) => row = Row::all(init.pred(*p, u32::MAX)),
            Src::Address { addr, index, .. } => {
                for i in 0..n as usize {
                    let k = usize::from(*index).saturating_add(i);
                    row.set(i, init.address(*addr, k));
                }
            }
            _ => {}
        }
        Ok(row)
    }

    /// What an instruction will leave; `None` if all of it is initialised.
    pub(in crate::interp) fn init_before(
        &mut self,
        inst: &Inst,
        a: &Alu,
    ) -> Result<Option<Left>, Halt> {
        if self.t.init.is_none() || inst.op == Opcode::Movs {
            return Ok(None);
        }
        let n = inst.exec.lanes();
        let sources = a.srcs.iter().enumerate();
        let rows = sources.map(|(k, s)| self.unset_of(s, elements(inst.op, k, n)));
        let rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
        let guard = self.unset_guard(inst)?;
        if guard == 0 && !rows.iter().any(Row::any) {
            return Ok(None);
        }
        let exec = self.exec_mask(inst);
        let lanes = match ignores_guard(inst, a) {
            true => exec,
            false => self.enabled(inst)? | exec & guard,
        };
        if guard == 0 && self.is_the_same(inst, a)? {
            return Ok(None);
        }
        let mut left = Left {
            lanes,
            first: Row::NONE,
            second: Row::NONE,
        };
        self.results(inst, a, &rows, guard, &mut left)?;
        Ok(Some(left))
    }

    /// True for a number with itself where that has one result, whatever it is: compilers get zeros and full masks in this way.
    fn is_the_same(&self, inst: &Inst, a: &Alu) -> Result<bool, Halt> {
        Ok(match (inst.op, a.srcs.as_slice()) {
            (Opcode::Xor, [x, y]) => x == y,
            (Opcode::Cmp, [x @ Src::General { origin, .. }, y]) => {
                x == y && self.var_type(origin.var)?.is_int()
            }
            (
                Opcode::Add,
                [
                    Src::General {
                        origin: x,
                        region: r,
                        modifier: m,
                    },
                    Src::General {
                        origin: y,
                        region: s,
                        modifier: n,
                    },
                ],
            ) => {
                let opposite = matches!(
                    (m, n),
                    (SrcModifier::None, SrcModifier::Neg) | (SrcModifier::Neg, SrcModifier::None)
                );
                (x, r) == (y, s) && opposite && self.var_type(x.var)?.is_int()
            }
            _ => false,
        })
    }

    /// Results of all channels.
    fn results(
        &mut self,
        inst: &Inst,
        a: &Alu,
        rows: &[Row],
        guard: u32,
        left: &mut Left,
    ) -> Result<(), Halt> {
        if is_pred_logic(inst, a) {
            return self.pred_results(inst, a, left);
        }
        let n = inst.exec.lanes();
        let operands = a.srcs.iter().map(|s| self.read(s, n));
        let operands: Vec<Operand> = operands.collect::<Result<_, _>>()?;
        let chosen = match inst.pred {
            Some(p) if inst.op == Opcode::Sel => self.guard(inst, p)?,
            _ => u32::MAX,
        };
        let by_guard = match inst.pred {
            Some(_) if matches!(inst.op, Opcode::Min | Opcode::Max | Opcode::Add3o) => None,
            guard => guard,
        };
        for i in bits(left.lanes) {
            let unset = rows.iter().enumerate();
            let unset = unset.map(|(k, row)| neighbours(inst.op, k, row, i));
            let unset: Vec<Unset> = unset.collect();
            let sources = Sources {
                operands: &operands,
                unset: &unset,
                i,
            };
            let (mut one, two) = self.result(inst, a, &sources, bit(chosen, i))?;
            if let Some(p) = by_guard.filter(|_| bit(guard, i)) {
                let depends = match inst.op {
                    // Where both sides are the same it does not matter which one is chosen.
                    Opcode::Sel => match operands.as_slice() {
                        [x, y] if x.ty == y.ty && x.modifier == y.modifier => {
                            let known = x.lanes.get(i) ^ y.lanes.get(i);
                            unset.iter().fold(known, |all, u| all | u.bits)
                        }
                        _ => u64::MAX,
                    },
                    _ => u64::MAX,
                };
                one = one.or(self.unset_bit(inst, p, i).with(depends));
            }
            left.first.set(i, one);
            left.second.set(i, two);
        }
        Ok(())
    }

    /// Results of one channel, for both destinations.
    fn result(
        &self,
        inst: &Inst,
        a: &Alu,
        s: &Sources<'_>,
        chosen: bool,
    ) -> Result<(Unset, Unset), Halt> {
        use Opcode as O;
        let all = s.unset.iter().fold(Unset::NONE, |all, one| all.or(*one));
        let whole = all.with(if all.any() { u64::MAX } else { 0 });
        Ok(match inst.op {
            O::Setp => (all, Unset::NONE),
            O::Cmp => {
                let depends = match a.cond {
                    Some(cond) => s.compares(cond)?,
                    None => whole,
                };
                (
                    depends.with(if depends.any() { u64::MAX } else { 0 }),
                    Unset::NONE,
                )
            }
            O::Sel => {
                let k = usize::from(!chosen);
                let from = s.unset.get(k).copied().unwrap_or_default();
                let moved = s.moved(k, self.dst_type(&a.dst)?, a.sat)?;
                (from.with(moved), Unset::NONE)
            }
            O::Madw | O::Addc | O::Subb => {
                let low = s.result(O::Mad, 0, Type::Ud, false)?;
                (low, whole)
            }
            O::Add3o => (s.result(O::Add3, 0, self.dst_type(&a.dst)?, a.sat)?, whole),
            O::Invm | O::Rsqtm | O::Fcvt | O::Srnd => (whole, whole),
            op if is_group(op) => (whole, whole),
            op => (
                s.result(op, a.bfn, self.dst_type(&a.dst)?, a.sat)?,
                Unset::NONE,
            ),
        })
    }

    /// Logic of predicates: bits that may decide, do.
    fn pred_results(&self, inst: &Inst, a: &Alu, left: &mut Left) -> Result<(), Halt> {
        let (n, lane) = (inst.exec.lanes(), inst.exec.mask.first_lane());
        let mut sources = Vec::new();
        for s in &a.srcs {
            let Src::Pred(q) = s else {
                return Ok(());
            };
            let ((value, width), unset) = (self.pred(*q)?, self.unset_pred(*q));
            let spread = |v: u32| match width {
                1 => {
                    if v & 1 != 0 {
                        first(n)
                    } else {
                        0
                    }
                }
                _ => down(v, lane) & first(n),
            };
            sources.push((spread(unset.bits as u32), spread(value), unset));
        }
        let (bits_left, from) = match (inst.op, sources.as_slice()) {
            (Opcode::And, [(a, x, u), (b, y, v)]) => (a & b | a & y | x & b, u.or(*v)),
            (Opcode::Or, [(a, x, u), (b, y, v)]) => (a & b | a & !y | !x & b, u.or(*v)),
            (_, [(a, _, u), (b, _, v)]) => (a | b, u.or(*v)),
            (_, [(a, _, u)]) => (*a, *u),
            _ => return Ok(()),
        };
        for i in bits(bits_left) {
            left.first.set(i, from.with(u64::MAX));
        }
        Ok(())
    }

    /// Marks what an instruction left.
    pub(in crate::interp) fn init_after(
        &mut self,
        inst: &Inst,
        a: &Alu,
        left: &Left,
    ) -> Result<(), Halt> {
        let lane = inst.exec.mask.first_lane();
        if inst.op == Opcode::Setp {
            return self.init_setp(inst, a, left);
        }
        self.mark(&a.dst, &left.first, left.lanes, lane)?;
        match (inst.op, &a.dst) {
            (Opcode::Madw, Dst::General { origin, region }) => {
                let rows = inst
                    .exec
                    .lanes()
                    .wrapping_mul(4)
                    .div_ceil(self.grf().max(1) as u32);
                let above = Dst::General {
                    origin: Origin {
                        row: origin.row.saturating_add(rows as u16),
                        ..*origin
                    },
                    region: *region,
                };
                self.mark(&above, &left.second, left.lanes, lane)
            }
            (Opcode::Add3o, _) => match inst.pred {
                Some(p) => self.mark(&Dst::Pred(p.var), &left.second, left.lanes, lane),
                None => Ok(()),
            },
            _ => match &a.dst2 {
                Some(second) => self.mark(second, &left.second, left.lanes, lane),
                None => Ok(()),
            },
        }
    }

    /// A scalar fills a predicate, a vector gives each channel its bit 0.
    fn init_setp(&mut self, inst: &Inst, a: &Alu, left: &Left) -> Result<(), Halt> {
        let ([src], Dst::Pred(p)) = (a.srcs.as_slice(), &a.dst) else {
            return Ok(());
        };
        let (n, lane) = (inst.exec.lanes(), inst.exec.mask.first_lane());
        if self.read(src, n)?.scalar {
            let all = first(if n <= 16 { 16 } else { 32 });
            let unset = self.unset_of(src, 1)?.get(0);
            let half = lane & 16;
            if let Some(init) = &mut self.t.init {
                let moved = unset.with(unset.bits.wrapping_shl(half));
                init.set_pred(*p, moved, up(all, half));
            }
            return Ok(());
        }
        let mut row = Row::NONE;
        for i in bits(left.lanes) {
            let unset = left.first.get(i);
            row.set(i, unset.with(unset.bits & 1));
        }
        self.mark(&a.dst, &row, left.lanes, lane)
    }

    /// Marks a destination, channel after channel as they are written.
    fn mark(&mut self, d: &Dst, row: &Row, lanes: u32, lane: u32) -> Result<(), Halt> {
        for i in bits(lanes) {
            let unset = row.get(i);
            let stride =
                |region: &crate::isa::DstRegion| usize::from(region.hstride).saturating_mul(i);
            let (at, ty) = match d {
                Dst::General { origin, .. } if origin.var == VarId::NULL => continue,
                Dst::General { origin, region } => {
                    let ty = self.var_type(origin.var)?;
                    (Some(self.element(*origin, ty, stride(region))?), ty)
                }
                Dst::Indirect { indirect, region } => {
                    (self.indirect_at(indirect, 0, stride(region))?, indirect.ty)
                }
                Dst::Pred(p) => {
                    let bits = up(u32::from(unset.any()), (i as u32).wrapping_add(lane));
                    let mask = up(1, (i as u32).wrapping_add(lane));
                    if let Some(init) = &mut self.t.init {
                        init.set_pred(*p, unset.with(bits.into()), mask);
                    }
                    continue;
                }
                Dst::Address { addr, index, .. } => {
                    let k = usize::from(*index).saturating_add(i);
                    if let Some(init) = &mut self.t.init {
                        init.set_address(*addr, k, unset);
                    }
                    continue;
                }
                Dst::Surface(..) | Dst::Sampler(..) => continue,
            };
            if let (Some(init), Some(at)) = (&mut self.t.init, at) {
                let bytes = ty.bytes();
                init.set(at, bytes as usize, unset.with(unset.bits & mask(bytes)));
            }
        }
        Ok(())
    }
}

/// What a channel reads of a source: of instructions that look at neighbours, all that its two or four read. `line` and `plane` read more.
fn neighbours(op: Opcode, source: usize, row: &Row, i: usize) -> Unset {
    use Opcode as O;
    let together = |all: std::ops::Range<usize>| all.fold(Unset::NONE, |u, k| u.or(row.get(k)));
    match op {
        O::Dp2 | O::Dp3 | O::Dp4 | O::Dph => {
            let start = i & !3;
            together(start..start.saturating_add(4))
        }
        O::Sad2 | O::Sad2add if source < 2 => {
            let start = i & !1;
            together(start..start.saturating_add(2))
        }
        O::Line | O::Plane => together(0..crate::interp::lanes::MAX),
        _ => row.get(i),
    }
}
