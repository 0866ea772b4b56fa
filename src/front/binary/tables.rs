//! Declarations, inputs and attributes: everything of a module in front of its instructions.

use super::codec::{Codec, code_of, each, length, narrow};
use super::error::{Problem, Walk};
use crate::isa::Type;
use crate::limits::{MAX_DIRECTIVES, MAX_VARS};
use crate::module::*;

/// Attributes that are strings. All others are numbers.
const STRINGS: [&str; 2] = ["OutputAsmPath", "AsmName"];

/// Values of the attribute `Target`, by their code.
const TARGETS: [&str; 3] = ["cm", "3d", "cs"];
const TARGET: &str = "Target";

/// General variables.
pub(super) fn general<C: Codec>(io: &mut C, vars: &mut Vec<GeneralVar>) -> Walk {
    let mut count = length("variables", vars.len())?;
    io.u32(&mut count)?;
    bounded("variables", count as usize, MAX_VARS)?;
    each(io, vars, count as usize, blank_general, general_var)
}

fn blank_general() -> GeneralVar {
    GeneralVar {
        name: String::new(),
        ty: Type::Ud,
        elements: 0,
        align: Align::Byte,
        alias: None,
        attrs: Vec::new(),
        pos: Pos::default(),
    }
}

fn bounded(what: &str, count: usize, most: usize) -> Walk {
    match count <= most {
        true => Ok(()),
        false => Err(Problem::limit(format!(
            "{count} {what}; the limit is {most}"
        ))),
    }
}

fn general_var<C: Codec>(io: &mut C, index: usize, var: &mut GeneralVar) -> Walk {
    io.string(&mut var.name, false)?;
    let mut byte = 0;
    if !io.reading() {
        let align = code_of("an alignment", &Align::ALL.map(|(a, _)| a), var.align)?;
        byte = align << 4 | code_of("an element type", &Type::ALL, var.ty)?;
    }
    io.u8(&mut byte)?;
    let ty = Type::ALL.get(usize::from(byte & 15)).copied();
    let align = Align::ALL.get(usize::from(byte >> 4));
    match (ty.filter(|t| *t != Type::Bool && !t.is_packed()), align) {
        (Some(ty), Some((align, _))) => (var.ty, var.align) = (ty, *align),
        _ => {
            return Err(Problem::malformed(format!(
                "type and alignment {byte:#04x} of a variable, which do not exist"
            )));
        }
    }
    io.medium("the number of elements of a variable", &mut var.elements)?;
    alias(io, index, var)?;
    io.ignored()?;
    attrs(io, &mut var.attrs, true)
}

/// Number of the parent, 0 for none, and the offset in it.
fn alias<C: Codec>(io: &mut C, index: usize, var: &mut GeneralVar) -> Walk {
    let (mut parent, mut offset) = var.alias.map_or((0, 0), |(v, offset)| (v.0, offset));
    io.u32(&mut parent)?;
    io.medium("the offset of an alias", &mut offset)?;
    let own = u32::try_from(index).unwrap_or(u32::MAX);
    let own = own.saturating_add(VarId::FIRST_USER);
    let known = PREDEFINED.len() > parent as usize || (VarId::FIRST_USER..own).contains(&parent);
    if !known {
        return Err(Problem::malformed(format!(
            "a variable that is an alias of variable {parent}, which is not declared in front of it"
        )));
    }
    var.alias = (parent != 0).then_some((VarId(parent), offset));
    Ok(())
}

/// Variables of another class, after their number was read.
pub(super) fn others<C: Codec>(
    io: &mut C,
    vars: &mut Vec<OtherVar>,
    count: u32,
    most: u32,
    class: &str,
) -> Walk {
    bounded(class, count as usize, most as usize)?;
    let blank = || OtherVar {
        name: String::new(),
        elements: 0,
        v_name: None,
        attrs: Vec::new(),
        predefined: false,
        pos: Pos::default(),
    };
    let predicates = class == "predicates";
    each(io, vars, count as usize, blank, |io, _, var| {
        other_var(io, predicates, var)
    })
}

fn other_var<C: Codec>(io: &mut C, predicate: bool, var: &mut OtherVar) -> Walk {
    // Surfaces and samplers have a number and one name, that of the source.
    let mut name = var.v_name.clone().unwrap_or_else(|| var.name.clone());
    io.string(&mut name, false)?;
    if io.reading() {
        var.name = name;
    }
    io.medium("the number of elements of a variable", &mut var.elements)?;
    if predicate && !matches!(var.elements, 1 | 2 | 4 | 8 | 16 | 32) || var.elements == 0 {
        return Err(Problem::malformed(format!(
            "a variable of {} elements",
            var.elements
        )));
    }
    attrs(io, &mut var.attrs, true)
}

/// Labels, after which it is known which instruction starts which.
pub(super) fn labels<C: Codec>(io: &mut C, labels: &mut Vec<Label>) -> Walk {
    let mut count = length("labels", labels.len())?;
    io.medium("the number of labels", &mut count)?;
    let blank = || Label {
        name: String::new(),
        subroutine: false,
        def: None,
    };
    each(io, labels, count as usize, blank, |io, _, label| {
        io.string(&mut label.name, false)?;
        io.flag("a kind of label", &mut label.subroutine)?;
        attrs(io, &mut Vec::new(), true)
    })
}

