//! `dpas` and `dpasw`: D = C + A × B with C `src0`, B `src1` and A `src2`, matrices in registers (docs/visa.md, "Matrices").
//!
//! D and C have a row of N = execution size elements for each repeat, A a row of K = depth × operations elements, rows
//! packed one after the other. Column n of B is in the dwords of channel n, element k at bit `k * width`.
//!
//! Decided here: element (m, n) starts as that of C and takes the products k = 0, 1, … in order. Integers wrap. Floats
//! accumulate in binary32, each step fused and rounded to nearest with denormals kept, whatever `%cr0` says; a narrow
//! accumulator is widened before and rounded once after. Enabled channels are columns.
//!
//! `dpasw` is that with an A that two fused threads share: the first half of its registers, the larger one of an odd
//! number, is in the first thread at `src2`, the other half in the second thread, at its own `src2`; both compute with
//! the whole. Decided here: threads 2k and 2k + 1 of a group are fused. They meet at the instruction, as fused
//! threads run in step; one whose fused thread is at its end, waits elsewhere, or does not exist, is malformed.

use super::error::Halt;
use super::float::{Env, FloatOp, Format};
use super::init::Unset;
use super::lanes::{bit, bits};
use super::machine::Machine;
use super::number::{mask, wrap};
use crate::isa::dpas::precision_name;
use crate::isa::{Opcode, Type};
use crate::module::{Dpas, Inst, Origin, Raw};

/// What the bits of an element of A or B are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    /// Bits, and whether the top one is a sign.
    Int(u32, bool),
    /// A 16-bit float.
    Float(Format),
    /// An f whose low 13 bits do not count.
    Tf32,
}

impl Element {
    fn of(code: u8) -> Result<Element, Halt> {
        Ok(match precision_name(code).unwrap_or("") {
            "u1" => Element::Int(1, false),
            "s1" => Element::Int(1, true),
            "u2" => Element::Int(2, false),
            "s2" => Element::Int(2, true),
            "u4" => Element::Int(4, false),
            "s4" => Element::Int(4, true),
            "u8" => Element::Int(8, false),
            "s8" => Element::Int(8, true),
            "bf" => Element::Float(Format::Bf),
            "hf" => Element::Float(Format::Hf),
            "tf32" => Element::Tf32,
            name => {
                return Halt::unsupported(format!(
                    "precision `{name}`, which no platform here has"
                ));
            }
        })
    }

    const fn width(self) -> u32 {
        match self {
            Element::Int(bits, _) => bits,
            Element::Float(_) => 16,
            Element::Tf32 => 32,
        }
    }

    const fn is_int(self) -> bool {
        matches!(self, Element::Int(..))
    }

    /// The element at bit `at` of a dword: an integer, or bits of an f.
    fn take(self, dword: u64, at: u32) -> i128 {
        let field = dword.wrapping_shr(at);
        match self {
            Element::Int(bits, signed) => {
                let all = 1u64.wrapping_shl(bits).wrapping_sub(1);
                let v = field & all;
                let negative = signed && v.wrapping_shr(bits.wrapping_sub(1)) == 1;
                let v = i128::from(v);
                if negative {
                    v.wrapping_sub(i128::from(all)).wrapping_sub(1)
                } else {
                    v
                }
            }
            Element::Float(format) => Env::PLAIN
                .convert(format, Format::F, field & mask(2))
                .into(),
            Element::Tf32 => (dword & !0x1FFF).into(),
        }
    }
}

/// Products that a channel forms in one step of the depth.
fn operations(a: Element, b: Element) -> Result<u32, Halt> {
    match (a, b) {
        (Element::Int(8, _), Element::Int(..)) | (Element::Int(..), Element::Int(8, _)) => Ok(4),
        (Element::Int(..), Element::Int(..)) => Ok(8),
        (Element::Tf32, Element::Tf32) => Ok(1),
        (x, y) if x == y => Ok(2),
        _ => Halt::malformed("float precisions of the two matrices differ"),
    }
}

