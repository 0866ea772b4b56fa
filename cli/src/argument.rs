//! How a SPEC fits an argument of a compiled kernel, and what to say when it does not.

use visa_runtime::{ImageShape, SamplerState};

use super::exit::tell;
use super::image::image_example;
use super::spec::Spec;
use super::values::{Class, ElementType, Scalar};
use visa_jit::engine::{ArgKind, Argument};

/// What a buffer argument can be given.
pub const BUFFER_FORMS: &str = "file:PATH, zero:BYTES, uninit:BYTES, fill:TYPE:VALUE:COUNT, iota:TYPE:COUNT, \
    rand:TYPE:COUNT:SEED or null";

/// How one argument is handed over.
#[derive(Debug, PartialEq, Eq)]
pub enum Passed {
    /// Bytes by value.
    Bytes(Vec<u8>),
    /// So much local memory.
    Local(u32),
    /// An image of this shape.
    Image(ImageShape),
    /// A sampler.
    Sampler(SamplerState),
    /// A buffer.
    Buffer,
    /// A null pointer.
    Null,
    /// Nothing.
    Nothing,
}

/// Fits a spec to an argument, or says why it does not.
pub fn passed(argument: &Argument, spec: &Spec) -> Result<Passed, String> {
    let described = described(argument);
    let wrong = |forms: &str| {
        Err(format!(
            "{described}, but {spec} is {}; write {forms}",
            spec.noun()
        ))
    };
    match (argument.kind, spec) {
        (ArgKind::Value { size }, Spec::Values(ty, values)) => {
            value(argument, size, *ty, values).map(Passed::Bytes)
        }
        (ArgKind::Value { .. }, _) => wrong(&example(argument)),
        (ArgKind::Local { .. }, Spec::Local(bytes)) => Ok(Passed::Local(*bytes)),
        (ArgKind::Local { .. }, _) => wrong("local:BYTES"),
        (ArgKind::Buffer { .. }, Spec::Null) => Ok(Passed::Null),
        (
            ArgKind::Buffer { .. },
            Spec::Values(..) | Spec::Local(_) | Spec::Image(_) | Spec::Sampler(_),
        ) => wrong(BUFFER_FORMS),
        (ArgKind::Buffer { .. }, _) => Ok(Passed::Buffer),
        // A buffer is still made, so that --save and --print find it.
        (ArgKind::Unused, Spec::Values(..) | Spec::Local(_) | Spec::Sampler(_) | Spec::Null) => {
            Ok(Passed::Nothing)
        }
        (ArgKind::Unused, _) => Ok(Passed::Buffer),
        (ArgKind::Image { kind, .. }, Spec::Image(image)) if kind == Some(image.shape.kind) => {
            Ok(Passed::Image(image.shape))
        }
        (ArgKind::Image { .. }, _) => wrong(&example(argument)),
        (ArgKind::Sampler, Spec::Sampler(state)) => Ok(Passed::Sampler(*state)),
        (ArgKind::Sampler, _) => wrong(&example(argument)),
    }
}

/// Bytes that a value of the argument's type has; the compiler may give it a larger `slot`.
fn value_size(argument: &Argument, slot: u32) -> usize {
    let slot = usize::try_from(slot).unwrap_or(usize::MAX);
    let declared = ElementType::from_opencl(&argument.type_name).map(|(ty, lanes)| {
        // OpenCL gives vectors of three the size of four.
        let lanes = if lanes == 3 { 4 } else { lanes };
        ty.size()
            .saturating_mul(usize::try_from(lanes).unwrap_or(usize::MAX))
    });
    declared.filter(|size| *size <= slot).unwrap_or(slot)
}

/// The bytes of a by-value argument, with zeros up to the size of its slot.
fn value(
    argument: &Argument,
    slot: u32,
    ty: ElementType,
    values: &[Scalar],
) -> Result<Vec<u8>, String> {
    let declared = ElementType::from_opencl(&argument.type_name);
    let mut bytes: Vec<u8> = values.iter().flat_map(|v| v.bytes().to_vec()).collect();
    let three = declared.is_some_and(|(element, lanes)| {
        lanes == 3 && values.len() == 3 && element.size() == ty.size()
    });
    if !three && bytes.len() != value_size(argument, slot) {
        let given = Spec::Values(ty, values.to_vec());
        return Err(format!(
            "{}, but {given} has {}; write {}",
            described(argument),
            counted(bytes.len()),
            example(argument)
        ));
    }
    bytes.resize(usize::try_from(slot).unwrap_or(usize::MAX), 0);
    if let Some((element, _)) = declared {
        let float = |ty: ElementType| ty.class() == Class::Float;
        if float(element) != float(ty) {
            tell(&format!(
                "warning: {}, and {} passes its bits as they are",
                described(argument),
                Spec::Values(ty, values.to_vec()),
            ));
        }
    }
    Ok(bytes)
}

fn counted(bytes: usize) -> String {
    let plural = if bytes == 1 { "" } else { "s" };
    format!("{bytes} byte{plural}")
}

/// "argument 2 `a`" and "a value of type float (4 bytes)".
pub fn name_and_nature(argument: &Argument) -> (String, String) {
    let name = match argument.name.as_str() {
        "" => String::new(),
        name => format!(" `{name}`"),
    };
    let ty = match argument.type_name.as_str() {
        "" => String::new(),
        ty => format!(" of type {ty}"),
    };
    let nature = match argument.kind {
        ArgKind::Value { size } => {
            format!("a value{ty} ({})", counted(value_size(argument, size)))
        }
        ArgKind::Buffer { constant: true, .. } => format!("a constant buffer{ty}"),
        ArgKind::Buffer { .. } => format!("a global buffer{ty}"),
        ArgKind::Local { .. } => format!("local memory{ty}"),
        ArgKind::Image { .. } => format!("an image{ty}"),
        ArgKind::Sampler => "a sampler".to_owned(),
        ArgKind::Unused => format!("not used{ty}"),
    };
    (format!("argument {}{name}", argument.index), nature)
}

