//! How a check of lanes against the buffers of device memory is done, and what a check of races is told of its lanes.
//!
//! The usual way compares the lanes with the bounds of the buffer that their pointer points into. If that buffer is not known, or
//! the lanes are not in it, the check reads the shadow of all bytes that they reach ([`shadow`]). Either way is one test where
//! the lanes are known to be affine, else a test for each lane. The runtime looks exactly at what fails the test.

use super::group::{self, Root};
use super::how::{By, Decider};
use super::local_shape::Sum;
use super::scaled::Scaled;
use super::{AtHand, consts};
use crate::backend::fault_records::{FaultRecords, first_lane};
use crate::backend::race;
use crate::backend::shadow::{self, LaneShadow};
use crate::ssa::{
    BinOp, BufferCheck, Function, Inst, MemAccess, Op, RaceAccess, RaceCheck, Space, Value,
};
use visa_runtime::abi::race::{Step as ReadStep, reads};

/// How the lanes of a check are spaced, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) enum Spacing {
    /// There is one.
    One,
    /// Affine, as the function's table says.
    Table,
    /// Affine, as local ids are tested once a thread, or it is plain.
    Local(Box<Sum>),
    /// Probably side by side, which is tested.
    Beside(Scaled),
}

impl By {
    /// How lanes are spaced that are surely affine.
    fn certain(self) -> Option<Spacing> {
        match self {
            By::Table => Some(Spacing::Table),
            By::Local(sum) => Some(Spacing::Local(sum)),
            By::Speculation(_) => None,
        }
    }
}

/// Bytes that one test of the shadow covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) struct CheckSpan {
    /// How the lanes are spaced.
    pub spacing: Spacing,
    /// Distance of the lowest byte from lane 0's address.
    pub lowest: i64,
    /// Bytes from the lowest to the highest.
    pub bytes: u64,
    /// Where in the payload the pointer stands that the addresses are computed from, if that is known. The buffer that it points into most
    /// likely has all bytes.
    pub pointer: Option<u32>,
}

impl CheckSpan {
    /// Lanes that are affine, as the function's table says, if one test covers them.
    fn by_table(f: &Function, inst: Inst) -> Option<CheckSpan> {
        let affine = f.shapes.get(&inst)?.addr?;
        CheckSpan::new(f, inst, affine.stride, Spacing::Table)
    }

    fn new(f: &Function, inst: Inst, stride: i64, spacing: Spacing) -> Option<CheckSpan> {
        let (check, count) = check_of(f, inst)?;
        let (lowest, bytes) = shadow::span(stride, count, shadow::lane_bytes(check))?;
        Some(CheckSpan {
            spacing,
            lowest,
            bytes,
            pointer: pointer_of(f, inst),
        })
    }

    /// False where the lanes are probably elsewhere if the test fails.
    pub(in crate::backend) const fn is_certain(&self) -> bool {
        !matches!(self.spacing, Spacing::Beside(_))
    }
}

/// What a test in front of versions says of a check that the fast version then does without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) enum CheckInFront {
    /// All bytes are in buffers.
    Buffer(BufferCheck, CheckSpan),
    /// All lanes are aligned: this scalar is false, without which none can be misaligned.
    Aligned(Value),
}

impl CheckInFront {
    /// For a check whose lanes are affine, or are aligned as one is.
    pub(super) fn of(f: &Function, inst: Inst) -> Option<CheckInFront> {
        let data = f.inst(inst);
        let definition = |v: Value, op: &Op| f.def_inst(v).filter(|data| data.op == *op);
        match data.op {
            Op::CheckBuffer(check) => {
                let span = CheckSpan::by_table(f, inst)?;
                Some(CheckInFront::Buffer(check, span))
            }
            Op::CheckAligned(_) => {
                let odd = definition(data.args[0], &Op::Binary(BinOp::And))?;
                let odd = definition(odd.args[1], &Op::Splat)?;
                Some(CheckInFront::Aligned(odd.args[0]))
            }
            _ => None,
        }
    }

