//! Names of hardware messages, for errors about `raw_send`: shared functions and the message types of the data ports.

/// Shared functions by number.
const FUNCTIONS: [(u8, &str); 14] = [
    (0x0, "null"),
    (0x2, "sampler"),
    (0x3, "gateway"),
    (0x4, "data cache 2"),
    (0x5, "render cache"),
    (0x6, "unified return buffer"),
    (0x7, "thread spawner"),
    (0x8, "video motion estimation"),
    (0x9, "constant cache"),
    (0xA, "data cache 0"),
    (0xC, "data cache 1"),
    (0xD, "typed global memory"),
    (0xE, "shared local memory"),
    (0xF, "untyped global memory"),
];

/// Message types of data cache 0, bits 17:14 of the descriptor.
const CACHE_0: [(u32, &str); 11] = [
    (0x0, "oword block read"),
    (0x1, "unaligned oword block read"),
    (0x3, "dword scattered read"),
    (0x4, "byte scattered read"),
    (0x5, "qword scattered read"),
    (0x6, "untyped atomic"),
    (0x7, "memory fence"),
    (0x8, "oword block write"),
    (0xB, "dword scattered write"),
    (0xC, "byte scattered write"),
    (0xD, "qword scattered write"),
];

/// Message types of data cache 1, bits 18:14.
const CACHE_1: [(u32, &str); 23] = [
    (0x01, "untyped surface read"),
    (0x02, "untyped atomic"),
    (0x03, "untyped 16-bit atomic"),
    (0x04, "media block read"),
    (0x05, "typed surface read"),
    (0x06, "typed atomic"),
    (0x07, "typed 16-bit atomic"),
    (0x09, "untyped surface write"),
    (0x0A, "media block write"),
    (0x0C, "typed 16-bit counter atomic"),
    (0x0D, "typed surface write"),
    (0x10, "A64 scattered read"),
    (0x11, "A64 untyped surface read"),
    (0x12, "A64 atomic"),
    (0x13, "A64 16-bit atomic"),
    (0x14, "A64 block read"),
    (0x15, "A64 block write"),
    (0x19, "A64 untyped surface write"),
    (0x1A, "A64 scattered write"),
    (0x1B, "untyped float atomic"),
    (0x1C, "untyped half atomic"),
    (0x1D, "A64 float atomic"),
    (0x1E, "A64 half atomic"),
];

fn find<T: PartialEq + Copy>(table: &[(T, &'static str)], code: T) -> Option<&'static str> {
    table
        .iter()
        .find(|(c, _)| *c == code)
        .map(|(_, name)| *name)
}

/// A message in words: its shared function and type. The descriptor may only be known when the kernel runs.
pub fn describe(function: u8, descriptor: Option<u32>) -> String {
    let mut out = format!("a message to shared function {function:#x}");
    if let Some(name) = find(&FUNCTIONS, function) {
        out.push_str(&format!(" ({name})"));
    }
    let Some(d) = descriptor else {
        out.push_str(" whose descriptor is only known when the kernel runs");
        return out;
    };
    let (code, name) = match function {
        0xA => (d >> 14 & 0xF, find(&CACHE_0, d >> 14 & 0xF)),
        0xC => (d >> 14 & 0x1F, find(&CACHE_1, d >> 14 & 0x1F)),
        0xD..=0xF => {
            let op = super::lsc::LscOp::from_code((d & 0x3F) as u8);
            (d & 0x3F, op.and_then(|op| op.spelling()).map(|s| s.0))
        }
        _ => {
            out.push_str(&format!(", descriptor {d:#x}"));
            return out;
        }
    };
    out.push_str(&format!(", type {code:#x}"));
    if let Some(name) = name {
        out.push_str(&format!(" ({name})"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn messages_have_names() {
        assert_eq!(
            describe(0xC, Some(0x0210_6E02)),
            "a message to shared function 0xc (data cache 1), type 0x1 (untyped surface read)"
        );
        assert_eq!(
            describe(0xF, Some(0x0410_0504)),
            "a message to shared function 0xf (untyped global memory), type 0x4 (lsc_store)"
        );
        assert_eq!(
            describe(0x3, Some(0x0200_0010)),
            "a message to shared function 0x3 (gateway), descriptor 0x2000010"
        );
        assert!(describe(0xA, None).ends_with("when the kernel runs"));
    }
}
