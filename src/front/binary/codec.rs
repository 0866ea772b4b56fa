//! Fields in both directions: a reader fills what it is given, a writer appends it.

use super::Format;
use super::error::{Problem, Walk};
use crate::isa::{Exec, ExecMask, ExecSize, Type};
use crate::module::*;

/// Lanes by the code of an execution size.
pub(super) const LANES: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// A cursor that reads or writes.
pub(super) trait Codec {
    /// True for a reader: what it is given are blanks.
    fn reading(&self) -> bool;

    /// The format at hand.
    fn format(&self) -> Format;

    /// Declarations of the module at hand.
    fn vars(&self) -> &Vars;

    /// The next bytes.
    fn bytes<const N: usize>(&mut self, value: &mut [u8; N]) -> Walk;

    /// A string by its number in the pool of strings, of 32 bits or, where `short`, 16.
    fn string(&mut self, text: &mut String, short: bool) -> Walk;

    /// A label.
    fn label(&mut self, id: &mut LabelId) -> Walk;

    /// Accounts for the name of something that an operand is. Names are written once in a binary and at each use in text.
    fn mention(&mut self, bytes: usize) -> Walk;

    fn u8(&mut self, value: &mut u8) -> Walk {
        let mut bytes = value.to_le_bytes();
        self.bytes(&mut bytes)?;
        *value = u8::from_le_bytes(bytes);
        Ok(())
    }

    fn u16(&mut self, value: &mut u16) -> Walk {
        let mut bytes = value.to_le_bytes();
        self.bytes(&mut bytes)?;
        *value = u16::from_le_bytes(bytes);
        Ok(())
    }

    fn i16(&mut self, value: &mut i16) -> Walk {
        let mut bytes = value.to_le_bytes();
        self.bytes(&mut bytes)?;
        *value = i16::from_le_bytes(bytes);
        Ok(())
    }

    fn u32(&mut self, value: &mut u32) -> Walk {
        let mut bytes = value.to_le_bytes();
        self.bytes(&mut bytes)?;
        *value = u32::from_le_bytes(bytes);
        Ok(())
    }

    fn i32(&mut self, value: &mut i32) -> Walk {
        let mut bytes = value.to_le_bytes();
        self.bytes(&mut bytes)?;
        *value = i32::from_le_bytes(bytes);
        Ok(())
    }

    fn u64(&mut self, value: &mut u64) -> Walk {
        let mut bytes = value.to_le_bytes();
        self.bytes(&mut bytes)?;
        *value = u64::from_le_bytes(bytes);
        Ok(())
    }

    /// A number in 8 bits.
    fn small(&mut self, what: &str, value: &mut u32) -> Walk {
        let mut byte = narrow(what, *value)?;
        self.u8(&mut byte)?;
        *value = u32::from(byte);
        Ok(())
    }

    /// A number in 16 bits.
    fn medium(&mut self, what: &str, value: &mut u32) -> Walk {
        let mut word: u16 = narrow(what, *value)?;
        self.u16(&mut word)?;
        *value = u32::from(word);
        Ok(())
    }

    /// A byte that means nothing: written as zero, and not looked at.
    fn ignored(&mut self) -> Walk {
        self.u8(&mut 0)
    }

    /// A byte that is a position in a list of values.
    fn coded<T: Copy + PartialEq>(&mut self, what: &str, values: &[T], value: &mut T) -> Walk {
        let mut code = 0;
        if !self.reading() {
            code = code_of(what, values, *value)?;
        }
        self.u8(&mut code)?;
        *value = decoded(what, values, code)?;
        Ok(())
    }

    /// A byte below `end`.
    fn below(&mut self, what: &str, end: u8, value: &mut u8) -> Walk {
        self.u8(value)?;
        match *value < end {
            true => Ok(()),
            false if self.reading() => Err(Problem::malformed(format!(
                "{what} of code {value}, which does not exist"
            ))),
            false => Err(Problem::unwritable(format!(
                "{what} of code {value}, which only text has"
            ))),
        }
    }

    /// A byte that is 0 or 1.
    fn flag(&mut self, what: &str, value: &mut bool) -> Walk {
        self.coded(what, &[false, true], value)
    }

    /// `(Mk, N)`.
    fn exec(&mut self, exec: &mut Exec) -> Walk {
        let mut byte = 0;
        if !self.reading() {
            let no_mask = if exec.mask.no_mask { 8 } else { 0 };
            let size = code_of("an execution size", &LANES, exec.lanes())?;
            byte = (exec.mask.quarter & 7 | no_mask) << 4 | size;
        }
        self.u8(&mut byte)?;
        let lanes = decoded("an execution size", &LANES, byte & 15)?;
        *exec = Exec {
            mask: ExecMask {
                quarter: byte >> 4 & 7,
                no_mask: byte >> 7 != 0,
            },
            size: ExecSize::new(lanes).unwrap_or(ExecSize::ONE),
        };
        Ok(())
    }

