//! `.npy` files: one array of one element type, as NumPy's `save` writes it (NumPy's "NPY format", versions 1 to 3).
//!
//! Reads either byte order, row-major order only; writes one dimension, little-endian.

use std::io::{self, Write};

use super::values::{Class, ElementType};

/// Bytes of a header; NumPy itself writes 118.
const MAX_HEADER: usize = 64 << 10;
/// Elements of an array.
const MAX_ELEMENTS: u64 = 1 << 60;
/// First bytes of every file.
const MAGIC: &[u8] = b"\x93NUMPY";
/// The elements begin at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// The element type and the elements' bytes, in this machine's order.
pub fn read(file: &[u8]) -> Result<(ElementType, Vec<u8>), String> {
    let bad = |what: String| format!("malformed .npy file: {what}");
    let (header, elements) = split(file).map_err(bad)?;
    let header = Header::parse(header).map_err(bad)?;
    let (ty, is_big_endian) = element_type(header.descr)?;
    let dims = header.dims().map_err(bad)?;
    if header.fortran_order && dims.len() > 1 {
        return Err(
            "the array is in column-major order; save numpy.ascontiguousarray(a)".to_owned(),
        );
    }
    let count = element_count(&dims).map_err(bad)?;
    let wanted = count.saturating_mul(ty.size() as u64);
    let whole = usize::try_from(wanted).ok().and_then(|n| elements.get(..n));
    let Some(whole) = whole else {
        return Err(bad(format!(
            "{wanted} bytes of elements announced, {} found",
            elements.len()
        )));
    };
    let mut data = whole.to_vec();
    if is_big_endian {
        for element in data.chunks_exact_mut(ty.size()) {
            element.reverse();
        }
    }
    Ok((ty, data))
}

/// Writes `data` as a one-dimensional array; bytes that do not fill an element are left out.
pub fn write(mut out: impl Write, ty: ElementType, data: &[u8]) -> io::Result<()> {
    let letter = match ty.class() {
        Class::Signed => 'i',
        Class::Unsigned => 'u',
        Class::Float => 'f',
    };
    let order = if ty.size() == 1 { '|' } else { '<' };
    let elements = data.chunks_exact(ty.size());
    let whole = data.len().saturating_sub(elements.remainder().len());
    let mut header = format!(
        "{{'descr': '{order}{letter}{}', 'fortran_order': False, 'shape': ({},), }}",
        ty.size(),
        elements.len()
    );
    // Magic, version, length, text, line feed.
    let unpadded = MAGIC
        .len()
        .saturating_add(4 + 1)
        .saturating_add(header.len());
    let padding = unpadded
        .next_multiple_of(ALIGNMENT)
        .saturating_sub(unpadded);
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let length = u16::try_from(header.len()).map_err(io::Error::other)?;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    out.write_all(data.get(..whole).unwrap_or(data))?;
    out.flush()
}

/// The header's text, and what follows it.
fn split(file: &[u8]) -> Result<(&str, &[u8]), String> {
    let Some([major, _, low, high, rest @ ..]) = file.strip_prefix(MAGIC) else {
        return Err("it does not start with \\x93NUMPY".to_owned());
    };
    let short = usize::from(u16::from_le_bytes([*low, *high]));
    let (len, rest) = match (major, rest) {
        (1, rest) => (short, rest),
        (_, [third, fourth, rest @ ..]) => {
            let long = u32::from_le_bytes([*low, *high, *third, *fourth]);
            (usize::try_from(long).unwrap_or(usize::MAX), rest)
        }
        _ => return Err("the header is cut off".to_owned()),
    };
    if len > MAX_HEADER {
        return Err("the header is too long".to_owned());
    }
    let (text, elements) = rest.split_at_checked(len).ok_or("the header is cut off")?;
    let text = str::from_utf8(text).map_err(|_| "the header is not text")?;
    Ok((text, elements))
}

/// What the header says: a Python dictionary of three entries. Values are as written.
struct Header<'a> {
    descr: &'a str,
    shape: &'a str,
    fortran_order: bool,
}

