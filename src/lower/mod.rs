//! vISA to SSA.
//!
//! Guarantees: the function computes what the reference semantics say for every lane,
//! register variables are SSA values (only variables whose address is taken stay in memory), masks
//! are values, divergence is explicit branches. Does not optimise: dead code, repeated work and
//! selects that nothing can observe are left to `passes`.
//!
//! Lowering runs twice over the program: once to record how registers are accessed (`cells`),
//! once to emit.

mod alu;
mod barrier;
mod block2d;
mod build;
mod cells;
mod control;
mod convert;
mod dpas;
mod error;
mod float_arith;
mod flow;
mod fpmode;
mod groups;
mod image;
mod int_arith;
mod logic;
mod lsc;
mod math;
mod mem;
mod operand;
mod payload;
mod recursion;
mod regs;
mod small_float;
mod svm;
mod variables;
mod waiting;
mod wide;

pub use error::LowerError;
pub use payload::{InputSource, LocalIdShape, PayloadMap};

use build::Builder;
use cells::Recorder;
use control::Control;
use error::Fail;
use flow::Flow;
use fpmode::Cr0;
use regs::RegFile;
use variables::Var;

use crate::isa::{Opcode, Status};
use crate::limits::{MAX_BLOCK_PARAMS, MAX_BLOCKS, MAX_SSA_VALUES, POLL_EVERY};
use crate::module::{Body, Inst, PredId, SurfaceId};
use crate::ssa::{Block, Function, Lane, Op, Ty, Value};
use crate::valid::ValidKernel;

/// What lowering adds to what a kernel says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// Checks of barriers ([`Op::CheckBarrier`]): only lowering knows which lanes are enabled there.
    pub check_barriers: bool,
    /// Registers that were not written ([`crate::ssa::Input::Unset`]) are told from zeros.
    pub check_init: bool,
}

/// State of lowering one kernel.
pub(crate) struct Lowerer<'k> {
    kernel: &'k ValidKernel,
    payload: &'k PayloadMap,
    additions: Additions,
    simd: u16,
    grf: u32,
    b: Builder,
    regs: RegFile,
    flow: Flow,
    ctl: Control,
    start: Block,
    preds: Vec<Var>,
    addrs: Vec<Var>,
    surfaces: Vec<Vec<Var>>,
    samplers: Vec<Vec<Var>>,
    em: Var,
    cr0: Cr0,
}

/// Lowers a kernel.
///
/// # Errors
/// [`LowerError::Unsupported`] names the first instruction that is not lowered.
pub fn lower(
    kernel: &ValidKernel,
    name: &str,
    payload: &PayloadMap,
    additions: Additions,
) -> Result<Function, LowerError> {
    let flow = Flow::new(kernel).ok_or_else(|| LowerError::TooLarge {
        what: format!("more than {MAX_BLOCKS} basic blocks"),
    })?;
    let modes = fpmode::analyse(kernel, &flow);
    let (flow, recorder) = {
        let mut first = Lowerer::new(kernel, name, (payload, additions), flow, None);
        first.record(&modes)?;
        (first.flow, first.regs.recorder.take().unwrap_or_default())
    };
    let mut second = Lowerer::new(kernel, name, (payload, additions), flow, Some(&recorder));
    second.emit(&modes)?;
    let regs_bytes = second.regs.memory_bytes();
    if regs_bytes > 1 << 16 {
        return Err(LowerError::TooLarge {
            what: format!("{regs_bytes} bytes of registers reached by address"),
        });
    }
    second.finish(regs_bytes).ok_or_else(too_many_values)
}

fn too_many_values() -> LowerError {
    LowerError::TooLarge {
        what: format!(
            "more than {MAX_SSA_VALUES} results of SSA instructions, or {MAX_BLOCK_PARAMS} parameters of SSA blocks"
        ),
    }
}

