//! What a launch's code was made from and why it is as it is: for tools that show it, and counts of it.
//!
//! Everything here is made anew, by the same steps as the code that runs, and is neither taken from a cache nor put there.

use super::error::Error;
use super::kernel::Kernel;
use super::launch::Launch;
use crate::backend::{
    CodeObject, OobPolicy, PlanLine, RuntimeCall, StackUse, explain_calls, or_plainer,
};
use crate::lower::LocalIdShape;
use crate::ssa::remark::{BoundsTest, Decision, Way, Why};
use crate::ssa::{self, Inst, Line, Op, Remark};

/// The code that a launch runs, the IR that it was made from, and what was decided on the way.
#[derive(Clone, Debug)]
pub struct Specialised {
    launches: &'static str,
    ssa: ssa::Function,
    object: CodeObject,
    remarks: Vec<Remark>,
    plan: Vec<PlanLine>,
    calls: Vec<RuntimeCall>,
    stack: StackUse,
}

/// A memory access of the IR, and how it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReport {
    /// Line of vISA.
    pub line: u32,
    /// Lines of the upper lanes, where accesses of several instructions were made one.
    pub upper_lines: Vec<u32>,
    /// Its instruction there.
    pub opcode: &'static str,
    /// The operation of the IR, for example `load.surface.i32x1`.
    pub op: String,
    /// Lanes of it.
    pub lanes: u16,
    /// How its addresses run over the lanes.
    pub shape: AddressShape,
    /// Why that is known, or not; none for scalars and blocks, of which nothing has to be found out.
    pub why: Option<Why>,
    /// The code.
    pub way: Way,
    /// How it is kept inside of memory.
    pub bounds: BoundsTest,
}

/// How the addresses of an access run over its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressShape {
    /// There is one.
    Scalar,
    /// Consecutive elements from one address.
    Block,
    /// All lanes have the same.
    Uniform,
    /// One record after the other.
    Contiguous,
    /// This many bytes from lane to lane.
    Strided(i64),
    /// Nothing is known.
    Arbitrary,
}

impl AddressShape {
    /// Name.
    pub const fn name(self) -> &'static str {
        match self {
            AddressShape::Scalar => "scalar",
            AddressShape::Block => "block",
            AddressShape::Uniform => "uniform",
            AddressShape::Contiguous => "contiguous",
            AddressShape::Strided(_) => "strided",
            AddressShape::Arbitrary => "arbitrary",
        }
    }
}

impl Kernel {
    /// Makes the code that a launch runs once more, together with what it is made from; without a launch, the code for
    /// launches of any shape.
    ///
    /// # Errors
    /// When the kernel cannot be lowered or compiled.
    pub fn specialised(&self, launch: Option<&Launch>) -> Result<Specialised, Error> {
        let shape = launch.map_or(LocalIdShape::General, |launch| self.groups_of(launch).1);
        let oob = launch.map_or(OobPolicy::default(), |launch| launch.oob);
        let backend = self.parts().engine.0.backend.as_ref();
        let ssa = self.optimised(shape, backend, oob)?;
        let codegen = self.codegen(oob);
        let (made, _) = or_plainer(backend, &codegen, |o| backend.explain(&ssa, o))?;
        let lines = made.object.lines.with_source(self.sources()?);
        let plan = made.plan.as_ref().map(|plan| plan.lines(&ssa));
        let calls = made
            .plan
            .as_ref()
            .map(|plan| explain_calls(&ssa, plan, &made.calls));
        Ok(Specialised {
            launches: shape.launches(),
            ssa,
            object: CodeObject {
                lines,
                ..made.object
            },
            remarks: made.remarks,
            plan: plan.unwrap_or_default(),
            calls: calls.unwrap_or_default(),
            stack: made.stack,
        })
    }
}

impl Specialised {
    /// The launches that this code is for.
    pub fn launches(&self) -> &'static str {
        self.launches
    }

    /// The IR after the passes.
    pub fn ssa(&self) -> &ssa::Function {
        &self.ssa
    }

    /// The IR after the passes, line by line, with the lines of vISA that they came from.
    pub fn ssa_lines(&self) -> Vec<Line> {
        self.ssa.lines()
    }

    /// Instructions of the IR.
    pub fn instructions(&self) -> usize {
        let blocks = self.ssa.order.iter();
        blocks.map(|&b| self.ssa.block(b).insts.len()).sum()
    }

    /// Machine code with its line table.
    pub fn object(&self) -> &CodeObject {
        &self.object
    }

    /// What tells spills from other accesses to the stack.
    pub fn stack(&self) -> &StackUse {
        &self.stack
    }

    /// What passes decided, then the code generator.
    pub fn remarks(&self) -> impl Iterator<Item = &Remark> {
        self.ssa.remarks.iter().chain(&self.remarks)
    }

    /// How the code generator was told to do lane-wise loads and stores, in the order of the code: a line for each, and one for each
    /// part of a block with two versions.
    pub fn plan(&self) -> &[PlanLine] {
        &self.plan
    }

    /// Calls of the runtime that the code has, by line: as the code generator made them, before dead code is left out.
    pub fn calls(&self) -> &[RuntimeCall] {
        &self.calls
    }

    /// Every memory access, in the order of the IR.
    pub fn accesses(&self) -> Vec<AccessReport> {
        let insts = self
            .ssa
            .order
            .iter()
            .flat_map(|&b| &self.ssa.block(b).insts);
        insts.filter_map(|&i| self.access(i)).collect()
    }

    fn access(&self, inst: Inst) -> Option<AccessReport> {
        let about = self.remarks().filter(|r| r.inst == Some(inst));
        let (mut done, mut found) = (None, None);
        for remark in about {
            match remark.decision {
                Decision::Access { way, bounds } => done = Some((way, bounds)),
                Decision::Addresses { stride, why } => found = Some((stride, why)),
                _ => {}
            }
        }
        let (way, bounds) = done?;
        let data = self.ssa.inst(inst);
        let lanes = data.args.get(1).map_or(1, |&v| self.ssa.ty(v).lanes);
        let record = match &data.op {
            Op::Load(m) | Op::Store(m) => m.elem.bytes() * u32::from(m.comps),
            Op::Atomic(m) => m.elem.bytes(),
            _ => 0,
        };
        let shape = match (&data.op, found) {
            (Op::BlockLoad(_) | Op::BlockStore(_) | Op::Load2d(_) | Op::Store2d(_), _) => {
                AddressShape::Block
            }
            _ if lanes == 1 => AddressShape::Scalar,
            (_, Some((Some(0), _))) => AddressShape::Uniform,
            (_, Some((Some(stride), _))) if stride == i64::from(record) => AddressShape::Contiguous,
            (_, Some((Some(stride), _))) => AddressShape::Strided(stride),
            _ => AddressShape::Arbitrary,
        };
        let site = data
            .op
            .site()
            .and_then(|site| self.ssa.sites.get(site as usize));
        let sites = |site| self.ssa.sites_of_lanes(site, lanes);
        let parts = data.op.site().map(sites).unwrap_or_default();
        let part = |&(part, _): &(u32, u32)| self.ssa.sites.get(part as usize);
        let mut lines = parts.iter().filter_map(part).map(|site| site.line);
        Some(AccessReport {
            line: lines.next().unwrap_or(data.line),
            upper_lines: lines.collect(),
            opcode: site.map_or("", |site| site.opcode),
            op: self.ssa.op_name(inst),
            lanes,
            shape,
            why: found.map(|(_, why)| why),
            way,
            bounds,
        })
    }
}