impl<'a> Header<'a> {
    fn parse(text: &'a str) -> Result<Header<'a>, String> {
        let no_dictionary = || "the header is not a dictionary".to_owned();
        let mut rest = text.trim().strip_prefix('{').ok_or_else(no_dictionary)?;
        let (mut descr, mut shape, mut fortran_order) = (None, None, None);
        loop {
            rest = rest.trim_start();
            if rest == "}" {
                break;
            }
            let (key, after) = rest.split_once(':').ok_or_else(no_dictionary)?;
            let (value, after) = split_value(after).ok_or_else(no_dictionary)?;
            let entry = match unquoted(key.trim()) {
                Some("descr") => &mut descr,
                Some("shape") => &mut shape,
                Some("fortran_order") => &mut fortran_order,
                _ => return Err(format!("the header has an entry {}", key.trim())),
            };
            *entry = Some(value.trim());
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        let missing = |name: &str| format!("the header has no entry '{name}'");
        let fortran_order = match fortran_order.ok_or_else(|| missing("fortran_order"))? {
            "True" => true,
            "False" => false,
            other => return Err(format!("'fortran_order' is {other}")),
        };
        Ok(Header {
            descr: descr.ok_or_else(|| missing("descr"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
            fortran_order,
        })
    }

    /// Extents, slowest dimension first; none for a scalar.
    fn dims(&self) -> Result<Vec<u64>, String> {
        let unreadable = || format!("'shape' is {}", self.shape);
        let inside = self
            .shape
            .strip_prefix('(')
            .and_then(|s| s.strip_suffix(')'));
        let mut dims = Vec::new();
        let mut parts = inside
            .ok_or_else(unreadable)?
            .split(',')
            .map(str::trim)
            .peekable();
        while let Some(part) = parts.next() {
            // After the last comma.
            if part.is_empty() && parts.peek().is_none() {
                break;
            }
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(unreadable());
            }
            dims.push(part.parse().map_err(|_| "the array is too large")?);
        }
        Ok(dims)
    }
}

/// Splits in front of the comma or brace that ends a value. Brackets within the value are counted, quoted text is passed over.
fn split_value(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (0_u32, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, ',' | '}') if depth == 0 => return text.split_at_checked(at),
            (None, '(' | '[' | '{') => depth = depth.saturating_add(1),
            (None, ')' | ']' | '}') => depth = depth.checked_sub(1)?,
            (None, _) => {}
        }
    }
    None
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

fn element_count(dims: &[u64]) -> Result<u64, String> {
    let mut product = 1_u64;
    for dim in dims {
        // A dimension of zero does not hide what the others overflow.
        product = product.saturating_mul((*dim).max(1));
    }
    if product > MAX_ELEMENTS {
        return Err("the array is too large".to_owned());
    }
    Ok(if dims.contains(&0) { 0 } else { product })
}

/// The element type, and whether its bytes are the most significant first.
fn element_type(descr: &str) -> Result<(ElementType, bool), String> {
    let parse = || {
        let descr = unquoted(descr)?;
        let mut letters = descr.chars();
        let is_big_endian = match letters.next()? {
            '<' | '|' | '=' => false,
            '>' => true,
            _ => return None,
        };
        let letter = letters.next()?;
        let size = letters.as_str().parse().ok()?;
        let class = match letter {
            'i' => Class::Signed,
            'u' => Class::Unsigned,
            'b' if size == 1 => Class::Unsigned,
            'f' => Class::Float,
            _ => return None,
        };
        Some((ElementType::from_parts(class, size)?, is_big_endian))
    };
    parse().ok_or_else(|| {
        format!("elements of .npy type {descr} cannot be used: expected integers, floats or bool")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    fn array(descr: &str, shape: &str, data: &[u8]) -> Result<(ElementType, Vec<u8>), String> {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
        read(&file(&header, data))
    }

    #[test]
    fn what_is_written_reads_back() {
        for ty in ElementType::all() {
            let data: Vec<u8> = (0..48).collect();
            let mut out = Vec::new();
            write(&mut out, ty, &data).unwrap();
            assert_eq!(read(&out), Ok((ty, data)), "{ty}");
        }
    }

    #[test]
    fn a_part_of_an_element_is_left_out() {
        let mut out = Vec::new();
        write(&mut out, ElementType::U32, &[1, 2, 3, 4, 5]).unwrap();
        assert_eq!(read(&out), Ok((ElementType::U32, vec![1, 2, 3, 4])));
    }

    #[test]
    fn shapes_and_byte_orders() {
        assert_eq!(
            array("'>u2'", "(2, 1)", &[1, 2, 3, 4]),
            Ok((ElementType::U16, vec![2, 1, 4, 3]))
        );
        assert_eq!(array("'|b1'", "()", &[1]), Ok((ElementType::U8, vec![1])));
        assert_eq!(
            array("'<f8'", "(3, 0)", &[]),
            Ok((ElementType::F64, vec![]))
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let error = |descr, shape, data: &[u8]| array(descr, shape, data).unwrap_err();
        assert_eq!(
            error("'<c8'", "(1,)", &[0; 8]),
            "elements of .npy type '<c8' cannot be used: expected integers, floats or bool"
        );
        assert_eq!(
            error("'<f4'", "(4,)", &[0; 15]),
            "malformed .npy file: 16 bytes of elements announced, 15 found"
        );
        assert!(error("[('a', '<f4')]", "(1,)", &[0; 4]).starts_with("elements of .npy type"));
        assert!(error("'|O'", "(1,)", &[0; 4]).starts_with("elements of .npy type"));
        assert_eq!(
            error("'<f4'", "(4294967296, 4294967296, 4294967296)", &[]),
            "malformed .npy file: the array is too large"
        );
        assert_eq!(
            error(&"(".repeat(60_000), "()", &[]),
            "malformed .npy file: the header is not a dictionary"
        );
        let columns = "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }\n";
        assert_eq!(
            read(&file(columns, &[0; 4])).unwrap_err(),
            "the array is in column-major order; save numpy.ascontiguousarray(a)"
        );
        assert_eq!(
            read(b"\x7fELF").unwrap_err(),
            "malformed .npy file: it does not start with \\x93NUMPY"
        );
        assert_eq!(
            read(b"\x93NUMPY\x01\0\xff\0").unwrap_err(),
            "malformed .npy file: the header is cut off"
        );
        assert_eq!(
            read(b"\x93NUMPY\x02\0\xff\xff\xff\xff").unwrap_err(),
            "malformed .npy file: the header is too long"
        );
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let mut whole = Vec::new();
        write(&mut whole, ElementType::F32, &[0; 16]).unwrap();
        let (mut taken, mut refused) = (0, 0);
        for at in 0..whole.len() {
            for byte in [0, 0xff, b'0', b'9', b'(', b'}', b'\'', b',', b' '] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                match read(&damaged) {
                    Ok((_, data)) => {
                        assert!(data.len() <= 16);
                        taken += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
            assert!(read(&whole[..at]).is_err(), "{at} bytes of it");
        }
        assert!(taken > 100 && refused > 300, "{taken} {refused}");
    }

    #[test]
    fn headers_as_other_writers_have_them() {
        let spaced = "{\"shape\" : ( 2 , ) , 'fortran_order':True,'descr':'=i2'}   \n";
        assert_eq!(
            read(&file(spaced, &[1, 0, 2, 0])),
            Ok((ElementType::I16, vec![1, 0, 2, 0]))
        );
        for (wrong, message) in [
            ("", "the header is not a dictionary"),
            ("{'descr': '<f4'", "the header is not a dictionary"),
            (
                "{'descr': '<f4', }",
                "the header has no entry 'fortran_order'",
            ),
            ("{'a,b': 1}", "the header has an entry 'a,b'"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                "'shape' is (-1,)",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,2)}",
                "'shape' is (1,,2)",
            ),
            (
                "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}",
                "'fortran_order' is 1",
            ),
        ] {
            let error = read(&file(wrong, &[0; 64])).unwrap_err();
            assert_eq!(error, format!("malformed .npy file: {message}"), "{wrong}");
        }
    }
}
