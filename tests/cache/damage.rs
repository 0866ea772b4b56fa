//! Damaged entries: always a miss, never used, gone afterwards; and the kernel runs.

use std::fs;
use std::path::PathBuf;

use visa_jit::Origin;
use visa_jit::artifact::{Artifact, Defect, Key, Store, open, seal};

use crate::rig::{Rig, Tally, run, store_of};

/// Bytes of the header.
const HEADER: usize = 72;

/// An entry of a kernel, and all that is needed to put another in its place.
struct Victim {
    rig: Rig,
    store: Store,
    path: PathBuf,
    key: Key,
    bytes: Vec<u8>,
    artifact: Artifact,
}

impl Victim {
    fn new() -> Victim {
        let rig = Rig::new();
        assert_eq!(run(&rig.engine(), 1), Origin::Compiled);
        let store = rig.store();
        let entry = store.entries().pop().unwrap();
        let (key, _) = entry.contents.unwrap();
        let bytes = fs::read(&entry.path).unwrap();
        let artifact = open(&bytes, &key).unwrap();
        assert_eq!(
            seal(&key, &artifact).unwrap(),
            bytes,
            "sealing is reproducible"
        );
        Victim {
            store,
            path: entry.path,
            key,
            bytes,
            artifact,
            rig,
        }
    }

    /// Puts bytes in the entry's place: they must be refused and removed. Returns the reason.
    fn refused(&self, bytes: &[u8]) -> Defect {
        fs::write(&self.path, bytes).unwrap();
        let defect = self.store.load(&self.key).unwrap_err();
        assert!(!self.path.exists(), "{defect}: the entry is still there");
        defect
    }

    /// The same from outside: the kernel is compiled again and computes the right thing.
    fn recompiled(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).unwrap();
        let engine = self.rig.engine();
        assert_eq!(run(&engine, 1), Origin::Compiled);
        let stats = engine.cache_stats();
        assert_eq!((stats.disk_purged, stats.misses), (1, 1));
        assert_eq!(fs::read(&self.path).unwrap(), self.bytes, "written anew");
    }

    /// The entry as another key would have it, in the place of this one.
    fn of_another(&self, from: &str, to: &str) -> Vec<u8> {
        assert!(
            self.key.text().contains(from),
            "{from}: {}",
            self.key.text()
        );
        let key = Key::from_text(self.key.text().replacen(from, to, 1));
        seal(&key, &self.artifact).unwrap()
    }
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

#[test]
fn every_truncation_is_refused() {
    let victim = Victim::new();
    let mut tally = Tally::default();
    for length in 0..victim.bytes.len() {
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
    let victim = Victim::new();
    let mut tally = Tally::default();
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
    let victim = Victim::new();
    let mut tally = Tally::default();
    let bits = (victim.bytes.len() - HEADER) * 8;
    for i in 0..10_000usize {
        // A multiplier without common factors spreads them evenly.
        let bit = HEADER * 8 + i.wrapping_mul(7_919) % bits;
        let bytes = flipped(&victim.bytes, bit);
        assert_eq!(open(&bytes, &victim.key), Err(Defect::Digest));
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
    let victim = Victim::new();
    let mut tally = Tally::default();
    let build = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    for (kind, from, to) in [
        ("wrong version", build.as_str(), "\"version\":\"9.9.9\""),
        ("wrong ABI", "\"abi\":", "\"abi\":9"),
        ("wrong sources", "\"sources\":\"", "\"sources\":\"0"),
        ("wrong CPU feature", "\"true\"", "\"false\""),
        (
            "wrong backend",
            "\"name\":\"cranelift\"",
            "\"name\":\"llvm\"",
        ),
        ("wrong kernel", "\"text\":\"", "\"text\":\"0"),
        ("wrong policy", "ReadZeroSkipWrite", "Trap"),
        ("wrong limit", "\"MAX_BLOCKS\":", "\"MAX_BLOCKS\":1"),
    ] {
        let bytes = victim.of_another(from, to);
        assert_eq!(victim.refused(&bytes), Defect::Key, "{kind}");
        victim.recompiled(&bytes);
        tally.add(kind);
    }
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
    let [a, b] = [0, 1].map(|n| store_of(&rig.engine(), &rig, n));
    let aside = rig.parent().join("aside");
    fs::rename(&a, &aside).unwrap();
    fs::rename(&b, &a).unwrap();
    fs::rename(&aside, &b).unwrap();
    let (count, bad) = rig.store().verify();
    assert_eq!((count, bad.len()), (2, 2), "verifying sees it too");
    let engine = rig.engine();
    for n in 0..2 {
        assert_eq!(run(&engine, n), Origin::Compiled);
    }
    for n in 0..2 {
        assert_eq!(run(&rig.engine(), n), Origin::Disk);
    }
    println!("swapped entries -> 2");
}

/// The code and everything else in an entry are what was compiled.
#[test]
fn entries_hold_what_was_compiled() {
    let victim = Victim::new();
    let engine = victim.rig.engine();
    let program = crate::rig::text(&engine, 1);
    let policy = visa_jit::backend::OobPolicy::default();
    let cached = program.kernels()[0].code(policy).unwrap();
    assert_eq!(cached.object().code, victim.artifact.code);
    assert_eq!(
        engine.cache_stats().disk_hits + engine.cache_stats().misses,
        1
    );
    assert!(!victim.artifact.lines.is_empty() && !victim.artifact.sites.is_empty());
}
