//! Loads that are done once for all threads of a run, in front of the loop over them.
//!
//! ```text
//! enter(s) -> inside? -> load .. -> join -> head(s)
//! ```
//!
//! In a state in which no thread writes local memory ([`State::keeps_local`](crate::backend::states::State)), a load at constant addresses
//! there has the same result in every thread. A tile of a matrix that all threads of the group multiply with then stays in registers.

use inkwell::basic_block::BasicBlock;
use inkwell::values::BasicValue;
use rustc_hash::FxHashMap;

use super::emit::{EmitResult, LlvmEmitter, V};
use super::versioning::InsideAddresses;
use crate::backend::access::{Access, AccessGroup, Root, StridedKind, Versions};
use crate::ssa::{Lane, Space};

/// What is loaded in front of a loop, to which more is added while its body is translated.
pub(super) struct Kept<'c> {
    /// The block that leads to the loop.
    last: BasicBlock<'c>,
    /// Vector registers that may still be taken.
    room: u32,
    /// The components of each load.
    loads: FxHashMap<Load, Vec<V<'c>>>,
}

/// A load that is done in front of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Load {
    /// The bytes whose test it is done under: where another test holds, it may not be done.
    tested: (i64, i64),
    /// Its first address.
    at: i64,
    /// An element, and how many of them a lane has.
    elements: (Lane, u8),
    lanes: u16,
    /// Bytes from lane to lane.
    stride: Option<i64>,
}

impl<'c> Kept<'c> {
    /// No loads yet. `block` leads to the loop and has no terminator; results may take `room` vector registers.
    pub(super) fn new(block: BasicBlock<'c>, room: u32) -> Kept<'c> {
        Kept {
            last: block,
            room,
            loads: FxHashMap::default(),
        }
    }

    /// The block that leads to the loop now.
    pub(super) const fn last_block(&self) -> BasicBlock<'c> {
        self.last
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    /// Does the loads of a group of accesses in front of the loop, as many as there is room for. To be called in the version in which the
    /// group is inside; where it is not, nothing is loaded.
    pub(super) fn keep_loads(
        &mut self,
        versions: &Versions,
        group: &AccessGroup,
    ) -> EmitResult<()> {
        if group.all.root != Root::Zero || group.all.space != Space::Slm {
            return Ok(());
        }
        let Some(kept) = &mut self.kept else {
            return Ok(());
        };
        let loads = versions.accesses.iter();
        let loads = loads.filter(|a| a.load && group.bounds(a.inst).is_some());
        let mut new: Vec<(Load, &Access)> = Vec::new();
        for a in loads.clone() {
            let load = Load::new(group, a);
            if kept.loads.contains_key(&load) || new.iter().any(|(other, _)| *other == load) {
                continue;
            }
            let left = registers(a, self.cpu.vectors).and_then(|n| kept.room.checked_sub(n));
            if let Some(left) = left {
                kept.room = left;
                new.push((load, a));
            }
        }
        let made = match new.is_empty() {
            true => Vec::new(),
            false => self.load_in_front(group, &new)?,
        };
        let kept = self.kept.as_mut().ok_or("no loop to load in front of")?;
        kept.loads.extend(made);
        for a in loads {
            if let Some(parts) = kept.loads.get(&Load::new(group, a)) {
                self.version.keep(a.inst, parts.clone());
            }
        }
        Ok(())
    }

    /// Loads in front of the loop if the group is inside; else the results are poison, which only code for a group that is inside reads.
    fn load_in_front(
        &mut self,
        group: &AccessGroup,
        loads: &[(Load, &Access)],
    ) -> EmitResult<Vec<(Load, Vec<V<'c>>)>> {
        let (inside, join) = (self.new_block(), self.new_block());
        let kept = self.kept.as_mut().ok_or("no loop to load in front of")?;
        let before = std::mem::replace(&mut kept.last, join);
        self.aside(before, |e| {
            let (ok, start) = e.group_inside(group)?;
            e.branch_likely(ok, inside, join, true)?;
            e.at(inside);
            let region = e.region(group.all.space, group.all.surface)?;
            let base = e.base(region)?;
            let start = e.resize(start, 64)?;
            let start = e.offset(base, e.as_int(start)?)?;
            let mut made = Vec::new();
            for (load, a) in loads {
                let at = e.offset_const(start, a.reach.at - group.all.from)?;
                made.push((*load, e.read_inside(a, InsideAddresses::Strided(at))?));
            }
            let inside = e.here()?;
            e.jump(join)?;
            e.at(join);
            for part in made.iter_mut().flat_map(|(_, parts)| parts) {
                let nothing = e.as_vector(*part)?.get_type().get_poison();
                let phi = e.b.build_phi(part.get_type(), "\0")?;
                phi.add_incoming(&[(&*part as &dyn BasicValue, inside), (&nothing, before)]);
                *part = phi.as_basic_value();
            }
            Ok(made)
        })
    }
}

impl Load {
    /// That of an access, under the test of its group.
    fn new(group: &AccessGroup, a: &Access) -> Load {
        Load {
            tested: (group.all.from, group.all.to),
            at: a.reach.at,
            elements: (a.access.elem, a.access.comps),
            lanes: a.lanes,
            stride: a.stride(),
        }
    }
}

/// How many vector registers of `bits` bits the results of a load take. None for loads that are not done in front of a loop.
fn registers(a: &Access, bits: u32) -> Option<u32> {
    use StridedKind as K;
    let strided = matches!(a.kind, K::Same | K::Packed | K::Run | K::Overlap);
    let each = (u32::from(a.lanes) * a.access.elem.bits()).div_ceil(bits);
    strided.then_some(each * u32::from(a.access.comps))
}
