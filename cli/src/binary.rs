//! Binary vISA (`.isa`): files are read as the text that they stand for, and kernels written for the vendor's tools.

use std::fs;
use std::path::Path;

use super::exit::Failure;
use super::list::{choose, parse};
use super::load::{Contents, Loaded};
use visa_jit::container::{Zebin, infer_device};
use visa_jit::front::binary::{BinaryError, Fault, to_text, write};
use visa_jit::front::text;
use visa_jit::isa::{Platform, Versions};
use visa_jit::module::{Module, ModuleKind};

/// The text of a file.
pub fn text_of(
    name: &str,
    bytes: &[u8],
    device: Option<Platform>,
    versions: Versions,
) -> Result<String, Failure> {
    to_text(bytes, device, versions).map_err(|error| failure(name, &error))
}

fn failure(name: &str, error: &BinaryError) -> Failure {
    let message = format!("{name}: {error}");
    match error.fault {
        Fault::Malformed | Fault::Limit => Failure::usage(message),
        Fault::Unsupported | Fault::Unwritable => Failure::unsupported(message),
        Fault::Device => Failure::usage(format!(
            "{message}; add --platform skl, tgllp, acm-g10, pvc, bmg or ptl-h"
        )),
    }
}

/// Writes the kernels of a file, or one of them, and the functions compiled with them.
pub fn save(file: &Loaded, kernel: Option<&str>, to: &Path) -> Result<(), Failure> {
    let (modules, device) = match &file.contents {
        Contents::Text(source) => (chosen(file, source, kernel)?, file.device),
        Contents::Zebin(bytes) => {
            let zebin = file.zebin(bytes)?;
            let device = file.device.or_else(|| infer_device(&zebin).device);
            (of_zebin(file, &zebin, kernel)?, device)
        }
        Contents::Library(..) => {
            return Err(Failure::unsupported(format!(
                "{}: compiled kernels have no vISA any more",
                file.name
            )));
        }
    };
    let bytes = write(&modules, device).map_err(|error| failure(&file.name, &error))?;
    fs::write(to, bytes).map_err(|error| Failure::file("write", to, error))
}

/// The modules of a text, or one kernel of it with all functions.
pub fn chosen(file: &Loaded, source: &str, kernel: Option<&str>) -> Result<Vec<Module>, Failure> {
    let mut modules = parse(&file.name, source, file.versions)?;
    let known: Vec<_> = modules.iter().map(|module| &module.name).collect();
    choose(&file.name, &known, kernel)?;
    if let Some(name) = kernel {
        modules.retain(|m| m.name == name || m.kind == ModuleKind::Function);
    }
    Ok(modules)
}

/// Texts of zebins name no kernels, their headers do.
fn of_zebin(file: &Loaded, zebin: &Zebin, kernel: Option<&str>) -> Result<Vec<Module>, Failure> {
    let known: Vec<_> = zebin.kernels.iter().map(|kernel| &kernel.name).collect();
    choose(&file.name, &known, kernel)?;
    let (mut kernels, mut functions) = (Vec::new(), Vec::<Module>::new());
    for (index, each) in zebin.kernels.iter().enumerate() {
        if kernel.is_some_and(|name| name != each.name) {
            continue;
        }
        let module = one(&each.name, &each.visa.text, file.versions)?;
        kernels.push(Module {
            name: each.name.clone(),
            ..module
        });
        for own in zebin.functions.iter().filter(|f| f.owner == Some(index)) {
            let function = one(&own.name, &own.visa.text, file.versions)?;
            match functions.iter().find(|f| f.name == function.name) {
                None => functions.push(function),
                Some(other) if *other == function => {}
                Some(_) => {
                    return Err(Failure::unsupported(format!(
                        "{}: several kernels have a function `{}` of their own, and a binary has one of a name; \
                         choose a kernel with --kernel",
                        file.name, own.name
                    )));
                }
            }
        }
    }
    kernels.append(&mut functions);
    Ok(kernels)
}

fn one(name: &str, source: &str, versions: Versions) -> Result<Module, Failure> {
    text::parse_with(name, source, versions)
        .map_err(|found| Failure::from(visa_jit::engine::Error::from(found)))
}
