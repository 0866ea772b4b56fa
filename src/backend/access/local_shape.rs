//! Shapes of addresses that the function's table does not have: those made from local ids, whose layout only the launch knows,
//! and simple constant ones.
//!
//! An address is followed through additions, constant factors and extensions to vectors whose spacing is known. Code tests once a
//! thread whether local ids are consecutive or equal.

use super::AtHand;
use super::consts;
use crate::ssa::{BinOp, Conv, Function, Input, InstData, Lane, Op, Ty, Value};

/// Depth to which address expressions are followed.
const MAX_DEPTH: u32 = 12;

/// A vector of local ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::backend) struct Ids {
    /// 0 x, 1 y, 2 z.
    pub dim: u8,
    /// First lane.
    pub first: u8,
    /// Lanes.
    pub count: u16,
}

/// `scalars + offset + lane * stride`, under conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::backend) struct Sum {
    /// What lane 0 is the sum of, together with the offset.
    pub scalars: Vec<Value>,
    /// See there.
    pub offset: u64,
    /// Sign-extended from the lane.
    pub stride: i64,
    /// Ids that must be affine in the lane.
    pub ids: Vec<Ids>,
    /// Extensions that hold only when no lane wraps before; at most one can be tested.
    pub extensions: u32,
    /// Scalars and offset do not give lane 0.
    pub opaque: bool,
}

impl Sum {
    fn affine(stride: i64) -> Sum {
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

    /// Address of lane 0, if it is a constant.
    pub(super) fn known(&self, lane: Lane) -> Option<u64> {
        let plain = !self.opaque && self.scalars.is_empty();
        plain.then_some(self.offset & lane.mask())
    }

    /// True if it holds under a condition only.
    pub(super) fn is_tested(&self) -> bool {
        !self.ids.is_empty() || self.extensions > 0
    }
}

fn wrap(lane: Lane, stride: i64) -> i64 {
    lane.sign_extend(stride.cast_unsigned())
}

/// Shape of a vector of addresses, from its definition. `at_hand` says of a value whether code can use it here.
pub(in crate::backend) fn local_shape(f: &Function, addr: Value, at_hand: AtHand) -> Option<Sum> {
    let sum = Follow { f, at_hand }.sum_of(addr, MAX_DEPTH)?;
    (sum.extensions <= 1).then_some(sum)
}

struct Follow<'a> {
    f: &'a Function,
    at_hand: AtHand<'a>,
}

impl Follow<'_> {
    fn sum_of(&self, v: Value, depth: u32) -> Option<Sum> {
        let f = self.f;
        let depth = depth.checked_sub(1)?;
        let def = f.def_inst(v)?;
        let ty = f.ty(v);
        let arg = |n: usize| self.sum_of(*def.args.get(n)?, depth);
        match &def.op {
            Op::Splat => Some(match consts::scalar(f, def.args[0]) {
                Some(offset) => Sum {
                    offset,
                    ..Sum::default()
                },
                None if !(self.at_hand)(def.args[0]) => return None,
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
                    ..Sum::affine(i64::from(*dim == 0))
                })
            }
            Op::Binary(BinOp::Add) => Some(arg(0)?.plus(arg(1)?, ty.lane)),
            Op::Binary(BinOp::Sub) => {
                let b = arg(1)?;
                let stride = wrap(ty.lane, b.stride.wrapping_neg());
                Some(arg(0)?.plus(b.blurred(stride), ty.lane))
            }
            Op::Binary(BinOp::Mul) => {
                let factor = consts::uniform(f, def.args[1])?;
                let a = arg(0)?;
                let stride = wrap(ty.lane, a.stride.wrapping_mul(factor.cast_signed()));
                Some(a.blurred(stride))
            }
            Op::Binary(BinOp::Shl) => {
                let count = consts::uniform(f, def.args[1])? % u64::from(ty.lane.bits());
                let a = arg(0)?;
                let stride = wrap(ty.lane, a.stride.wrapping_shl(count as u32));
                Some(a.blurred(stride))
            }
            Op::Shuffle(indices) if def.args.len() == 1 => {
                let consecutive = indices.windows(2).all(|w| w[1] == w[0] + 1);
                let a = arg(0).filter(|_| consecutive)?;
                let stride = a.stride;
                Some(a.blurred(stride))
            }
            Op::Convert(conv) => self.extended(def, *conv, ty, arg(0)?),
            _ => None,
        }
    }

    fn extended(&self, def: &InstData, conv: Conv, to: Ty, from: Sum) -> Option<Sum> {
        let f = self.f;
        let source = def.args[0];
        let lane = f.ty(source).lane;
        let stride = from.stride;
        match conv {
            Conv::Trunc => Some(from.blurred(wrap(to.lane, stride))),
            Conv::SExt | Conv::ZExt if lane != Lane::I1 => {
                if let Some(Op::VecConst(lanes)) = f.def_inst(source).map(|d| &d.op) {
                    let extend = |&bits: &u64| match conv {
                        Conv::SExt => lane.sign_extend(bits).cast_unsigned(),
                        _ => bits & lane.mask(),
                    };
                    let lanes: Vec<u64> = lanes.iter().map(extend).collect();
                    return sequence(&lanes, to.lane);
                }
                let ids = f
                    .def_inst(source)
                    .is_some_and(|d| matches!(d.op, Op::Input(_)));
                let span = stride.unsigned_abs().saturating_mul(to.lanes.into());
                if span > lane.mask() {
                    return None;
                }
                let mut sum = from.blurred(stride);
                // Affine ids are tested not to wrap, neither unsigned nor signed.
                sum.extensions += u32::from(stride != 0 && !ids);
                Some(sum)
            }
            _ => None,
        }
    }
}

/// Constants that form an arithmetic sequence.
fn sequence(lanes: &[u64], lane: Lane) -> Option<Sum> {
    let stride = lane.sign_extend(lanes.get(1)?.wrapping_sub(lanes[0]));
    let affine = lanes
        .windows(2)
        .all(|pair| lane.sign_extend(pair[1].wrapping_sub(pair[0])) == stride);
    affine.then_some(Sum {
        offset: lanes[0],
        ..Sum::affine(stride)
    })
}