/// "argument 2 `a` is a value of type float (4 bytes)".
pub fn described(argument: &Argument) -> String {
    let (name, nature) = name_and_nature(argument);
    format!("{name} is {nature}")
}

/// A SPEC of the right kind for an argument.
pub fn example(argument: &Argument) -> String {
    let declared = ElementType::from_opencl(&argument.type_name);
    match argument.kind {
        ArgKind::Value { size } => match declared {
            Some((ty, lanes)) => {
                let lanes = usize::try_from(lanes).unwrap_or(1).clamp(1, 16);
                format!("{ty}:{}", vec!["V"; lanes].join(","))
            }
            None => match size {
                1 => "u8:V".to_owned(),
                2 => "u16:V".to_owned(),
                4 => "u32:V".to_owned(),
                8 => "u64:V".to_owned(),
                _ => format!("u8:V,V,… ({size} values)"),
            },
        },
        ArgKind::Local { .. } => "local:BYTES".to_owned(),
        ArgKind::Sampler => "sampler:clamp_to_edge,linear,normalized".to_owned(),
        ArgKind::Image { kind, .. } => image_example(kind),
        _ => match declared {
            Some((ty, _)) => format!("fill:{ty}:0:COUNT"),
            None => "zero:BYTES".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(type_name: &str, kind: ArgKind) -> Argument {
        Argument {
            index: 2,
            name: "a".to_owned(),
            type_name: type_name.to_owned(),
            kind,
        }
    }

    fn fit(argument: &Argument, spec: &str) -> Result<Passed, String> {
        passed(argument, &spec.parse().unwrap())
    }

    const BUFFER: ArgKind = ArgKind::Buffer {
        surface: Some(0),
        address: false,
        constant: false,
    };

    #[test]
    fn values_have_the_size_of_their_argument() {
        let float = argument("float", ArgKind::Value { size: 4 });
        assert_eq!(
            fit(&float, "f32:1"),
            Ok(Passed::Bytes(1_f32.to_le_bytes().to_vec()))
        );
        assert_eq!(
            fit(&float, "f64:1").unwrap_err(),
            "argument 2 `a` is a value of type float (4 bytes), but f64:1 has 8 bytes; write f32:V"
        );
        assert_eq!(
            fit(&float, "zero:4").unwrap_err(),
            "argument 2 `a` is a value of type float (4 bytes), but zero:4 is a buffer; write f32:V"
        );
        assert_eq!(
            fit(&float, "null").unwrap_err(),
            "argument 2 `a` is a value of type float (4 bytes), but null is a null pointer; write f32:V"
        );
        let record = argument("struct record", ArgKind::Value { size: 12 });
        assert_eq!(
            fit(&record, "u32:1").unwrap_err(),
            "argument 2 `a` is a value of type struct record (12 bytes), but u32:1 has 4 bytes; \
             write u8:V,V,… (12 values)"
        );
    }

    #[test]
    fn narrow_values_fill_their_slot() {
        let char = argument("char", ArgKind::Value { size: 4 });
        assert_eq!(fit(&char, "i8:-1"), Ok(Passed::Bytes(vec![255, 0, 0, 0])));
        assert_eq!(
            fit(&char, "i32:1").unwrap_err(),
            "argument 2 `a` is a value of type char (1 byte), but i32:1 has 4 bytes; write i8:V"
        );
    }

    #[test]
    fn vectors() {
        let three = argument("float3", ArgKind::Value { size: 16 });
        let Ok(Passed::Bytes(bytes)) = fit(&three, "f32:1,2,3") else {
            panic!("not passed")
        };
        assert_eq!(bytes.len(), 16);
        let four = argument("int4", ArgKind::Value { size: 16 });
        assert_eq!(
            fit(&four, "i32:1,2,3").unwrap_err(),
            "argument 2 `a` is a value of type int4 (16 bytes), but i32:1,2,3 has 12 bytes; \
             write i32:V,V,V,V"
        );
    }

    #[test]
    fn pointers_take_buffers() {
        let pointer = argument("float*", BUFFER);
        assert_eq!(fit(&pointer, "zero:4"), Ok(Passed::Buffer));
        assert_eq!(fit(&pointer, "null"), Ok(Passed::Null));
        assert_eq!(
            fit(&pointer, "f32:1").unwrap_err(),
            "argument 2 `a` is a global buffer of type float*, but f32:1 is a value; write \
             file:PATH, zero:BYTES, uninit:BYTES, fill:TYPE:VALUE:COUNT, iota:TYPE:COUNT, rand:TYPE:COUNT:SEED or null"
        );
        let local = argument("float*", ArgKind::Local { alignment: 4 });
        assert_eq!(fit(&local, "local:64"), Ok(Passed::Local(64)));
        assert_eq!(
            fit(&local, "zero:64").unwrap_err(),
            "argument 2 `a` is local memory of type float*, but zero:64 is a buffer; write local:BYTES"
        );
        assert_eq!(
            fit(&pointer, "local:64").unwrap_err(),
            "argument 2 `a` is a global buffer of type float*, but local:64 is local memory; write \
             file:PATH, zero:BYTES, uninit:BYTES, fill:TYPE:VALUE:COUNT, iota:TYPE:COUNT, rand:TYPE:COUNT:SEED or null"
        );
    }
}
