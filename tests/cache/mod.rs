//! The disk cache: what an earlier process compiled is used, and nothing else is, whatever happened to it.
//!
//! Tests print how many cases of each kind they tried (`--nocapture`). The long ones are `--ignored`.

mod damage;
mod filesystem;
mod processes;
mod rig;

use rig::{Rig, engine, run, store_of, text};
use visa_jit::artifact::EntryKind;
use visa_jit::isa::Platform;
use visa_jit::passes::PassOptions;
use visa_jit::{CacheStats, Class, DiskCache, Engine, EngineOptions, Launch, Origin, Versions};

#[test]
fn what_an_earlier_engine_compiled_is_used() {
    let rig = Rig::new();
    assert_eq!(run(&rig.engine(), 7), Origin::Compiled);
    for _ in 0..2 {
        let later = rig.engine();
        assert_eq!(run(&later, 7), Origin::Disk);
        assert_eq!(run(&later, 7), Origin::Memory);
        let expected = CacheStats {
            disk_hits: 1,
            hits: 1,
            ..CacheStats::default()
        };
        assert_eq!(later.cache_stats(), expected);
    }
}

/// What one engine reads of an unknown version another does not take from the cache.
#[test]
fn manifests_are_of_their_versions() {
    const TEXT: &str = ".version 9.9\n.kernel \"k\"\n.kernel_attr SimdSize=8\n.function \"main\"\n    ret (M1, 1)\n";
    let rig = Rig::new();
    let read = |versions| {
        let options = EngineOptions {
            versions,
            ..rig.options()
        };
        let engine = Engine::with_options(options).unwrap();
        let program = engine.program_from_text("k.visaasm", TEXT, Platform::Dg2)?;
        let report = program.kernels()[0].launch(&Launch::new([1, 1, 1]));
        // What the manifest leaves out is read by the same rules.
        assert!(program.kernels()[0].ssa(true).is_ok());
        report.map(|report| report.origin)
    };
    let refused = || {
        let error = read(Versions::Known).unwrap_err();
        assert_eq!(error.exit_class(), Class::Unsupported);
        assert!(error.to_string().contains("version 9.9"), "{error}");
    };
    refused();
    assert_eq!(read(Versions::Any).unwrap(), Origin::Compiled);
    assert_eq!(read(Versions::Any).unwrap(), Origin::Disk);
    refused();
}

#[test]
fn engines_without_a_cache_write_nothing() {
    let rig = Rig::new();
    assert_eq!(run(&engine(None), 1), Origin::Compiled);
    assert_eq!(run(&engine(None), 1), Origin::Compiled);
    assert_eq!(rig.store().size(), (0, 0));
}

/// Other options are other code, and both are kept.
#[test]
fn options_have_entries_of_their_own() {
    let rig = Rig::new();
    assert_eq!(run(&rig.engine(), 1), Origin::Compiled);
    let plain = EngineOptions {
        passes: PassOptions::none(),
        ..rig.options()
    };
    let plain = || Engine::with_options(plain.clone()).unwrap();
    assert_eq!(run(&plain(), 1), Origin::Compiled);
    assert_eq!(run(&plain(), 1), Origin::Disk);
    assert_eq!(run(&rig.engine(), 1), Origin::Disk);
    // The manifest of the program serves both.
    assert_eq!(rig.store().size().1, 3);
}

/// An entry has all that a launch and its fault records need.
#[test]
fn faults_of_cached_code_say_where() {
    let rig = Rig::new();
    let reports = [(); 2].map(|()| {
        let engine = rig.engine();
        let program = text(&engine, 3);
        let surface = engine.memory().alloc_from(&[9u32; 6]).unwrap();
        let launch = visa_jit::Launch::new([1, 1, 1])
            .oob(visa_jit::backend::OobPolicy::Report)
            .surface(0, surface);
        program.kernels()[0].launch(&launch).unwrap()
    });
    assert_eq!(reports[0].origin, Origin::Compiled);
    assert_eq!(reports[1].origin, Origin::Disk);
    assert_eq!(reports[0].fault_count, 4 - 2);
    assert_eq!(reports[0].faults, reports[1].faults);
    assert_eq!(reports[1].faults[0].opcode, "lsc_store");
}

#[test]
fn the_least_recently_used_entries_go() {
    let rig = Rig::new();
    run(&rig.engine(), 0);
    let (each, _) = rig.store().size();
    let limit = each * 20;
    let small = DiskCache {
        limit,
        ..rig.cache()
    };
    let engine = engine(Some(small.clone()));
    let path = store_of(&rig.engine(), &rig, 0);
    for n in 1..60 {
        run(&engine, n);
        // The first one is used all the time: as if it had been touched after every other.
        let now = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
        let file = std::fs::File::options().write(true).open(&path);
        file.unwrap().set_modified(now).unwrap();
    }
    let (bytes, count) = small.store().size();
    // The size is looked at after each sixteenth of the limit.
    assert!(bytes <= limit + limit / 8, "{bytes} of {limit}");
    assert!(count >= 10, "{count} entries left");
    assert_eq!(run(&rig.engine(), 0), Origin::Disk, "used, so kept");
    assert_eq!(run(&rig.engine(), 1), Origin::Compiled, "gone");
    assert_eq!(run(&rig.engine(), 59), Origin::Disk, "new");
}

