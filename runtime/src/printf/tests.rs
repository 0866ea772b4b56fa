//! Numbers against what a C library prints, and records.

use super::*;

/// `(conversion, value, text)`, taken from glibc.
const INTS: &str = include_str!("tests/ints.txt");
/// `(conversion, bits of the value, text)`, taken from glibc, except where that drops the zeros that `%#g` keeps.
const FLOATS: &str = include_str!("tests/floats.txt");

fn no_strings(_: u64) -> Option<Vec<u8>> {
    None
}

fn formatted(conversion: &str, value: Value) -> String {
    let format = format!("%{conversion}");
    let mut text = Vec::new();
    for piece in pieces(format.as_bytes()).unwrap() {
        match piece {
            Piece::Text(t) => text.extend_from_slice(t),
            Piece::Conversion(spec) => text.extend(element(&spec, value, &no_strings).unwrap()),
        }
    }
    String::from_utf8(text).unwrap()
}

fn cases(file: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    file.lines().map(|line| {
        let mut parts = line.splitn(3, '\t');
        let mut part = || parts.next().unwrap();
        (part(), part(), part())
    })
}

#[test]
fn integers_as_in_c() {
    for (conversion, value, text) in cases(INTS) {
        let value: i32 = value.parse().unwrap();
        let bits = u64::from(value.cast_unsigned());
        assert_eq!(
            formatted(conversion, Value::Int { bits, bytes: 4 }),
            text,
            "%{conversion} of {value}"
        );
    }
    assert_eq!(cases(INTS).count(), 200);
}

#[test]
fn floats_as_in_c() {
    for (conversion, bits, text) in cases(FLOATS) {
        let value = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        assert_eq!(
            formatted(conversion, Value::Float(value)),
            text,
            "%{conversion} of {value:e}"
        );
    }
    assert_eq!(cases(FLOATS).count(), 780);
}

/// Format strings at addresses 1, 2, …
fn rendered(strings: &[&str], records: &[u8]) -> Output {
    let strings: Vec<Vec<u8>> = strings.iter().map(|s| s.as_bytes().to_vec()).collect();
    render(records, &move |at| {
        strings.get((at as usize).checked_sub(1)?).cloned()
    })
}

fn dwords(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn text(output: &Output) -> &str {
    assert_eq!(output.problem, None);
    std::str::from_utf8(&output.text).unwrap()
}

#[test]
fn records_follow_each_other() {
    let records = dwords(&[1, 0, 3, 7, 2, 0, 4, 1.5_f32.to_bits(), 5, 3, 0]);
    let out = rendered(&["a %d%%\n", "%5.2f|%-4s|", "to"], &records);
    assert_eq!(text(&out), "a 7%\n 1.50|to  |");
}

#[test]
fn vectors_have_commas() {
    // Bytes and shorts are packed in four bytes each, quadwords in eight.
    let records = dwords(&[1, 0, 9, 4, 0x04_03_fe_01, 0, 0, 0, 10, 2, 0x7fff_8000, 0]);
    let out = rendered(&["%v4hhd %v2hd"], &records);
    assert_eq!(text(&out), "1,-2,3,4 -32768,32767");
    let records = dwords(&[1, 0, 12, 2, 5, 0, u32::MAX, u32::MAX, 11, 3, 1, 2, 3]);
    let out = rendered(&["%v2ld|%v3hlx"], &records);
    assert_eq!(text(&out), "5,-1|1,2,3");
    let records = dwords(&[1, 0, 13, 2, 1_f32.to_bits(), 0.25_f32.to_bits()]);
    let out = rendered(&["(%v2.1hlf)"], &records);
    assert_eq!(
        out.problem.as_deref(),
        Some("`%v2.1hlf)` is not a conversion")
    );
    let out = rendered(&["(%6.1v2hlf)"], &records);
    assert_eq!(text(&out), "(   1.0,   0.2)");
}

#[test]
fn what_makes_no_sense_ends_the_text() {
    let problem = |strings: &[&str], records: &[u32]| {
        let out = rendered(strings, &dwords(records));
        (
            String::from_utf8(out.text).unwrap(),
            out.problem.unwrap_or_default(),
        )
    };
    let said = |text: &str, problem: &str| (text.to_owned(), problem.to_owned());
    let full = "the buffer is full; what came later is lost";
    assert_eq!(problem(&["x"], &[1, 0, u32::MAX]), said("x", full));
    assert_eq!(
        problem(&["x"], &[9, 0]),
        said("", "there is no format string at 0x9")
    );
    assert_eq!(
        problem(&["x%d"], &[1, 0, 3]),
        said("x", "a record is cut off")
    );
    assert_eq!(
        problem(&["%d"], &[1, 0, 15, 0]),
        said("", "an argument has the unknown type 15")
    );
    assert_eq!(
        problem(&["%d"], &[1, 0, 4, 0]),
        said("", "`%d` is given a float")
    );
    assert_eq!(
        problem(&["%s"], &[1, 0, 5, 8, 0]),
        said("", "there is no string at 0x8")
    );
    assert_eq!(
        problem(&["%"], &[1, 0]),
        said("", "a format string ends in a conversion")
    );
    assert_eq!(
        problem(&["%99999d"], &[1, 0, 3, 0]),
        said("", "a width or precision is over 4096 characters")
    );
    assert_eq!(
        problem(&["%v99d"], &[1, 0, 11, 99]),
        said("", "a vector has 99 elements")
    );
}
