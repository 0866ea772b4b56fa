//! Small damage to programs and containers.

use visa_test_common::Rng;

/// Words that make edits reach deeper than random bytes would.
const WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "255",
    "65535",
    "4294967295",
    "0x0:ud",
    "0xffffffff:d",
    "0x7f800000:f",
    "0x8000:hf",
    "0x1:q",
    "0xff:b",
    "0x76543210:v",
    "<0;1,0>",
    "<1;1,0>",
    "<2;1,0>",
    "<4;4,1>",
    "<8;8,1>",
    "<16;16,1>",
    "<32;1,0>",
    "<1>",
    "<2>",
    "<4>",
    "(M1, 1)",
    "(M1, 8)",
    "(M1, 16)",
    "(M1, 32)",
    "(M5, 16)",
    "(M8, 4)",
    "(M5_NM, 16)",
    "(M1_NM, 1)",
    "(NoMask, 32)",
    "P1",
    "!P1",
    "P1.any",
    "%null",
    "%r0",
    "%cr0",
    "%slm",
    "%scratch",
    "T6",
    "T0",
    "V0032",
    "V0048",
    "A0(0)<1>",
    "r[A0(0),16]<1;1,0>:d",
    "r[A0(0)]<1>:b",
    "mov",
    "add",
    "mul",
    "mad",
    "cmp.lt",
    "cmp.ne",
    "sel",
    "setp",
    "shl",
    "asr",
    "shr",
    "bfe",
    "bfi",
    "addc",
    "madw",
    "mulh",
    "div",
    "mod",
    "exp",
    "inv",
    "sqrt",
    "goto",
    "jmp",
    "call",
    "ret",
    "barrier",
    "gather4_scaled.RGBA",
    "scatter4_scaled.R",
    "gather_scaled.2",
    "scatter.4",
    "oword_ld",
    "dword_atomic.add",
    "svm_gather.4.1",
    "lsc_load.ugm",
    "flat[V0048]:a64",
    "V0048:d32x4",
    "_main_0",
    "_0_010",
    ".sat",
    "(-)",
    "(abs)",
    "(~)",
    "\"",
    "/*",
    "//",
    "\\",
    ":",
    ",",
    ".",
    "[",
    ")",
    "\u{e9}",
];

/// A program with some of its words, or lines, replaced, added or removed.
pub fn edit_text(source: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(lines.len());
        let other = rng.below(lines.len());
        match rng.below(9) {
            0 => {
                lines.remove(at);
            }
            1 => lines.swap(at, other),
            2 => {
                let copy = lines[other].clone();
                lines.insert(at, copy);
            }
            3 => lines.truncate(at.max(1)),
            _ => {
                let mut words: Vec<&str> = lines[at].split_inclusive(' ').collect();
                if words.is_empty() {
                    words.push("");
                }
                let w = rng.below(words.len());
                let new = format!("{} ", WORDS[rng.below(WORDS.len())]);
                match rng.below(3) {
                    0 => words[w] = &new,
                    1 => words.insert(w, &new),
                    _ => {
                        words.remove(w);
                    }
                }
                lines[at] = words.concat();
            }
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
    }
    lines.join("\n")
}

/// A file with some of its bits flipped, or cut short.
pub fn edit_bytes(source: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = source.to_vec();
    match rng.below(8) {
        0 => bytes.truncate(rng.below(source.len())),
        _ => {
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len());
                bytes[at] ^= 1 << rng.below(8);
            }
        }
    }
    bytes
}

/// A program in which numbers, types and operations of some instructions are others: most of these are valid still.
pub fn vary_text(source: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    let code: Vec<usize> = (0..lines.len())
        .filter(|&n| lines[n].starts_with(' ') || lines[n].contains("v_type"))
        .collect();
    for _ in 0..1 + rng.below(3) {
        if code.is_empty() {
            break;
        }
        let at = *rng.pick(&code);
        lines[at] = match rng.below(4) {
            0 => vary_operation(&lines[at], rng),
            1 => vary_type(&lines[at], rng),
            _ => vary_number(&lines[at], rng),
        };
    }
    lines.join("\n")
}

