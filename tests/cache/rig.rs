//! A cache directory, engines that use it, and kernels whose results tell them apart.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use visa_jit::artifact::{EntryKind, Store};
use visa_jit::isa::Platform;
use visa_jit::{DiskCache, Engine, EngineOptions, Launch, Origin, Program};

/// Kernel `n` writes `n + 1` to the last two of six dwords, and two beyond the end.
const KERNEL: &str = r#".version 4.1
.kernel "store_NAME"
.kernel_attr SimdSize=16
.decl OFF v_type=G type=ud num_elts=16 align=GRF
.decl V v_type=G type=ud num_elts=16 align=GRF
.function "main"
    mov (M1_NM, 16) V(0,0)<1> VALUE:ud
    mov (M1_NM, 16) OFF(0,0)<1> 0x10:ud
    lsc_store.ugm (M1_NM, 1) bti(0x0)[OFF]:a32 V:d32x4t
    ret (M1, 1)
"#;

pub fn engine(disk: Option<DiskCache>) -> Engine {
    let options = EngineOptions {
        memory_bytes: 1 << 30,
        disk,
        ..EngineOptions::default()
    };
    Engine::with_options(options).unwrap()
}

pub fn text(engine: &Engine, n: u32) -> Program {
    let source = KERNEL
        .replace("NAME", &n.to_string())
        .replace("VALUE", &format!("{:#x}", n + 1));
    engine
        .program_from_text("k.visaasm", &source, Platform::Dg2)
        .unwrap()
}

/// Runs kernel `n`, checks its result, and says where its code was.
pub fn run(engine: &Engine, n: u32) -> Origin {
    let surface = engine.memory().alloc_from(&[9u32; 6]).unwrap();
    let launch = Launch::new([1, 1, 1]).surface(0, surface.clone());
    let report = text(engine, n).kernels()[0].launch(&launch).unwrap();
    assert_eq!(surface.to_vec_of::<u32>(), [9, 9, 9, 9, n + 1, n + 1]);
    no_writable_code();
    report.origin
}

/// No mapping of this process is writable and executable.
fn no_writable_code() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let both = |line: &&str| {
        let protection = line.split(' ').nth(1).unwrap();
        protection.contains('w') && protection.contains('x')
    };
    assert_eq!(maps.lines().find(both), None);
}

/// Where the entry of kernel `n` is; it must be there.
pub fn store_of(engine: &Engine, rig: &Rig, n: u32) -> PathBuf {
    let program = text(engine, n);
    let name = program.kernels()[0].name().to_owned();
    let entries = rig.store().entries().into_iter();
    let mut paths = entries.filter_map(|entry| {
        let (key, _) = entry.contents.ok()?;
        (key.part(&["kernel", "meta", "name"])? == name).then_some(entry.path)
    });
    paths.next().expect("no entry")
}

pub struct Rig {
    parent: TempDir,
}

impl Rig {
    pub fn new() -> Rig {
        let parent = tempfile::tempdir().unwrap();
        // Children of another user go through it.
        std::fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
        Rig { parent }
    }

    pub fn parent(&self) -> &Path {
        self.parent.path()
    }

    pub fn dir(&self) -> PathBuf {
        self.parent.path().join("cache")
    }

    pub fn cache(&self) -> DiskCache {
        DiskCache::at(self.dir())
    }

    pub fn store(&self) -> Store {
        self.cache().store()
    }

    /// Where the only entry of its kind is.
    pub fn only(&self, kind: EntryKind) -> PathBuf {
        let entries = self.store().entries().into_iter();
        let mut found: Vec<_> = entries.filter(|e| e.kind == kind).collect();
        assert_eq!(found.len(), 1, "{kind:?}");
        found.remove(0).path
    }

    pub fn options(&self) -> EngineOptions {
        EngineOptions {
            memory_bytes: 1 << 30,
            disk: Some(self.cache()),
            ..EngineOptions::default()
        }
    }

    pub fn engine(&self) -> Engine {
        engine(Some(self.cache()))
    }
}

/// How many cases of each kind were tried.
pub struct Tally(&'static str, BTreeMap<String, u64>);

impl Tally {
    pub fn of(kind: EntryKind) -> Tally {
        let name = match kind {
            EntryKind::Code => "code",
            EntryKind::Manifest => "manifest",
        };
        Tally(name, BTreeMap::new())
    }

    pub fn add(&mut self, kind: impl Into<String>) {
        *self.1.entry(kind.into()).or_default() += 1;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        for (kind, count) in &self.1 {
            println!("{:<8} {kind:<44} -> {count}", self.0);
        }
    }
}
