//! Checks of initialisation: compiled code finds out whether a launch uses anything that is not initialised. Only then can there be an error, and
//! the interpreter finds it.
//!
//! * Before each load, block load and atomic, the marks of what it reads are loaded in the same way, and [`Op::Suspect`] leaves the function if
//!   one is set. Lanes that are not enabled, or not inside, load no mark. For loads that only copy ([`copies`]), the marks are copied with the
//!   data.
//! * A store to memory of the group or the thread stores marks in the same way. They are clear, except those of values that depend on registers
//!   that were not written: copying these is no error.
//! * A store to device memory loads marks and clears them if one is set ([`Op::Initialise`]), so that marks take memory only where something was not
//!   initialised.
//! * Few values may depend on registers which were not written, or on such loads ([`unset`]). Which of their bits do is computed beside them
//!   ([`taint`]), and [`Op::Suspect`] leaves the function where such bits are used for anything but other values.
//!
//! Runs where [`super::PassOptions::check_init`] asks for it, after the optimisations, so that these see no marks, and code without checks is not
//! changed. Rectangles ([`Op::Load2d`]) have none of this: the runtime looks at their marks itself. Images count as initialised.

mod copies;
mod pointers;
mod taint;
mod unset;

use crate::ssa::dom::reverse_post_order;
use crate::ssa::{
    BinOp, Block, BlockAccess, Function, Input, Inst, Lane, MemAccess, Op, RaceAccess, RaceCheck,
    Space, Ty, Value,
};
use copies::has_marks_of_stores;
use taint::{Taint, Writer};
use unset::Dependent;

/// Elements of a store that says of register storage that it is not initialised.
const FILLED: u32 = 64;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let dependent = Dependent::new(f);
    let pointers = pointers::pointers(f);
    f.follows_pointers = pointers.followed;
    f.bases = pointers.bases;
    f.suspects = dependent.is_any() || has_own_memory(f);
    let taint = Taint::new(f, dependent);
    let order = reverse_post_order(f);
    let mut pass = Pass {
        taint,
        w: Writer {
            f,
            out: Vec::new(),
            line: 0,
            made: 0,
        },
    };
    for &b in &order {
        pass.block(b);
    }
    for b in pass.w.f.order.clone() {
        pass.branches(b);
    }
    let made = pass.w.made;
    replace_unset(f);
    made
}

/// Whether a function accesses memory that is not initialised when its group or thread starts.
fn has_own_memory(f: &Function) -> bool {
    let own = |&i: &Inst| match f.inst(i).op.elements() {
        Some((space, ..)) => has_marks_of_stores(space),
        None => false,
    };
    f.order.iter().flat_map(|&b| &f.block(b).insts).any(own)
}

struct Pass<'f> {
    taint: Taint,
    w: Writer<'f>,
}

/// Where an access goes: its mask, addresses, and surface.
struct MarkAddress {
    operands: Vec<Value>,
    marks: Space,
    site: u32,
}

