//! The SSA IR between lowering and code generation.
//!
//! One [`Function`] is the program of **one hardware thread** (`simd` lanes) of one kernel. Values
//! are scalars or vectors `<N x T>`; joins are block parameters; a kernel with barriers has a
//! switch in its entry block that resumes after the barrier the thread stopped at.
//!
//! Guarantees after `verify`: every use is dominated by its definition, types agree with each
//! operation's rule, branch arguments match block parameters.
//!
//! What it does not model: registers, execution sizes, predicated instructions. Lowering has
//! turned masks into values; an operation without a mask operand computes all lanes.

pub mod func;
pub mod op;
pub mod types;

pub use func::{Block, BlockCall, Function, Inst, InstData, Term, Value, ValueDef};
pub use op::*;
pub use types::{Lane, Ty};
