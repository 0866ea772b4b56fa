//! Damaged programs: an answer, not a crash, and quickly.

use std::time::{Duration, Instant};
use visa_jit::front::text::{ErrorKind, parse, print};
use visa_jit::limits;
use visa_test_common::{Rng, full, share};

/// Boundaries of words and of single other characters.
fn tokens(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut word = false;
    for (i, c) in text.char_indices() {
        let is_word = c.is_alphanumeric() || c == '_';
        if i > start && !(is_word && word) {
            out.push(&text[start..i]);
            start = i;
        }
        word = is_word;
    }
    out.push(&text[start..]);
    out
}

/// Token soup that each mutation may insert.
const RUBBISH: [&str; 24] = [
    "(",
    ")",
    "<",
    ">",
    "[",
    "]",
    ".",
    ":",
    ",",
    ";",
    "{",
    "}",
    "\"",
    "\\",
    "/*",
    "\n",
    "0x",
    "-",
    "99999999999999999999",
    "1e5",
    "é",
    "%",
    ".decl",
    "65536",
];

fn mutate(source: &str, all: &[&str], random: &mut Rng) -> String {
    match random.below(6) {
        0 => {
            let cut = random.below(source.len());
            let cut = (0..=cut)
                .rev()
                .find(|i| source.is_char_boundary(*i))
                .unwrap_or(0);
            source[..cut].to_string()
        }
        1 => {
            let mut bytes = source.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(7);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        kind => {
            let mut edited = all.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(edited.len());
                match kind {
                    2 => edited[at] = RUBBISH[random.below(RUBBISH.len())],
                    3 => edited[at] = "",
                    4 => edited.insert(at, RUBBISH[random.below(RUBBISH.len())]),
                    _ => edited[at] = all[random.below(all.len())],
                }
            }
            edited.concat()
        }
    }
}

#[test]
fn mutations_never_crash() {
    let lines: String = include_str!("lines.txt")
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(|l| format!("    {}\n", l.split(" => ").next().unwrap_or(l)))
        .collect();
    let sources = [
        include_str!("directives.visaasm").to_string(),
        format!(
            ".version 4.1\n.kernel k\n.decl V0032 v_type=G type=d num_elts=16\n.decl T6 v_type=T num_elts=1\n\
             .function main\n{}",
            lines
        ),
        ".version 4.1\n.kernel k\n.decl V0032 v_type=G type=d num_elts=16 align=GRF\n.decl P1 v_type=P num_elts=16\n\
         .function main\n    cmp.lt (M1, 16) P1 V0032(0,0)<1;1,0> 0x10:d\n    (!P1) goto (M1, 16) L1\n\
         \x20   add.sat (M1, 16) V0032(0,0)<1> (-)V0032(0,0)<1;1,0> -1:w /// $3\nL1:\n    ret (M1, 1)\n"
            .to_string(),
    ];
    let mut random = Rng::new(1);
    let mut accepted = 0;
    for source in &sources {
        let all = tokens(source);
        // Of the long one, in which hardly anything is accepted, a plain run takes fewer.
        let part = if source.len() > 10_000 { 84 } else { 28 };
        for _ in 0..share(7_000, part) {
            let text = mutate(source, &all, &mut random);
            let start = Instant::now();
            match parse("mutant", &text) {
                Ok(module) => {
                    accepted += 1;
                    assert_eq!(parse("printed", &print(&module)), Ok(module), "{text}");
                }
                Err(errors) => {
                    assert!(!errors.errors.is_empty());
                    assert!(errors.to_string().len() < 200_000);
                }
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{text}");
        }
    }
    assert!(accepted > share(700, 28), "{accepted}");
}

/// Inputs that a quadratic or recursive reader would choke on.
#[test]
fn hostile_shapes_are_bounded() {
    let head = ".version 4.1\n.kernel k\n";
    // A reader that is quadratic takes long for the fourth part, too.
    let n = share(200_000, 4) as usize;
    let cases = [
        "(".repeat(n),
        format!(".decl V v_type=G type=d num_elts={}1", "(".repeat(n)),
        format!(".decl V v_type=G type=d num_elts={}1", "-".repeat(n)),
        format!(".decl V v_type=G type=d num_elts=1{}", "+1".repeat(20_000)),
        "{\n".repeat(n),
        "/*".repeat(n),
        "\\\n".repeat(n),
        format!(".kernel_attr A=\"{}\"", "a".repeat(n)),
        format!("{}:\n", "L".repeat(n)),
        format!("goto (M1, 1) {}\n", "L".repeat(n)),
        (0..n / 4).fold(String::new(), |s, i| s + &format!("goto (M1, 1) L{i}\n")),
        (0..n / 4).fold(String::new(), |s, i| {
            s + &format!("{{\n.decl V v_type=P num_elts=1\n.decl V_{i} v_type=P num_elts=1\n}}\n")
        }),
        (0..n / 4).fold(String::new(), |s, i| {
            s + &format!("mov (M1, 1) V{i}(0,0)<1> 0x0:d\n")
        }),
        format!("switchjmp (M1, 1) 0x0:ud ({}L)\n", "L,".repeat(n)),
        format!("mov.{}\n", "a.".repeat(n)),
        "\u{e9}".repeat(n),
        "\"\n".repeat(n),
    ];
    for case in cases {
        let start = Instant::now();
        let _ = parse("hostile", &format!("{head}{case}")).map_err(|e| e.to_string().len());
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            case.get(..40)
        );
    }
}

