//! The cases of `benches/cases` have the results on this driver that they have on PoCL.

use std::path::PathBuf;
use std::process::Command;

use visa_bench_cases::client::{Client, difference};
use visa_bench_cases::{Case, cases_in};

/// Says that this is the process whose loader finds both drivers.
const INSIDE: &str = "VISA_JIT_TEST_INSIDE";
const POCL: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/libpocl.so.2",
    "/usr/lib/aarch64-linux-gnu/libpocl.so.2",
];

/// `CASE=name` runs those with this in their names; `VISA_JIT_DEVICE` and `VISA_JIT_OCLOC` choose device and compiler.
#[test]
#[ignore = "PoCL compiles over seventy programs, which takes minutes"]
fn cases_of_the_bench_agree_with_pocl() {
    if std::env::var_os(INSIDE).is_some() {
        return compare();
    }
    let Some(pocl) = POCL
        .iter()
        .find(|path| std::fs::exists(path).is_ok_and(|found| found))
    else {
        eprintln!("skipped: PoCL is not installed (apt-get install pocl-opencl-icd)");
        return;
    };
    let tests = std::env::current_exe().expect("this test's own file");
    let library = tests.with_file_name("libvisa_jit_opencl.so");
    assert!(library.is_file(), "cargo builds {}", library.display());
    let vendors = tempfile::tempdir().expect("a folder");
    std::fs::write(vendors.path().join("pocl.icd"), pocl).expect("it is written");
    let ours = library.display().to_string();
    std::fs::write(vendors.path().join("visa-jit.icd"), ours).expect("it is written");
    let status = Command::new(&tests)
        .args([
            "--exact",
            "--nocapture",
            "--ignored",
            "cases_of_the_bench_agree_with_pocl",
        ])
        .env(INSIDE, "1")
        .env("OCL_ICD_VENDORS", vendors.path())
        .status()
        .expect("it runs");
    assert!(status.success(), "{status}: what differs is above");
}

fn compare() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../benches/cases");
    let wanted = std::env::var("CASE").unwrap_or_default();
    let ours = Client::named("visa-jit").expect("this driver");
    let pocl = Client::named("Portable Computing Language").expect("PoCL");
    let (mut failed, mut compared) = (Vec::new(), 0);
    for path in cases_in(&dir).expect("cases") {
        let case = Case::read(&path).expect("a case");
        if !case.name.contains(&wanted) {
            continue;
        }
        if let Some(need) = ours.missing(&case).or(pocl.missing(&case)) {
            eprintln!("{}: skipped, no {need:?}", case.name);
            continue;
        }
        let run = |client: &Client| client.load(&case)?.check();
        let what = match (run(&pocl), run(&ours)) {
            (Err(why), _) => {
                eprintln!("{}: skipped, PoCL says {why}", case.name);
                continue;
            }
            (_, Err(why)) => Some(why),
            (Ok(wanted), Ok(found)) => difference(&case, &wanted, &found),
        };
        compared += 1;
        failed.extend(what.map(|what| format!("{}: {what}", case.name)));
    }
    eprintln!("{compared} cases compared");
    assert!(compared > 0 && failed.is_empty(), "{}", failed.join("\n"));
}
