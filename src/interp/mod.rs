//! The reference interpreter: what instructions mean, carried out one lane at a time.
//!
//! It executes a [`ValidKernel`] directly, on a register file of bytes as the ISA lays them out, and is written for
//! obviousness from the specification, not for speed. It is the definition that compiled code is held to: what the
//! specification leaves open is decided here, where a comment says so, and nothing of it is shared with the
//! compilers. Around it everything is the same: [`Program`] is a [`visa_runtime::GroupProgram`], launched by the
//! runtime with its groups, partial threads, policies for accesses out of bounds, faults and interruption.
//!
//! | file | holds |
//! |---|---|
//! | `run` | loops over threads and instructions |
//! | `machine` | masks, predicates, operands, regions |
//! | `control`, `flow`, `calls` | divergence, branches, subroutines, functions |
//! | `moves`, `arith`, `logic`, `math`, `groups`, `special`, `dpas` | instructions on registers |
//! | `number`, `float` | numbers and conversions |
//! | `message`, `lsc`, `block2d`, `access`, `atomic` | instructions on memory |
//! | `barrier` | barriers |
//! | `live`, `meeting`, `race`, `init` | what checks call an error |
//!
//! Kernels are untrusted: nothing here panics, whatever they hold.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod access;
mod arith;
mod atomic;
mod barrier;
mod block2d;
mod calls;
mod check;
mod control;
mod dpas;
mod error;
mod float;
mod flow;
mod groups;
mod image;
mod init;
mod lanes;
mod live;
mod logic;
mod lsc;
mod machine;
mod math;
mod meeting;
mod message;
mod moves;
mod number;
mod race;
mod run;
mod special;
mod state;
mod trace;

pub use access::Space;
pub use error::InterpError;
pub use trace::Trace;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::isa::lsc::LscOp;
use crate::isa::{Effect, Opcode};
use crate::limits::MAX_CALL_DEPTH;
use crate::module::{Body, Inst};
use crate::valid::ValidKernel;
use calls::Functions;
use flow::Places;
use state::Layout;

/// What [`InterpError::Unsupported`] says of whole instructions.
const NOT_YET: &str = "not interpreted";

/// What fills a byte of the thread's first registers (docs/visa.md, "Payload").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// `r0`, from this byte.
    R0(u32),
    /// Local ids, 16-bit words.
    LocalIds {
        /// 0 x, 1 y, 2 z.
        dim: u8,
        /// First lane.
        lane: u8,
    },
    /// Cross-thread payload from this byte.
    Payload(u32),
    /// Nothing: zero.
    Zero,
}

/// Where what a kernel reads at its start comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Source of each `.input`, in order.
    pub inputs: Vec<Input>,
    /// Payload offset of the address of each symbol that `faddr` may ask for.
    pub symbols: BTreeMap<String, u32>,
}

/// How to interpret.
#[derive(Clone, Debug)]
pub struct InterpOptions {
    /// Instructions that each hardware thread may execute; labels and marks do not count. Not limited if `None`.
    pub fuel: Option<u64>,
    /// Recursive calls that may be inside each other. One more is not made and counts as an access out of bounds.
    pub max_call_depth: u32,
    /// Accesses out of bounds are reported to the launch, which counts them and decides whether to stop.
    pub report: bool,
    /// Barriers that work-items of a group miss are reported, whatever is done about accesses.
    pub check_barriers: bool,
    /// Accesses that nothing orders are reported, whatever is done about others. The launch has to run on one thread of the host.
    pub check_races: bool,
    /// For these checks, a write of the value that is there already is an access like others.
    pub race_same_value: bool,
    /// Uses of what is not initialised are reported, whatever is done about accesses. Device memory has to keep account of that
    /// ([`visa_runtime::DeviceMemory::tracked`]); otherwise all of it counts as initialised.
    pub check_init: bool,
    /// Computed NaNs are others than usual: negative, with a payload. What differs from a run without this depends on bits that
    /// the ISA leaves open, and says nothing about other engines.
    pub other_nans: bool,
    /// Receives a line for each instruction.
    pub trace: Option<Trace>,
}

