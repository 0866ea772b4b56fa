//! Fast paths of accesses whose addresses are known to run evenly over the lanes.

use cranelift_codegen::ir::Value as V;

use super::emit::Emit;
use super::memory::Lanes;
use crate::ssa::{Inst, MemAccess};

impl Emit<'_> {
    /// Load through one address, where the shape of the addresses is known.
    pub fn load_affine(
        &mut self,
        _access: MemAccess,
        _lanes: &Lanes,
        _inst: Inst,
    ) -> Option<Vec<Vec<V>>> {
        None
    }

    /// Store through one address, where the shape of the addresses is known.
    pub fn store_affine(
        &mut self,
        _access: MemAccess,
        _lanes: &Lanes,
        _data: &[Vec<V>],
        _inst: Inst,
    ) -> bool {
        false
    }
}
