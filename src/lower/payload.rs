//! Where `.input` variables come from.

use super::Lowerer;
use super::error::Fail;
use crate::module::{InputVar, VarId};
use crate::ssa::*;

/// What fills a byte of the thread's GRF payload (docs/visa.md, "Payload").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum InputSource {
    /// `r0`, from this byte.
    R0(u32),
    /// Local ids of dimension `dim` from lane `lane` on, 16-bit words.
    LocalIds {
        /// 0 x, 1 y, 2 z.
        dim: u8,
        /// First lane.
        lane: u8,
    },
    /// Cross-thread payload from this byte.
    Payload(u32),
    /// Nothing: reads as zero.
    Zero,
}

/// What is known about the local ids of a thread when code is made; part of the specialisation key.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum LocalIdShape {
    /// Nothing.
    #[default]
    General,
    /// The group has one dimension: the lanes of a thread have consecutive x, and y and z are 0.
    Row,
    /// The lanes of a thread have consecutive x and equal y and z, and every thread has all its lanes: the x size of every group is a
    /// multiple of the SIMD size.
    FullRow,
    /// The same in groups of one dimension, so that a thread's number gives its local ids.
    Full1d,
    /// Every thread has several whole rows of a given number of lanes, of consecutive y and equal z: the x size of every group is this
    /// part of the SIMD size, and the y size a multiple of the rows in a thread.
    ShortRows(u8),
    /// Every group has this x size, a power of two, and the z size 1, so that a thread's number gives its local ids. The lanes of a thread
    /// lie as for `FullRow`, or if the x size is below the SIMD size, as for `ShortRows`.
    Full2d(u16),
}

/// Where the local id of a thread's first lane comes from, in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstId {
    /// The thread's table of local ids.
    Table,
    /// It is 0.
    Zero,
    /// The thread's number in its group: as many low bits as `low` says, or all, shifted right by `right` and then left by `left`.
    Number {
        low: Option<u32>,
        right: u32,
        left: u32,
    },
}

impl LocalIdShape {
    /// The launches it is for, for people.
    pub const fn launches(self) -> &'static str {
        match self {
            LocalIdShape::General => "other launches",
            LocalIdShape::Row => "rows of local ids",
            LocalIdShape::FullRow => "full rows of local ids",
            LocalIdShape::Full1d => "full rows of local ids, groups of one dimension",
            LocalIdShape::Full2d(8) => "groups of 8 by any number of work-items",
            LocalIdShape::Full2d(16) => "groups of 16 by any number of work-items",
            LocalIdShape::Full2d(32) => "groups of 32 by any number of work-items",
            LocalIdShape::Full2d(64) => "groups of 64 by any number of work-items",
            LocalIdShape::Full2d(_) => "groups of two dimensions",
            LocalIdShape::ShortRows(8) => "rows of 8 local ids",
            LocalIdShape::ShortRows(16) => "rows of 16 local ids",
            LocalIdShape::ShortRows(_) => "short rows of local ids",
        }
    }

    /// Lanes of a row, where threads of `simd` lanes have several.
    pub const fn row(self, simd: u16) -> Option<u16> {
        match self {
            // A row of no lanes would be none.
            LocalIdShape::ShortRows(row) if row > 0 => Some(row as u16),
            LocalIdShape::Full2d(x) if x > 0 && x < simd => Some(x),
            _ => None,
        }
    }

    /// True if threads have all their lanes.
    const fn is_full(self) -> bool {
        !matches!(self, LocalIdShape::General | LocalIdShape::Row)
    }

    /// Where the local id of a thread's first lane comes from. SIMD sizes are powers of two.
    fn first(self, dim: u8, simd: u16) -> FirstId {
        let lanes = u32::from(simd).trailing_zeros();
        let number = |low, right, left| FirstId::Number { low, right, left };
        match (self, dim) {
            (LocalIdShape::General | LocalIdShape::FullRow | LocalIdShape::ShortRows(_), _)
            | (LocalIdShape::Row, 0) => FirstId::Table,
            (LocalIdShape::Full1d, 0) => number(None, 0, lanes),
            (LocalIdShape::Full2d(x), 0 | 1) => {
                let x = u32::from(x).trailing_zeros();
                let (threads, rows) = (x.saturating_sub(lanes), lanes.saturating_sub(x));
                match dim {
                    0 => number(Some(threads), 0, lanes),
                    _ => number(None, threads, rows),
                }
            }
            _ => FirstId::Zero,
        }
    }
}

