//! Which loops compute each lane by itself, whatever the other lanes do.
//!
//! Lanes meet in branches on `maskany`. Where such a branch leaves the loop because no lane is left, a
//! strip leaves earlier than the whole. For that to show nowhere, its lanes must be *frozen*: from there
//! on, each vector that leaves the loop only changes by selects under masks that these lanes are not in.

use rustc_hash::FxHashSet;

use super::{Leaving, Loop, MAX_INSTS, PRESSURE, STRIP};
use crate::passes::edit::const_lanes;
use crate::ssa::dom::DomTree;
use crate::ssa::{
    BinOp, Block, BlockCall, Function, InstData, Lane, Op, Space, Term, Value, ValueDef,
};

/// How far chains of selects and conjunctions are followed.
const DEPTH: usize = 12;

/// A branch out of the loop when a mask is empty.
struct Drained<'a> {
    mask: Value,
    edge: &'a BlockCall,
}

/// What lanes that have left keep.
struct Frozen {
    live: Option<Value>,
    carriers: Vec<Value>,
}

/// What is to be made of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Copies for some of the lanes each. Lanes see each other's stores in program order, so loops have no memory accesses.
    Strips,
    /// Its last lanes run one by one. It may load, as nothing in it stores.
    Tail,
}

struct Check<'a> {
    purpose: Purpose,
    f: &'a Function,
    header: Block,
    blocks: &'a [Block],
    /// True for values made in the loop.
    inside: Vec<bool>,
    lanes: u16,
}

/// The loop of these blocks, header first, if its lanes may run apart and it gains by that; else why not.
pub(super) fn check(
    f: &Function,
    dom: &DomTree,
    blocks: Vec<Block>,
    purpose: Purpose,
) -> Result<Loop, &'static str> {
    let header = blocks[0];
    let insts: usize = blocks.iter().map(|&b| f.block(b).insts.len()).sum();
    if insts > MAX_INSTS || header == Function::ENTRY {
        return Err("the loop is too long to be copied");
    }
    let lanes = f.simd;
    if lanes <= STRIP || !lanes.is_multiple_of(STRIP) {
        return Err("a thread has no more lanes than a strip");
    }
    let check = Check::new(f, &blocks, purpose);
    if !check.lane_wise() {
        return Err("an operation of the loop accesses memory or mixes lanes");
    }
    if purpose == Purpose::Strips && check.pressure() < PRESSURE {
        return Err("the loop carries few vectors: nothing is gained");
    }
    if !check.used_inside_only(dom) {
        return Err("values of the loop are used behind it other than as they leave it");
    }
    let exits = check.exit_edges();
    let exit = exits.first().ok_or("nothing leaves the loop")?.block;
    if exits.iter().any(|e| e.block != exit) {
        return Err("the loop is left to different places");
    }
    let leaving = (0..f.block(exit).params.len())
        .map(|n| check.leaving(&exits, n))
        .collect::<Option<Vec<Leaving>>>()
        .ok_or("a scalar that the loop makes leaves it")?;
    let frozen = check
        .frozen(&exits, &leaving)
        .ok_or("lanes may change after they have left, while others go on")?;
    Ok(Loop {
        header,
        blocks,
        exit,
        lanes,
        leaving,
        live: frozen.live,
        carriers: frozen.carriers,
    })
}

/// True if lanes load from addresses that come from memory, as those of rows of a sparse matrix do: any other is likely affine, and one load
/// for all lanes.
pub(super) fn loads_where_loads_say(f: &Function, blocks: &[Block]) -> bool {
    Check::new(f, blocks, Purpose::Tail).loads_where_loads_say()
}

fn made_inside(f: &Function, blocks: &[Block]) -> Vec<bool> {
    let mut inside = vec![false; f.values.len()];
    for &b in blocks {
        let results = f.block(b).insts.iter().flat_map(|&i| &f.inst(i).results);
        for v in f.block(b).params.iter().chain(results) {
            inside[v.0 as usize] = true;
        }
    }
    inside
}