    /// An element type in the low half of a byte.
    fn ty(&mut self, ty: &mut Type) -> Walk {
        self.coded("an element type", &Type::ALL, ty)?;
        match *ty {
            Type::Bool => Err(Problem::malformed("the element type `bool`")),
            _ => Ok(()),
        }
    }

    /// A general variable that exists.
    fn general(&mut self, id: &mut VarId) -> Walk {
        self.u32(&mut id.0)?;
        match self.vars().ty(*id) {
            Some(_) => {
                let name = self.vars().general(*id).map_or(0, |v| v.name.len());
                self.mention(name)
            }
            None => Err(Problem::malformed(format!(
                "general variable {}, which is not declared",
                id.0
            ))),
        }
    }

    /// A predicate of those declared.
    fn known_predicate(&mut self, id: PredId) -> Walk {
        let index = (id.0 as usize).checked_sub(1);
        let list = &self.vars().predicate;
        let name = index.and_then(|i| list.get(i)).map(|v| v.name.len());
        self.known("predicate", id.0, name)
    }

    /// An address variable of those declared.
    fn address(&mut self, id: &mut AddrId) -> Walk {
        self.medium("the number of an address variable", &mut id.0)?;
        let name = self.vars().address.get(id.0 as usize);
        let name = name.map(|v| v.name.len());
        self.known("address variable", id.0, name)
    }

    /// A surface by a byte.
    fn surface(&mut self, id: &mut SurfaceId) -> Walk {
        self.small("the number of a surface", &mut id.0)?;
        self.known_surface(*id)
    }

    /// A surface, predefined or declared.
    fn known_surface(&mut self, id: SurfaceId) -> Walk {
        let index = id.0.checked_sub(SurfaceId::FIRST_USER);
        let name = match index {
            None => Some(PREDEFINED_SURFACES.len()),
            Some(index) => {
                let var = self.vars().surface.get(index as usize);
                var.map(|v| v.name.len())
            }
        };
        self.known("surface", id.0, name)
    }

    /// A sampler by a byte.
    fn sampler(&mut self, id: &mut SamplerId) -> Walk {
        let mut number = 0;
        if !self.reading() {
            number = super::names::sampler_number(self.vars(), *id)?;
        }
        self.u8(&mut number)?;
        self.sampler_of(number, id)
    }

    /// The sampler of a number.
    fn sampler_of(&mut self, number: u8, id: &mut SamplerId) -> Walk;

    /// Whether something is declared, by the length of its name.
    fn known(&mut self, what: &str, number: u32, name: Option<usize>) -> Walk {
        match name {
            Some(name) => self.mention(name),
            None => Err(Problem::malformed(format!(
                "{what} {number}, which is not declared"
            ))),
        }
    }

    /// `V.offset`.
    fn raw(&mut self, raw: &mut Raw) -> Walk {
        self.general(&mut raw.var)?;
        self.medium("the byte offset of a payload", &mut raw.offset)
    }
}

/// A number that has to fit where it is written.
pub(super) fn narrow<T: TryFrom<u32>>(what: &str, value: u32) -> Walk<T> {
    T::try_from(value).map_err(|_| {
        Problem::unwritable(format!(
            "{what} is {value}, which is more than the format holds"
        ))
    })
}

/// The code of a value.
pub(super) fn code_of<T: PartialEq>(what: &str, values: &[T], value: T) -> Walk<u8> {
    let code = values.iter().position(|v| *v == value);
    code.and_then(|code| u8::try_from(code).ok())
        .ok_or_else(|| Problem::unwritable(format!("{what} that the format does not have")))
}

/// The value of a code.
pub(super) fn decoded<T: Copy>(what: &str, values: &[T], code: u8) -> Walk<T> {
    let value = values.get(usize::from(code)).copied();
    value.ok_or_else(|| Problem::malformed(format!("{what} of code {code}, which does not exist")))
}

/// Fills a list of `count` blanks, or walks over those there are.
pub(super) fn each<C: Codec, T>(
    io: &mut C,
    items: &mut Vec<T>,
    count: usize,
    blank: impl Fn() -> T,
    mut step: impl FnMut(&mut C, usize, &mut T) -> Walk,
) -> Walk {
    if !io.reading() {
        let mut items = items.iter_mut().enumerate();
        return items.try_for_each(|(index, item)| step(io, index, item));
    }
    items.clear();
    for index in 0..count {
        let mut item = blank();
        step(io, index, &mut item)?;
        items.push(item);
    }
    Ok(())
}

/// How many items a list has, as a number that `Codec` can walk.
pub(super) fn length(what: &str, len: usize) -> Walk<u32> {
    u32::try_from(len).map_err(|_| Problem::unwritable(format!("too many {what}")))
}