impl Pass<'_> {
    fn block(&mut self, b: Block) {
        let insts = std::mem::take(&mut self.w.f.block_mut(b).insts);
        if b == Function::ENTRY && self.w.f.regs_bytes != 0 {
            self.fill_registers();
        }
        for i in insts {
            self.w.line = self.w.f.inst(i).line;
            self.suspect_uses(i);
            if self.w.f.inst(i).op == Op::Decide {
                continue;
            }
            self.check(i);
            self.w.out.push(i);
            self.taint.note(&mut self.w, i);
        }
        let term = &self.w.f.block(b).term;
        if let Some(bits) = term.condition().and_then(|v| self.taint.taint_of(v)) {
            self.w.line = self.w.f.block(b).term_line;
            self.w.emit(Op::Suspect, vec![bits], &[]);
        }
        self.w.f.block_mut(b).insts = std::mem::take(&mut self.w.out);
    }

    /// Completes the arguments of branches, once all of them are known.
    fn branches(&mut self, b: Block) {
        self.w.line = self.w.f.block(b).term_line;
        let mut further = Vec::new();
        for (n, call) in self.w.f.block(b).term.targets().into_iter().enumerate() {
            let params = &self.w.f.block(call.block).params;
            let pairs = params.iter().zip(&call.args);
            let wanted = pairs.filter(|(p, _)| self.taint.taint_of(**p).is_some());
            further.push((n, wanted.map(|(_, a)| *a).collect::<Vec<_>>()));
        }
        for (n, args) in further {
            for a in args {
                let bits = self.taint.or_none(&mut self.w, a);
                let mut targets = self.w.f.block_mut(b).term.targets_mut();
                if let Some(call) = targets.get_mut(n) {
                    call.args.push(bits);
                }
            }
        }
        let made = std::mem::take(&mut self.w.out);
        self.w.f.block_mut(b).insts.extend(made);
    }

    /// In front of an instruction with an effect: whether it uses registers that were not written.
    fn suspect_uses(&mut self, i: Inst) {
        let data = self.w.f.inst(i).clone();
        if !data.op.has_effect() {
            return;
        }
        let masked = data
            .args
            .first()
            .is_some_and(|&m| self.w.f.ty(m).lane == Lane::I1);
        // What is copied there is marked.
        let copied = match data.op {
            Op::Store(MemAccess { space, .. }) | Op::BlockStore(BlockAccess { space, .. }) => {
                has_marks_of_stores(space)
            }
            _ => false,
        };
        let used = if copied { 2 } else { data.args.len() };
        let mut found = Vec::new();
        for (n, &v) in data.args.iter().take(used).enumerate() {
            let Some(mut bits) = self.taint.taint_of(v) else {
                continue;
            };
            let mask = data.args[0];
            let [lanes, enabled] = [bits, mask].map(|v| self.w.f.ty(v).lanes);
            if masked && n > 0 && (enabled == 1 || lanes == enabled) {
                bits = self.w.enabled(mask, bits);
            }
            found.push(self.w.condition(bits));
        }
        if !found.is_empty() {
            self.w.emit(Op::Suspect, found, &[]);
        }
    }

    /// Storage of registers is marked whole when a thread starts. The marks lie behind it.
    fn fill_registers(&mut self) {
        self.w.line = 0;
        let bytes = self.w.f.regs_bytes;
        self.w.f.frame_bytes = self.w.f.frame_bytes.max(2 * bytes);
        let yes = self.w.same(Ty::scalar(Lane::I1), 1);
        let mut at = 0;
        while at < bytes {
            let (elem, n) = match (bytes - at) / 8 {
                0 => (Lane::I8, bytes - at),
                left => (Lane::I64, left.min(FILLED)),
            };
            let access = BlockAccess {
                space: Space::RegsMarks,
                elem,
                n: n as u16,
                site: 0,
            };
            let ones = self.w.same(Ty::vector(elem, access.n), u64::MAX);
            let place = self.w.same(Ty::I32, at.into());
            self.w
                .emit(Op::BlockStore(access), vec![yes, place, ones], &[]);
            at += n * elem.bytes();
        }
    }

    /// What looks at marks in front of an access.
    fn check(&mut self, i: Inst) {
        let data = self.w.f.inst(i).clone();
        let Some((space, elem, count, site)) = data.op.elements() else {
            return;
        };
        let Some(marks) = space.marks() else {
            return;
        };
        let head = 2 + usize::from(space.has_surface());
        let (operands, values) = data.args.split_at(head.min(data.args.len()));
        let place = MarkAddress {
            operands: operands.to_vec(),
            marks,
            site,
        };
        let block = matches!(data.op, Op::BlockLoad(_) | Op::BlockStore(_));
        match data.op {
            Op::Store(_) | Op::BlockStore(_) if has_marks_of_stores(space) => {
                self.store_marks(&place, (elem, count, block), values);
            }
            Op::Store(_) | Op::BlockStore(_) => {
                let mut args = place.operands.clone();
                args.extend(self.load_marks(&place, (elem, count, block)));
                let access = RaceCheck {
                    space,
                    elem,
                    count,
                    access: RaceAccess::Write,
                    block,
                    site,
                    pointer: None,
                };
                self.w.emit(Op::Initialise(access), args, &[]);
            }
            Op::Atomic(_) => {
                let place = self.rounded_down(place, elem);
                let read = self.load_marks(&place, (elem, count, block));
                self.w.emit(Op::Suspect, read, &[]);
            }
            _ => {
                let read = self.load_marks(&place, (elem, count, block));
                if self.taint.dependent.follows(i) {
                    let loaded = data.results.iter().zip(read);
                    loaded.for_each(|(&v, bits)| self.taint.is_loaded(v, bits));
                } else {
                    self.w.emit(Op::Suspect, read, &[]);
                }
            }
        }
    }

    /// Addresses as atomics take them.
    fn rounded_down(&mut self, mut place: MarkAddress, elem: Lane) -> MarkAddress {
        let ty = self.w.f.ty(place.operands[1]);
        let keep = self.w.same(ty, u64::from(elem.bytes()).wrapping_neg());
        let args = vec![place.operands[1], keep];
        place.operands[1] = self.w.emit(Op::Binary(BinOp::And), args, &[ty])[0];
        place
    }

    fn load_marks(
        &mut self,
        place: &MarkAddress,
        (elem, count, block): (Lane, u16, bool),
    ) -> Vec<Value> {
        let args = place.operands.clone();
        let (space, site) = (place.marks, place.site);
        if block {
            let n = count;
            let access = BlockAccess {
                space,
                elem,
                n,
                site,
            };
            return self
                .w
                .emit(Op::BlockLoad(access), args, &[Ty::vector(elem, n)]);
        }
        let lanes = self.w.f.ty(place.operands[1]).lanes;
        let access = MemAccess {
            space,
            elem,
            comps: count as u8,
            site,
        };
        let results = vec![Ty::vector(elem, lanes); count.into()];
        self.w.emit(Op::Load(access), args, &results)
    }

    fn store_marks(
        &mut self,
        place: &MarkAddress,
        (elem, count, block): (Lane, u16, bool),
        values: &[Value],
    ) {
        let (space, site) = (place.marks, place.site);
        let mut args = place.operands.clone();
        for &v in values {
            args.push(self.taint.or_none(&mut self.w, v));
        }
        let op = match block {
            true => Op::BlockStore(BlockAccess {
                space,
                elem,
                n: count,
                site,
            }),
            false => Op::Store(MemAccess {
                space,
                elem,
                comps: count as u8,
                site,
            }),
        };
        self.w.emit(op, args, &[]);
    }
}

/// Registers that were not written are zeros from here on.
fn replace_unset(f: &mut Function) {
    for b in f.order.clone() {
        for i in f.block(b).insts.clone() {
            if f.inst(i).op == Op::Input(Input::Unset) {
                let ty = f.ty(f.inst(i).results[0]);
                f.inst_mut(i).op = super::edit::const_op(ty, 0);
            }
        }
    }
}
