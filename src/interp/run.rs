//! The loops: threads of a group, instructions of a thread.

use std::sync::Arc;

use visa_runtime::abi::Status;
use visa_runtime::{GroupProgram, GroupView, ProgramError};

use super::barrier::Named;
use super::error::{Halt, InterpError};
use super::float::use_other_nans;
use super::machine::Machine;
use super::state::{Thread, Wait};
use super::trace::Written;
use super::{Input, Program};
use crate::isa::Opcode;
use crate::module::*;

/// Instructions between two looks at whether the launch is to stop.
const POLL: u64 = 256;

/// Why a thread does not go on.
enum Stop {
    /// It is at its end.
    Done,
    /// It waits.
    Wait(Wait),
    /// The launch ends.
    Launch(Status),
}

impl GroupProgram for Program {
    fn run(&self, group: &mut GroupView<'_>) -> Result<Status, ProgramError> {
        self.group(group).map_err(|e| Arc::new(e) as ProgramError)
    }
}

impl Program {
    /// Runs each thread to its end or to a barrier, again and again until all are at their end.
    fn group(&self, group: &mut GroupView<'_>) -> Result<Status, InterpError> {
        let mut barriers = Named::default();
        let mut stop = false;
        self.start_of_races(group);
        self.start_of_init(group);
        let mut threads: Vec<Thread> = (0..group.threads())
            .map(|number| self.start(group, number))
            .collect();
        for round in 0u32.. {
            for number in group.thread_order(round) {
                let Some(thread) = threads.get_mut(number as usize) else {
                    continue;
                };
                if thread.done || thread.wait != Wait::Nothing {
                    continue;
                }
                match self.thread(group, number, thread)? {
                    Stop::Done => thread.done = true,
                    Stop::Wait(wait) => thread.wait = wait,
                    Stop::Launch(status) => return Ok(status),
                }
            }
            if self.check_meeting(group, &threads) {
                return Ok(Status::Fault);
            }
            let passed = barriers.meet(&mut threads);
            stop |= self.check_counts(group, std::mem::take(&mut barriers.wrong));
            if passed {
                self.barrier_of_races(group);
            }
            let met = self.meet(&mut threads, passed)?;
            if threads.iter().all(|t| t.done) {
                stop |= self.check_counts(group, barriers.left());
                return Ok(if stop { Status::Fault } else { Status::Done });
            }
            if group.interrupted() {
                return Ok(Status::Interrupted);
            }
            if !passed && !met {
                return Err(InterpError::Deadlock);
            }
        }
        Err(InterpError::Deadlock)
    }

    /// Fused threads that both wait for each other exchange what they offer and go on; true if there are any.
    fn meet(&self, threads: &mut [Thread], passed: bool) -> Result<bool, InterpError> {
        let mut met = false;
        for pair in threads.chunks_mut(2) {
            let [x, y] = pair else { continue };
            if x.wait != Wait::Fused || y.wait != Wait::Fused {
                continue;
            }
            if x.offered.0 != y.offered.0 {
                return Err(self.alone(x));
            }
            let whole = [x.offered.1.as_slice(), y.offered.1.as_slice()].concat();
            for t in [x, y] {
                t.received = Some(whole.clone());
                t.wait = Wait::Nothing;
            }
            met = true;
        }
        // The others are at their ends or at barriers, which they do not leave before this one comes there.
        let still = !met && !passed;
        match threads.iter().find(|t| still && t.wait == Wait::Fused) {
            Some(t) => Err(self.alone(t)),
            None => Ok(met),
        }
    }

    /// A thread at `dpasw` whose fused thread does not come there.
    fn alone(&self, t: &Thread) -> InterpError {
        let inst = self.kernel.module().insts.get(t.offered.0);
        let pos = inst.map_or_else(Pos::default, |i| i.pos);
        InterpError::Alone { pos }
    }

