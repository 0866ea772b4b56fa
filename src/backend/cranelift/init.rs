//! Checks of initialisation: what happens where marks are set.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value as V, types};
use visa_runtime::abi::{Helpers, Status};

use super::emit::CraneliftEmitter;
use super::value::{int_lane, scalar_type};
use crate::ssa::{RaceCheck, Value};

impl CraneliftEmitter<'_> {
    /// Leaves the function if a mark is set, or a condition.
    pub(super) fn suspect(&mut self, args: &[Value]) {
        let set = self.any_set(args);
        let leave = self.suspect_block();
        let go_on = self.new_block();
        self.branch(set, leave, go_on);
        self.block = go_on;
    }

    /// The block that leaves with [`Status::Suspect`].
    pub(super) fn suspect_block(&mut self) -> ir::Block {
        match self.ctx.suspect {
            Some(block) => block,
            None => {
                let block = self.leave_block(Status::Suspect);
                self.ctx.suspect = Some(block);
                block
            }
        }
    }

    /// Clears the marks of the lanes of a store if any is set.
    pub(super) fn initialise(&mut self, check: RaceCheck, args: &[Value]) {
        let (operands, marks) = args.split_at(2 + usize::from(check.space.has_surface()));
        let set = self.any_set(marks);
        let (cold, go_on) = (self.new_cold_block(), self.new_block());
        self.branch(set, cold, go_on);
        self.side(cold, |e| {
            if let Some(call) = e.race_call(check, operands) {
                e.race_of_lanes(&call, operands, offset_of!(Helpers, initialise));
            }
            e.jump(go_on, &[]);
        });
        self.block = go_on;
    }

    /// Whether any bit of the values is set.
    fn any_set(&mut self, args: &[Value]) -> V {
        let (mut pieces, mut words) = (Vec::new(), Vec::new());
        for &v in args {
            let (ty, mut parts) = (self.ty(v), self.parts(v));
            if ty.is_scalar() {
                let part = parts[0];
                words.push(self.resize(part, types::I64));
                continue;
            }
            // What is after the last lane may hold anything.
            let tail = ty.bytes() % 16;
            let last = if tail == 0 { None } else { parts.pop() };
            let mut at = 0;
            for width in [8, 4, 2, 1] {
                let Some(last) = last.filter(|_| tail & width != 0) else {
                    continue;
                };
                let cast = self.cast_piece(last, int_lane(width));
                let word = self.ins().extractlane(cast, (at / width) as u8);
                debug_assert_eq!(scalar_type(int_lane(width)).bytes(), width);
                words.push(self.resize(word, types::I64));
                at += width;
            }
            for part in parts {
                pieces.push(self.cast(part, types::I8X16));
            }
        }
        let in_words = words
            .into_iter()
            .reduce(|all, word| self.ins().bor(all, word))
            .map(|all| self.ins().icmp_imm_u(IntCC::NotEqual, all, 0));
        let in_pieces = (!pieces.is_empty()).then(|| self.pieces_test(&pieces, false));
        match (in_words, in_pieces) {
            (Some(a), Some(b)) => self.ins().bor(a, b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => self.iconst(types::I8, 0),
        }
    }
}