/// Inputs of a kernel.
pub(super) fn inputs<C: Codec>(io: &mut C, inputs: &mut Vec<Input>) -> Walk {
    let mut count = length("inputs", inputs.len())?;
    if io.format().many_inputs() {
        io.u32(&mut count)?;
    } else {
        io.small("the number of inputs", &mut count)?;
    }
    bounded("inputs", count as usize, MAX_DIRECTIVES)?;
    let blank = || Input {
        var: InputVar::General(VarId::NULL),
        offset: 0,
        size: 0,
        implicit: 0,
        pos: Pos::default(),
    };
    each(io, inputs, count as usize, blank, |io, _, i| input(io, i))
}

fn input<C: Codec>(io: &mut C, input: &mut Input) -> Walk {
    const GENERAL: u8 = 0;
    const SAMPLER: u8 = 1;
    const SURFACE: u8 = 2;
    let (class, mut number) = match input.var {
        InputVar::General(v) => (GENERAL, v.0),
        InputVar::Sampler(s) if io.reading() => (SAMPLER, s.0),
        InputVar::Sampler(s) => (
            SAMPLER,
            u32::from(super::names::sampler_number(io.vars(), s)?),
        ),
        InputVar::Surface(s) => (SURFACE, s.0),
    };
    if input.implicit > 31 {
        return Err(Problem::unwritable("a kind of implicit input"));
    }
    let mut byte = input.implicit << 3 | class;
    io.u8(&mut byte)?;
    input.implicit = byte >> 3;
    input.var = match byte & 7 {
        GENERAL => {
            let mut id = VarId(number);
            io.general(&mut id)?;
            InputVar::General(id)
        }
        SAMPLER => {
            io.u32(&mut number)?;
            let mut id = SamplerId(0);
            let number = u8::try_from(number);
            let number = number.map_err(|_| Problem::malformed("a sampler that does not exist"))?;
            io.sampler_of(number, &mut id)?;
            InputVar::Sampler(id)
        }
        SURFACE => {
            io.u32(&mut number)?;
            io.known_surface(SurfaceId(number))?;
            InputVar::Surface(SurfaceId(number))
        }
        class => {
            return Err(Problem::malformed(format!(
                "an input of class {class}, which does not exist"
            )));
        }
    };
    offset(io, &mut input.offset)?;
    io.medium("the size of an input", &mut input.size)
}

/// Offsets of inputs are signed.
fn offset<C: Codec>(io: &mut C, offset: &mut u32) -> Walk {
    let mut word: i16 = narrow("the offset of an input", *offset)?;
    io.i16(&mut word)?;
    *offset =
        u32::try_from(word).map_err(|_| Problem::malformed("an input at an offset below 0"))?;
    Ok(())
}

/// Attributes, counted in 8 bits or, those of a kernel, 16.
pub(super) fn attrs<C: Codec>(io: &mut C, attrs: &mut Vec<Attr>, short: bool) -> Walk {
    let mut count = length("attributes", attrs.len())?;
    match short {
        true => io.small("the number of attributes", &mut count)?,
        false => io.medium("the number of attributes", &mut count)?,
    }
    let blank = || Attr {
        name: String::new(),
        value: AttrValue::Flag,
    };
    each(io, attrs, count as usize, blank, |io, _, a| attr(io, a))
}

/// Name, length and value. Which type a value has is not written.
fn attr<C: Codec>(io: &mut C, attr: &mut Attr) -> Walk {
    io.string(&mut attr.name, false)?;
    if !super::super::text::spelling::is_identifier(&attr.name) {
        return Err(Problem::malformed(format!(
            "an attribute named {:?}",
            attr.name
        )));
    }
    let is_string = STRINGS.contains(&attr.name.as_str());
    let mut value = Vec::new();
    if !io.reading() {
        value = encoded(attr, is_string)?;
    }
    let mut size = length("bytes of an attribute", value.len())?;
    io.small("the length of an attribute", &mut size)?;
    each(io, &mut value, size as usize, || 0u8, |io, _, b| io.u8(b))?;
    if !io.reading() {
        return Ok(());
    }
    if is_string {
        let text = String::from_utf8(value);
        let text = text.map_err(|_| Problem::malformed("an attribute that is not UTF-8"))?;
        attr.value = AttrValue::Str(text);
        return Ok(());
    }
    let number = match *value.as_slice() {
        [] => {
            attr.value = AttrValue::Flag;
            return Ok(());
        }
        [a] => i64::from(a.cast_signed()),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => {
            return Err(Problem::malformed(format!(
                "attribute `{}` of {size} bytes",
                attr.name
            )));
        }
    };
    attr.value = AttrValue::Int(number);
    if attr.name == TARGET {
        let name = usize::try_from(number).ok().and_then(|n| TARGETS.get(n));
        let name = name
            .ok_or_else(|| Problem::malformed(format!("target {number}, which does not exist")))?;
        attr.value = AttrValue::Str((*name).to_owned());
    }
    Ok(())
}

fn encoded(attr: &Attr, is_string: bool) -> Walk<Vec<u8>> {
    let odd = || {
        Problem::unwritable(format!(
            "a value of the attribute `{}` that the format does not have",
            attr.name
        ))
    };
    match &attr.value {
        AttrValue::Str(text) if is_string && !text.contains('\0') => Ok(text.as_bytes().to_vec()),
        AttrValue::Str(text) if attr.name == TARGET => {
            Ok(vec![code_of("a target", &TARGETS, text.as_str())?])
        }
        AttrValue::Flag if !is_string && attr.name != TARGET => Ok(Vec::new()),
        AttrValue::Int(value) if !is_string && attr.name != TARGET => {
            let value = i32::try_from(*value).map_err(|_| odd())?;
            Ok(value.to_le_bytes().to_vec())
        }
        _ => Err(odd()),
    }
}