impl<'a> Check<'a> {
    fn new(f: &'a Function, blocks: &'a [Block], purpose: Purpose) -> Check<'a> {
        Check {
            purpose,
            f,
            header: blocks[0],
            inside: made_inside(f, blocks),
            blocks,
            lanes: f.simd,
        }
    }

    fn is_inside(&self, v: Value) -> bool {
        self.inside[v.0 as usize]
    }

    fn insts(&self) -> impl Iterator<Item = &'a InstData> + '_ {
        let blocks = self.blocks.iter();
        blocks.flat_map(|&b| self.f.block(b).insts.iter().map(|&i| self.f.inst(i)))
    }

    /// Every vector has the thread's lanes, and no operation mixes lanes or has an effect.
    fn lane_wise(&self) -> bool {
        let fits = |v: &Value| {
            let n = self.f.ty(*v).lanes;
            n == 1 || n == self.lanes
        };
        let params = self.blocks.iter().flat_map(|&b| &self.f.block(b).params);
        params.clone().all(fits)
            && self.insts().all(|data| {
                data.args.iter().chain(&data.results).all(fits) && self.op_is_lane_wise(data)
            })
            && self.blocks.iter().all(|&b| {
                let condition = self.f.block(b).term.condition();
                condition.is_none_or(|c| self.uniform(c) || self.any_of(c).is_some())
            })
    }

    fn op_is_lane_wise(&self, data: &InstData) -> bool {
        let lanes = |v: Value| self.f.ty(v).lanes;
        match &data.op {
            Op::Const(_)
            | Op::VecConst(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Fma
            | Op::Dot4(_)
            | Op::ICmp(_)
            | Op::FCmp(_)
            | Op::Select
            | Op::Convert(_)
            | Op::Splat
            | Op::FpEnv(_)
            | Op::Poll => true,
            Op::Load(m) => {
                let memory = matches!(m.space, Space::Flat | Space::Surface | Space::Slm);
                self.purpose == Purpose::Tail && memory
            }
            Op::Bitcast => lanes(data.args[0]) == lanes(data.results[0]),
            // Only as the condition of a branch, which is looked at by itself.
            Op::MaskAny => self.only_branches_on(data.results[0]),
            _ => false,
        }
    }

    fn only_branches_on(&self, v: Value) -> bool {
        let used = self.insts().any(|data| data.args.contains(&v));
        let passed = self.blocks.iter().any(|&b| {
            let targets = self.f.block(b).term.targets();
            targets.iter().any(|call| call.args.contains(&v))
        });
        !used && !passed
    }

    /// A scalar that does not depend on lanes: as `maskany` feeds branches alone, any other scalar is one.
    fn uniform(&self, v: Value) -> bool {
        self.any_of(v).is_none()
    }

    /// The mask of which `v` is `maskany`.
    fn any_of(&self, v: Value) -> Option<Value> {
        let data = self.f.def_inst(v)?;
        (data.op == Op::MaskAny && self.is_inside(v)).then(|| data.args[0])
    }

    /// 128-bit units of vectors that are carried around the loop or read from outside.
    fn pressure(&self) -> u32 {
        let mut seen: Vec<Value> = self.f.block(self.header).params.clone();
        for data in self.insts() {
            for &a in &data.args {
                if !self.is_inside(a) && const_lanes(self.f, a).is_none() && !seen.contains(&a) {
                    seen.push(a);
                }
            }
        }
        let units = |v: &Value| match self.f.ty(*v) {
            ty if ty.is_scalar() => 0,
            // Masks are as wide as what they select.
            ty if ty.lane == Lane::I1 => u32::from(ty.lanes) / 4,
            ty => ty.bytes() / 16,
        };
        seen.iter().map(units).sum()
    }

    fn loads_where_loads_say(&self) -> bool {
        let loads = self.insts().filter(|data| matches!(data.op, Op::Load(_)));
        let mut left: Vec<Value> = loads.filter_map(|data| data.args.get(1).copied()).collect();
        let mut seen = FxHashSet::default();
        while let Some(v) = left.pop() {
            let ty = self.f.ty(v);
            if ty.is_scalar() || ty.lane == Lane::I1 || !seen.insert(v) {
                continue;
            }
            match self.f.def(v) {
                ValueDef::Param(block, n) if self.blocks.contains(&block) => {
                    let blocks = self.f.order.iter();
                    let targets = blocks.flat_map(|&b| self.f.block(b).term.targets());
                    let given = targets.filter(|call| call.block == block);
                    left.extend(given.filter_map(|call| call.args.get(n as usize).copied()));
                }
                ValueDef::Result(..) => match self.f.def_inst(v) {
                    Some(data) if matches!(data.op, Op::Load(_)) => return true,
                    Some(data) if data.op.is_lane_wise() || data.op == Op::Bitcast => {
                        left.extend(&data.args);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        false
    }

    /// Nothing after the loop reads its values but through parameters.
    fn used_inside_only(&self, dom: &DomTree) -> bool {
        let outside = dom.rpo().iter().filter(|b| !self.blocks.contains(b));
        outside.copied().all(|b| {
            let block = self.f.block(b);
            let args = block.insts.iter().flat_map(|&i| &self.f.inst(i).args);
            let targets = block.term.targets();
            let passed = targets.iter().flat_map(|call| &call.args);
            let condition = block.term.condition();
            !args.chain(passed).any(|&v| self.is_inside(v))
                && !condition.is_some_and(|v| self.is_inside(v))
        })
    }

    fn edges(&self) -> impl Iterator<Item = (Block, &'a BlockCall)> + '_ {
        self.blocks.iter().flat_map(|&b| {
            let targets = self.f.block(b).term.targets();
            targets.into_iter().map(move |call| (b, call))
        })
    }

    fn exit_edges(&self) -> Vec<&'a BlockCall> {
        let leaves = |call: &&BlockCall| !self.blocks.contains(&call.block);
        self.edges().map(|(_, call)| call).filter(leaves).collect()
    }

    /// What leaves the loop as parameter `n` of the exit.
    fn leaving(&self, exits: &[&BlockCall], n: usize) -> Option<Leaving> {
        let first = exits[0].args[n];
        if !self.is_inside(first) && exits.iter().all(|e| e.args[n] == first) {
            return Some(Leaving::Outside(first));
        }
        (self.f.ty(first).lanes == self.lanes).then_some(Leaving::Vector)
    }

    /// What keeps that which leaves the loop, for lanes that are in no mask any more; `None` where something may not be kept.
    fn frozen(&self, exits: &[&'a BlockCall], leaving: &[Leaving]) -> Option<Frozen> {
        let drained = self.drained()?;
        if drained.is_empty() {
            let (live, carriers) = (None, Vec::new());
            return Some(Frozen { live, carriers });
        }
        let live = self.live_mask(&drained);
        let carrier = |(n, _): (usize, &Leaving)| {
            let live = live?;
            let params = self.f.block(self.header).params.iter().enumerate();
            let ty = self.f.ty(exits[0].args[n]);
            let mut carriers = params.filter(|&(_, &p)| self.f.ty(p) == ty);
            let found = carriers.find(|&(k, &p)| self.carries(exits, &drained, live, n, k, p))?;
            Some(*found.1)
        };
        let vectors = leaving.iter().enumerate();
        let vectors = vectors.filter(|&(_, &l)| l == Leaving::Vector);
        let carriers = vectors.map(carrier).collect::<Option<_>>()?;
        Some(Frozen { live, carriers })
    }

    /// Branches on empty masks; `None` where one goes anywhere but out of the loop.
    fn drained(&self) -> Option<Vec<Drained<'a>>> {
        let mut out = Vec::new();
        for &b in self.blocks {
            let Term::Branch { cond, then, other } = &self.f.block(b).term else {
                continue;
            };
            let Some(mask) = self.any_of(*cond) else {
                continue;
            };
            if !self.blocks.contains(&then.block) || self.blocks.contains(&other.block) {
                return None;
            }
            out.push(Drained { mask, edge: other });
        }
        Some(out)
    }

    /// The header's parameter that contains every tested mask and only loses lanes: once a lane is in
    /// none of the tested masks, it never comes back.
    fn live_mask(&self, drained: &[Drained<'_>]) -> Option<Value> {
        let params = self.f.block(self.header).params.iter().enumerate();
        let mut masks = params.filter(|&(_, &p)| self.f.ty(p).lane == Lane::I1);
        let found = masks.find(|&(n, &p)| {
            drained.iter().all(|d| {
                self.within(d.mask, p, DEPTH)
                    && self
                        .back_edges()
                        .all(|e| self.within(e.args[n], d.mask, DEPTH))
            })
        });
        found.map(|(_, &p)| p)
    }

    fn back_edges(&self) -> impl Iterator<Item = &'a BlockCall> + '_ {
        let back = |call: &&BlockCall| call.block == self.header;
        self.edges().map(|(_, call)| call).filter(back)
    }

    /// Parameter `p`, number `k`, of the header carries what leaves as number `n` of the exit.
    fn carries(
        &self,
        exits: &[&BlockCall],
        drained: &[Drained<'_>],
        live: Value,
        n: usize,
        k: usize,
        p: Value,
    ) -> bool {
        let later: Vec<Value> = self
            .back_edges()
            .map(|e| e.args[k])
            .chain(exits.iter().map(|e| e.args[n]))
            .collect();
        // Lanes not alive at the start of an iteration keep the parameter.
        later.iter().all(|&v| self.keeps(v, p, live, DEPTH))
            // Lanes that a test found gone have by then what they have later.
            && drained.iter().all(|d| {
                let now = d.edge.args[n];
                later.iter().all(|&v| {
                    self.keeps(v, now, d.mask, DEPTH) || self.keeps(now, v, d.mask, DEPTH)
                })
            })
    }

    /// Outside of `mask`, `v` is `old`: it is made from it by selects under masks within `mask`, or is a mask that gets lanes of `mask`.
    fn keeps(&self, v: Value, old: Value, mask: Value, depth: usize) -> bool {
        if v == old {
            return true;
        }
        match self.f.def_inst(v) {
            Some(data) if data.op == Op::Select && depth > 0 => {
                self.within(data.args[0], mask, DEPTH)
                    && self.keeps(data.args[2], old, mask, depth - 1)
            }
            Some(data) if data.op == Op::Binary(BinOp::Or) && depth > 0 => {
                let (a, b) = (data.args[0], data.args[1]);
                let added = |added, kept| {
                    self.within(added, mask, DEPTH) && self.keeps(kept, old, mask, depth - 1)
                };
                // Loops that strips were measured to gain in carry no such masks; a loop around a division, which does, loses by them.
                let mask_grows = added(a, b) || added(b, a);
                self.purpose == Purpose::Tail && self.f.ty(v).lane == Lane::I1 && mask_grows
            }
            _ => false,
        }
    }

    /// No lane of `a` is outside of `b`.
    fn within(&self, a: Value, b: Value, depth: usize) -> bool {
        if a == b {
            return true;
        }
        match self.f.def(a) {
            ValueDef::Result(..) => self.f.def_inst(a).is_some_and(|data| {
                depth > 0
                    && data.op == Op::Binary(BinOp::And)
                    && data.args.iter().any(|&x| self.within(x, b, depth - 1))
            }),
            _ => false,
        }
    }
}
