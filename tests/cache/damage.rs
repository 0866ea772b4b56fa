//! Damaged entries: always a miss, never used, gone afterwards; and the kernel runs.

use std::fs;
use std::path::PathBuf;

use visa_jit::Origin;
use visa_jit::artifact::{Artifact, Defect, EntryKind, Key, Store, open, open_manifest, seal};
use visa_test_common::full;

use super::rig::{Rig, Tally, run, store_of};

/// Where the digest of an entry is.
const DIGEST: usize = 40;

/// Bytes of the header.
const HEADER: usize = 72;

/// An entry, and all that is needed to put another in its place.
struct Victim {
    kind: EntryKind,
    rig: Rig,
    store: Store,
    path: PathBuf,
    key: Key,
    bytes: Vec<u8>,
}

impl Victim {
    fn new(kind: EntryKind) -> Victim {
        let rig = Rig::new();
        assert_eq!(run(&rig.engine(), 1), Origin::Compiled);
        let store = rig.store();
        let mut entries = store.entries().into_iter();
        let entry = entries.find(|entry| entry.kind == kind).unwrap();
        let (key, _) = entry.contents.unwrap();
        let bytes = fs::read(&entry.path).unwrap();
        let victim = Victim {
            kind,
            store,
            path: entry.path,
            key,
            bytes,
            rig,
        };
        assert_eq!(victim.open(&victim.bytes), Ok(()));
        assert_eq!(victim.sealed(&victim.key), victim.bytes);
        victim
    }

    /// One of code and one of a manifest.
    fn all() -> [Victim; 2] {
        EntryKind::ALL.map(Victim::new)
    }

    fn open(&self, bytes: &[u8]) -> Result<(), Defect> {
        match self.kind {
            EntryKind::Code => open(bytes, &self.key).map(|_| ()),
            EntryKind::Manifest => open_manifest(bytes, &self.key),
        }
    }

    fn load(&self) -> Result<(), Defect> {
        match self.kind {
            EntryKind::Code => self.store.load(&self.key).map(|_| ()),
            EntryKind::Manifest => self.store.load_manifest(&self.key),
        }
    }

    /// The entry with another key, and the right digest.
    fn sealed(&self, key: &Key) -> Vec<u8> {
        let old = self.key.text().len();
        let mut bytes = self.bytes.clone();
        bytes.splice(HEADER..HEADER + old, key.text().bytes());
        bytes[16..24].copy_from_slice(&(key.text().len() as u64).to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes[..DIGEST]);
        hasher.update(&bytes[HEADER..]);
        bytes[DIGEST..HEADER].copy_from_slice(hasher.finalize().as_bytes());
        bytes
    }

    /// Puts bytes in the entry's place: they must be refused and removed. Returns the reason.
    fn refused(&self, bytes: &[u8]) -> Defect {
        fs::write(&self.path, bytes).unwrap();
        let defect = self.load().unwrap_err();
        assert!(!self.path.exists(), "{defect}: the entry is still there");
        defect
    }

    /// The same from outside: what is gone is made again, and the kernel computes the right thing.
    fn recompiled(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).unwrap();
        let engine = self.rig.engine();
        let (origin, misses) = match self.kind {
            EntryKind::Code => (Origin::Compiled, 1),
            EntryKind::Manifest => (Origin::Disk, 0),
        };
        assert_eq!(run(&engine, 1), origin);
        let stats = engine.cache_stats();
        assert_eq!((stats.disk_purged, stats.misses), (1, misses));
        assert_eq!(fs::read(&self.path).unwrap(), self.bytes, "written anew");
    }

    /// The entry as another key would have it, in the place of this one.
    fn of_another(&self, from: &str, to: &str) -> Vec<u8> {
        assert!(
            self.key.text().contains(from),
            "{from}: {}",
            self.key.text()
        );
        self.sealed(&Key::from_text(self.key.text().replacen(from, to, 1)))
    }
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

#[test]
fn every_truncation_is_refused() {
    Victim::all().iter().for_each(truncations);
}

fn truncations(victim: &Victim) {
    let mut tally = Tally::of(victim.kind);
    // In a plain run all lengths of the header, and some of what comes after it.
    let all = |length: &usize| full() || *length <= HEADER || length.is_multiple_of(7);
    for length in (0..victim.bytes.len()).filter(all) {
        let defect = victim.refused(&victim.bytes[..length]);
        assert_eq!(defect.kind(), "length", "{length}");
        tally.add("truncated");
    }
    let mut longer = victim.bytes.clone();
    longer.push(0);
    assert_eq!(victim.refused(&longer).kind(), "length");
    for length in [
        0,
        1,
        71,
        72,
        73,
        victim.bytes.len() / 2,
        victim.bytes.len() - 1,
    ] {
        victim.recompiled(&victim.bytes[..length]);
        tally.add("truncated, run again");
    }
}

#[test]
fn every_flipped_bit_of_the_header_is_refused() {
    Victim::all().iter().for_each(header_flips);
}

fn header_flips(victim: &Victim) {
    let mut tally = Tally::of(victim.kind);
    for bit in 0..HEADER * 8 {
        let defect = victim.refused(&flipped(&victim.bytes, bit));
        tally.add(format!("header bit flipped: {}", defect.kind()));
    }
    for bit in (0..HEADER * 8).step_by(89) {
        victim.recompiled(&flipped(&victim.bytes, bit));
        tally.add("header bit flipped, run again");
    }
}

#[test]
fn flipped_bits_of_the_payload_are_refused() {
    Victim::all().iter().for_each(payload_flips);
}

