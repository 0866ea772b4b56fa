//! `.npy` files: one array of one element type, as NumPy's `save` writes it.
//!
//! Reads either byte order, row-major order only; writes one dimension, little-endian.

use std::io::{self, Read, Write};

use npyz::{DType, Endianness, NpyFile, Order, TypeChar, TypeStr, WriterBuilder};

use super::values::{Class, ElementType};

/// Bytes of a header; NumPy itself writes 118.
const MAX_HEADER: usize = 64 << 10;
/// Nested brackets in a header; a plain array has two.
const MAX_NESTING: usize = 32;
/// Elements of an array. Bounds the products that the reader forms.
const MAX_ELEMENTS: u128 = 1 << 60;
/// First bytes of every file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// The element type and the elements' bytes, in this machine's order.
pub fn read(file: &[u8]) -> Result<(ElementType, Vec<u8>), String> {
    check_header(file)?;
    let npy = NpyFile::new(file).map_err(|error| format!("malformed .npy file: {error}"))?;
    let (ty, endianness) = element_type(&npy.dtype())?;
    if npy.order() == Order::Fortran && npy.shape().len() > 1 {
        return Err(
            "the array is in column-major order; save numpy.ascontiguousarray(a)".to_owned(),
        );
    }
    let wanted = npy.len().saturating_mul(ty.size() as u64);
    let mut data = Vec::new();
    npy.into_inner()
        .take(wanted)
        .read_to_end(&mut data)
        .map_err(|error| error.to_string())?;
    if (data.len() as u64) < wanted {
        return Err(format!(
            "malformed .npy file: {wanted} bytes of elements announced, {} found",
            data.len()
        ));
    }
    if endianness == Endianness::Big {
        for element in data.chunks_exact_mut(ty.size()) {
            element.reverse();
        }
    }
    Ok((ty, data))
}

/// Writes `data` as a one-dimensional array; bytes that do not fill an element are left out.
pub fn write(out: impl Write, ty: ElementType, data: &[u8]) -> io::Result<()> {
    let letter = match ty.class() {
        Class::Signed => 'i',
        Class::Unsigned => 'u',
        Class::Float => 'f',
    };
    let order = if ty.size() == 1 { '|' } else { '<' };
    let dtype: TypeStr = format!("{order}{letter}{}", ty.size())
        .parse()
        .map_err(io::Error::other)?;
    let elements = data.chunks_exact(ty.size());
    let whole = data.len().saturating_sub(elements.remainder().len());
    let mut out = npyz::WriteOptions::new_header_only()
        .dtype(DType::new_scalar(dtype))
        .shape(&[elements.len() as u64])
        .writer(out)
        .write_header_only()?;
    out.write_all(data.get(..whole).unwrap_or(data))?;
    out.flush()
}

fn element_type(dtype: &DType) -> Result<(ElementType, Endianness), String> {
    let unusable = || {
        format!(
            "elements of .npy type {} cannot be used: expected integers, floats or bool",
            dtype.descr()
        )
    };
    let DType::Plain(plain) = dtype else {
        return Err(unusable());
    };
    let class = match plain.type_char() {
        TypeChar::Int => Class::Signed,
        TypeChar::Uint | TypeChar::Bool => Class::Unsigned,
        TypeChar::Float => Class::Float,
        _ => return Err(unusable()),
    };
    let size = plain.num_bytes().ok_or_else(unusable)?;
    let ty = ElementType::from_parts(class, size).ok_or_else(unusable)?;
    Ok((ty, plain.endianness()))
}

/// Refuses headers on which the reader would allocate, recurse or multiply without bound.
fn check_header(file: &[u8]) -> Result<(), String> {
    let bad = |what: &str| Err(format!("malformed .npy file: {what}"));
    let Some([major, _, low, high, rest @ ..]) = file.strip_prefix(MAGIC) else {
        return bad("it does not start with \\x93NUMPY");
    };
    let short = usize::from(u16::from_le_bytes([*low, *high]));
    let (len, text) = match (major, rest) {
        (1, text) => (short, text),
        (_, [third, fourth, text @ ..]) => {
            let long = u32::from_le_bytes([*low, *high, *third, *fourth]);
            (usize::try_from(long).unwrap_or(usize::MAX), text)
        }
        _ => return bad("the header is cut off"),
    };
    if len > MAX_HEADER {
        return bad("the header is too long");
    }
    let Some(text) = text.get(..len) else {
        return bad("the header is cut off");
    };
    let opened = text.iter().filter(|byte| b"([{".contains(byte)).count();
    if opened > MAX_NESTING {
        return bad("the header nests too deeply");
    }
    let numbers = text.split(|byte| !byte.is_ascii_digit());
    let product = numbers
        .filter(|digits| !digits.is_empty())
        .map(|digits| {
            let digits = str::from_utf8(digits).unwrap_or("");
            digits.parse::<u128>().unwrap_or(u128::MAX).max(1)
        })
        .fold(1, u128::saturating_mul);
    if product > MAX_ELEMENTS {
        return bad("the array is too large");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            error(&"(".repeat(100), "()", &[]),
            "malformed .npy file: the header nests too deeply"
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

    proptest! {
        #[test]
        fn damaged_files_are_read_or_refused(
            at in 0_usize..140, byte: u8, keep in 0_usize..160
        ) {
            let mut out = Vec::new();
            write(&mut out, ElementType::F32, &[0; 16]).unwrap();
            if let Some(place) = out.get_mut(at) {
                *place = byte;
            }
            out.truncate(keep);
            let _ = read(&out);
        }
    }
}
