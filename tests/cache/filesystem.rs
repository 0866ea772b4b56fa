//! What a file system can do to a cache.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use visa_jit::Origin;
use visa_jit::artifact::EntryKind;

use super::rig::{Rig, run, store_of};

/// An unprivileged user, for tests that run as one whom permissions do not stop.
const NOBODY: u32 = 65534;

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, Permissions::from_mode(bits)).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Compiles kernel 1, lets `change` have its code, or its program's manifest, and runs it twice: what is gone is made again, then
/// it is used.
fn survives(what: &str, change: impl Fn(&Rig, &Path)) {
    for kind in EntryKind::ALL {
        let rig = Rig::new();
        run(&rig.engine(), 1);
        let path = rig.only(kind);
        change(&rig, &path);
        let engine = rig.engine();
        let expected = match kind {
            EntryKind::Code => Origin::Compiled,
            EntryKind::Manifest => Origin::Disk,
        };
        assert_eq!(run(&engine, 1), expected, "{what}");
        assert_eq!(engine.cache_stats().disk_purged, 1, "{what}");
        let later = rig.engine();
        assert_eq!(run(&later, 1), Origin::Disk, "{what}");
        assert_eq!(later.cache_stats().disk_purged, 0, "{what}");
        println!("{what} in place of {kind:?} -> 1");
    }
}

#[test]
fn other_things_in_place_of_an_entry_are_replaced() {
    survives("a directory", |_, path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        fs::write(path.join("inside"), "x").unwrap();
    });
    survives("a link to the entry itself", |rig, path| {
        let aside = rig.parent().join("aside");
        fs::rename(path, &aside).unwrap();
        symlink(&aside, path).unwrap();
    });
    survives("a link to nowhere", |rig, path| {
        fs::remove_file(path).unwrap();
        symlink(rig.parent().join("none"), path).unwrap();
    });
    survives("a link to a directory", |rig, path| {
        fs::remove_file(path).unwrap();
        symlink(rig.parent(), path).unwrap();
    });
    survives("a pipe without a writer", |_, path| {
        fs::remove_file(path).unwrap();
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    });
    if is_root() {
        println!("unreadable: tested as another user");
    } else {
        survives("unreadable", |_, path| mode(path, 0));
    }
}

/// What a link points to is not touched when the link is removed.
#[test]
fn links_are_removed_and_not_followed() {
    let rig = Rig::new();
    run(&rig.engine(), 1);
    let path = store_of(&rig.engine(), &rig, 1);
    let precious = rig.parent().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "x").unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&precious, &path).unwrap();
    assert_eq!(run(&rig.engine(), 1), Origin::Compiled);
    assert!(precious.join("file").exists());
}

#[test]
fn directories_that_others_may_write_to_are_not_used() {
    let rig = Rig::new();
    run(&rig.engine(), 1);
    for bits in [0o777, 0o720, 0o702] {
        mode(&rig.dir(), bits);
        let engine = rig.engine();
        assert_eq!(run(&engine, 1), Origin::Compiled, "{bits:o}");
        assert_eq!(engine.cache_stats().disk_unwritten, 2);
    }
    mode(&rig.dir(), 0o700);
    assert_eq!(run(&rig.engine(), 1), Origin::Disk);
    if is_root() {
        std::os::unix::fs::chown(rig.dir(), Some(NOBODY), None).unwrap();
        assert_eq!(run(&rig.engine(), 1), Origin::Compiled, "somebody else's");
    }
}

#[test]
fn directories_that_others_may_write_to_get_nothing() {
    let rig = Rig::new();
    fs::create_dir(rig.dir()).unwrap();
    mode(&rig.dir(), 0o777);
    assert_eq!(run(&rig.engine(), 1), Origin::Compiled);
    assert_eq!(fs::read_dir(rig.dir()).unwrap().count(), 0);
}

#[test]
fn a_cache_that_cannot_be_made_is_done_without() {
    let rig = Rig::new();
    fs::write(rig.dir(), "a file").unwrap();
    let engine = rig.engine();
    assert_eq!(run(&engine, 1), Origin::Compiled);
    assert_eq!(engine.cache_stats().disk_unwritten, 2);
    assert_eq!(fs::read_to_string(rig.dir()).unwrap(), "a file");
}

/// `run` of the command with this cache, after some shell text; returns what it says about the cache.
fn saxpy(before: &str, rig: &Rig) -> String {
    let zebin = concat!(
        concat!(env!("CARGO_MANIFEST_DIR"), "/.."),
        "/tests/kernels/bin/skl/saxpy.zebin"
    );
    let program = rig.parent().join("program");
    if !program.exists() {
        // Where another user can reach it. Another process copies it: a program that this one has open for writing is in the
        // hands of the processes that other tests start meanwhile, too, and cannot be executed.
        let copied = Command::new("cp")
            .args([Path::new(env!("CARGO_BIN_EXE_visa-jit")), &program])
            .status();
        assert!(copied.unwrap().success());
        fs::copy(zebin, rig.parent().join("saxpy.zebin")).unwrap();
        mode(&rig.parent().join("saxpy.zebin"), 0o644);
    }
    let run = "./program run saxpy.zebin --kernel saxpy --global 8 --arg iota:f32:8 --arg fill:f32:10:8 \
        --arg f32:2 --print 0=f32:8 --json --cache-dir cache 2>&1";
    let script = format!("{before} {run}");
    let output = Command::new("sh")
        .uid(if is_root() {
            NOBODY
        } else {
            rustix::process::geteuid().as_raw()
        })
        .args(["-c", &script])
        .current_dir(rig.parent())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{script}: {text}");
    assert!(text.contains("= 20 21 22 23 24 25 26 27"), "{text}");
    let at = text.find("\"cache\":\"").expect("no cache field") + 9;
    text[at..].split('"').next().unwrap().to_owned()
}