impl<'k> Lowerer<'k> {
    fn new(
        kernel: &'k ValidKernel,
        name: &str,
        (payload, additions): (&'k PayloadMap, Additions),
        flow: Flow,
        recorder: Option<&Recorder>,
    ) -> Lowerer<'k> {
        let simd = kernel.simd() as u16;
        let mut b = Builder::new(name, simd);
        b.check_init = additions.check_init;
        b.f.row = payload.local_ids.row(simd);
        let vars = &kernel.module().vars;
        let preds = vars
            .predicate
            .iter()
            .map(|p| b.register(Ty::mask(p.elements as u16)))
            .collect();
        let addrs = vars
            .address
            .iter()
            .map(|a| b.register(Ty::vector(Lane::I16, a.elements as u16)))
            .collect();
        let mut surfaces = state_vars(&vars.surface, &mut b);
        // After those of the kernel, `%bss`.
        surfaces.push(vec![b.var(Ty::I32)]);
        let samplers = state_vars(&vars.sampler, &mut b);
        let em = b.var(Ty::mask(simd));
        let regs = match recorder {
            None => RegFile::recording(kernel.roots()),
            Some(r) => RegFile::new(kernel.roots(), r, &mut b),
        };
        Lowerer {
            kernel,
            payload,
            additions,
            simd,
            grf: kernel.target().grf(),
            b,
            regs,
            flow,
            ctl: Control::default(),
            start: Function::ENTRY,
            preds,
            addrs,
            surfaces,
            samplers,
            em,
            cr0: Cr0::Unknown,
        }
    }

    /// First run: every instruction once, in textual order, in one block.
    fn record(&mut self, modes: &[Option<Cr0>]) -> Result<(), LowerError> {
        let insts = &self.kernel.module().insts;
        for (b, mode) in modes.iter().enumerate().take(self.flow.blocks.len()) {
            self.cr0 = mode.unwrap_or(Cr0::Unknown);
            for inst in &insts[self.flow.blocks[b].first..self.flow.blocks[b].end] {
                let done = match &inst.body {
                    Body::SwitchJmp { index, .. } => self.scalar_int(index, Lane::I32).map(|_| ()),
                    Body::Ifcall { addr, .. } if self.flow.blocks[b].repeats => {
                        self.lane_addresses(addr, inst.exec.lanes()).map(|_| ())
                    }
                    Body::Ifcall { addr, .. } => self.scalar_int(addr, Lane::I32).map(|_| ()),
                    Body::Branch(_) | Body::Ret | Body::Fcall { .. } => Ok(()),
                    _ => self.instruction(inst),
                };
                done.map_err(|f| f.at(inst.pos, inst.mnemonic()))?;
                self.b.within_limits()?;
                self.cr0 = fpmode::step(self.kernel, self.cr0, inst);
            }
        }
        Ok(())
    }

    /// Second run.
    fn emit(&mut self, modes: &[Option<Cr0>]) -> Result<(), LowerError> {
        let insts = &self.kernel.module().insts;
        self.plan_control();
        self.plan_recursion()
            .map_err(|f| f.at(Default::default(), "call"))?;
        let start = self.b.block();
        self.b.seal(start);
        self.b.switch_to(start);
        self.define_inputs()
            .map_err(|f| f.at(Default::default(), ".input"))?;
        match self.ctl.heads.first() {
            Some(&head) => self.b.jump(head),
            None => self.b.ret(),
        }
        self.start = start;
        for (b, mode) in modes.iter().enumerate().take(self.flow.blocks.len()) {
            self.enter_block(b);
            self.cr0 = mode.unwrap_or(Cr0::Unknown);
            let (first, end) = (self.flow.blocks[b].first, self.flow.blocks[b].end);
            let has_term = self.flow.terminator(b, insts).is_some();
            for (i, inst) in insts.iter().enumerate().take(end).skip(first) {
                self.b.line = inst.pos.line;
                // Straight-line code has no back edge to be stopped at.
                if (i + 1).is_multiple_of(POLL_EVERY) {
                    self.b.effect(Op::Poll, vec![]);
                }
                let done = if has_term && i + 1 == end {
                    self.lower_terminator(b, inst)
                } else {
                    self.instruction(inst)
                };
                done.map_err(|f| f.at(inst.pos, inst.mnemonic()))?;
                self.b.within_limits()?;
                self.cr0 = fpmode::step(self.kernel, self.cr0, inst);
            }
            self.leave_block(b);
        }
        self.emit_exits();
        Ok(())
    }

    fn finish(self, regs_bytes: u32) -> Option<Function> {
        let mut f = self.b.finish(self.start, regs_bytes)?;
        f.slm_bytes = self
            .kernel
            .module()
            .int_attr("SLMSize")
            .map_or(0, |kb| (kb.clamp(0, 1 << 16) as u32) * 1024);
        Some(f)
    }

