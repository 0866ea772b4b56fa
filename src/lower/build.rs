//! Emission helpers: [`Builder`] appends operations to a current block, and keeps variables in SSA form
//! ([`super::variables`]).

use super::variables::Variables;
use crate::limits::{MAX_BLOCK_PARAMS, MAX_SSA_VALUES};
use crate::ssa::dom::{drop_unreachable, reverse_post_order};
use crate::ssa::*;

/// Appends operations to a function under construction.
pub(crate) struct Builder {
    /// The function.
    pub f: Function,
    /// Block that operations go to.
    pub cur: Block,
    /// vISA line recorded with new operations.
    pub line: u32,
    pub(super) variables: Variables,
    /// Set when the function outgrew [`MAX_SSA_VALUES`] or [`MAX_BLOCK_PARAMS`] and is no longer meaningful.
    pub too_large: bool,
    /// Registers that were not written are told from zeros.
    pub check_init: bool,
    /// Activations that recursive calls save.
    pub stack: super::recursion::CallStack,
}

impl Builder {
    /// Starts a function; the current block is the entry.
    pub(crate) fn new(name: &str, simd: u16) -> Builder {
        let mut b = Builder {
            f: Function::new(name, simd),
            cur: Function::ENTRY,
            line: 0,
            variables: Variables::default(),
            too_large: false,
            check_init: false,
            stack: super::recursion::CallStack::default(),
        };
        b.variables.track(Function::ENTRY);
        b.seal(Function::ENTRY);
        b
    }

    /// Adds an unsealed block.
    pub(crate) fn block(&mut self) -> Block {
        let b = self.f.new_block();
        self.variables.track(b);
        b
    }

