//! The in-memory code cache: one compilation for each key, however many threads ask.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::error::Error;
use crate::backend::{CodeObject, CodegenOptions};
use crate::lower::LocalIdShape;
use crate::ssa::Site;

/// What compiled code depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Digest of the program text, target, payload map and passes.
    pub kernel: [u8; 32],
    /// Specialisation on local ids.
    pub local_ids: LocalIdShape,
    /// Code generation options.
    pub codegen: CodegenOptions,
    /// Code generator.
    pub backend: &'static str,
}

/// Compiled and installed code of one specialisation.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) object: CodeObject,
    pub(crate) kernel: visa_runtime::Kernel,
    pub(crate) sites: Vec<Site>,
    pub(crate) time: Duration,
}

impl Compiled {
    /// Machine code with its line table.
    pub fn object(&self) -> &CodeObject {
        &self.object
    }

    /// Time from module to installed code.
    pub fn compile_time(&self) -> Duration {
        self.time
    }
}

/// Look-ups since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Found.
    pub hits: u64,
    /// Compiled.
    pub misses: u64,
}

type Slot = Arc<OnceLock<Result<Arc<Compiled>, Error>>>;

#[derive(Default)]
pub(crate) struct CodeCache {
    slots: Mutex<HashMap<Key, Slot>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl CodeCache {
    /// The code for a key, made by `compile` if nobody has; the flag says it was there.
    pub fn get(
        &self,
        key: Key,
        compile: impl FnOnce() -> Result<Compiled, Error>,
    ) -> (Result<Arc<Compiled>, Error>, bool) {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry(key).or_default().clone()
        };
        let mut made = false;
        let result = slot.get_or_init(|| {
            made = true;
            compile().map(Arc::new)
        });
        let counter = if made { &self.misses } else { &self.hits };
        counter.fetch_add(1, Ordering::Relaxed);
        (result.clone(), !made)
    }

    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }
}
