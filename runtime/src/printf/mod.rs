//! `printf` of kernels: from the records that a kernel left in its buffer to text.
//!
//! A record is the address of the format string, then for each argument a type number and its value. Text is formatted
//! as OpenCL C says, `%v4hlf` and its like included, and where that leaves it open as the C library does.
//!
//! Any bytes may be given: a kernel can write what it likes to its buffer. Rendering ends at the first record that makes no
//! sense, and says so in [`Output::problem`]; time and memory are bounded by [`limits`](crate::limits).
//!
//! [`PrintBuffer`] is where a kernel's records go; rendering itself is handed the bytes and a reader of strings.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "tests may fail loudly"
    )
)]

mod buffer;
mod number;
mod record;
mod spec;
#[cfg(test)]
mod tests;

pub use buffer::{PrintBuffer, Printing};

use crate::limits::MAX_PRINTED_BYTES;
use record::{Reader, Value};
use spec::{Piece, Spec, pieces};

/// What kernels printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The text; what `%s` and `%c` write need not be UTF-8.
    pub text: Vec<u8>,
    /// Why it is not all there is, or not what the kernel meant.
    pub problem: Option<String>,
}

/// What the compiler writes in place of the first record that does not fit.
const NO_ROOM: u32 = u32::MAX;

/// Text of `records`, one after the other. `string` gives the bytes before the NUL at an address of device memory, `None` when
/// there are none.
pub fn render(records: &[u8], string: &dyn Fn(u64) -> Option<Vec<u8>>) -> Output {
    let mut out = Output::default();
    let mut reader = Reader::new(records);
    while !reader.is_empty() {
        if let Err(problem) = one(&mut reader, string, &mut out.text) {
            out.problem = Some(problem);
            break;
        }
        if out.text.len() > MAX_PRINTED_BYTES {
            out.text.truncate(MAX_PRINTED_BYTES);
            out.problem = Some(format!("more than {MAX_PRINTED_BYTES} bytes are printed"));
            break;
        }
    }
    out
}

/// Appends the text of the next record.
fn one(
    reader: &mut Reader<'_>,
    string: &dyn Fn(u64) -> Option<Vec<u8>>,
    text: &mut Vec<u8>,
) -> Result<(), String> {
    if reader.peek() == Some(NO_ROOM) {
        return Err("the buffer is full; what came later is lost".to_owned());
    }
    let address = reader.qword()?;
    let format =
        string(address).ok_or_else(|| format!("there is no format string at {address:#x}"))?;
    for piece in pieces(&format)? {
        match piece {
            Piece::Text(part) => text.extend_from_slice(part),
            Piece::Conversion(spec) => {
                let values = reader.values()?;
                conversion(&spec, &values, string, text)?;
            }
        }
    }
    Ok(())
}

/// Appends one argument, the elements of a vector with commas between them.
fn conversion(
    spec: &Spec,
    values: &[Value],
    string: &dyn Fn(u64) -> Option<Vec<u8>>,
    text: &mut Vec<u8>,
) -> Result<(), String> {
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        text.extend(element(spec, *value, string)?);
    }
    Ok(())
}

fn element(
    spec: &Spec,
    value: Value,
    string: &dyn Fn(u64) -> Option<Vec<u8>>,
) -> Result<Vec<u8>, String> {
    let mismatch = || {
        Err(format!(
            "`%{}` is given {}",
            char::from(spec.conversion),
            value.noun()
        ))
    };
    match (spec.conversion, value) {
        (b'c', Value::Int { bits, .. }) => Ok(spec.padded(vec![bits.to_le_bytes()[0]])),
        (b'd' | b'i' | b'o' | b'u' | b'x' | b'X', Value::Int { bits, bytes }) => {
            Ok(number::integer(spec, bits, bytes))
        }
        (b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A', Value::Float(v)) => {
            Ok(number::float(spec, v))
        }
        (b'p', Value::Address(0)) => Ok(spec.padded(b"(nil)".to_vec())),
        (b'p', Value::Address(v)) => Ok(spec.padded(format!("{v:#x}").into_bytes())),
        (b's', Value::Address(at)) => {
            let mut bytes = string(at).ok_or_else(|| format!("there is no string at {at:#x}"))?;
            bytes.truncate(spec.precision.unwrap_or(usize::MAX));
            Ok(spec.padded(bytes))
        }
        _ => mismatch(),
    }
}