impl Machine<'_, '_, '_> {
    /// The instruction.
    pub(super) fn dpas(&mut self, inst: &Inst, d: &Dpas) -> Result<(), Halt> {
        let n = inst.exec.lanes() as usize;
        if n.wrapping_mul(4) != self.grf() {
            return Halt::malformed(format!("the execution size is {} here", self.grf() / 4));
        }
        let (b, a) = (Element::of(d.precision1)?, Element::of(d.precision2)?);
        let k = operations(a, b)?.wrapping_mul(d.depth.into());
        let to = self.matrix_type(d.dst, a)?;
        let enabled = self.enabled(inst)?;
        let rows = match inst.op {
            Opcode::Dpasw => self.t.received.take().unwrap_or_default(),
            _ => self.row_bytes(d.src2, row_size(d, a, k))?,
        };
        // All sources are read before the first row is written.
        let unset = self.unset_columns(inst, d, (a.width(), b.width(), k), enabled)?;
        let mut results = Vec::new();
        for row in 0..u32::from(d.repeat) {
            for column in bits(enabled) {
                let start = self.accumulator(
                    d.src0,
                    a,
                    (row as usize).wrapping_mul(n).wrapping_add(column),
                )?;
                let sum = (0..k).try_fold(start, |sum, e| {
                    let x = row_element(&rows, a, row.wrapping_mul(k).wrapping_add(e));
                    let y = self.column_element(d.src1, b, e, column, n)?;
                    Ok(step(a, sum, x, y))
                })?;
                results.push(sum);
            }
        }
        let mut next = results.into_iter();
        for row in 0..usize::from(d.repeat) {
            for column in bits(enabled) {
                let sum = next.next().unwrap_or(0) as u64;
                let v = match Format::of(to) {
                    Some(format) => Env::PLAIN.convert(Format::F, format, sum & mask(4)),
                    None => sum & mask(4),
                };
                let i = row.wrapping_mul(n).wrapping_add(column);
                self.set_payload(d.dst, 0, i, to.bytes() as usize, v)?;
                if let Some(unset) = unset.get(i) {
                    self.set_unset_payload(d.dst, 0, (i, to.bytes() as usize), *unset)?;
                }
            }
        }
        Ok(())
    }

    /// What of the result is not initialised, element by element: those whose row of A, column of B or element of C has something that is
    /// not. Nothing if that is not checked. What `dpasw` gets from the other thread counts as initialised.
    fn unset_columns(
        &self,
        inst: &Inst,
        d: &Dpas,
        (row_bits, column_bits, k): (u32, u32, u32),
        enabled: u32,
    ) -> Result<Vec<Unset>, Halt> {
        let mut out = Vec::new();
        if self.t.init.is_none() {
            return Ok(out);
        }
        let n = inst.exec.lanes() as usize;
        let dwords = |bits: u32| (bits.div_ceil(32)) as usize;
        let c = match d.src0.is_null() {
            true => 0,
            false => self.var_type(d.src0.var)?.bytes() as usize,
        };
        for row in 0..u32::from(d.repeat) {
            let mut of_row = Unset::NONE;
            if inst.op != Opcode::Dpasw {
                let first = row.wrapping_mul(k).wrapping_mul(row_bits);
                let last = first.wrapping_add(k.wrapping_mul(row_bits));
                let ty = self.var_type(d.src2.var)?;
                for word in (first / 32) as usize..dwords(last) {
                    let at = self.bytes_past(d.src2, ty, word.wrapping_mul(4), 4)?;
                    of_row = of_row.or(self.unset_file(at, 4));
                }
            }
            for column in 0..n {
                let mut all = of_row;
                for word in 0..dwords(k.wrapping_mul(column_bits)) {
                    let i = word.wrapping_mul(n).wrapping_add(column);
                    all = all.or(self.unset_payload(d.src1, 0, i, 4)?);
                }
                let i = (row as usize).wrapping_mul(n).wrapping_add(column);
                all = all.or(self.unset_payload(d.src0, 0, i, c)?);
                let used = all.any() && bit(enabled, column);
                out.push(all.with(if used { u64::MAX } else { 0 }));
            }
        }
        Ok(out)
    }

    /// Element type of D or C, as the precision allows it.
    fn matrix_type(&self, raw: Raw, precision: Element) -> Result<Type, Halt> {
        let ty = self.var_type(raw.var)?;
        let fits = match precision {
            Element::Int(..) => matches!(ty, Type::D | Type::Ud),
            Element::Float(Format::Bf) => matches!(ty, Type::F | Type::Bf),
            Element::Float(_) => matches!(ty, Type::F | Type::Hf),
            Element::Tf32 => ty == Type::F,
        };
        if fits {
            Ok(ty)
        } else {
            Halt::malformed(format!("a `{ty}` matrix with this precision"))
        }
    }

    /// Element `i` of C, as it is accumulated.
    fn accumulator(&self, src0: Raw, a: Element, i: usize) -> Result<i128, Halt> {
        if src0.is_null() {
            return Ok(0);
        }
        let ty = self.matrix_type(src0, a)?;
        let v = self.payload(src0, 0, i, ty.bytes() as usize)?;
        Ok(match Format::of(ty) {
            Some(format) => Env::PLAIN.convert(format, Format::F, v).into(),
            None => wrap(Type::D, v.into()),
        })
    }

    /// What this thread has of the A of a `dpasw`.
    pub(super) fn half_of_rows(&self, d: &Dpas) -> Result<Vec<u8>, Halt> {
        let (b, a) = (Element::of(d.precision1)?, Element::of(d.precision2)?);
        let size = row_size(d, a, operations(a, b)?.wrapping_mul(d.depth.into()));
        let registers = size.div_ceil(self.grf());
        let first = registers.div_ceil(2).wrapping_mul(self.grf()).min(size);
        let mine = if self.number.is_multiple_of(2) {
            first
        } else {
            size.saturating_sub(first)
        };
        self.row_bytes(d.src2, mine)
    }

    /// Bytes of A, whose origin counts elements of the variable's type.
    fn row_bytes(&self, o: Origin, bytes: usize) -> Result<Vec<u8>, Halt> {
        let ty = self.var_type(o.var)?;
        let mut out = Vec::new();
        for k in (0..bytes).step_by(4) {
            let position = self.bytes_past(o, ty, k, 4)?;
            out.extend_from_slice(&(self.t.get(position, 4) as u32).to_le_bytes());
        }
        Ok(out)
    }

    /// Element `e` of a column of B.
    fn column_element(
        &self,
        src1: Raw,
        b: Element,
        e: u32,
        column: usize,
        n: usize,
    ) -> Result<i128, Halt> {
        let at = e.wrapping_mul(b.width());
        let row = (at / 32) as usize;
        let i = row.wrapping_mul(n).wrapping_add(column);
        Ok(b.take(self.payload(src1, 0, i, 4)?, at % 32))
    }
}

