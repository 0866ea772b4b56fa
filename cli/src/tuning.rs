//! Options for the finer choices of a strategy.

use clap::Args;

use visa_jit::backend::{
    Choice, Cpu, Dispatch, HalfAccesses, Masks, RegAlloc, Tuning, VectorWidth,
};

/// Arguments of commands that compile.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct TuningArgs {
    /// Width of the widest vectors in bits: auto, 128, 256 or 512. Cranelift's are 128 wide; with LLVM, auto is what the
    /// processor has
    #[arg(long, value_name = "BITS", value_parser = VectorWidth::parse, default_value = "auto")]
    vector_width: VectorWidth,
    /// The processor to generate code for: native, x86-64-v2, x86-64-v3 or x86-64-v4
    #[arg(long, value_name = "NAME", value_parser = Cpu::parse, default_value = "native")]
    cpu: Cpu,
    /// Effort of register allocation: auto, fast or full
    #[arg(long, value_name = "EFFORT", value_parser = RegAlloc::parse, default_value = "auto")]
    regalloc: RegAlloc,
    /// What happens to code whose execution mask has no lane enabled: `branch` jumps over it; `select` executes it without
    /// effect (if-conversion); auto is branch
    #[arg(long, value_name = "WAY", value_parser = Masks::parse, default_value = "auto")]
    masks: Masks,
    /// Memory accesses that the kernel's compiler split in two, (M1, 16) and (M5, 16): `whole` merges them; `apart` keeps them
    /// split; auto merges those for which that was measured to be faster on the code generator
    #[arg(long, value_name = "WAY", value_parser = HalfAccesses::parse, default_value = "auto")]
    halves: HalfAccesses,
    /// Dispatch granularity: `thread` returns at each barrier; `group` runs the whole work-group in one call
    #[arg(long, value_name = "UNIT", value_parser = Dispatch::parse, default_value = "thread")]
    dispatch: Dispatch,
}

impl TuningArgs {
    /// The choices.
    pub fn tuning(self) -> Tuning {
        Tuning {
            width: self.vector_width,
            cpu: self.cpu,
            regalloc: self.regalloc,
            masks: self.masks,
            halves: self.halves,
            dispatch: self.dispatch,
        }
    }
}
