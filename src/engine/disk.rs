//! The disk cache: looked up if the cache in memory does not have the code.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use etcetera::BaseStrategy;

use super::manifest::ProgramManifest;
use crate::artifact::{Artifact, Defect, Key, Store};

/// Bytes that a cache may hold by default.
const DEFAULT_LIMIT: u64 = 512 << 20;

/// A directory of compiled kernels, shared with other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCache {
    /// The directory; made when it is first written to.
    pub dir: PathBuf,
    /// About how many bytes it may hold.
    pub limit: u64,
}

impl DiskCache {
    /// The cache in a directory.
    pub fn at(dir: impl Into<PathBuf>) -> DiskCache {
        DiskCache {
            dir: dir.into(),
            limit: DEFAULT_LIMIT,
        }
    }

    /// The cache in the user's directory for such things; `None` for users who have none.
    pub fn user() -> Option<DiskCache> {
        let dirs = etcetera::choose_base_strategy().ok()?;
        Some(DiskCache::at(dirs.cache_dir().join("visa-jit")))
    }

    /// The directory as a store.
    pub fn store(&self) -> Store {
        Store::new(self.dir.clone(), self.limit)
    }
}

/// A store with counters.
pub(crate) struct Disk {
    store: Store,
    pub purged: AtomicU64,
    pub unwritten: AtomicU64,
}

impl Disk {
    pub(crate) fn new(cache: &DiskCache) -> Disk {
        Disk {
            store: cache.store(),
            purged: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
        }
    }

    pub(crate) fn load(&self, key: &Key) -> Option<Artifact> {
        let found = self.store.load(key);
        if found.as_ref().is_err_and(|e| *e != Defect::Absent) {
            self.purged.fetch_add(1, Ordering::Relaxed);
        }
        found.ok()
    }

    pub(crate) fn load_manifest(&self, key: &Key) -> Option<ProgramManifest> {
        let found = self.store.load_manifest(key);
        if found.as_ref().is_err_and(|e| *e != Defect::Absent) {
            self.purged.fetch_add(1, Ordering::Relaxed);
        }
        found.ok()
    }

    pub(crate) fn save_manifest(&self, key: &Key, manifest: &ProgramManifest) {
        if self.store.save_manifest(key, manifest).is_err() {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes an entry if that is possible; a cache that cannot be written to is no failure.
    pub(crate) fn save(&self, key: &Key, artifact: &Artifact) {
        if self.store.save(key, artifact).is_err() {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
        }
    }
}
