//! `dpas` and `dpasw`: dst = src0 + src2 × src1, matrices in registers (docs/visa.md, "Matrices").
//!
//! Rows of dst and src0 are packed one after the other, `N` = execution size elements each. src2 is row-major,
//! `K` elements a row, and goes to all channels. src1 holds column `n` in the dwords of channel `n`, element
//! `k` at bit `k * width` of the column. `K` is depth × operations a channel.
//!
//! **Order of accumulation.** Element (m, n) starts as that of src0 (zero for `%null`) and takes the products
//! k = 0, 1, … K-1 one after the other. Integers wrap modulo 2^32. Floats accumulate in f, each step a fused
//! multiply-add rounded to nearest even with denormals kept, whatever `%cr0` says; an hf or bf accumulator is
//! widened before the first step and the sum rounded once after the last. The ISA does not fix the order.
//!
//! **`dpasw`.** Each of two fused threads has a half of src2 at its own src2: the even one the first half of the
//! registers, the larger of an odd number. Each gives the other as many registers as that, and takes of what it gets
//! those that it does not have.

use super::Lowerer;
use super::error::Fail;
use super::operand::lane_of;
use super::regs::Pattern;
use crate::isa::dpas::precision_name;
use crate::isa::{Opcode, Type};
use crate::module::{Dpas, Inst, Origin, Raw};
use crate::ssa::*;

/// An element format of src1 or src2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Int { bits: u32, signed: bool },
    Bf,
    Hf,
    Tf32,
}

impl Format {
    fn of(code: u8) -> Result<Format, Fail> {
        let name = precision_name(code).unwrap_or("");
        Ok(match name {
            "bf" => Format::Bf,
            "hf" => Format::Hf,
            "tf32" => Format::Tf32,
            _ => match (name.get(..1), name.get(1..).and_then(|n| n.parse().ok())) {
                (Some("u"), Some(bits)) => Format::Int {
                    bits,
                    signed: false,
                },
                (Some("s"), Some(bits)) => Format::Int { bits, signed: true },
                _ => {
                    return Fail::unsupported(format!(
                        "precision `{name}`, which no platform here has"
                    ));
                }
            },
        })
    }

    fn bits(self) -> u32 {
        match self {
            Format::Int { bits, .. } => bits,
            Format::Bf | Format::Hf => 16,
            Format::Tf32 => 32,
        }
    }

    fn is_int(self) -> bool {
        matches!(self, Format::Int { .. })
    }
}

/// Products that one channel forms in one step of the systolic depth.
fn operations(a: Format, b: Format) -> Result<u32, Fail> {
    match (a, b) {
        (Format::Int { bits: x, .. }, Format::Int { bits: y, .. }) => {
            Ok(if x.max(y) == 8 { 4 } else { 8 })
        }
        (Format::Tf32, Format::Tf32) => Ok(1),
        (x, y) if x == y => Ok(2),
        _ => Fail::malformed("float precisions of the two matrices differ"),
    }
}

