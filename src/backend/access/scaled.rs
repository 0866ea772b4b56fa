//! Addresses in device memory that are a scalar and a scaled 32-bit number in each lane: `base + (index << shift)`.

use super::AtHand;
use super::consts;
use crate::ssa::{BinOp, Conv, Function, Lane, Op, Value};

/// Addresses `base + (index << shift)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::backend) struct Scaled {
    /// 64 bits.
    pub base: Value,
    /// 32 bits a lane.
    pub index: Value,
    /// At most 3, which pointers can be made with.
    pub shift: u8,
    /// The index is a signed number.
    pub signed: bool,
}

impl Scaled {
    /// A vector of addresses as a scalar and scaled numbers. `at_hand` says of a value whether code can use it here.
    pub(in crate::backend) fn of(
        f: &Function,
        addresses: Value,
        at_hand: AtHand,
    ) -> Option<Scaled> {
        let sum = f.def_inst(addresses)?;
        if sum.op != Op::Binary(BinOp::Add) {
            return None;
        }
        let splat = |v: Value| {
            let data = f.def_inst(v)?;
            (data.op == Op::Splat).then(|| data.args[0])
        };
        let (base, product) = match (splat(sum.args[0]), splat(sum.args[1])) {
            (None, Some(base)) => (base, sum.args[0]),
            (Some(base), None) => (base, sum.args[1]),
            _ => return None,
        };
        let (wide, shift) = match f.def_inst(product) {
            Some(data) if data.op == Op::Binary(BinOp::Shl) => {
                (data.args[0], consts::uniform(f, data.args[1])?)
            }
            _ => (product, 0),
        };
        let data = f.def_inst(wide)?;
        let index = *data.args.first()?;
        let signed = match data.op {
            Op::Convert(Conv::ZExt) => false,
            Op::Convert(Conv::SExt) => true,
            _ => return None,
        };
        let fits = f.ty(index).lane == Lane::I32 && shift <= 3 && at_hand(base) && at_hand(index);
        fits.then_some(Scaled {
            base,
            index,
            shift: shift as u8,
            signed,
        })
    }
}