fn reachable(rig: &Rig) -> bool {
    let seen = Command::new("ls")
        .uid(if is_root() {
            NOBODY
        } else {
            rustix::process::geteuid().as_raw()
        })
        .arg(rig.parent())
        .output();
    let seen = seen.is_ok_and(|output| output.status.success());
    if !seen {
        println!(
            "skipped: an unprivileged user cannot reach {}",
            rig.parent().display()
        );
    }
    seen
}

/// Permissions and limits, as an ordinary user of the command meets them.
#[test]
fn the_command_survives_permissions_and_limits() {
    let rig = Rig::new();
    if !reachable(&rig) {
        return;
    }
    if is_root() {
        std::os::unix::fs::chown(rig.parent(), Some(NOBODY), None).unwrap();
    }
    assert_eq!(saxpy("", &rig), "miss");
    assert_eq!(saxpy("", &rig), "disk");
    println!("ordinary user -> 2");
    let entry = rig_entry(&rig, "code");
    mode(&entry, 0);
    assert_eq!(saxpy("", &rig), "miss");
    assert_eq!(saxpy("", &rig), "disk");
    println!("unreadable code -> 1");
    // The file is read then, and its code found.
    let manifest = rig_entry(&rig, "manifest");
    mode(&manifest, 0);
    assert_eq!(saxpy("", &rig), "disk");
    assert_eq!(fs::metadata(&manifest).unwrap().mode() & 0o777, 0o600);
    println!("unreadable manifest -> 1");
    let dirs = [entry.parent().unwrap(), &rig.dir().join("tmp"), &rig.dir()];
    dirs.iter().for_each(|dir| mode(dir, 0o500));
    assert_eq!(saxpy("", &rig), "disk");
    dirs.iter().for_each(|dir| mode(dir, 0o700));
    println!("read-only directory -> 1");
    // Nothing can be removed or written, so it is a miss each time.
    mode(&entry, 0);
    for dir in [entry.parent().unwrap(), &rig.dir().join("tmp"), &rig.dir()] {
        mode(dir, 0o500);
    }
    for _ in 0..2 {
        assert_eq!(saxpy("", &rig), "miss");
    }
    println!("unreadable entry in a read-only directory -> 2");
    for dir in [&rig.dir(), &rig.dir().join("tmp"), entry.parent().unwrap()] {
        mode(dir, 0o700);
    }
    fs::remove_file(&entry).unwrap();
    // Two blocks of 512 or 1024 bytes, less than an entry; writing more would be a signal.
    assert_eq!(saxpy("ulimit -f 2;", &rig), "miss");
    assert!(!entry.exists());
    assert_eq!(fs::read_dir(rig.dir().join("tmp")).unwrap().count(), 0);
    println!("limit on the size of files -> 1");
    assert_eq!(saxpy("", &rig), "miss");
    assert_eq!(saxpy("", &rig), "disk");
}

fn rig_entry(rig: &Rig, ending: &str) -> std::path::PathBuf {
    // Its owner is another user, so that it is looked for without the store.
    let shards = fs::read_dir(rig.dir()).unwrap().flatten();
    let mut files = shards
        .filter(|shard| shard.file_name().len() == 2)
        .flat_map(|shard| fs::read_dir(shard.path()).unwrap().flatten());
    files
        .find(|file| file.path().extension().is_some_and(|e| e == ending))
        .unwrap()
        .path()
}

/// A file system of 32 KiB, most of it taken.
#[test]
fn a_full_disk_costs_the_entry_only() {
    let rig = Rig::new();
    fs::create_dir(rig.dir()).unwrap();
    let mount = |options: &[&str]| {
        let made = Command::new("mount").args(options).arg(rig.dir()).output();
        made.is_ok_and(|output| output.status.success())
    };
    if !is_root() || !mount(&["-t", "tmpfs", "-o", "size=32k,mode=700", "none"]) {
        println!("skipped: no tmpfs can be mounted here");
        return;
    }
    let result = std::panic::catch_unwind(|| {
        fs::write(rig.dir().join("filler"), [0; 64 << 10]).unwrap_err();
        let engine = rig.engine();
        assert_eq!(run(&engine, 1), Origin::Compiled);
        assert_eq!(engine.cache_stats().disk_unwritten, 2);
        assert_eq!((rig.store().size(), rig.store().temporary()), ((0, 0), 0));
        fs::remove_file(rig.dir().join("filler")).unwrap();
        assert_eq!(run(&rig.engine(), 1), Origin::Compiled);
        assert_eq!(run(&rig.engine(), 1), Origin::Disk);
        println!("full disk -> 1");
    });
    let unmounted = Command::new("umount").arg(rig.dir()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}