/// The payload of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct PayloadMap {
    /// Source of each `.input`, in the order of `Module::inputs`.
    pub inputs: Vec<InputSource>,
    /// Shape of local ids.
    pub local_ids: LocalIdShape,
    /// Payload offset of the address of each symbol that `faddr` may ask for.
    pub symbols: std::collections::BTreeMap<String, u32>,
}

impl Lowerer<'_> {
    /// Lanes that exist.
    pub(super) fn dispatched(&mut self) -> Value {
        if self.payload.local_ids.is_full() {
            return self.b.vec_const(Lane::I1, vec![1; usize::from(self.simd)]);
        }
        let mask = Op::Input(Input::DispatchMask);
        self.b.op(mask, vec![], Ty::mask(self.simd))
    }

    /// Defines what is live at the start of a thread.
    pub(super) fn define_inputs(&mut self) -> Result<(), Fail> {
        let mask = self.dispatched();
        self.b.write(self.em, mask);
        self.define_predefined()?;
        let module = self.kernel.module();
        for (i, input) in module.inputs.iter().enumerate() {
            let InputVar::General(var) = input.var else {
                continue;
            };
            let source = self
                .payload
                .inputs
                .get(i)
                .copied()
                .unwrap_or(InputSource::Zero);
            let place = self.kernel.root_offset(var);
            let (lo, hi) = (place.offset, place.offset + input.size);
            let (shape, simd) = (self.payload.local_ids, self.simd);
            match source {
                InputSource::Zero => {}
                InputSource::Payload(at) => {
                    self.regs
                        .define_input(&mut self.b, place.root, lo, hi, |b, o, ty| {
                            b.op(Op::Input(Input::Payload(at + o)), vec![], ty)
                        })?;
                }
                InputSource::R0(at) => {
                    self.regs
                        .define_input(&mut self.b, place.root, lo, hi, |b, o, ty| {
                            r0(b, at + o, ty)
                        })?;
                }
                InputSource::LocalIds { dim, lane } => {
                    self.regs
                        .define_input(&mut self.b, place.root, lo, hi, |b, o, ty| {
                            let lane = u16::from(lane) + (o / 2) as u16;
                            let ids = Ids {
                                dim,
                                lane,
                                simd,
                                shape,
                            };
                            local_ids(b, ids, o % 2, ty)
                        })?;
                }
            }
        }
        Ok(())
    }

    fn define_predefined(&mut self) -> Result<(), Fail> {
        let bytes = |l: &Self, v: VarId| l.kernel.roots().get(v.0 as usize).map_or(0, |r| r.bytes);
        let define =
            |l: &mut Self, v: VarId, f: &dyn Fn(&mut super::build::Builder, u32, Ty) -> Value| {
                let (root, n) = (l.kernel.root_offset(v).root, bytes(l, v));
                l.regs.define_input(&mut l.b, root, 0, n, f)
            };
        define(self, VarId::R0, &r0)?;
        define(self, VarId::GROUP_ID_X, &|b, o, ty| r0(b, 4 + o, ty))?;
        define(self, VarId::GROUP_ID_Y, &|b, o, ty| r0(b, 24 + o, ty))?;
        define(self, VarId::GROUP_ID_Z, &|b, o, ty| r0(b, 28 + o, ty))?;
        define(self, VarId::SR0, &|b, o, ty| {
            dwords(b, ty, |b, k| {
                b.op(
                    Op::Input(Input::Sr0(((o / 4) as u16 + k) as u8)),
                    vec![],
                    Ty::I32,
                )
            })
        })?;
        if self.kernel.target().platform.eu_threads() != 0 {
            // Dword 0 is the number of the unit's group, as the runtime tells it; the others are not known.
            define(self, VarId::MSG0, &|b, o, ty| {
                dwords(b, ty, |b, k| match o / 4 + u32::from(k) {
                    0 => {
                        let sr0 = b.op(Op::Input(Input::Sr0(0)), vec![], Ty::I32);
                        b.bin_imm(BinOp::LShr, sr0, 8)
                    }
                    _ => b.i32(0),
                })
            })?;
        }
        define(self, VarId::HW_ID, &|b, _, ty| {
            dwords(b, ty, |b, _| b.op(Op::Input(Input::HwId), vec![], Ty::I32))
        })
    }
}