/// Exceeding a bound is an error of its own kind.
#[test]
fn limits_are_typed_errors() {
    let head = ".version 4.1\n.kernel k\n.decl V v_type=G type=d num_elts=1\n";
    let name = "n".repeat(limits::MAX_NAME_BYTES + 1);
    let cases = [
        format!(
            ".kernel_attr A=\"{}\"\n",
            "a".repeat(limits::MAX_STRING_BYTES)
        ),
        format!(".decl {name} v_type=P num_elts=1\n"),
        format!(".funcdecl {name}\n"),
        format!("{name}:\n"),
        "{\n".repeat(limits::MAX_SCOPES),
        format!(
            ".decl W v_type=G type=d num_elts={}1",
            "(".repeat(limits::MAX_EXPR_DEPTH + 2)
        ),
        format!("yield{}\n", " .".repeat(limits::MAX_TOKENS)),
        "yield\n".repeat(limits::MAX_INSTS + 1),
        ".kernel_attr A\n".repeat(limits::MAX_DIRECTIVES + 1),
        format!(
            "switchjmp (1) 0x0:ud (L{})\nL:\n",
            ",L".repeat(limits::MAX_SWITCH_TARGETS)
        ),
        format!(
            ".decl S v_type=S num_elts=1\nsample_3d.R (8) 0x0:uw S %bss V.0{}\n",
            " V.0".repeat(limits::MAX_SAMPLE_PARAMS + 1)
        ),
        " ".repeat(limits::MAX_TEXT_BYTES),
    ];
    // A million instructions take as long as all else here: that limit is left to full runs.
    let slow = |case: &String| case.starts_with("yield\n");
    for case in cases.into_iter().filter(|case| full() || !slow(case)) {
        let result = parse("limit", &format!("{head}{case}"));
        let kind = result.err().and_then(|e| e.errors.first().map(|e| e.kind));
        assert_eq!(kind, Some(ErrorKind::Limit), "{:?}", case.get(..40));
    }
    let many = parse(
        "limit",
        &format!("{head}{}", "x\n".repeat(limits::MAX_ERRORS * 2)),
    );
    let errors = many.err().map(|e| (e.errors.len(), e.stopped));
    assert_eq!(errors, Some((limits::MAX_ERRORS, true)));
}