    /// A thread with its inputs.
    fn start(&self, group: &GroupView<'_>, number: u32) -> Thread {
        let mut t = Thread::new(&self.kernel, &self.layout, group.dispatch_mask(number));
        t.init = self.registers();
        let r0 = group.r0(number);
        let word = |k: usize| r0.get(k).copied().unwrap_or(0);
        let mut dwords = |var: VarId, words: &[u32]| {
            let place = self.kernel.root_offset(var);
            for (k, &w) in words.iter().enumerate() {
                let offset = (place.offset as usize).saturating_add(k.saturating_mul(4));
                if let Ok(at) = self.layout.byte_offset(place.root, offset, 4) {
                    t.set(at, 4, w.into());
                }
            }
        };
        dwords(VarId::R0, &r0);
        dwords(VarId::GROUP_ID_X, &[word(1)]);
        dwords(VarId::GROUP_ID_Y, &[word(6)]);
        dwords(VarId::GROUP_ID_Z, &[word(7)]);
        dwords(VarId::SR0, &[group.sr0(number)]);
        if self.kernel.target().platform.eu_threads() != 0 {
            dwords(VarId::MSG0, &[group.sr0(number) >> 8]);
        }
        dwords(VarId::HW_ID, &[group.hw_id(number)]);
        let inputs = &self.kernel.module().inputs;
        for (input, &source) in inputs.iter().zip(&self.inputs.inputs) {
            let InputVar::General(var) = input.var else {
                continue;
            };
            let place = self.kernel.root_offset(var);
            for k in 0..input.size {
                let byte = input_byte(group, number, &r0, source, k);
                let offset = (place.offset as usize).saturating_add(k as usize);
                if let Ok(at) = self.layout.byte_offset(place.root, offset, 1) {
                    t.set(at, 1, byte.into());
                }
            }
        }
        t
    }

    fn thread(
        &self,
        group: &mut GroupView<'_>,
        number: u32,
        t: &mut Thread,
    ) -> Result<Stop, InterpError> {
        let insts = &self.kernel.module().insts;
        use_other_nans(self.options.other_nans);
        loop {
            if !t.settle() {
                return Ok(Stop::Done);
            }
            let at = t.control.pc;
            let inst = insts.get(at);
            // What falls off the end of a subroutine returns.
            let inside = self.places.subroutine(at) == t.control.subroutine();
            let Some(inst) = inst.filter(|_| inside) else {
                t.control.leave(u32::MAX);
                continue;
            };
            if let Body::Dpas(d) = &inst.body
                && inst.op == Opcode::Dpasw
                && t.received.is_none()
            {
                let half = self.half(group, number, t, at, d);
                match half.map_err(|halt| halt.at(inst.pos, inst.mnemonic())) {
                    Ok(half) => t.offered = (at, half),
                    Err(Some(error)) => return Err(error),
                    Err(None) => return Ok(Stop::Launch(Status::Fault)),
                }
                return Ok(Stop::Wait(Wait::Fused));
            }
            t.control.pc = at.saturating_add(1);
            if !executes(inst) {
                continue;
            }
            t.executed = t.executed.saturating_add(1);
            if let Some(limit) = self.options.fuel
                && t.executed > limit
            {
                let pos = inst.pos;
                return Err(InterpError::Fuel { pos, limit });
            }
            if t.executed.is_multiple_of(POLL) && group.interrupted() {
                return Ok(Stop::Launch(Status::Interrupted));
            }
            if let Some(stop) = self.instruction(group, number, t, at, inst)? {
                return Ok(stop);
            }
        }
    }

    /// What a thread that has come to `dpasw` offers to the one that it is fused with.
    fn half(
        &self,
        group: &mut GroupView<'_>,
        number: u32,
        t: &mut Thread,
        at: usize,
        d: &Dpas,
    ) -> Result<Vec<u8>, Halt> {
        let m = Machine {
            program: self,
            group,
            number,
            t,
            at,
            written: None,
        };
        m.half_of_rows(d)
    }

    fn instruction(
        &self,
        group: &mut GroupView<'_>,
        number: u32,
        t: &mut Thread,
        at: usize,
        inst: &Inst,
    ) -> Result<Option<Stop>, InterpError> {
        let active = t.control.active;
        let mut m = Machine {
            program: self,
            group,
            number,
            t,
            at,
            written: self.options.trace.as_ref().map(|_| Written::default()),
        };
        let done = m.execute(inst);
        let fault = match done {
            Ok(()) => false,
            Err(halt) => match halt.at(inst.pos, inst.mnemonic()) {
                Some(error) => return Err(error),
                None => true,
            },
        };
        if let (Some(trace), Some(written)) = (&self.options.trace, &m.written) {
            let [x, y, z] = m.group.id();
            trace.line(&format!(
                "group {x},{y},{z} thread {number} line {}: {} mask={active:#010x}{}",
                inst.pos.line,
                inst.mnemonic(),
                written.text()
            ))?;
        }
        Ok(if fault {
            Some(Stop::Launch(Status::Fault))
        } else if t.wait != Wait::Nothing {
            Some(Stop::Wait(t.wait))
        } else {
            None
        })
    }
}

