//! Many processes on one directory, some of them killed.
//!
//! The other processes are this test program again, told by the environment to do one job.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use visa_jit::artifact::EntryKind;
use visa_jit::{DiskCache, Origin};

use super::rig::{Rig, engine, run};

const JOB: &str = "VISA_JIT_TEST_JOB";
const DIR: &str = "VISA_JIT_TEST_DIR";

/// Starts this program as a process that does `job`.
fn start(rig: &Rig, job: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "cache::processes::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(JOB, job)
        .env(DIR, rig.dir())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a started process does; nothing in an ordinary run of the tests.
#[test]
fn child() {
    let (Ok(job), Some(dir)) = (env::var(JOB), env::var_os(DIR)) else {
        return;
    };
    let cache = DiskCache::at(dir);
    let (verb, number) = job.split_once(' ').unwrap();
    let number: u32 = number.parse().unwrap();
    match verb {
        // Each from its own starting point, so that processes meet everywhere.
        "compile" => {
            let (count, from) = (number >> 8, number & 0xFF);
            let engine = engine(Some(cache));
            for i in 0..count {
                run(&engine, (i + from * 13) % count);
            }
        }
        // Writes the same entries again and again until it is killed.
        "write" => {
            let store = cache.store();
            let rewritten: Vec<_> = store
                .entries()
                .into_iter()
                .filter(|entry| entry.kind == EntryKind::Code)
                .filter_map(|entry| {
                    let (key, _) = entry.contents.ok()?;
                    let artifact = store.load(&key).ok()?;
                    Some((key, artifact))
                })
                .collect();
            println!("writing");
            loop {
                for (key, artifact) in &rewritten {
                    // Another process may have removed the directory's entry; it is made again.
                    let _ = std::fs::remove_file(store.path(key));
                    store.save(key, artifact).unwrap();
                }
            }
        }
        other => panic!("no job {other}"),
    }
}

/// Kills writers at any moment; what they leave is whole or nothing.
fn kills(count: u32) {
    let rig = Rig::new();
    let kernels = 4;
    let engine = rig.engine();
    (0..kernels).for_each(|n| {
        run(&engine, n);
    });
    let (mut whole, mut absent) = (0, 0);
    for i in 0..count {
        // Those that a kill took are written again, as writers only know what they find.
        (0..kernels).for_each(|n| {
            run(&rig.engine(), n);
        });
        let mut child = start(&rig, "write 0");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let started = lines.by_ref().any(|line| line.unwrap().contains("writing"));
        assert!(started, "the writer did not start");
        sleep(Duration::from_micros(u64::from(i * 37 % 3000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let entries = rig.store().entries();
        // Each kernel is a program of its own, with a manifest.
        absent += 2 * kernels as usize - entries.len();
        for entry in entries {
            assert!(entry.contents.is_ok(), "kill {i}: {entry:?}");
            whole += 1;
        }
    }
    let left = rig.store().temporary();
    println!(
        "kills during write -> {count} (entries whole {whole}, absent {absent}, unfinished files {left})"
    );
    rig.store().clear();
    assert_eq!(rig.store().temporary(), 0);
}

fn together(processes: u32, kernels: u32) {
    let rig = Rig::new();
    let children: Vec<Child> = (0..processes)
        .map(|p| start(&rig, &format!("compile {}", kernels << 8 | p)))
        .collect();
    for mut child in children {
        // Each checks its results itself.
        assert!(child.wait().unwrap().success());
    }
    let (count, bad) = rig.store().verify();
    assert_eq!(
        (count, bad.len(), rig.store().temporary()),
        (2 * u64::from(kernels), 0, 0)
    );
    let engine = rig.engine();
    for n in 0..kernels {
        assert_eq!(run(&engine, n), Origin::Disk);
    }
    println!("processes x kernels -> {processes} x {kernels}");
}

#[test]
fn writers_that_are_killed_leave_nothing_half() {
    kills(10);
}

#[test]
#[ignore = "a minute"]
fn a_thousand_kills() {
    kills(1000);
}

#[test]
fn processes_share_a_directory() {
    together(3, 10);
}

#[test]
#[ignore = "a minute"]
fn sixteen_processes_share_a_directory() {
    together(16, 200);
}