    /// What the test reads that the access does not.
    pub(super) const fn operand(&self) -> Option<Value> {
        match self {
            CheckInFront::Buffer(..) => None,
            CheckInFront::Aligned(odd) => Some(*odd),
        }
    }
}

/// How a check is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) struct CheckHow {
    /// The test of all lanes, if there is one.
    pub span: Option<CheckSpan>,
    /// Where in the payload the pointer stands that the lanes' addresses are computed from, if that is known where no certain test covers all of
    /// them. The buffer that it points into most likely has them all.
    pub pointer: Option<u32>,
    /// How the shadow of each lane is read where no certain test covers all of them; `None` where the runtime looks at once.
    pub each: Option<LaneShadow>,
}

/// How the lanes of a check of races are spaced, which then are not handed on one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) struct AffineRace {
    /// How, and why.
    pub spacing: Spacing,
    /// Bytes from lane to lane.
    pub stride: i64,
    /// A check after it, of a read by other lanes at the same addresses, which is done with this one. It was not merged of several.
    pub twin: Option<RaceCheck>,
    /// Checks after it, of reads at equal distances, which are done with this one.
    pub reads: Option<RaceReads>,
}

/// Reads by as many lanes, with the same stride and execution mask, at equal distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) struct RaceReads {
    /// From each to the next, as the runtime is told of those that are entered: the twin where there is one.
    pub step: ReadStep,
    /// Those after the first, each with its twin.
    pub others: Vec<(RaceCheck, Option<RaceCheck>)>,
}

impl RaceReads {
    /// Distance of the n-th read after the first from it.
    pub(in crate::backend) fn distance(&self, n: i64) -> i64 {
        i64::from(self.step.distance) * n
    }

    /// Operand `reads` of the runtime's helper.
    pub(in crate::backend) fn operand(&self) -> u64 {
        reads(self.others.len() as u8 + 1, self.step)
    }
}

/// Instructions among which the twin of a check is looked for.
const TWIN_DISTANCE: usize = 6;

/// Instructions among which the next check at an equal distance is looked for.
const NEXT_DISTANCE: usize = 16;

/// Most reads that are done with one call.
const MOST_READS: usize = 32;

/// Whether a check of a read may be done before an instruction that it comes after: nothing that other threads see happens there.
fn may_be_early(f: &Function, inst: Inst) -> bool {
    match f.inst(inst).op {
        Op::Load(_) | Op::CheckBuffer(_) | Op::Suspect => true,
        ref op => !op.has_effect(),
    }
}

/// A check of the same read by other lanes of the thread at the same addresses, as rows of a group make them, with nothing
/// between the two that other threads see.
pub(super) fn race_twin(f: &Function, inst: Inst, after: &[Inst]) -> Option<(Inst, RaceCheck)> {
    let data = f.inst(inst);
    let near = after.iter().copied().take(TWIN_DISTANCE);
    let mut others = near.skip_while(|&other| may_be_early(f, other));
    let twin = others.next()?;
    let other = f.inst(twin);
    let (Op::CheckRace(first), Op::CheckRace(second)) = (&data.op, &other.op) else {
        return None;
    };
    let lanes = f.ty(data.args[1]).lanes;
    let same = RaceCheck {
        site: first.site,
        ..*second
    };
    let alone = |check: &RaceCheck| FaultRecords::new(f, check.site, lanes).parts.len() == 1;
    let fits = first.access == RaceAccess::Read
        && same == *first
        && data.args == other.args
        && alone(first)
        && alone(second);
    fits.then_some((twin, *second))
}

/// A check of a read whose lanes are surely affine, as the function's table says, and its twin.
struct AffineRead {
    check: RaceCheck,
    twin: Option<(Inst, RaceCheck)>,
    /// Lane 0's address, as a distance from something.
    base: (Root, i64),
    stride: i64,
    /// Instructions up to the twin, or the check itself.
    end: usize,
}