    /// Says so if there are more values than there may be.
    pub(crate) fn within_limits(&self) -> Result<(), super::LowerError> {
        match self.is_full() {
            true => Err(super::too_many_values()),
            false => Ok(()),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        let params = self.variables.params();
        self.f.values.len() - params >= MAX_SSA_VALUES || params >= MAX_BLOCK_PARAMS
    }

    /// Continues in `block`.
    pub(crate) fn switch_to(&mut self, block: Block) {
        self.cur = block;
    }

    fn edge(&mut self, to: Block) -> BlockCall {
        self.variables.edge(self.cur, to);
        BlockCall {
            block: to,
            args: Vec::new(),
        }
    }

    fn end(&mut self, term: Term) {
        let line = self.line;
        let block = self.f.block_mut(self.cur);
        debug_assert!(block.term == Term::None, "block ended twice");
        block.term = term;
        block.term_line = line;
    }

    /// True when the current block has its terminator.
    pub(crate) fn ended(&self) -> bool {
        self.f.block(self.cur).term != Term::None
    }

    /// Ends the block with a jump.
    pub(crate) fn jump(&mut self, to: Block) {
        let c = self.edge(to);
        self.end(Term::Jump(c));
    }

    /// Ends the block with a branch on a scalar condition.
    pub(crate) fn branch(&mut self, cond: Value, then: Block, other: Block) {
        let then = self.edge(then);
        let other = self.edge(other);
        self.end(Term::Branch { cond, then, other });
    }

    /// Ends the block with a switch.
    pub(crate) fn switch(&mut self, index: Value, targets: &[Block], default: Block) {
        let targets = targets.iter().map(|&t| self.edge(t)).collect();
        let default = self.edge(default);
        self.end(Term::Switch {
            index,
            targets,
            default,
        });
    }

    /// Ends the thread.
    pub(crate) fn ret(&mut self) {
        self.end(Term::Return);
    }

    /// Finishes the function: seals what is open and ends the entry block with a jump to `start`.
    /// `None` when the function outgrew its limit.
    pub(crate) fn finish(mut self, start: Block, regs_bytes: u32) -> Option<Function> {
        for b in 0..self.f.blocks.len() {
            self.seal(Block(b as u32));
        }
        if self.too_large {
            return None;
        }
        let above = regs_bytes.next_multiple_of(64);
        let stack = self.save_activations(above);
        if self.too_large {
            return None;
        }
        let regs_bytes = if stack == 0 {
            regs_bytes
        } else {
            above.saturating_add(stack)
        };
        self.f.regs_bytes = regs_bytes;
        self.f.frame_bytes = regs_bytes.next_multiple_of(16);
        self.f.block_mut(Function::ENTRY).term = Term::Jump(BlockCall {
            block: start,
            args: vec![],
        });
        // Where no path from the entry leads, the value that all predecessors agree on need not be defined above them.
        let order = reverse_post_order(&self.f);
        drop_unreachable(&mut self.f, &order);
        self.place_params();
        self.f.resolve_aliases();
        Some(self.f)
    }

    // ---- operations ----

    /// Type of a value.
    pub(crate) fn ty(&self, v: Value) -> Ty {
        self.f.ty(v)
    }

    /// Appends an operation with one result.
    pub(crate) fn op(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        self.f.push1(self.cur, op, args, ty, self.line)
    }

    /// Appends an operation without results.
    pub(crate) fn effect(&mut self, op: Op, args: Vec<Value>) {
        self.f.push(self.cur, op, args, &[], self.line);
    }

    /// A scalar constant of any lane type, given its bits.
    pub(crate) fn bits(&mut self, lane: Lane, bits: u64) -> Value {
        let bits = if lane.bits() == 64 {
            bits
        } else {
            bits & ((1 << lane.bits()) - 1)
        };
        self.op(Op::Const(bits), vec![], Ty::scalar(lane))
    }

    /// Scalar `i32`.
    pub(crate) fn i32(&mut self, v: u32) -> Value {
        self.bits(Lane::I32, u64::from(v))
    }

    /// Scalar condition.
    pub(crate) fn bool(&mut self, v: bool) -> Value {
        self.bits(Lane::I1, u64::from(v))
    }

    /// Scalar `f32`.
    pub(crate) fn f32(&mut self, v: f32) -> Value {
        self.bits(Lane::F32, u64::from(v.to_bits()))
    }

    /// Scalar `f64`.
    pub(crate) fn f64(&mut self, v: f64) -> Value {
        self.bits(Lane::F64, v.to_bits())
    }

    /// A scalar constant of the type of `like`'s lanes, from a small integer.
    pub(crate) fn int_like(&mut self, like: Value, v: i64) -> Value {
        let lane = self.ty(like).lane;
        self.bits(lane, v as u64)
    }

    /// A vector constant.
    pub(crate) fn vec_const(&mut self, lane: Lane, bits: Vec<u64>) -> Value {
        if let [one] = bits.as_slice() {
            return self.bits(lane, *one);
        }
        let ty = Ty::vector(lane, bits.len() as u16);
        self.op(Op::VecConst(bits.into()), vec![], ty)
    }

    /// Every lane equal to a scalar. A vector of that many lanes is returned as it is.
    pub(crate) fn splat(&mut self, v: Value, lanes: u16) -> Value {
        let ty = self.ty(v);
        if ty.lanes == lanes {
            return v;
        }
        debug_assert!(ty.is_scalar(), "splat of a vector");
        self.op(Op::Splat, vec![v], ty.with_lanes(lanes))
    }

    /// Gives several values the same lane count by splatting the scalars among them.
    pub(crate) fn level<const N: usize>(&mut self, vs: [Value; N]) -> [Value; N] {
        let lanes = vs.iter().map(|&v| self.ty(v).lanes).max().unwrap_or(1);
        vs.map(|v| self.splat(v, lanes))
    }

    /// One operand, same type.
    pub(crate) fn un(&mut self, op: UnOp, a: Value) -> Value {
        let ty = self.ty(a);
        self.op(Op::Unary(op), vec![a], ty)
    }

    /// Two operands; a scalar is splatted against a vector.
    pub(crate) fn bin(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let shift = matches!(
            op,
            BinOp::Shl | BinOp::LShr | BinOp::AShr | BinOp::Rotl | BinOp::Rotr
        );
        let (a, b) = if shift && self.ty(b).is_scalar() {
            (a, b)
        } else {
            let [a, b] = self.level([a, b]);
            (a, b)
        };
        let ty = self.ty(a);
        self.op(Op::Binary(op), vec![a, b], ty)
    }

    /// Two operands, the second a small constant.
    pub(crate) fn bin_imm(&mut self, op: BinOp, a: Value, imm: i64) -> Value {
        let c = self.int_like(a, imm);
        self.bin(op, a, c)
    }

    /// Fused multiply-add.
    pub(crate) fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let [a, b, c] = self.level([a, b, c]);
        let ty = self.ty(a);
        self.op(Op::Fma, vec![a, b, c], ty)
    }

    /// Integer comparison.
    pub(crate) fn icmp(&mut self, cc: ICond, a: Value, b: Value) -> Value {
        let [a, b] = self.level([a, b]);
        let ty = self.ty(a).with_lane(Lane::I1);
        self.op(Op::ICmp(cc), vec![a, b], ty)
    }

