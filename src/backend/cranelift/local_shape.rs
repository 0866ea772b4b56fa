//! Shapes of addresses that the function's table does not have: those made from local ids, whose
//! layout only the launch knows, and simple constant ones.
//!
//! An address is followed through additions, constant factors and extensions to vectors whose
//! spacing is known. Consecutive (or equal) local ids are tested once a thread.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V};

use super::affine::Affine;
use super::context::Key;
use super::emit::{DATA, Emit};
use super::value::{scalar_type, splat_step};
use crate::ssa::{BinOp, Conv, Input, InstData, Lane, Op, Ty, Value};

/// Depth to which address expressions are followed.
const MAX_DEPTH: u32 = 12;

/// A vector of local ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ids {
    /// 0 x, 1 y, 2 z.
    dim: u8,
    /// First lane.
    first: u8,
    /// Lanes.
    count: u16,
}

/// `scalars + offset + lane * stride`, under conditions.
#[derive(Clone, Default)]
struct Sum {
    scalars: Vec<Value>,
    offset: u64,
    /// Sign-extended from the lane.
    stride: i64,
    /// Ids that must be evenly spaced.
    ids: Vec<Ids>,
    /// Extensions that hold only when no lane wraps before; at most one can be tested.
    extensions: u32,
    /// Scalars and offset do not give lane 0.
    opaque: bool,
}

impl Sum {
    fn even(stride: i64) -> Sum {
        Sum {
            stride,
            ..Sum::default()
        }
    }

    /// The same with lane 0 unknown.
    fn blurred(self, stride: i64) -> Sum {
        Sum {
            stride,
            opaque: true,
            ..self
        }
    }

    fn plus(mut self, other: Sum, lane: Lane) -> Sum {
        self.scalars.extend(other.scalars);
        self.ids.extend(other.ids);
        self.offset = self.offset.wrapping_add(other.offset);
        self.stride = wrap(lane, self.stride.wrapping_add(other.stride));
        self.extensions += other.extensions;
        self.opaque |= other.opaque;
        self
    }
}

fn wrap(lane: Lane, stride: i64) -> i64 {
    lane.sign_extend(stride.cast_unsigned())
}

