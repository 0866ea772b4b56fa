//! The in-memory code cache: one compilation (or look at the disk) for each key, however many threads ask.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::disk::Disk;
use super::error::Error;
use crate::backend::{CodeObject, CodegenOptions};
use crate::lower::LocalIdShape;
use crate::ssa::Site;
use visa_runtime::tools::DebugImage;

/// What compiled code depends on within an engine, whose other options do not change; [`super::key`] has all of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Digest of what is compiled.
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
    /// What debuggers know of it.
    pub(crate) image: Option<DebugImage>,
    pub(crate) object: CodeObject,
    pub(crate) kernel: visa_runtime::Kernel,
    pub(crate) sites: Vec<Site>,
    pub(crate) time: Duration,
    pub(crate) from_disk: bool,
}

/// Where a launch had its code from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was compiled.
    Compiled,
    /// It was in memory.
    Memory,
    /// It was on disk.
    Disk,
    /// It came with the library that was loaded.
    Library,
}

impl Compiled {
    /// Machine code with its line table.
    pub fn object(&self) -> &CodeObject {
        &self.object
    }

    /// The ELF image by which debuggers know the code, if they were told of it ([`crate::Tools::gdb`]).
    pub fn debug_image(&self) -> Option<&[u8]> {
        self.image.as_ref().map(DebugImage::image)
    }

    /// Time from module, or cache entry, to installed code.
    pub fn compile_time(&self) -> Duration {
        self.time
    }
}

/// Look-ups since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Found in memory.
    pub hits: u64,
    /// Compiled, or tried to.
    pub misses: u64,
    /// Found on disk.
    pub disk_hits: u64,
    /// Found on disk but not fit for use, and removed.
    pub disk_purged: u64,
    /// Compiled but not written to disk: no room, no permission.
    pub disk_unwritten: u64,
}

type Slot = Arc<OnceLock<Result<Arc<Compiled>, Error>>>;

#[derive(Default)]
pub(crate) struct CodeCache {
    slots: Mutex<FxHashMap<Key, Slot>>,
    hits: AtomicU64,
    misses: AtomicU64,
    disk_hits: AtomicU64,
}

impl CodeCache {
    /// The code for a key, made by `compile` if no cache has it, and where it was.
    pub(crate) fn get(
        &self,
        key: Key,
        compile: impl FnOnce() -> Result<Compiled, Error>,
    ) -> (Result<Arc<Compiled>, Error>, Origin) {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry(key).or_default().clone()
        };
        let mut origin = Origin::Memory;
        let result = slot.get_or_init(|| {
            let made = compile().map(Arc::new);
            origin = match &made {
                Ok(code) if code.from_disk => Origin::Disk,
                _ => Origin::Compiled,
            };
            made
        });
        self.count(origin);
        (result.clone(), origin)
    }

    /// Counts a look-up.
    pub(crate) fn count(&self, origin: Origin) {
        let counter = match origin {
            Origin::Memory | Origin::Library => &self.hits,
            Origin::Disk => &self.disk_hits,
            Origin::Compiled => &self.misses,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether [`CodeCache::get`] would return at once.
    pub(crate) fn has(&self, key: &Key) -> bool {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.get(key).is_some_and(|slot| slot.get().is_some())
    }

    /// `disks` are those that its engine looks at and writes to.
    pub(crate) fn stats<'d>(&self, disks: impl Iterator<Item = &'d Disk> + Clone) -> CacheStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            hits: read(&self.hits),
            misses: read(&self.misses),
            disk_hits: read(&self.disk_hits),
            disk_purged: disks.clone().map(|d| read(&d.purged)).sum(),
            disk_unwritten: disks.map(|d| read(&d.unwritten)).sum(),
        }
    }
}
