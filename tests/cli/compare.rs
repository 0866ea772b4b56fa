//! Strategies side by side: as a table, for scripts, and as a page.

use super::*;

fn compare(more: &[&str]) -> Vec<&'static str> {
    let mut args = saxpy(more);
    args[0] = "compare";
    args
}

#[test]
fn strategies_are_compared() {
    let table = ok(&compare(&["--repeat", "3"])).stdout;
    assert!(table.contains("compared with the reference interpreter"));
    assert!(table.contains("relative to `cranelift none`"), "{table}");
    assert!(table.contains("\ncranelift speed "), "{table}");
    assert!(!table.contains("WRONG"), "{table}");

    let more = [
        "--sweep",
        "no-pass=none,gvn,masks",
        "--sweep",
        "opt=none,O2",
    ];
    let base = ["--baseline", "no-pass=gvn none", "--repeat", "2"];
    let json = ok(&compare(&[&more[..], &base, &["--json"]].concat())).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["strategies"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(row["same"], Value::Bool(true), "{row}");
        assert!(row["instructions"].as_u64().unwrap() > 20, "{row}");
        assert!(row["compile_ms"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["run_ms"].as_f64() >= row["least_ms"].as_f64(), "{row}");
    }
    assert_eq!(json["baseline"], "no-pass=gvn none");
    assert!((rows[1]["speed"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(json["refused"].as_array().unwrap().len(), 3);

    let csv = ok(&compare(&["--no-verify", "--csv", "--repeat", "1"])).stdout;
    let columns: Vec<_> = csv.lines().map(|l| l.split(',').count()).collect();
    assert!(columns.len() >= 3, "{csv}");
    assert!(columns.iter().all(|&n| n == 18), "{csv}");
    // Six accesses, of which two test for all, and none is done lane by lane.
    let counts = |row: &Value| ["tests", "tests_saved", "one_by_one"].map(|k| row[k].as_u64());
    assert_eq!(counts(&rows[0]), [Some(2), Some(4), Some(0)], "{}", rows[0]);
    assert_eq!(rows[0]["launches"], "rows of local ids");

    for (wrong, says) in [
        (
            &["--sweep", "width=1"][..],
            "there is no axis `width`; there is backend, ",
        ),
        (&["--sweep", "codegen=fast"], "none, speed"),
        (&["--baseline", "x"], "`cranelift speed`"),
        (&["--save", "0=x"], "--save is for `run`"),
        (&["--backend", "interp"], "leave out --backend interp"),
    ] {
        let output = visa_jit(&compare(wrong));
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(says), "{}", output.stderr);
    }
}

#[test]
fn checks_are_a_strategy() {
    let sweep = [
        "--sweep",
        "check=none,barrier,memory,race,init",
        "--repeat",
        "1",
    ];
    let json = ok(&compare(&[&sweep[..], &["--json"]].concat())).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["strategies"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row["same"] == Value::Bool(true)));
}

/// What headless Chromium makes of a page, scripts included; `None` where it is not installed.
fn opened(url: &str) -> Option<String> {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args(
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
                .split(' '),
        )
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", url])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// What a page refers to outside of itself, and markup that kernels could smuggle in.
fn is_self_contained(page: &str) {
    for outside in [
        "http:", "https:", "src=", "href=", "@import", "url(", "<img",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_page_shows_where_code_came_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.html");
    let html = ["--html", path.to_str().unwrap(), "--repeat", "3"];
    let sweep = ["--sweep", "no-pass=none,shape", "--sweep", "opt=none,O2"];
    let table = ok(&compare(&[&html[..], &sweep].concat())).stdout;
    assert!(
        table.contains("code for full rows") || table.contains("code for rows"),
        "{table}"
    );
    let page = fs::read_to_string(&path).unwrap();
    is_self_contained(&page);
    // A point for each run, and those that are not possible with the reason.
    assert_eq!(page.matches("<svg").count(), 2);
    assert_eq!(page.matches("15h0").count(), 6);
    assert!(
        page.contains("cranelift: has no passes of its own"),
        "no refusal"
    );

    let text = ok(&["asm", SAXPY, "--kernel", "saxpy"]).stdout;
    let store = text.lines().find(|l| l.contains(" scatter4_scaled"));
    let store = store.and_then(|l| l.strip_prefix("; ")?.split(':').next());
    let store = store.expect("a line of the store");
    let Some(dom) = opened(&format!("file://{}#line-{store}", path.display())) else {
        println!(
            "skipped: opening the page, because chromium is not installed (apt-get install chromium)"
        );
        return;
    };
    // The line is lit up in vISA, IR and machine code of both strategies.
    let lit: Vec<&str> = dom
        .split("<div ")
        .filter(|row| row.starts_with(&format!("data-l=\"{store}\" class=\"pin\"")))
        .collect();
    let count = |what: &str| lit.iter().filter(|row| row.contains(what)).count();
    assert_eq!(count("    scatter4_scaled."), 1, "{lit:?}");
    assert!(
        count(": store.surface") + count("store.surface.i32") >= 2,
        "{lit:?}"
    );
    assert!(count("mov") >= 2, "{lit:?}");
    assert!(
        dom.contains("<h3>SSA <span>no-pass=none none, for "),
        "no title"
    );
}

#[test]
fn text_of_the_kernel_is_text_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let nasty = "</script></div><img id='x' onerror=alert(1)><!--<script> & \u{2028}";
    let text = format!(
        "// {nasty}\n.version 4.1\n.kernel \"k\"\n.kernel_attr SimdSize=8\n.decl A v_type=G type=d num_elts=8 align=GRF\n\
         .decl T6 v_type=T num_elts=1\n.function \"main\"\n    movs (M1_NM, 1) T6(0) 0x0:ud\n\
         \x20   mov (M1, 8) A(0,0)<1> 0x7:d\n    oword_st (2) T6 0x0:ud A.0\n    ret (M1, 1)\n"
    );
    fs::write(path("<b>k.visaasm"), text).unwrap();
    let (file, page) = (path("<b>k.visaasm"), path("page.html"));
    let args = [
        "compare",
        &file,
        "--platform",
        "skl",
        "--global",
        "8",
        "--surface",
        "0=zero:32",
    ];
    ok(&[&args[..], &["--html", &page, "--repeat", "1"]].concat());
    let written = fs::read_to_string(&page).unwrap();
    is_self_contained(&written);
    assert!(!written.contains("<b>"), "the file's name is markup");
    assert_eq!(written.matches("</script>").count(), 2);
    // A plain run starts the browser for the test above only.
    if full()
        && let Some(dom) = opened(&format!("file://{page}"))
    {
        let shown = "&lt;/script&gt;&lt;/div&gt;&lt;img id='x' onerror=alert(1)&gt;";
        assert!(dom.contains(shown), "{dom}");
        assert_eq!(dom.matches("</script>").count(), 2);
    }
}