impl Emit<'_> {
    /// Shape of a vector of addresses, from its definition.
    pub fn local_shape(&mut self, addr: Value, mask_all: Option<V>) -> Option<Affine> {
        let ty = self.ty(addr);
        let sum = self.sum_of(addr, MAX_DEPTH)?;
        if sum.extensions > 1 {
            return None;
        }
        let (base, known) = self.first_address(addr, &sum);
        let mut guard: Option<V> = None;
        let mut tested: Vec<Ids> = Vec::new();
        for &ids in &sum.ids {
            if !tested.contains(&ids) {
                let even = self.even_ids(ids);
                guard = Some(self.both(guard, even));
                tested.push(ids);
            }
        }
        if sum.extensions == 1 {
            let parts = self.parts(addr);
            let last = self.lane_of(ty.lane, &parts, usize::from(ty.lanes) - 1);
            let distance = self.ins().isub(last, base);
            let span = sum.stride.wrapping_mul(i64::from(ty.lanes) - 1);
            let span = span.cast_unsigned() & ty.lane.mask();
            let even = self
                .ins()
                .icmp_imm_u(IntCC::Equal, distance, span.cast_signed());
            guard = Some(self.both(guard, even));
        }
        Some(Affine {
            base,
            known,
            stride: sum.stride,
            guard,
            mask_all,
            speculative: false,
        })
    }

    fn both(&mut self, a: Option<V>, b: V) -> V {
        match a {
            Some(a) => self.ins().band(a, b),
            None => b,
        }
    }

    /// Address of lane 0, and its value when that is constant.
    fn first_address(&mut self, addr: Value, sum: &Sum) -> (V, Option<u64>) {
        let ty = self.ty(addr);
        if sum.opaque {
            let parts = self.parts(addr);
            return (self.lane_of(ty.lane, &parts, 0), None);
        }
        let offset = sum.offset & ty.lane.mask();
        let mut base: Option<V> = None;
        for &s in &sum.scalars {
            let v = self.scalar(s);
            base = Some(match base {
                None => v,
                Some(b) => self.ins().iadd(b, v),
            });
        }
        match base {
            None => (self.iconst(scalar_type(ty.lane), offset), Some(offset)),
            Some(b) if offset == 0 => (b, None),
            Some(b) => (self.ins().iadd_imm_u(b, offset.cast_signed()), None),
        }
    }

    fn sum_of(&self, v: Value, depth: u32) -> Option<Sum> {
        let depth = depth.checked_sub(1)?;
        let def = self.def_op(v)?;
        let ty = self.ty(v);
        let arg = |n: usize| self.sum_of(*def.args.get(n)?, depth);
        match &def.op {
            Op::Splat => Some(match self.scalar_const(def.args[0]) {
                Some(offset) => Sum {
                    offset,
                    ..Sum::default()
                },
                None if !self.is_at_hand(def.args[0]) => return None,
                None => Sum {
                    scalars: vec![def.args[0]],
                    ..Sum::default()
                },
            }),
            Op::VecConst(lanes) => sequence(lanes, ty.lane),
            Op::Input(Input::LocalIds { dim, first }) => {
                let ids = Ids {
                    dim: *dim,
                    first: *first,
                    count: ty.lanes,
                };
                Some(Sum {
                    ids: vec![ids],
                    opaque: true,
                    ..Sum::even(i64::from(*dim == 0))
                })
            }
            Op::Binary(BinOp::Add) => Some(arg(0)?.plus(arg(1)?, ty.lane)),
            Op::Binary(BinOp::Sub) => {
                let b = arg(1)?;
                let stride = wrap(ty.lane, b.stride.wrapping_neg());
                Some(arg(0)?.plus(b.blurred(stride), ty.lane))
            }
            Op::Binary(BinOp::Mul) => {
                let factor = self.uniform_const(def.args[1])?;
                let a = arg(0)?;
                let stride = wrap(ty.lane, a.stride.wrapping_mul(factor.cast_signed()));
                Some(a.blurred(stride))
            }
            Op::Binary(BinOp::Shl) => {
                let count = self.uniform_const(def.args[1])? % u64::from(ty.lane.bits());
                let a = arg(0)?;
                let stride = wrap(ty.lane, a.stride.wrapping_shl(count as u32));
                Some(a.blurred(stride))
            }
            Op::Shuffle(indices) if def.args.len() == 1 => {
                let run = indices.windows(2).all(|w| w[1] == w[0] + 1);
                let a = arg(0).filter(|_| run)?;
                let stride = a.stride;
                Some(a.blurred(stride))
            }
            Op::Convert(conv) => self.extended(def, *conv, ty, arg(0)?),
            _ => None,
        }
    }

    fn extended(&self, def: &InstData, conv: Conv, to: Ty, from: Sum) -> Option<Sum> {
        let source = def.args[0];
        let lane = self.ty(source).lane;
        let stride = from.stride;
        match conv {
            Conv::Trunc => Some(from.blurred(wrap(to.lane, stride))),
            Conv::SExt | Conv::ZExt if lane != Lane::I1 => {
                if let Some(Op::VecConst(lanes)) = self.def_op(source).map(|d| &d.op) {
                    let extend = |&bits: &u64| match conv {
                        Conv::SExt => lane.sign_extend(bits).cast_unsigned(),
                        _ => bits & lane.mask(),
                    };
                    let lanes: Vec<u64> = lanes.iter().map(extend).collect();
                    return sequence(&lanes, to.lane);
                }
                let ids = self
                    .def_op(source)
                    .is_some_and(|d| matches!(d.op, Op::Input(_)));
                let span = stride.unsigned_abs() * u64::from(to.lanes);
                if span > lane.mask() {
                    return None;
                }
                let mut sum = from.blurred(stride);
                // Even ids are tested not to wrap, neither unsigned nor signed.
                sum.extensions += u32::from(stride != 0 && !ids);
                Some(sum)
            }
            _ => None,
        }
    }

    /// Whether local ids are consecutive (x) or equal (y, z), and do not wrap; tested once a thread.
    fn even_ids(&mut self, ids: Ids) -> V {
        let table = self.thread_field(
            std::mem::offset_of!(visa_runtime::abi::ThreadCtx, local_ids),
            cranelift_codegen::ir::types::I64,
        );
        self.per_thread(Key::EvenIds(ids), |e| {
            let ty = Ty::vector(Lane::I16, ids.count);
            let at = super::context::local_id_offset(ids.dim, ids.first);
            let parts = e.load_value(table, at, ty, DATA);
            let first = e.ins().extractlane(parts[0], 0);
            let splat = e.ins().splat(super::value::piece_type(Lane::I16), first);
            let step = u64::from(ids.dim == 0);
            let equal: Vec<V> = parts
                .iter()
                .enumerate()
                .map(|(p, &piece)| {
                    let steps = e.vconst(
                        super::value::piece_type(Lane::I16),
                        splat_step(Lane::I16, p, step),
                    );
                    let wanted = e.ins().iadd(splat, steps);
                    e.ins().icmp(IntCC::Equal, piece, wanted)
                })
                .collect();
            let bits = e.vec_to_bits(2, &equal, ids.count);
            let every = super::mask::full(ids.count).cast_signed();
            let even = e.ins().icmp_imm_u(IntCC::Equal, bits, every);
            let room = i64::from(i16::MAX) - i64::from(ids.count);
            let low = e.ins().icmp_imm_u(IntCC::UnsignedLessThan, first, room);
            e.ins().band(even, low)
        })
    }
}

/// Constants that form an arithmetic sequence.
fn sequence(lanes: &[u64], lane: Lane) -> Option<Sum> {
    let stride = lane.sign_extend(lanes.get(1)?.wrapping_sub(lanes[0]));
    let even = lanes
        .windows(2)
        .all(|pair| lane.sign_extend(pair[1].wrapping_sub(pair[0])) == stride);
    even.then_some(Sum {
        offset: lanes[0],
        ..Sum::even(stride)
    })
}