fn payload_flips(victim: &Victim) {
    let mut tally = Tally::of(victim.kind);
    let bits = (victim.bytes.len() - HEADER) * 8;
    for i in 0..10_000usize {
        // A multiplier without common factors spreads them evenly.
        let bit = HEADER * 8 + i.wrapping_mul(7_919) % bits;
        let bytes = flipped(&victim.bytes, bit);
        assert_eq!(victim.open(&bytes), Err(Defect::Digest));
        tally.add("payload bit flipped");
        if i % 50 == 0 {
            assert_eq!(victim.refused(&bytes), Defect::Digest);
            tally.add("payload bit flipped, in the directory");
        }
    }
    for i in 0..5 {
        victim.recompiled(&flipped(&victim.bytes, HEADER * 8 + bits / 5 * i));
        tally.add("payload bit flipped, run again");
    }
}

/// Whole and undamaged entries, but not of what is asked for.
#[test]
fn entries_of_something_else_are_refused() {
    let all: &[(&str, &str, &str)] = &[
        ("wrong version", VERSION, "\"version\":\"9.9.9\""),
        ("wrong ABI", "\"abi\":", "\"abi\":9"),
        ("wrong sources", "\"sources\":\"", "\"sources\":\"0"),
        ("wrong limit", "\"MAX_BLOCKS\":", "\"MAX_BLOCKS\":1"),
    ];
    let code = [
        ("wrong CPU feature", "\"true\"", "\"false\""),
        (
            "wrong backend",
            "\"name\":\"cranelift\"",
            "\"name\":\"llvm\"",
        ),
        ("wrong kernel", "\"text\":\"", "\"text\":\"0"),
        ("wrong policy", "ReadZeroSkipWrite", "Trap"),
    ];
    let manifest = [
        ("wrong file", "\"bytes\":\"", "\"bytes\":\"0"),
        ("wrong device", "\"Dg2\"", "\"Pvc\""),
        ("wrong format", "\"Text\"", "\"Zebin\""),
    ];
    something_else(&Victim::new(EntryKind::Code), &[all, &code].concat());
    something_else(
        &Victim::new(EntryKind::Manifest),
        &[all, &manifest].concat(),
    );
}

const VERSION: &str = concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"");

fn something_else(victim: &Victim, cases: &[(&str, &str, &str)]) {
    let mut tally = Tally::of(victim.kind);
    for (kind, from, to) in cases {
        let bytes = victim.of_another(from, to);
        assert_eq!(victim.refused(&bytes), Defect::Key, "{kind}");
        victim.recompiled(&bytes);
        tally.add(*kind);
    }
    // An entry of the other kind, whole, is none of this kind.
    let other = EntryKind::ALL.into_iter().find(|kind| *kind != victim.kind);
    let other = fs::read(victim.rig.only(other.unwrap())).unwrap();
    assert_eq!(victim.refused(&other), Defect::Magic);
    victim.recompiled(&other);
    tally.add("wrong kind");
    let mut format = victim.bytes.clone();
    format[8] += 1;
    assert_eq!(victim.refused(&format).kind(), "format");
    tally.add("wrong format");
    assert_eq!(victim.refused(b"").kind(), "length");
    victim.recompiled(b"");
    tally.add("empty file");
}

#[test]
fn swapped_entries_are_refused() {
    let rig = Rig::new();
    for n in 0..2 {
        run(&rig.engine(), n);
    }
    let code = [0, 1].map(|n| store_of(&rig.engine(), &rig, n));
    let entries = rig.store().entries().into_iter();
    let manifests = entries.filter(|entry| entry.kind == EntryKind::Manifest);
    let manifests: Vec<PathBuf> = manifests.map(|entry| entry.path).collect();
    for pair in [&code[..], &manifests] {
        let aside = rig.parent().join("aside");
        fs::rename(&pair[0], &aside).unwrap();
        fs::rename(&pair[1], &pair[0]).unwrap();
        fs::rename(&aside, &pair[1]).unwrap();
    }
    let engine = rig.engine();
    for n in 0..2 {
        assert_eq!(run(&engine, n), Origin::Compiled);
    }
    assert_eq!(engine.cache_stats().disk_purged, 4);
    for pair in [&code[..], &manifests] {
        fs::copy(&pair[0], &pair[1]).unwrap();
    }
    let (count, bad) = rig.store().verify();
    assert_eq!((count, bad.len()), (4, 2), "verifying sees it too");
    let engine = rig.engine();
    for n in 0..2 {
        run(&engine, n);
    }
    for n in 0..2 {
        assert_eq!(run(&rig.engine(), n), Origin::Disk);
    }
    println!("swapped entries -> 4");
}

/// The code and everything else in an entry are what was compiled.
#[test]
fn entries_hold_what_was_compiled() {
    let victim = Victim::new(EntryKind::Code);
    let artifact: Artifact = open(&victim.bytes, &victim.key).unwrap();
    assert_eq!(seal(&victim.key, &artifact).unwrap(), victim.bytes);
    let engine = victim.rig.engine();
    let program = super::rig::text(&engine, 1);
    let policy = visa_jit::backend::OobPolicy::default();
    let cached = program.kernels()[0].code(policy).unwrap();
    assert_eq!(cached.object().code, artifact.code);
    assert_eq!(
        engine.cache_stats().disk_hits + engine.cache_stats().misses,
        1
    );
    assert!(!artifact.lines.rows().is_empty() && !artifact.sites.is_empty());
}
