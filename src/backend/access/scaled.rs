//! Addresses in device memory that are a scalar, a scaled 32-bit number in each lane, and a constant: `base + distance + (index << shift)`.

use super::AtHand;
use super::consts;
use crate::ssa::{BinOp, Conv, Function, Lane, Op, Value};

/// Sums that an address is looked through for its terms.
const SUMS: usize = 6;

/// The largest shift that pointers can be made with.
pub(in crate::backend) const POINTER_SHIFT: u8 = 3;

/// The largest shift of numbers that are compared, and widened by themselves: elements of 64 bytes.
pub(super) const MAX_SHIFT: u8 = 6;

/// Bytes that addresses may be from the base, without the numbers.
const MAX_DISTANCE: i64 = 1 << 31;

/// Addresses `base + distance + (index << shift)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::backend) struct Scaled {
    /// 64 bits.
    pub base: Value,
    /// Bytes, at most 2^31 in each direction.
    pub distance: i64,
    /// 32 bits a lane.
    pub index: Value,
    /// At most [`MAX_SHIFT`].
    pub shift: u8,
    /// The index is a signed number.
    pub signed: bool,
}

/// What addresses are the sum of.
#[derive(Default)]
struct Terms {
    scalar: Option<Value>,
    vector: Option<Value>,
    constant: u64,
}

impl Terms {
    /// Of addresses that are a scalar, a vector and constants, in any order.
    fn of(f: &Function, addresses: Value) -> Option<(Value, Value, u64)> {
        let (mut terms, mut sums) = (Terms::default(), 0);
        let mut work = vec![addresses];
        while let Some(v) = work.pop() {
            if let Some(by) = consts::uniform(f, v) {
                terms.constant = terms.constant.wrapping_add(by);
                continue;
            }
            let place = match f.def_inst(v) {
                Some(sum) if sum.op == Op::Binary(BinOp::Add) && sums < SUMS => {
                    sums += 1;
                    work.extend(&sum.args);
                    continue;
                }
                Some(data) if data.op == Op::Splat => {
                    (&mut terms.scalar, data.args.first().copied())
                }
                _ => (&mut terms.vector, Some(v)),
            };
            if place.0.is_some() {
                return None;
            }
            *place.0 = place.1;
        }
        Some((terms.scalar?, terms.vector?, terms.constant))
    }
}

impl Scaled {
    /// A vector of addresses as a scalar and numbers that are shifted by at most `most`. `at_hand` says of a value whether code can use it
    /// here.
    pub(in crate::backend) fn of(
        f: &Function,
        addresses: Value,
        most: u8,
        at_hand: AtHand,
    ) -> Option<Scaled> {
        let (base, product, distance) = Terms::of(f, addresses)?;
        let distance = distance.cast_signed();
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
        let near = (-MAX_DISTANCE..=MAX_DISTANCE).contains(&distance) && shift <= u64::from(most);
        let fits = f.ty(index).lane == Lane::I32 && near && at_hand(base) && at_hand(index);
        fits.then_some(Scaled {
            base,
            distance,
            index,
            shift: shift as u8,
            signed,
        })
    }

    /// Where the numbers count from and how, without the numbers: base, distance, shift, and whether they are signed.
    #[cfg_attr(
        not(feature = "llvm-codegen"),
        allow(dead_code, reason = "Cranelift computes bounds at each access")
    )]
    pub(in crate::backend) const fn scale(&self) -> (Value, i64, u8, bool) {
        (self.base, self.distance, self.shift, self.signed)
    }
}
