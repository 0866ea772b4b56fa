//! Options for the finer choices of a strategy.

use clap::Args;

use crate::backend::{Choice, Cpu, Dispatch, HalfAccesses, Masks, RegAlloc, Tuning, VectorWidth};

/// Arguments of commands that compile.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct TuningArgs {
    /// Bits of the widest vectors: auto, 128, 256 or 512; Cranelift has 128, LLVM what the processor has
    #[arg(long, value_name = "BITS", value_parser = VectorWidth::parse, default_value = "auto")]
    vector_width: VectorWidth,
    /// The processor that code is made for: native, x86-64-v2, x86-64-v3 or x86-64-v4
    #[arg(long, value_name = "NAME", value_parser = Cpu::parse, default_value = "native")]
    cpu: Cpu,
    /// How hard registers are allocated: auto, fast or full
    #[arg(long, value_name = "EFFORT", value_parser = RegAlloc::parse, default_value = "auto")]
    regalloc: RegAlloc,
    /// Work under a mask without lanes: branch jumps over it, select does it for nobody; auto is branch
    #[arg(long, value_name = "WAY", value_parser = Masks::parse, default_value = "auto")]
    masks: Masks,
    /// Accesses that the kernel's compiler cut into halves, (M1, 16) and (M5, 16): whole makes them one again, apart leaves them,
    /// auto makes one of some at arbitrary addresses, as measures best on the code generator
    #[arg(long, value_name = "WAY", value_parser = HalfAccesses::parse, default_value = "auto")]
    halves: HalfAccesses,
    /// What a call of the code takes through a kernel's barriers: thread (each to its next one) or group (all to their ends)
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