/// Builds a value of any type out of 32-bit words.
fn dwords(
    b: &mut super::build::Builder,
    ty: Ty,
    word: impl Fn(&mut super::build::Builder, u16) -> Value,
) -> Value {
    let n = ty.bytes().div_ceil(4) as u16;
    let mut all = word(b, 0);
    for k in 1..n {
        let w = word(b, k);
        all = b.concat(all, w);
    }
    if ty.bytes() < 4 {
        return b.resize(all, ty.lane, false);
    }
    b.bitcast(all, ty)
}

fn r0(b: &mut super::build::Builder, at: u32, ty: Ty) -> Value {
    if !at.is_multiple_of(4) {
        // Part of a dword.
        let word = b.op(Op::Input(Input::R0((at / 4) as u8)), vec![], Ty::I32);
        let v = b.bin_imm(BinOp::LShr, word, i64::from(at % 4 * 8));
        return b.resize(v, ty.lane, false);
    }
    dwords(b, ty, |b, k| {
        b.op(
            Op::Input(Input::R0((at / 4) as u8 + k as u8)),
            vec![],
            Ty::I32,
        )
    })
}

/// Local ids of a thread, in one dimension.
#[derive(Clone, Copy)]
struct Ids {
    dim: u8,
    /// First lane.
    lane: u16,
    /// Lanes of the thread; what is after them is zero.
    simd: u16,
    shape: LocalIdShape,
}

impl Ids {
    /// The first lane's.
    fn first(self, b: &mut super::build::Builder) -> Value {
        match self.shape.first(self.dim, self.simd) {
            FirstId::Table => {
                let input = Input::LocalId {
                    dim: self.dim,
                    lane: 0,
                };
                b.op(Op::Input(input), vec![], Ty::scalar(Lane::I16))
            }
            FirstId::Zero => b.bits(Lane::I16, 0),
            FirstId::Number { low, right, left } => {
                let mut id = b.op(Op::Input(Input::Thread), vec![], Ty::I32);
                if let Some(low) = low {
                    id = b.bin_imm(BinOp::And, id, (1 << low) - 1);
                }
                if right > 0 {
                    id = b.bin_imm(BinOp::LShr, id, right.into());
                }
                if left > 0 {
                    id = b.bin_imm(BinOp::Shl, id, left.into());
                }
                b.resize(id, Lane::I16, false)
            }
        }
    }

    /// What is known of each lane.
    fn constant(self, b: &mut super::build::Builder, lanes: u16, of: impl Fn(u16) -> u16) -> Value {
        let lanes = self.lane..self.lane + lanes;
        b.vec_const(Lane::I16, lanes.map(|lane| of(lane).into()).collect())
    }

    /// Those of a thread whose lanes lie in one row, or in whole ones.
    fn in_rows(self, b: &mut super::build::Builder, lanes: u16) -> Value {
        let v = match (self.dim, self.shape.row(self.simd)) {
            (0, None) => {
                let steps = self.constant(b, lanes, |lane| lane);
                let first = self.first(b);
                b.bin(BinOp::Add, first, steps)
            }
            (0, Some(row)) => self.constant(b, lanes, |lane| lane % row),
            (1, Some(row)) => {
                let rows = self.constant(b, lanes, |lane| lane / row);
                let first = self.first(b);
                b.bin(BinOp::Add, first, rows)
            }
            _ => {
                let first = self.first(b);
                b.splat(first, lanes)
            }
        };
        if self.lane + lanes <= self.simd {
            return v;
        }
        let there = self.constant(b, lanes, |lane| u16::from(lane < self.simd).wrapping_neg());
        b.bin(BinOp::And, v, there)
    }
}