impl AffineRead {
    /// The first one of some instructions.
    fn first(f: &Function, insts: &[Inst], distance: usize) -> Option<(Inst, AffineRead)> {
        let near = insts.iter().take(distance);
        let at = near.clone().position(|&i| !may_be_early(f, i))?;
        let (&inst, after) = insts.get(at..)?.split_first()?;
        let data = f.inst(inst);
        let Op::CheckRace(check) = data.op else {
            return None;
        };
        let affine = f.shapes.get(&inst)?.addr?;
        let size = i64::from(check.elem.bytes()) * i64::from(check.count);
        let lanes = f.ty(data.args[1]).lanes;
        let usual = check.access == RaceAccess::Read
            && affine.guard.is_none()
            && (affine.stride == 0 || affine.stride == size)
            && FaultRecords::new(f, check.site, lanes).parts.len() == 1;
        if !usual {
            return None;
        }
        let twin = race_twin(f, inst, after);
        let length = twin.and_then(|(twin, _)| after.iter().position(|&i| i == twin));
        let read = AffineRead {
            check,
            twin,
            base: group::root(f, affine.base, |_| true),
            stride: affine.stride,
            end: at + length.map_or(1, |length| length + 2),
        };
        Some((inst, read))
    }

    /// The check that is entered.
    fn entered(&self) -> RaceCheck {
        self.twin.map_or(self.check, |(_, twin)| twin)
    }

    /// What one read is more than another, if one call can do both.
    fn step_from(&self, f: &Function, before: &AffineRead) -> Option<ReadStep> {
        let alike = RaceCheck {
            site: before.check.site,
            ..self.check
        } == before.check
            && self.twin.is_some() == before.twin.is_some()
            && (self.stride, self.base.0) == (before.stride, before.base.0);
        let [new, old] = [self, before].map(|read| read.entered().site);
        let lane = |site| i64::from(first_lane(f, site));
        let step = ReadStep {
            site: i16::try_from(i64::from(new) - i64::from(old)).ok()?,
            lane: i8::try_from(lane(new) - lane(old)).ok()?,
            distance: i32::try_from(self.base.1.checked_sub(before.base.1)?).ok()?,
        };
        alike.then_some(step)
    }
}

/// Checks of reads after one, which one call of the runtime may enter with it, and their instructions with those of their twins.
pub(super) fn race_reads(f: &Function, insts: &[Inst]) -> Option<(RaceReads, Vec<Inst>)> {
    let (first, mut before) = AffineRead::first(f, insts, 1)?;
    let args = |inst: Inst| {
        let args = f.inst(inst).args.as_slice();
        (mask_of(f, args[0]), args.get(2..))
    };
    let (mut reads, mut done): (Option<RaceReads>, _) = (None, Vec::new());
    let mut rest = insts.get(before.end..)?;
    while let Some((inst, read)) = AffineRead::first(f, rest, NEXT_DISTANCE)
        && args(inst) == args(first)
        && f.ty(f.inst(inst).args[1]) == f.ty(f.inst(first).args[1])
        && let Some(step) = read.step_from(f, &before)
    {
        let reads = reads.get_or_insert(RaceReads {
            step,
            others: Vec::new(),
        });
        if step != reads.step || reads.others.len() + 1 == MOST_READS {
            break;
        }
        reads
            .others
            .push((read.check, read.twin.map(|(_, twin)| twin)));
        done.push(inst);
        done.extend(read.twin.map(|(twin, _)| twin));
        rest = rest.get(read.end..)?;
        before = read;
    }
    Some((reads?, done))
}

/// A mask, or the bits of a constant one.
fn mask_of(f: &Function, mask: Value) -> Result<u64, Value> {
    consts::mask(f, mask).ok_or(mask)
}