    /// True for a lane that no thread has: it is never enabled.
    fn beyond_dispatch(&self, inst: &Inst) -> bool {
        let mask = inst.exec.mask;
        !mask.no_mask && mask.first_lane() >= self.kernel.simd()
    }

    /// One instruction that does not end a block.
    fn instruction(&mut self, inst: &Inst) -> Result<(), Fail> {
        if inst.op.info().status == Status::Rejected {
            return Fail::unsupported("not part of compute kernels");
        }
        match &inst.body {
            Body::Label(_) | Body::File(_) | Body::Loc(_) | Body::Lifetime { .. } => Ok(()),
            // Validation lets one lane be any.
            Body::Alu(_) if self.beyond_dispatch(inst) => Ok(()),
            Body::Alu(a) => self.alu(inst, a),
            Body::Mem(m) => self.mem(inst, m),
            Body::Svm(s) => self.svm(inst, s),
            Body::Sample(s) => self.sample(inst, s),
            Body::Lsc(l) => self.lsc(inst, l),
            Body::LscBlock2d(b) => self.lsc_block2d(inst, b),
            Body::LscTyped(t) => self.lsc_typed(inst, t),
            Body::Fence(_) | Body::LscFence { .. } => {
                self.fence(&inst.body);
                Ok(())
            }
            Body::Dpas(d) => self.lower_dpas(inst, d),
            Body::Faddr { name, dst } => self.faddr(name, dst),
            Body::Nullary => {
                if inst.op == Opcode::Barrier {
                    self.group_barrier(inst, true);
                }
                Ok(())
            }
            Body::Sbarrier(signal) => {
                self.group_barrier(inst, !signal);
                Ok(())
            }
            Body::Nbarrier { id, step } => self.nbarrier(inst, id, step),
            // Waits for threads of another kind of launch, which none here depends on.
            Body::Wait(_) => Ok(()),
            Body::RawSend(r) => Fail::unsupported(r.refusal()),
            _ => Fail::unsupported("not lowered yet"),
        }
    }

    /// Address of a function, which is a constant, or of a program-scope variable, which the launcher puts behind
    /// the arguments.
    fn faddr(&mut self, name: &str, dst: &crate::module::Dst) -> Result<(), Fail> {
        let ty = self.dst_type(dst)?;
        let functions = &self.kernel.module().functions;
        if let Some(f) = functions.iter().find(|f| f.name == name) {
            let v = self.b.bits(Lane::I64, u64::from(f.address));
            let v = self.convert(v, crate::isa::Type::Uq, ty, false)?;
            return self.write(dst, 1, v, operand::ChannelMask::All);
        }
        let Some(&at) = self.payload.symbols.get(name) else {
            return Fail::unsupported(format!(
                "address of `{name}`, which is neither a function nor a program-scope variable of the file"
            ));
        };
        let v = self
            .b
            .op(Op::Input(crate::ssa::Input::Payload(at)), vec![], Ty::I64);
        let v = self.convert(v, crate::isa::Type::Uq, ty, false)?;
        self.write(dst, 1, v, operand::ChannelMask::All)
    }

    fn read_pred(&mut self, p: PredId) -> Result<Value, Fail> {
        match self.preds.get((p.0 as usize).wrapping_sub(1)) {
            Some(&v) => Ok(self.b.read(v)),
            None => Fail::malformed("unknown predicate"),
        }
    }

    fn surface_var(&self, s: SurfaceId) -> Option<Var> {
        self.surface_elements(s)?.first().copied()
    }

    /// Elements of a surface variable that can be written.
    fn surface_elements(&self, s: SurfaceId) -> Option<&Vec<Var>> {
        if s == SurfaceId::BSS {
            return self.surfaces.last();
        }
        let index = s.0.checked_sub(SurfaceId::FIRST_USER)?;
        self.surfaces.get(index as usize)
    }
}

/// The elements of surface or sampler variables that operands can name: an index of a byte and 32 channels.
fn state_vars(vars: &[crate::module::OtherVar], b: &mut Builder) -> Vec<Vec<Var>> {
    const MOST: u32 = 256 + 32;
    vars.iter()
        .map(|v| {
            (0..v.elements.clamp(1, MOST))
                .map(|_| b.var(Ty::I32))
                .collect()
        })
        .collect()
}