/// Local ids as a value of any type. A single byte is byte `byte` of one.
fn local_ids(b: &mut super::build::Builder, ids: Ids, byte: u32, ty: Ty) -> Value {
    let lanes = (ty.bytes() / 2).max(1) as u16;
    let words = Ty::vector(Lane::I16, lanes);
    let (dim, lane) = (ids.dim, ids.lane as u8);
    let v = match ids.shape {
        LocalIdShape::General if lanes == 1 => {
            b.op(Op::Input(Input::LocalId { dim, lane }), vec![], words)
        }
        LocalIdShape::General => b.op(
            Op::Input(Input::LocalIds { dim, first: lane }),
            vec![],
            words,
        ),
        _ => ids.in_rows(b, lanes),
    };
    if ty.bytes() < 2 {
        let v = b.bin_imm(BinOp::LShr, v, i64::from(byte * 8));
        b.resize(v, ty.lane, false)
    } else {
        b.bitcast(v, ty)
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::Builder;
    use super::*;
    use crate::ssa::eval::{ElementAddr, Inputs, Memory, Outcome, Thread, run};

    /// No memory: only the thread's frame is written.
    struct Nothing;

    impl Memory for Nothing {
        fn load(&mut self, _: ElementAddr, _: u32) -> Option<u64> {
            None
        }

        fn store(&mut self, _: ElementAddr, _: u32, _: u64) {}

        fn atomic(&mut self, _: ElementAddr, _: u32, _: &mut dyn FnMut(u64) -> u64) -> Option<u64> {
            None
        }
    }

    /// What lowered code has for the local ids of a thread's lanes, where its table says nothing of use.
    fn lowered(shape: LocalIdShape, simd: u16, number: u32) -> Vec<[u16; 3]> {
        let mut b = Builder::new("ids", simd);
        let body = b.block();
        b.jump(body);
        b.switch_to(body);
        for dim in 0..3 {
            let ids = Ids {
                dim,
                lane: 0,
                simd,
                shape,
            };
            let v = local_ids(&mut b, ids, 0, Ty::vector(Lane::I16, simd));
            b.effect(Op::FrameStore(u32::from(dim) * 64), vec![v]);
        }
        b.ret();
        let f = b.finish(body, 192).unwrap();
        let inputs = Inputs {
            local_ids: [[0xdead; 32]; 3],
            thread: number,
            ..Inputs::default()
        };
        let mut thread = Thread::new(&f);
        assert_eq!(
            run(&f, &inputs, &mut thread, &mut Nothing, 1000),
            Outcome::Done
        );
        let id = |dim: usize, lane: usize| {
            let at = dim * 64 + 2 * lane;
            u16::from_le_bytes([thread.frame[at], thread.frame[at + 1]])
        };
        let lanes = 0..usize::from(simd);
        lanes
            .map(|lane| [0, 1, 2].map(|dim| id(dim, lane)))
            .collect()
    }

    #[test]
    fn a_threads_number_gives_its_local_ids() {
        for simd in [8u16, 16, 32] {
            for thread in (0..1024 / u32::from(simd)).step_by(5) {
                let ids = |x: u32| -> Vec<[u16; 3]> {
                    let first = thread * u32::from(simd);
                    let items = first..first + u32::from(simd);
                    items.map(|n| [(n % x) as u16, (n / x) as u16, 0]).collect()
                };
                assert_eq!(lowered(LocalIdShape::Full1d, simd, thread), ids(1024));
                for x in [8, 16, 32, 64] {
                    let ours = lowered(LocalIdShape::Full2d(x as u16), simd, thread);
                    assert_eq!(ours, ids(x), "SIMD{simd}, x size {x}, thread {thread}");
                }
            }
        }
    }
}
