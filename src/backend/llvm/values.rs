//! What values of the SSA became.

use rustc_hash::FxHashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::values::IntValue;

use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use crate::ssa::{Function, Op, Value};

/// Translation of every SSA value met so far. [`LlvmEmitter::in_version`] takes out again what a version made.
pub(super) struct Values<'c> {
    made: Vec<Option<V<'c>>>,
    /// Of values that are made where they are read, the last one, and the block that has it.
    rare: FxHashMap<Value, (BasicBlock<'c>, V<'c>)>,
}

impl<'c> Values<'c> {
    /// None yet of a function's.
    pub(super) fn new(f: &Function) -> Values<'c> {
        Values {
            made: vec![None; f.values.len()],
            rare: FxHashMap::default(),
        }
    }

    fn known(&self, v: Value) -> Option<V<'c>> {
        self.made.get(v.0 as usize).copied().flatten()
    }

    fn set(&mut self, v: Value, to: V<'c>) {
        self.made[v.0 as usize] = Some(to);
    }

    /// Takes values out.
    pub(super) fn forget(&mut self, values: &[Value]) {
        for v in values {
            self.made[v.0 as usize] = None;
        }
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    /// Translation of an SSA value.
    pub(super) fn get(&mut self, v: Value) -> EmitResult<V<'c>> {
        if let Some(made) = self.values.known(v) {
            return Ok(made);
        }
        let f = self.f;
        let made = match f.def_inst(v).map(|d| &d.op) {
            Some(Op::Const(bits)) => self.konst(self.ty(v), *bits)?,
            Some(Op::VecConst(lanes)) if self.ty(v).is_scalar() => {
                self.scalar_bits(self.ty(v).lane, lanes.first().copied().unwrap_or(0))?
            }
            Some(Op::VecConst(lanes)) => self.vector_bits(self.ty(v).lane, lanes)?,
            _ if self.access_plan.rare().contains(v) => return self.make_here(v),
            _ => return Err(InternalError(format!("v{} is used before it is made", v.0))),
        };
        self.values.set(v, made);
        Ok(made)
    }

    /// A value that is made where it is read. What comes later in a block can use what was made in it. Operands are made by recursion,
    /// which ends soon: the access plan cuts long chains.
    fn make_here(&mut self, v: Value) -> EmitResult<V<'c>> {
        let here = self.here()?;
        if let Some(&(block, made)) = self.values.rare.get(&v)
            && block == here
        {
            return Ok(made);
        }
        let data = self.f.def_inst(v).ok_or("a parameter is no rare value")?;
        let made = self.value(data, v)?;
        self.values.rare.insert(v, (here, made));
        Ok(made)
    }

    /// True for values that can be used here. What only versions made that are left cannot: whoever finds a value through the
    /// definition of another has to ask.
    pub(super) fn is_at_hand(&self, v: Value) -> bool {
        let op = self.f.def_inst(v).map(|data| &data.op);
        let constant = matches!(op, Some(Op::Const(_) | Op::VecConst(_)));
        constant || self.values.known(v).is_some()
    }

    /// A scalar integer.
    pub(super) fn get_int(&mut self, v: Value) -> EmitResult<IntValue<'c>> {
        match self.get(v)? {
            V::IntValue(i) => Ok(i),
            _ => Err(InternalError(format!("v{} is no scalar integer", v.0))),
        }
    }

    /// Translations of several SSA values.
    pub(super) fn get_all(&mut self, values: &[Value]) -> EmitResult<Vec<V<'c>>> {
        values.iter().map(|&v| self.get(v)).collect()
    }

    /// Notes the translation of an SSA value.
    pub(super) fn bind(&mut self, out: Value, v: impl Into<V<'c>>) {
        self.values.set(out, v.into());
    }
}
