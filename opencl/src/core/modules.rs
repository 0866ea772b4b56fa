//! Binaries of programs that were compiled or made a library, and not linked: SPIR-V modules under a heading of our own. A plain SPIR-V
//! module is taken too.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::program::Modules;

const HEADING: &[u8] = b"visa-jit modules 1\n";
const SPIRV: &[u8] = b"\x03\x02\x23\x07";

#[derive(Serialize, Deserialize)]
struct Written {
    options: String,
    library: bool,
    /// Bytes of each module; they follow in this order.
    lengths: Vec<usize>,
}

/// The bytes of a binary.
pub fn write(modules: &Modules) -> Vec<u8> {
    let written = Written {
        options: modules.options.clone(),
        library: modules.library,
        lengths: modules.all.iter().map(|module| module.len()).collect(),
    };
    let mut bytes = HEADING.to_vec();
    // One line of numbers and a text: nothing that cannot be written.
    bytes.extend(serde_json::to_vec(&written).unwrap_or_default());
    bytes.push(b'\n');
    modules
        .all
        .iter()
        .for_each(|module| bytes.extend(&**module));
    bytes
}

/// The modules of a binary; none if it is something else.
pub fn read(bytes: &[u8]) -> Option<Modules> {
    if bytes.starts_with(SPIRV) {
        return Some(Modules {
            all: vec![Arc::new(bytes.to_vec())],
            ..Modules::default()
        });
    }
    let rest = bytes.strip_prefix(HEADING)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, mut rest) = rest.split_at_checked(end)?;
    let written: Written = serde_json::from_slice(line).ok()?;
    rest = rest.get(1..)?;
    let mut all = Vec::new();
    for length in written.lengths {
        let (module, tail) = rest.split_at_checked(length)?;
        if !module.starts_with(SPIRV) {
            return None;
        }
        all.push(Arc::new(module.to_vec()));
        rest = tail;
    }
    (rest.is_empty() && !all.is_empty()).then_some(Modules {
        all,
        options: written.options,
        library: written.library,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binaries_are_read_as_they_were_written() {
        let module = |rest: &[u8]| Arc::new([SPIRV, rest].concat());
        let modules = Modules {
            all: vec![module(b"one"), module(b"two\n")],
            options: "-cl-fast-relaxed-math".to_owned(),
            library: true,
        };
        let bytes = write(&modules);
        let again = read(&bytes).unwrap();
        assert_eq!(again.all, modules.all);
        assert_eq!(again.options, modules.options);
        assert!(again.library);
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_none(), "{end}");
        }
    }
}
