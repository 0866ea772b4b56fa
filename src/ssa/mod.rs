//! The SSA IR between lowering and code generation.
//!
//! One [`Function`] is the program of **one hardware thread** (`simd` lanes) of one kernel. Values
//! are scalars or vectors `<N x T>`; joins are block parameters. A barrier is an instruction like
//! others, until the last passes end the block there (`suspend`) and give the function a switch in its entry
//! block that resumes where the thread stopped.
//!
//! Guarantees after `verify`: every use is dominated by its definition, types agree with each
//! operation's rule, branch arguments match block parameters.
//!
//! What it does not model: registers, execution sizes, predicated instructions. Lowering has
//! turned masks into values; an operation without a mask operand computes all lanes.

mod cost;
pub mod dom;
pub mod eval;
pub mod fp_env;
pub mod func;
mod names;
pub mod op;
pub mod parse;
mod parse_op;
pub mod print;
pub mod remark;
pub mod scalar;
pub mod shape;
mod site;
mod space;
pub mod types;
mod typing;
pub mod verify;

pub use func::{Block, BlockCall, Exchange, Function, Inst, InstData, Term, Value, ValueDef};
pub use op::*;
pub use parse::{ParseError, parse};
pub use print::Line;
pub use remark::Remark;
pub use site::{AccessKind, Site};
pub use types::{Lane, Ty};
pub use verify::{VerifyError, verify};