/// False for labels and other marks in the text.
fn executes(inst: &Inst) -> bool {
    !matches!(
        inst.body,
        Body::Label(_) | Body::File(_) | Body::Loc(_) | Body::Lifetime { .. }
    )
}

/// Byte `k` of an input.
fn input_byte(group: &GroupView<'_>, number: u32, r0: &[u32; 16], source: Input, k: u32) -> u8 {
    let byte = |word: u64, k: u32| word.wrapping_shr((k & 7).wrapping_mul(8)) as u8;
    match source {
        Input::Zero => 0,
        Input::Payload(at) => group.payload(at.saturating_add(k)),
        Input::R0(at) => {
            let k = at.saturating_add(k);
            let word = r0.get((k / 4) as usize).copied().unwrap_or(0);
            byte(word.into(), k % 4)
        }
        Input::LocalIds { dim, lane } => {
            let lane = usize::from(lane).saturating_add((k / 2) as usize);
            byte(group.local_id(number, usize::from(dim), lane).into(), k % 2)
        }
    }
}

impl Machine<'_, '_, '_> {
    /// One instruction.
    fn execute(&mut self, inst: &Inst) -> Result<(), Halt> {
        self.check_init(inst)?;
        match &inst.body {
            Body::Alu(a) => {
                let left = self.init_before(inst, a)?;
                self.alu(inst, a)?;
                match left {
                    Some(left) => self.init_after(inst, a, &left),
                    None => Ok(()),
                }
            }
            Body::Branch(l) => self.branch(inst, *l),
            Body::Ret => self.ret(inst),
            Body::Fcall { name, .. } => self.fcall(inst, name),
            Body::Ifcall { addr, .. } => self.ifcall(inst, addr),
            Body::SwitchJmp { index, targets } => self.switch(index, targets),
            Body::Mem(m) => self.mem(inst, m),
            Body::Svm(s) => self.svm(inst, s),
            Body::Sample(s) => self.sample(inst, s),
            Body::Dpas(d) => self.dpas(inst, d),
            Body::Lsc(l) => self.lsc(inst, l),
            Body::RawSend(r) => Halt::unsupported(r.refusal()),
            Body::LscBlock2d(b) => self.lsc_block2d(inst, b),
            Body::LscTyped(t) => self.lsc_typed(inst, t),
            Body::Faddr { name, dst } => self.faddr(name, dst),
            Body::Fence(_) | Body::LscFence { .. } => {
                self.group.fence();
                Ok(())
            }
            Body::Sbarrier(signal) => self.barrier(!signal),
            Body::Nullary if inst.op == Opcode::Barrier => self.barrier(true),
            Body::Nbarrier { id, step } => self.nbarrier(id, step),
            // Waits for threads that this one depends on, as the launch of a thread space says. Launches here are of
            // groups, and no thread depends on another.
            Body::Wait(_) => Ok(()),
            // Hints.
            Body::Nullary if inst.op != Opcode::Breakpoint => Ok(()),
            Body::Label(_) | Body::File(_) | Body::Loc(_) | Body::Lifetime { .. } => Ok(()),
            _ => Halt::unsupported(super::NOT_YET),
        }
    }

    fn alu(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        use Opcode as O;
        match inst.op {
            O::Mov => self.mov(inst, a),
            O::Movs => self.movs(inst, a),
            O::Setp => self.setp(inst, a),
            O::Cmp => self.cmp(inst, a),
            O::Sel => self.sel(inst, a),
            O::Min | O::Max => self.min_max(inst, a),
            O::And | O::Or | O::Xor | O::Not if matches!(a.dst, Dst::Pred(_)) => {
                self.pred_logic(inst, a)
            }
            O::AddrAdd => self.addr_add(inst, a),
            O::Addc | O::Subb => self.carry(inst, a),
            O::Madw => self.madw(inst, a),
            O::Fcvt => self.fcvt(inst, a),
            O::Srnd => self.srnd(inst, a),
            O::Add3o => self.add3o(inst, a),
            O::Invm | O::Rsqtm => self.seed(inst, a),
            op if super::groups::is_group(op) => self.group(inst, a),
            _ => self.lanewise(inst, a),
        }
    }
}
