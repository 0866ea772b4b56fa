//! Gathers of elements of one or two bytes. The processor's gathers take words of 4 bytes, so each lane gathers a word that has
//! its element.
//!
//! A word may reach up to 3 bytes over the ends of the region, where memory may not be readable. But a word at a multiple of 4
//! can be read wherever one of its bytes can, because no page ends inside of it. The *last word* is the one at a multiple of 4
//! that has the region's last byte. It can be read, and so can everything between an element and its end.
//!
//! With 32-bit numbers ([`Window`]), each lane gathers the word that begins with its element, or the last word if that begins
//! earlier, and shifts it. Numbers count units of 1, 2, 4 or 8 bytes. Words begin at multiples of the unit, or of 4 where the
//! unit is larger, so that none begins before the first one that can be read.

use inkwell::IntPredicate;
use inkwell::values::{InstructionOpcode as I, IntValue, PointerValue};

use super::context::Key;
use super::emit::{EmitResult, LlvmEmitter, V};
use super::gather::LaneAddresses;
use super::memory::{Lanes, Region};
use crate::ssa::{Lane, Ty};

/// Where the words are that have the elements of numbers.
#[derive(Clone, Copy)]
pub(super) struct Window<'c> {
    /// Where the word of number zero is, or would be.
    start: PointerValue<'c>,
    /// The last number whose word is gathered; those of larger numbers are in the same word. 32 bits, and signed.
    last: V<'c>,
    /// The bit of an element in its own word, 32 bits.
    bit: V<'c>,
}

/// How numbers become words.
#[derive(Clone, Copy)]
pub(super) struct Units {
    /// Bytes of the unit, as a shift.
    pub shift: u8,
    /// Bytes of an element.
    pub bytes: u32,
}

impl Units {
    pub(super) const fn new(shift: u8, elem: Lane) -> Units {
        let bytes = elem.bytes();
        Units { shift, bytes }
    }
}

/// Words of lanes.
#[derive(Clone, Copy)]
pub(super) struct Words<'c> {
    start: PointerValue<'c>,
    /// Each lane's signed number of a word.
    index: V<'c>,
    /// Bytes of the unit.
    unit: u32,
    /// The bit of each lane's element in it.
    bits: V<'c>,
}

