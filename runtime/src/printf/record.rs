//! Records, value by value.

use crate::limits::MAX_PRINTF_VECTOR;

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// An integer of `bytes` bytes, in the low bits.
    Int { bits: u64, bytes: u32 },
    /// A float, widened.
    Float(f64),
    /// A string or pointer.
    Address(u64),
}

impl Value {
    pub(super) fn noun(self) -> &'static str {
        match self {
            Value::Int { .. } => "an integer",
            Value::Float(_) => "a float",
            Value::Address(_) => "a pointer",
        }
    }
}

/// Kinds of elements, by the numbers of their types.
#[derive(Clone, Copy)]
enum Element {
    Int(u32),
    F32,
    F64,
    Address,
}

/// Type number to element and whether it is a vector.
const TYPES: [(Element, bool); 14] = [
    (Element::Int(1), false),
    (Element::Int(2), false),
    (Element::Int(4), false),
    (Element::F32, false),
    (Element::Address, false),
    (Element::Int(8), false),
    (Element::Address, false),
    (Element::F64, false),
    (Element::Int(1), true),
    (Element::Int(2), true),
    (Element::Int(4), true),
    (Element::Int(8), true),
    (Element::F32, true),
    (Element::F64, true),
];

/// Reads records from the front.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Reader<'a> {
        Reader { rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next dword, which stays.
    pub(super) fn peek(&self) -> Option<u32> {
        self.rest
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| "a record is cut off".to_owned())?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn dword(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn qword(&mut self) -> Result<u64, String> {
        self.take().map(u64::from_le_bytes)
    }

    /// The next argument: one value, or those of a vector.
    pub(super) fn values(&mut self) -> Result<Vec<Value>, String> {
        let number = self.dword()?;
        let known = (number as usize)
            .checked_sub(1)
            .and_then(|index| TYPES.get(index));
        let &(element, vector) =
            known.ok_or_else(|| format!("an argument has the unknown type {number}"))?;
        let count = if vector { self.dword()? } else { 1 };
        if count > MAX_PRINTF_VECTOR {
            return Err(format!("a vector has {count} elements"));
        }
        let values = (0..count)
            .map(|_| self.value(element))
            .collect::<Result<_, _>>()?;
        // Narrow elements are packed, in a place that has four bytes for each.
        if let Element::Int(bytes @ 1..=2) = element {
            let unused = 4_u32.saturating_sub(bytes).saturating_mul(count);
            for _ in 0..unused {
                self.take::<1>()?;
            }
        }
        Ok(values)
    }

    fn value(&mut self, element: Element) -> Result<Value, String> {
        Ok(match element {
            Element::Int(bytes) => {
                let bits = match bytes {
                    1 => u64::from(self.take::<1>()?[0]),
                    2 => u64::from(u16::from_le_bytes(self.take()?)),
                    4 => u64::from(self.dword()?),
                    _ => self.qword()?,
                };
                Value::Int { bits, bytes }
            }
            Element::F32 => Value::Float(f64::from(f32::from_bits(self.dword()?))),
            Element::F64 => Value::Float(f64::from_bits(self.qword()?)),
            Element::Address => Value::Address(self.qword()?),
        })
    }
}
