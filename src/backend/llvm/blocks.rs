//! Blocks of the SSA as blocks of LLVM, and how control goes from one to another.

use inkwell::basic_block::BasicBlock;
use inkwell::values::PhiValue;

use super::emit::{EmitResult, LlvmEmitter, V};
use crate::ssa::{Block, BlockCall, Function, Term};

/// What each block of the SSA became. All are declared in front of the body, as each may be jumped to from any other.
pub(super) struct Blocks<'c>(Vec<Option<Declared<'c>>>);

/// A block, and its parameters.
struct Declared<'c> {
    block: BasicBlock<'c>,
    params: Vec<PhiValue<'c>>,
}

impl<'c> Blocks<'c> {
    /// None yet of a function's.
    pub(super) fn new(f: &Function) -> Blocks<'c> {
        Blocks(f.blocks.iter().map(|_| None).collect())
    }

    fn declared(&self, block: Block) -> EmitResult<&Declared<'c>> {
        let declared = self.0.get(block.0 as usize).and_then(Option::as_ref);
        declared.ok_or_else(|| "a block that is not translated".into())
    }

    /// What a block became.
    pub(super) fn of(&self, block: Block) -> EmitResult<BasicBlock<'c>> {
        Ok(self.declared(block)?.block)
    }

    /// Gives the parameters of a block their values on the way from another.
    fn enter(&self, to: Block, from: BasicBlock<'c>, args: &[V<'c>]) -> EmitResult<()> {
        let params = &self.declared(to)?.params;
        if params.len() < args.len() {
            return Err("a block has fewer parameters than it is given".into());
        }
        for (param, v) in params.iter().zip(args) {
            param.add_incoming(&[(v, from)]);
        }
        Ok(())
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    /// Creates a block with its parameters.
    pub(super) fn declare_block(&mut self, block: Block) -> EmitResult<()> {
        let f = self.f;
        let here = self.new_block();
        self.at(here);
        let mut params = Vec::new();
        for &param in &f.block(block).params {
            let phi = self.b.build_phi(self.type_of(f.ty(param)), "\0")?;
            self.bind(param, phi.as_basic_value());
            params.push(phi);
        }
        let declared = Declared {
            block: here,
            params,
        };
        self.blocks.0[block.0 as usize] = Some(declared);
        Ok(())
    }

    /// Ends a block.
    pub(super) fn terminator(&mut self, term: &Term) -> EmitResult<()> {
        match term {
            Term::None => Err("a block without a terminator".into()),
            Term::Jump(call) => {
                let to = self.blocks.of(call.block)?;
                self.arguments(call)?;
                self.jump(to)
            }
            Term::Branch { cond, then, other } => {
                let cond = self.get(*cond)?;
                let (then, other) = (self.edge(then)?, self.edge(other)?);
                self.branch(cond, then, other)
            }
            Term::Switch {
                index,
                targets,
                default,
            } => {
                if let Some(state) = self.resumed_in(*index) {
                    let target = targets.get(state as usize).unwrap_or(default);
                    let to = self.blocks.of(target.block)?;
                    self.arguments(target)?;
                    return self.jump(to);
                }
                let index = self.get_int(*index)?;
                let default = self.edge(default)?;
                let mut cases = Vec::new();
                for (n, target) in targets.iter().enumerate() {
                    cases.push((self.i32(n as u32), self.edge(target)?));
                }
                self.b.build_switch(index, default, &cases)?;
                Ok(())
            }
            Term::Return => self.thread_done(),
            Term::Suspend(state) => self.thread_waits(*state),
        }
    }

    /// Gives the parameters of a target their values for the jump at the end of the current block.
    fn arguments(&mut self, call: &BlockCall) -> EmitResult<()> {
        let args = self.get_all(&call.args)?;
        self.blocks.enter(call.block, self.here()?, &args)
    }

    /// Target of one way of a branch. Arguments get a block of their own, since two ways may lead to one block with
    /// different ones; the code generator merges it again.
    fn edge(&mut self, call: &BlockCall) -> EmitResult<BasicBlock<'c>> {
        let to = self.blocks.of(call.block)?;
        if call.args.is_empty() {
            return Ok(to);
        }
        let edge = self.new_block();
        self.aside(edge, |e| {
            e.arguments(call)?;
            e.jump(to)
        })?;
        Ok(edge)
    }
}
