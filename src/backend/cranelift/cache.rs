//! Values that later instructions of a block can use again.

use rustc_hash::FxHashMap;

use cranelift_codegen::ir::{self, Type, Value as V};

use super::emit::CraneliftEmitter;
use crate::ssa::Value;

/// Values that can be reused until the SSA block ends.
#[derive(Clone, Default)]
pub(super) struct BlockCache {
    /// Nothing is kept: what is made now does not dominate what follows.
    off: bool,
    consts: FxHashMap<(Type, u128), V>,
    bits: FxHashMap<Value, V>,
    vectors: FxHashMap<(Value, u32), Vec<V>>,
}

impl BlockCache {
    /// A vector constant.
    pub(super) fn constant(&self, ty: Type, bytes: u128) -> Option<V> {
        self.consts.get(&(ty, bytes)).copied()
    }

    /// Keeps a vector constant.
    pub(super) fn keep_constant(&mut self, ty: Type, bytes: u128, v: V) {
        if !self.off {
            self.consts.insert((ty, bytes), v);
        }
    }

    /// Bits form of a mask.
    pub(super) fn bits(&self, mask: Value) -> Option<V> {
        self.bits.get(&mask).copied()
    }

    /// Keeps the bits form of a mask.
    pub(super) fn keep_bits(&mut self, mask: Value, bits: V) {
        if !self.off {
            self.bits.insert(mask, bits);
        }
    }

    /// Vector form of a mask, with lanes of `width` bytes.
    pub(super) fn vector(&self, mask: Value, width: u32) -> Option<&[V]> {
        self.vectors.get(&(mask, width)).map(Vec::as_slice)
    }

    /// Keeps the vector form of a mask, with lanes of `width` bytes.
    pub(super) fn keep_vector(&mut self, mask: Value, width: u32, pieces: &[V]) {
        if !self.off {
            self.vectors.insert((mask, width), pieces.to_vec());
        }
    }
}

impl CraneliftEmitter<'_> {
    /// Fills `block`, and others after it, which do not dominate what the caller goes on with: nothing that is made there is kept. The
    /// caller says where it goes on.
    pub(super) fn side<T>(&mut self, block: ir::Block, fill: impl FnOnce(&mut Self) -> T) -> T {
        let off = std::mem::replace(&mut self.cache.off, true);
        self.block = block;
        let made = fill(self);
        self.cache.off = off;
        made
    }
}