#[test]
fn clearing_removes_entries_and_nothing_else() {
    let rig = Rig::new();
    for n in 0..3 {
        run(&rig.engine(), n);
    }
    let mine = rig.dir().join("notes.txt");
    let shard = store_of(&rig.engine(), &rig, 0);
    let beside = shard.parent().unwrap().join("other");
    std::fs::write(&mine, "x").unwrap();
    std::fs::write(&beside, "x").unwrap();
    let swept = rig.store().clear();
    assert_eq!((swept.entries, rig.store().size()), (6, (0, 0)));
    assert!(mine.exists() && beside.exists());
    std::fs::remove_file(mine).unwrap();
    std::fs::remove_file(beside).unwrap();
    rig.store().clear();
    assert!(!rig.dir().exists());
}

/// Cycles of loading, running and dropping leave memory and mappings where they were.
fn cycles(count: u32) {
    let rig = Rig::new();
    let used = || {
        let word = |at: usize| {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            text.split_whitespace()
                .nth(at)
                .unwrap()
                .parse::<f64>()
                .unwrap()
        };
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        (word(1), maps.lines().count() as f64)
    };
    let cycle = |n| {
        run(&rig.engine(), n % 8);
    };
    (0..count / 5).for_each(cycle);
    let before = used();
    (0..count).for_each(|n| {
        cycle(n);
        if n % 4 == 0 {
            // So that half of them compile.
            rig.store().clear();
        }
    });
    let after = used();
    println!(
        "{count} cycles: resident pages {} -> {}, mappings {} -> {}",
        before.0, after.0, before.1, after.1
    );
    assert!(
        after.0 <= before.0 * 1.05 + 64.0,
        "pages {before:?} -> {after:?}"
    );
    assert!(
        after.1 <= before.1 * 1.05 + 2.0,
        "mappings {before:?} -> {after:?}"
    );
}

#[test]
#[ignore = "a minute; alone in its process, as it counts the process's memory"]
fn ten_thousand_cycles_leave_nothing() {
    cycles(10_000);
}

/// The command: runs use the cache, and `cache` tells about it and looks after it.
#[test]
fn the_command_shows_the_cache() {
    let rig = Rig::new();
    let command = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_visa-jit"));
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let output = command
            .args(args)
            .arg("--cache-dir")
            .arg(rig.dir())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text)
    };
    let zebin = "tests/kernels/bin/skl/saxpy.zebin";
    let saxpy = |more: &[&str]| {
        let args = [
            "run",
            zebin,
            "--kernel",
            "saxpy",
            "--global",
            "8",
            "--arg",
            "iota:f32:8",
            "--arg",
            "fill:f32:10:8",
            "--arg",
            "f32:2",
            "--json",
        ];
        let (code, json) = command(&[&args, more].concat());
        assert_eq!(code, 0, "{json}");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["cache"].as_str().unwrap().to_owned()
    };
    let why =
        |more: &[&str]| command(&[&["cache", "why", zebin, "--kernel", "saxpy"], more].concat());
    let (_, text) = why(&[]);
    let none = "not in the cache, which has none\n";
    assert_eq!(text.matches(none).count(), 1 + 6, "{text}");
    assert_eq!(saxpy(&["--no-cache"]), "miss");
    assert_eq!(saxpy(&[]), "miss");
    assert_eq!(saxpy(&["--no-cache"]), "miss");
    assert_eq!(saxpy(&[]), "disk");
    assert_eq!(saxpy(&["--backend", "interp"]), "miss");

    let (_, list) = command(&["cache", "list"]);
    assert!(
        list.contains("  saxpy  Skl  Row  ReadZeroSkipWrite  cranelift\n"),
        "{list}"
    );
    let (_, text) = why(&[]);
    assert!(
        text.contains("saxpy (rows of local ids): in the cache as "),
        "{text}"
    );
    let manifest = format!("{zebin} (manifest of the program): ");
    assert!(
        text.starts_with(&format!("{manifest}in the cache as ")),
        "{text}"
    );
    let (_, text) = why(&["--oob", "trap"]);
    let only = "which differs in\n  codegen.oob: Trap here, ReadZeroSkipWrite there\n";
    assert!(text.contains(only), "{text}");
    let (_, text) = why(&["--no-pass", "gvn"]);
    // `short-branches` does not run for Cranelift.
    let only = "which differs in\n  passes.disabled: [\"gvn\",\"short-branches\"] here, [\"short-branches\"] there\n";
    assert!(text.contains(only), "{text}");
    let (_, text) = why(&["--device", "skl"]);
    let only = "Zebin  as the file says), which differs in\n  file.device: Skl here, none there\n";
    assert!(text.contains(only), "{text}");
    let (code, text) = command(&["cache", "why", zebin, "--backend", "interp"]);
    assert_eq!((code, &*text), (2, ""));
    assert!(command(&["cache", "stats"]).1.contains("entries    2\n"));

    assert!(list.contains("  Zebin  as the file says\n"), "{list}");
    let entry = rig.only(EntryKind::Code);
    let mut bytes = std::fs::read(&entry).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&entry, bytes).unwrap();
    let (code, text) = command(&["cache", "verify"]);
    assert!(
        code == 1 && text.contains("the digest does not match"),
        "{code} {text}"
    );
    let (code, text) = command(&["cache", "verify"]);
    assert_eq!((code, &*text), (0, "1 entries are good, 0 were removed\n"));
    assert_eq!(saxpy(&[]), "miss");
    assert!(
        command(&["cache", "clear"])
            .1
            .starts_with("removed 2 entries, ")
    );
    assert!(!rig.dir().exists());
}
