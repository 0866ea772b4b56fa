//! `asm`: the machine code of a kernel, with the vISA it came from.

use std::fmt::Write as _;

use iced_x86::{DecoderOptions, Formatter, NasmFormatter};
use target_lexicon::Architecture;
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction, Operand};

use super::exit::Failure;
use visa_jit::backend::CodeObject;

/// Bytes of code shown on a line; the longest instruction has 15.
const SHOWN_BYTES: usize = 8;

/// Bytes of an instruction of AArch64.
const ARM_BYTES: usize = 4;

/// A machine instruction.
pub struct Row {
    /// Offset of its first byte.
    pub at: u64,
    /// Its bytes.
    pub hex: String,
    /// The instruction.
    pub text: String,
    /// Line of vISA that it came from, 0 for none.
    pub line: u32,
}

/// Disassembles `code`.
///
/// # Errors
/// Architectures without a disassembler are unsupported.
pub fn rows(code: &CodeObject) -> Result<Vec<Row>, Failure> {
    match code.triple.architecture {
        Architecture::X86_64 => Ok(x86_rows(code)),
        Architecture::Aarch64(_) => Ok(arm_rows(code)),
        _ => Err(Failure::unsupported(format!(
            "machine code for {} cannot be disassembled: only x86_64 and aarch64 can",
            code.triple
        ))),
    }
}

impl Row {
    fn new(code: &CodeObject, at: usize, len: usize, text: String) -> Row {
        let bytes = code.code.get(at..at.saturating_add(len));
        Row {
            at: at as u64,
            hex: hex(bytes.unwrap_or(&[])),
            text,
            line: code.lines.line_at(u32::try_from(at).unwrap_or(u32::MAX)),
        }
    }
}

fn x86_rows(code: &CodeObject) -> Vec<Row> {
    let mut formatter = NasmFormatter::new();
    let mut decoder = iced_x86::Decoder::with_ip(64, &code.code, 0, DecoderOptions::NONE);
    let instructions = decoder.iter().map(|instruction| {
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        let at = usize::try_from(instruction.ip()).unwrap_or(usize::MAX);
        Row::new(code, at, instruction.len(), text)
    });
    instructions.collect()
}

/// Instructions of four bytes each; what is none is a constant.
fn arm_rows(code: &CodeObject) -> Vec<Row> {
    let decoder = InstDecoder::default();
    let words = code.code.chunks(ARM_BYTES).enumerate();
    let row = |(n, word): (usize, &[u8])| {
        let at = n.saturating_mul(ARM_BYTES);
        let text = match decoder.decode(&mut U8Reader::new(word)) {
            Ok(instruction) => arm_text(&instruction, at),
            Err(_) => {
                let digits: String = word.iter().rev().map(|b| format!("{b:02x}")).collect();
                format!(".word 0x{digits}")
            }
        };
        Row::new(code, at, word.len(), text)
    };
    words.map(row).collect()
}

/// An instruction with the targets of its branches as offsets in the code, like those at the beginning of rows.
fn arm_text(instruction: &Instruction, at: usize) -> String {
    let text = instruction.to_string();
    let distance = instruction.operands.iter().find_map(|o| match o {
        Operand::PCOffset(distance) => Some(*distance),
        _ => None,
    });
    match (distance, text.split_once('$')) {
        (Some(distance), Some((rest, _))) => {
            format!("{rest}0x{:x}", (at as i64).wrapping_add(distance))
        }
        _ => text,
    }
}

/// Disassembles `code`; `source` is the vISA text its line table refers to. Lines of what the vISA was compiled from stand
/// before those of the vISA, where they are known.
pub fn listing(kernel: &str, code: &CodeObject, source: &str) -> Result<String, Failure> {
    let rows = rows(code)?;
    let lines: Vec<_> = source.lines().collect();
    let (mut last, mut file) = (0, None);
    let mut out = format!(
        "; kernel {kernel}: {} bytes for {}, made by {}\n",
        code.code.len(),
        code.triple,
        code.backend
    );
    let width = SHOWN_BYTES.saturating_mul(2).saturating_add(1);
    for Row {
        at,
        hex,
        text,
        line,
    } in &rows
    {
        if *line != last {
            last = *line;
            let from = code.lines.source().at(last);
            if from.is_some() && from != file {
                file = from;
                let (name, line) = from.unwrap_or_default();
                let _ = writeln!(out, "; {name}:{line}");
            }
            comment(&mut out, last, &lines);
        }
        let _ = writeln!(out, "  {at:06x}  {hex:width$}  {text}");
    }
    Ok(out)
}

fn comment(out: &mut String, line: u32, lines: &[&str]) {
    let index = usize::try_from(line)
        .ok()
        .and_then(|line| line.checked_sub(1));
    if let Some(index) = index {
        let text = lines.get(index).map_or("", |text| text.trim());
        let _ = writeln!(out, "; {line}: {text}");
    }
}

/// The first bytes of an instruction.
fn hex(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in bytes.iter().take(SHOWN_BYTES) {
        let _ = write!(hex, "{byte:02x}");
    }
    if bytes.len() > SHOWN_BYTES {
        hex.push('+');
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use visa_jit::lines::{LineTable, SourceMap};

    fn code(triple: &str) -> CodeObject {
        CodeObject {
            code: vec![0x48, 0x89, 0xc8, 0x31, 0xc0, 0xc3],
            align: 16,
            lines: LineTable::new([(0, 2), (5, 1)]),
            triple: triple.parse().unwrap(),
            backend: "test",
            stack_bytes: 0,
            note: None,
        }
    }

    #[test]
    fn lines_stand_before_their_code() {
        let text = listing("k", &code("x86_64-unknown-linux-gnu"), "ret\n  mov x\n").unwrap();
        assert_eq!(
            text,
            "; kernel k: 6 bytes for x86_64-unknown-linux-gnu, made by test\n\
             ; 2: mov x\n\
             \x20 000000  4889c8             mov rax,rcx\n\
             \x20 000003  31c0               xor eax,eax\n\
             ; 1: ret\n\
             \x20 000005  c3                 ret\n"
        );
    }

    #[test]
    fn sources_stand_before_the_visa() {
        let mut code = code("x86_64-unknown-linux-gnu");
        code.lines = code
            .lines
            .with_source(SourceMap::new([(2, Some(("k.cl", 7)))]));
        let text = listing("k", &code, "ret\n  mov x\n").unwrap();
        let found: Vec<&str> = text.lines().filter(|l| l.starts_with("; ")).collect();
        assert_eq!(found[1..], ["; k.cl:7", "; 2: mov x", "; 1: ret"]);
    }

    #[test]
    fn arm_branches_name_where_they_go() {
        let mut code = code("aarch64-unknown-linux-gnu");
        // add x0, x1, x2; cbz w3 back to it; a constant; half a word.
        let words = [0x8b02_0020_u32, 0x34ff_ffe3, 0xffff_ffff];
        code.code = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        code.code.extend([0xc0, 0x03]);
        let rows = rows(&code).unwrap();
        let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "add x0, x1, x2",
                "cbz w3, 0x0",
                ".word 0xffffffff",
                ".word 0x03c0"
            ]
        );
        assert_eq!((rows[1].at, rows[1].hex.as_str()), (4, "e3ffff34"));
        assert_eq!([rows[0].line, rows[2].line], [2, 1]);
    }

    #[test]
    fn other_architectures_are_unsupported() {
        let failure = listing("k", &code("riscv64gc-unknown-linux-gnu"), "").unwrap_err();
        assert_eq!(failure.exit, Exit::Unsupported);
    }
}