/// Information about kernels in a container with one of its numbers replaced by one of the same length.
pub fn vary_information(source: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = source.to_vec();
    let start = bytes.windows(8).position(|w| w == b"kernels:").unwrap_or(0);
    let end = bytes[start..]
        .iter()
        .position(|&b| b == 0)
        .map_or(bytes.len(), |n| start + n);
    let numbers: Vec<_> = numbers(&bytes[start..end]).collect();
    for _ in 0..1 + rng.below(2) {
        if numbers.is_empty() {
            break;
        }
        let (from, to) = *rng.pick(&numbers);
        for digit in &mut bytes[start + from..start + to] {
            if rng.chance(60) {
                *digit = b'0' + rng.below(10) as u8;
            }
        }
    }
    bytes
}

/// Where the decimal numbers of a text are that are words of their own.
fn numbers(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let starts = (1..text.len()).filter(|&n| {
        text[n].is_ascii_digit() && !text[n - 1].is_ascii_alphanumeric() && text[n - 1] != b'_'
    });
    starts.map(|start| {
        let digits = text[start..].iter().take_while(|b| b.is_ascii_digit());
        (start, start + digits.count())
    })
}

fn vary_number(line: &str, rng: &mut Rng) -> String {
    let found: Vec<_> = numbers(line.as_bytes()).collect();
    if found.is_empty() {
        return line.to_owned();
    }
    let (from, to) = *rng.pick(&found);
    let old: u64 = line[from..to].parse().unwrap_or(0);
    let new = match rng.below(6) {
        0 => 0,
        1 => old.wrapping_add(1),
        2 => old.saturating_sub(1),
        3 => old.wrapping_mul(2),
        4 => old / 2,
        _ => 1 << rng.below(6),
    };
    // Hexadecimal numbers begin with a zero, and stay such.
    match line[to..].starts_with('x') {
        true => format!(
            "{}{:x}{}",
            &line[..to + 1],
            new ^ rng.bits() & 31,
            &line[to + 2..]
        ),
        false => format!("{}{new}{}", &line[..from], &line[to..]),
    }
}

fn vary_type(line: &str, rng: &mut Rng) -> String {
    const TYPES: &[&str] = &["ud", "d", "uw", "w", "ub", "b", "f", "hf", "uq", "q", "df"];
    let (mark, sep) = match line.contains("type=") {
        true => (" type=", 6),
        false => (":", 1),
    };
    let Some(at) = line.rfind(mark) else {
        return line.to_owned();
    };
    let rest = &line[at + sep..];
    let old = rest
        .find(|c: char| !c.is_ascii_lowercase())
        .unwrap_or(rest.len());
    format!("{}{}{}", &line[..at + sep], rng.pick(TYPES), &rest[old..])
}

fn vary_operation(line: &str, rng: &mut Rng) -> String {
    const TWO: &[&str] = &[
        "add", "mul", "and", "or", "xor", "shl", "shr", "asr", "mulh", "avg", "sel", "min", "max",
    ];
    const ONE: &[&str] = &[
        "mov", "not", "inv", "sqrt", "rsqrt", "log", "exp", "frc", "rndd", "lzd", "cbit", "fbh",
    ];
    const CONDITIONS: &[&str] = &[".eq", ".ne", ".lt", ".le", ".gt", ".ge"];
    for words in [TWO, ONE, CONDITIONS] {
        let found = words.iter().find(|w| {
            line.split(' ')
                .any(|word| word == **w || w.starts_with('.') && word.ends_with(**w))
        });
        if let Some(old) = found {
            return line.replacen(*old, words[rng.below(words.len())], 1);
        }
    }
    line.to_owned()
}