/// Bytes of A, in whole dwords.
fn row_size(d: &Dpas, a: Element, k: u32) -> usize {
    let bits = u32::from(d.repeat).wrapping_mul(k).wrapping_mul(a.width());
    (bits.div_ceil(32) as usize).wrapping_mul(4)
}

/// Element `e` of A.
fn row_element(rows: &[u8], a: Element, e: u32) -> i128 {
    let at = e.wrapping_mul(a.width());
    let dword = rows.chunks_exact(4).nth((at / 32) as usize);
    let dword = dword
        .and_then(|d| d.try_into().ok())
        .map_or(0, u32::from_le_bytes);
    a.take(dword.into(), at % 32)
}

/// `sum + x * y`.
fn step(a: Element, sum: i128, x: i128, y: i128) -> i128 {
    if a.is_int() {
        return wrap(Type::D, sum.wrapping_add(x.wrapping_mul(y)));
    }
    let args = [y as u64, x as u64, sum as u64];
    Env::PLAIN.compute(FloatOp::Fma, Format::F, args).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements() {
        assert_eq!(Element::Int(4, true).take(0xF0, 4), -1);
        assert_eq!(Element::Int(2, false).take(0xF0, 4), 3);
        assert_eq!(Element::Int(1, true).take(0x10, 4), -1);
        assert_eq!(
            Element::Float(Format::Bf).take(0x3F80_0000, 16),
            0x3F80_0000
        );
        assert_eq!(Element::Float(Format::Hf).take(0x3C00, 0), 0x3F80_0000);
        assert_eq!(Element::Tf32.take(0x3F80_1FFF, 0), 0x3F80_0000);
        assert_eq!(
            operations(Element::Int(8, true), Element::Int(2, true)),
            Ok(4)
        );
        assert_eq!(
            operations(Element::Int(4, true), Element::Int(2, true)),
            Ok(8)
        );
    }
}