    /// Float comparison.
    pub(crate) fn fcmp(&mut self, cc: FCond, a: Value, b: Value) -> Value {
        let [a, b] = self.level([a, b]);
        let ty = self.ty(a).with_lane(Lane::I1);
        self.op(Op::FCmp(cc), vec![a, b], ty)
    }

    /// `mask ? a : b`; a scalar mask decides for all lanes.
    pub(crate) fn select(&mut self, mask: Value, a: Value, b: Value) -> Value {
        let mask_lanes = self.ty(mask).lanes;
        let [mut a, mut b] = self.level([a, b]);
        if mask_lanes > 1 {
            a = self.splat(a, mask_lanes);
            b = self.splat(b, mask_lanes);
        }
        let ty = self.ty(a);
        self.op(Op::Select, vec![mask, a, b], ty)
    }

    /// Conversion to another lane type; the identity when it is the same.
    pub(crate) fn conv(&mut self, conv: Conv, a: Value, lane: Lane) -> Value {
        let ty = self.ty(a);
        if ty.lane == lane {
            return a;
        }
        self.op(Op::Convert(conv), vec![a], ty.with_lane(lane))
    }

    /// Integer to another width, extended by its signedness.
    pub(crate) fn resize(&mut self, a: Value, lane: Lane, signed: bool) -> Value {
        let from = self.ty(a).lane.bits();
        if lane.bits() < from {
            self.conv(Conv::Trunc, a, lane)
        } else {
            self.conv(if signed { Conv::SExt } else { Conv::ZExt }, a, lane)
        }
    }

    /// Same bits, other type.
    pub(crate) fn bitcast(&mut self, a: Value, ty: Ty) -> Value {
        if self.ty(a) == ty {
            return a;
        }
        debug_assert_eq!(self.ty(a).bits(), ty.bits(), "bitcast changes the size");
        self.op(Op::Bitcast, vec![a], ty)
    }

    /// Same lanes seen as another lane type of the same width.
    pub(crate) fn recast(&mut self, a: Value, lane: Lane) -> Value {
        let ty = self.ty(a).with_lane(lane);
        self.bitcast(a, ty)
    }

    /// One lane of a vector (or the scalar itself).
    pub(crate) fn lane(&mut self, a: Value, k: u16) -> Value {
        let ty = self.ty(a);
        if ty.is_scalar() {
            return a;
        }
        self.op(Op::ExtractLane(k), vec![a], ty.with_lanes(1))
    }

    /// Lanes `indices` of one value; the identity when that is all of them in order.
    pub(crate) fn shuffle(&mut self, a: Value, indices: Vec<u16>) -> Value {
        let ty = self.ty(a);
        if indices.len() == ty.lanes as usize
            && indices.iter().enumerate().all(|(i, &k)| i as u16 == k)
        {
            return a;
        }
        if let [one] = indices.as_slice() {
            return self.lane(a, *one);
        }
        let out = ty.with_lanes(indices.len() as u16);
        self.op(Op::Shuffle(indices.into()), vec![a], out)
    }

    /// Lanes of two values put end to end.
    pub(crate) fn shuffle2(&mut self, a: Value, b: Value, indices: Vec<u16>) -> Value {
        let out = self.ty(a).with_lanes(indices.len() as u16);
        self.op(Op::Shuffle(indices.into()), vec![a, b], out)
    }

    /// Lanes `start .. start + n`.
    pub(crate) fn slice(&mut self, a: Value, start: u16, n: u16) -> Value {
        self.shuffle(a, (start..start + n).collect())
    }

    /// Two values end to end.
    pub(crate) fn concat(&mut self, a: Value, b: Value) -> Value {
        let n = self.ty(a).lanes + self.ty(b).lanes;
        self.shuffle2(a, b, (0..n).collect())
    }

    /// Any lane set (a scalar stands for itself).
    pub(crate) fn any(&mut self, m: Value) -> Value {
        if self.ty(m).is_scalar() {
            m
        } else {
            self.op(Op::MaskAny, vec![m], Ty::BOOL)
        }
    }

    /// Every lane set.
    pub(crate) fn all(&mut self, m: Value) -> Value {
        if self.ty(m).is_scalar() {
            m
        } else {
            self.op(Op::MaskAll, vec![m], Ty::BOOL)
        }
    }

    /// `a & !b` on masks.
    pub(crate) fn and_not(&mut self, a: Value, b: Value) -> Value {
        let nb = self.un(UnOp::Not, b);
        self.bin(BinOp::And, a, nb)
    }
}