impl Default for InterpOptions {
    fn default() -> InterpOptions {
        InterpOptions {
            fuel: None,
            max_call_depth: MAX_CALL_DEPTH,
            report: false,
            check_barriers: false,
            check_races: false,
            race_same_value: false,
            check_init: false,
            other_nans: false,
            trace: None,
        }
    }
}

/// A kernel ready to be interpreted.
#[derive(Debug)]
pub struct Program {
    kernel: Arc<ValidKernel>,
    inputs: Inputs,
    options: InterpOptions,
    layout: Layout,
    places: Places,
    functions: Functions,
}

/// Where in the program an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Line in the text.
    pub line: u32,
    /// Mnemonic.
    pub opcode: &'static str,
    /// `read`, `write`, `atomic` or `barrier`; `use` of a use of what is not initialised.
    pub access: &'static str,
    /// What it reaches; a barrier reaches none, and a use says no more than where it is.
    pub space: Option<Space>,
    /// Bytes of an element.
    pub bytes: u32,
    /// Bytes that the address of an element has to be a multiple of.
    pub alignment: u32,
}

impl Program {
    /// Lays a kernel's registers out and checks that everything in it can be interpreted.
    ///
    /// # Errors
    /// [`InterpError::Unsupported`] for the first instruction that cannot, [`InterpError::TooLarge`].
    pub fn new(
        kernel: Arc<ValidKernel>,
        inputs: Inputs,
        options: InterpOptions,
    ) -> Result<Program, InterpError> {
        check::program(&kernel, &inputs)?;
        let layout = Layout::new(&kernel)?;
        let places = Places::new(kernel.module());
        let depth = options.max_call_depth;
        let functions = Functions::new(&kernel, &layout, &places, depth)?;
        Ok(Program {
            kernel,
            inputs,
            options,
            layout,
            places,
            functions,
        })
    }

    /// True when the kernel reaches scratch memory by name.
    pub fn uses_scratch(&self) -> bool {
        check::uses_scratch(self.kernel.module())
    }

    /// What a site number of a fault record stands for.
    pub fn site(&self, number: u32) -> Option<Site> {
        let at = number.checked_div(access::SITES)? as usize;
        let inst = self.kernel.module().insts.get(at)?;
        let space = access::space_of(number);
        let (access, bytes) = match access::is_use(number) {
            true => ("use", 0),
            false => described(inst)?,
        };
        Some(Site {
            line: inst.pos.line,
            opcode: inst.mnemonic(),
            access,
            space,
            bytes,
            alignment: inst.alignment(),
        })
    }
}

/// Kind and element bytes of a memory instruction, or a barrier.
fn described(inst: &Inst) -> Option<(&'static str, u32)> {
    let bytes = match &inst.body {
        Body::Mem(m) => m.kind.element_bytes(),
        Body::Svm(s) => s.element_bytes(),
        Body::Lsc(l) => l.data_size.memory_bytes(),
        Body::LscBlock2d(b) => b.data_size.memory_bytes(),
        Body::LscTyped(t) if matches!(t.op, LscOp::Atomic(_)) => 4,
        Body::LscTyped(t) => t.channels.count().saturating_mul(4),
        Body::Sample(s) => s.channels.count().saturating_mul(4),
        // A call that is too deep writes its return address.
        Body::Branch(_) | Body::Fcall { .. } | Body::Ifcall { .. } => return Some(("write", 4)),
        Body::Nullary if inst.op == Opcode::Barrier => return Some(("barrier", 0)),
        Body::Sbarrier(_) | Body::Nbarrier { .. } => return Some(("barrier", 0)),
        _ => return None,
    };
    let kind = match inst.effect() {
        Effect::Store => "write",
        Effect::Atomic => "atomic",
        Effect::Load | Effect::None => "read",
    };
    Some((kind, bytes))
}
