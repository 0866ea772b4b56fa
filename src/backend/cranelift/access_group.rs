//! Bounds tests and pointers of access groups.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::value::scalar_type;
use crate::backend::access::{AccessGroup, Root, Scaled};
use crate::ssa::Inst;

impl CraneliftEmitter<'_> {
    /// Whether all bytes of an access group are inside.
    pub(super) fn group_inside(&mut self, s: &AccessGroup) -> V {
        let offset = self.group_offset(s);
        let bytes = s.bytes();
        let limit = if s.all.space.is_flat() {
            self.flat_limit(bytes)
        } else {
            let region = self.region(s.all.space, s.all.surface);
            self.limit(region, bytes)
        };
        self.ins().icmp(IntCC::UnsignedLessThan, offset, limit)
    }

    fn group_offset(&mut self, s: &AccessGroup) -> V {
        let start = match s.all.root {
            Root::Zero => {
                let lane = s.all.ty(self.f).lane;
                self.iconst(scalar_type(lane), s.all.from.cast_unsigned() & lane.mask())
            }
            // Groups of this code generator count from scalars.
            Root::Value(root) | Root::Scaled(Scaled { index: root, .. }) => {
                let root = self.scalar(root);
                match s.all.from {
                    0 => root,
                    from => self.ins().iadd_imm_s(root, from),
                }
            }
        };
        if s.all.space.is_flat() {
            self.flat_offset(start)
        } else {
            start
        }
    }

    /// Pointers to lane 0 of the accesses of an access group that is inside.
    pub(super) fn group_pointers(&mut self, s: &AccessGroup) -> Vec<(Inst, V)> {
        let region = self.region(s.all.space, s.all.surface);
        let mut offset = self.group_offset(s);
        if !s.all.space.is_flat() {
            offset = self.ins().uextend(types::I64, offset);
        }
        let base = self.base(region);
        let start = self.ins().iadd(base, offset);
        let mut pointers = Vec::with_capacity(s.members.len());
        for &(inst, at) in &s.members {
            let pointer = match at - s.all.from {
                0 => start,
                distance => self.ins().iadd_imm_s(start, distance),
            };
            pointers.push((inst, pointer));
        }
        pointers
    }
}