impl<'c> LlvmEmitter<'c, '_> {
    /// Gathers elements of one or two bytes.
    pub(super) fn gather_narrow(
        &mut self,
        elem: Lane,
        lanes: &Lanes<'c>,
        at: LaneAddresses<'c>,
        mask: V<'c>,
    ) -> EmitResult<V<'c>> {
        let words = match at {
            LaneAddresses::Words(words) => words,
            LaneAddresses::Offsets(at) if lanes.flat => {
                return self.gather_around(elem, lanes, at, mask);
            }
            LaneAddresses::Offsets(at) => self.words_at(elem, lanes, at)?,
            LaneAddresses::Units(..) | LaneAddresses::Addresses(_) => {
                return Err("narrow elements in no words".into());
            }
        };
        let at = LaneAddresses::Units(words.start, words.index, words.unit);
        let v = self.gather_lanes(Lane::I32, lanes, at, mask)?;
        let v = self.op2(I::LShr, v, words.bits)?;
        self.resize(v, elem.bits())
    }

    /// Of offsets of 32 bits, which count from the middle of what they reach: the processor takes them for signed.
    fn words_at(&mut self, elem: Lane, lanes: &Lanes<'c>, offsets: V<'c>) -> EmitResult<Words<'c>> {
        let bytes = elem.bytes();
        let units = Units::new(0, elem);
        let region = lanes.region;
        let make = |e: &mut Self| e.window(region, e.i64(1 << 31), units);
        let window = match region {
            Region::Computed(..) => make(self)?,
            Region::Known(_) => {
                let mut part = |n| {
                    let key = |place| Key::Window(place, bytes, n);
                    self.placed(region, key, |e| Ok(make(e)?.part(n)))
                };
                Window::of_parts([part(0)?, part(1)?, part(2)?])?
            }
        };
        let half = self.konst(Ty::vector(Lane::I32, lanes.count), 1 << 31)?;
        let index = self.op2(I::Xor, offsets, half)?;
        self.words(window, index, lanes.count, units)
    }

    /// The words of numbers. What is made of numbers outside of the region must not be read.
    pub(super) fn words(
        &mut self,
        window: Window<'c>,
        index: V<'c>,
        lanes: u16,
        units: Units,
    ) -> EmitResult<Words<'c>> {
        let unit = 1 << units.shift;
        let mut bits = self.splat(window.bit, lanes)?;
        let mut from = index;
        if unit < 4 {
            let ty = Ty::vector(Lane::I32, lanes);
            let last = self.splat(window.last, lanes)?;
            from = self.intrinsic("llvm.smin", &[ty], &[index, last])?;
            let behind = self.op2(I::Sub, index, from)?;
            let by = self.konst(ty, u64::from(3 + units.shift))?;
            let behind = self.op2(I::Shl, behind, by)?;
            bits = self.op2(I::Add, behind, bits)?;
            // It is less anyway of what is inside.
            let most = self.konst(ty, 31)?;
            bits = self.op2(I::And, bits, most)?;
        }
        Ok(Words {
            start: window.start,
            index: from,
            unit,
            bits,
        })
    }

    /// The words of a region, where the element of number zero is `from` bytes after its start.
    pub(super) fn window(
        &mut self,
        region: Region<'c>,
        from: IntValue<'c>,
        units: Units,
    ) -> EmitResult<Window<'c>> {
        let base = self.base(region)?;
        let address = self.cast(I::PtrToInt, base, self.int(64).into())?;
        let unit = 1_i64 << units.shift;
        let first = self.op2(I::Add, address, from)?;
        let mut before = self.op2(I::And, first, self.i64(unit.min(4).cast_unsigned() - 1))?;
        if unit >= 4 {
            // Two bytes may be in two such words. The one that begins a byte before the first ends inside of the second.
            if units.bytes == 2 {
                let split = self.icmp(IntPredicate::EQ, before, self.i64(3))?;
                before = self.select(split, self.i64(1), before)?;
            }
            let start = self.op2(I::Sub, from, before)?;
            let bit = self.op2(I::Shl, before, self.i64(3))?;
            return Ok(Window {
                start: self.offset(base, self.as_int(start)?)?,
                last: self.i32(0).into(),
                bit: self.resize(bit, 32)?,
            });
        }
        let start = self.op2(I::Sub, from, before)?;
        let size = self.size(region)?;
        let end = self.op2(I::Add, address, size)?;
        let end = self.add_const(self.as_int(end)?, -1)?;
        let word = self.op2(I::And, end, self.i64(!3))?;
        let word = self.op2(I::Sub, word, address)?;
        let room = self.op2(I::Sub, word, start)?;
        let by = self.i64(units.shift.into());
        let last = self.op2(I::AShr, room, by)?;
        // It may come before the least number, which then stands for it.
        let wide = [Ty::scalar(Lane::I64)];
        let least = self.i64(i64::from(i32::MIN).cast_unsigned()).into();
        let most = self.i64(i64::from(i32::MAX).cast_unsigned()).into();
        let at_least = self.intrinsic("llvm.smax", &wide, &[last, least])?;
        let less = self.op2(I::Sub, at_least, last)?;
        let less = self.op2(I::Shl, less, by)?;
        let start = self.op2(I::Sub, start, less)?;
        let bit = self.op2(I::Add, before, less)?;
        let bit = self.op2(I::Shl, bit, self.i64(3))?;
        let last = self.intrinsic("llvm.smin", &wide, &[at_least, most])?;
        Ok(Window {
            start: self.offset(base, self.as_int(start)?)?,
            last: self.resize(last, 32)?,
            bit: self.resize(bit, 32)?,
        })
    }

    /// By offsets of 64 bits: each lane gathers the word at a multiple of 4 that has its first byte, or if its two bytes are in two
    /// such words, the one that begins a byte before it.
    fn gather_around(
        &mut self,
        elem: Lane,
        lanes: &Lanes<'c>,
        at: V<'c>,
        mask: V<'c>,
    ) -> EmitResult<V<'c>> {
        let count = lanes.count;
        let base = self.base(lanes.region)?;
        let base = self.cast(I::PtrToInt, base, self.int(64).into())?;
        let base = self.splat(base, count)?;
        let at = self.op2(I::Add, self.resize(at, 64)?, base)?;
        let three = self.konst(Ty::vector(Lane::I64, count), 3)?;
        let mut before = self.op2(I::And, at, three)?;
        if elem.bytes() == 2 {
            let split = self.icmp(IntPredicate::EQ, before, three)?;
            let one = self.konst(Ty::vector(Lane::I64, count), 1)?;
            before = self.select(split, one, before)?;
        }
        let from = self.op2(I::Sub, at, before)?;
        let words = self.gather_lanes(Lane::I32, lanes, LaneAddresses::Addresses(from), mask)?;
        let bits = self.op2(I::Shl, before, three)?;
        let words = self.op2(I::LShr, words, self.resize(bits, 32)?)?;
        self.resize(words, elem.bits())
    }
}

impl<'c> Window<'c> {
    /// Of its three values.
    pub(super) fn of_parts([start, last, bit]: [V<'c>; 3]) -> EmitResult<Window<'c>> {
        match start {
            V::PointerValue(start) => Ok(Window { start, last, bit }),
            _ => Err("words that begin at no pointer".into()),
        }
    }

    /// One of them.
    pub(super) fn part(self, n: u8) -> V<'c> {
        match n {
            0 => self.start.into(),
            1 => self.last,
            _ => self.bit,
        }
    }
}