impl Lowerer<'_> {
    /// Lowers the instruction.
    pub(super) fn lower_dpas(&mut self, inst: &Inst, d: &Dpas) -> Result<(), Fail> {
        let n = inst.exec.lanes();
        if n * 4 != self.grf {
            return Fail::malformed(format!("the execution size is {} here", self.grf / 4));
        }
        let (b, a) = (Format::of(d.precision1)?, Format::of(d.precision2)?);
        let k = operations(a, b)? * u32::from(d.depth);
        let dst = self.matrix_type(d.dst, a)?;
        let columns = self.columns(d.src1, b, k, n)?;
        let count = (u32::from(d.repeat) * k * a.bits()).div_ceil(32);
        let rows = match inst.op {
            Opcode::Dpasw => self.shared_dwords(d.src2, count)?,
            _ => self.row_dwords(d.src2, count)?,
        };
        let rows: Vec<Value> = (0..count as u16).map(|i| self.b.lane(rows, i)).collect();
        let mut results = Vec::new();
        for r in 0..u32::from(d.repeat) {
            let mut sum = self.accumulator(d.src0, a, r * n, n)?;
            for (e, &column) in columns.iter().enumerate() {
                let at = (r * k + e as u32) * a.bits();
                let dword = rows[(at / 32) as usize];
                let x = self.element(dword, at % 32, a);
                sum = if a.is_int() {
                    let product = self.b.bin(BinOp::Mul, column, x);
                    self.b.bin(BinOp::Add, sum, product)
                } else {
                    self.b.fma(column, x, sum)
                };
            }
            results.push(self.matrix_result(sum, dst));
        }
        let mask = self.channel_mask(inst)?.value();
        for (r, value) in results.into_iter().enumerate() {
            self.set_payload(d.dst, r as u32 * n * dst.bytes(), value, mask, false)?;
        }
        Ok(())
    }

    /// Element type of dst or src0, as the precision allows it.
    fn matrix_type(&self, raw: Raw, precision: Format) -> Result<Type, Fail> {
        let ty = self.kernel.module().vars.ty(raw.var).unwrap_or(Type::Bool);
        let fits = match precision {
            Format::Int { .. } => matches!(ty, Type::D | Type::Ud),
            Format::Bf => matches!(ty, Type::F | Type::Bf),
            Format::Hf => matches!(ty, Type::F | Type::Hf),
            Format::Tf32 => ty == Type::F,
        };
        if fits {
            Ok(ty)
        } else {
            Fail::malformed(format!("a `{ty}` matrix with this precision"))
        }
    }

    /// A row of src0, `at` elements in, in the lanes that are accumulated in.
    fn accumulator(&mut self, src0: Raw, a: Format, at: u32, n: u32) -> Result<Value, Fail> {
        let lane = if a.is_int() { Lane::I32 } else { Lane::F32 };
        if src0.is_null() {
            return self.payload(src0, 0, n, lane);
        }
        let ty = self.matrix_type(src0, a)?;
        let v = self.payload(src0, at * ty.bytes(), n, lane_of(ty))?;
        Ok(match ty {
            Type::Hf => self.b.conv(Conv::F16ToF, v, Lane::F32),
            Type::Bf => {
                let wide = self.b.conv(Conv::ZExt, v, Lane::I32);
                self.element(wide, 0, Format::Bf)
            }
            _ => v,
        })
    }

    fn matrix_result(&mut self, sum: Value, dst: Type) -> Value {
        match dst {
            Type::Hf => self.b.conv(Conv::FToF16, sum, Lane::I16),
            Type::Bf => self.f_to_bf(sum),
            _ => sum,
        }
    }

    /// For each k the elements of all columns of src1.
    fn columns(&mut self, src1: Raw, b: Format, k: u32, n: u32) -> Result<Vec<Value>, Fail> {
        let count = (k * b.bits()).div_ceil(32);
        let dwords = (0..count)
            .map(|m| self.payload(src1, m * n * 4, n, Lane::I32))
            .collect::<Result<Vec<_>, _>>()?;
        Ok((0..k)
            .map(|e| {
                let at = e * b.bits();
                self.element(dwords[(at / 32) as usize], at % 32, b)
            })
            .collect())
    }

    /// Dwords of src2.
    fn row_dwords(&mut self, src2: Origin, count: u32) -> Result<Value, Fail> {
        let (root, start, _) = self.start_of(src2)?;
        let p = Pattern::packed(root, start, count, Lane::I32);
        self.regs.read(&mut self.b, &p)
    }

    /// Dwords of a src2 of which this thread has one half, and the fused thread the other.
    fn shared_dwords(&mut self, src2: Origin, count: u32) -> Result<Value, Fail> {
        let register = self.grf / 4;
        let first = (count.div_ceil(register).div_ceil(2) * register).min(count);
        let mine = self.row_dwords(src2, first)?;
        let ty = Ty::vector(Lane::I32, first as u16);
        let theirs = self.b.op(Op::Exchange, vec![mine], ty);
        let number = self.b.op(Op::Input(Input::R0(2)), vec![], Ty::I32);
        let odd = self.b.bin_imm(BinOp::And, number, 1);
        let zero = self.b.bits(Lane::I32, 0);
        let odd = self.b.icmp(ICond::Ne, odd, zero);
        let head = self.b.select(odd, theirs, mine);
        let tail = self.b.select(odd, mine, theirs);
        let indices: Vec<u16> = (0..count as u16).collect();
        let whole = Ty::vector(Lane::I32, count as u16);
        Ok(self
            .b
            .op(Op::Shuffle(indices.into()), vec![head, tail], whole))
    }

    /// The element at bit `at` of dwords, as the number that is computed with.
    fn element(&mut self, dwords: Value, at: u32, format: Format) -> Value {
        let at = i64::from(at);
        match format {
            Format::Int { bits, signed } => {
                let up = 32 - at - i64::from(bits);
                let v = if up > 0 {
                    self.b.bin_imm(BinOp::Shl, dwords, up)
                } else {
                    dwords
                };
                let op = if signed { BinOp::AShr } else { BinOp::LShr };
                self.b.bin_imm(op, v, 32 - i64::from(bits))
            }
            Format::Bf => {
                let v = if at == 0 {
                    self.b.bin_imm(BinOp::Shl, dwords, 16)
                } else {
                    self.b.bin_imm(BinOp::And, dwords, -0x1_0000)
                };
                self.b.recast(v, Lane::F32)
            }
            Format::Hf => {
                let v = self.b.bin_imm(BinOp::LShr, dwords, at);
                let v = self.b.conv(Conv::Trunc, v, Lane::I16);
                self.b.conv(Conv::F16ToF, v, Lane::F32)
            }
            Format::Tf32 => {
                let v = self.b.bin_imm(BinOp::And, dwords, !0x1fff);
                self.b.recast(v, Lane::F32)
            }
        }
    }
}