impl AffineRace {
    /// Distance of the lowest byte from lane 0's address, and bytes to the highest, of the lanes of the check and of all reads that are done with it;
    /// `None` where lanes are farther apart than addresses are.
    pub(in crate::backend) fn reach(&self, check: RaceCheck, lanes: u16) -> Option<(i64, u64)> {
        let (lowest, bytes) = shadow::reach(self.stride, lanes, race::lane_bytes(check))?;
        let last = self.reads.as_ref();
        let last = last.map_or(0, |reads| reads.distance(reads.others.len() as i64));
        let lowest = lowest.checked_add(last.min(0))?;
        Some((lowest, bytes.checked_add(last.unsigned_abs())?))
    }

    /// That of an instruction, if it is a check of races and its lanes are known to be affine.
    pub(super) fn of(
        f: &Function,
        inst: Inst,
        decider: &Decider,
        at_hand: AtHand,
    ) -> Option<AffineRace> {
        let data = f.inst(inst);
        let Op::CheckRace(_) = data.op else {
            return None;
        };
        let (stride, spacing) = match f.ty(data.args[1]).lanes {
            1 => (0, Spacing::One),
            _ => {
                let (stride, by) = decider.affine(inst, at_hand)?;
                (stride, by.certain()?)
            }
        };
        Some(AffineRace {
            spacing,
            stride,
            twin: None,
            reads: None,
        })
    }
}

/// Decides how the checks of a function are done.
pub(super) struct BufferChecks<'a> {
    f: &'a Function,
    /// Those of lanes at any addresses are few, so that they may take more code.
    few: bool,
}

impl<'a> BufferChecks<'a> {
    pub(super) fn new(f: &'a Function) -> BufferChecks<'a> {
        BufferChecks {
            f,
            few: shadow::few(f),
        }
    }

    /// How an instruction is done, if it is a check.
    pub(super) fn how(&self, inst: Inst, decider: &Decider, at_hand: AtHand) -> Option<CheckHow> {
        let (check, count) = check_of(self.f, inst)?;
        let span = match count {
            1 => CheckSpan::new(self.f, inst, 0, Spacing::One),
            _ => self
                .affine(inst, decider, at_hand)
                .or_else(|| self.beside(inst, check, decider, at_hand)),
        };
        let any = !span.as_ref().is_some_and(CheckSpan::is_certain);
        let each = LaneShadow::new(check).filter(|_| any && self.few);
        let pointer = pointer_of(self.f, inst).filter(|_| any && self.few);
        Some(CheckHow {
            span,
            pointer,
            each,
        })
    }

    /// Lanes that are affine.
    fn affine(&self, inst: Inst, decider: &Decider, at_hand: AtHand) -> Option<CheckSpan> {
        let (stride, by) = decider.affine(inst, at_hand)?;
        CheckSpan::new(self.f, inst, stride, by.certain()?)
    }

    /// Lanes that are tested for being side by side, as the access after the check tests them.
    fn beside(
        &self,
        inst: Inst,
        check: BufferCheck,
        decider: &Decider,
        at_hand: AtHand,
    ) -> Option<CheckSpan> {
        let access = MemAccess {
            space: Space::Flat,
            elem: check.elem,
            comps: u8::try_from(check.count).ok()?,
            site: check.site,
        };
        let scaled = decider.speculation(inst, access, at_hand).flatten();
        let scaled = scaled.filter(|_| decider.speculates_by_base())?;
        let stride = check.elem.bytes().into();
        let span = CheckSpan::new(self.f, inst, stride, Spacing::Beside(scaled));
        span.filter(|_| !check.aligned)
    }
}

/// Where in the payload the pointer stands that the addresses of a check are computed from.
fn pointer_of(f: &Function, inst: Inst) -> Option<u32> {
    let pointer = f.pointer_in_payload(f.inst(inst).args[1]);
    pointer.filter(|at| at.is_multiple_of(8))
}

/// What a check looks for, and its lanes.
fn check_of(f: &Function, inst: Inst) -> Option<(BufferCheck, u16)> {
    let data = f.inst(inst);
    match data.op {
        Op::CheckBuffer(check) => Some((check, f.ty(data.args[1]).lanes)),
        _ => None,
    }
}
