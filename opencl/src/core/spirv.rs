//! SPIR-V modules: their version, and their specialisation constants. These are given values by writing those into the module, since no version of the
//! compiler's command takes them all. Numbers are those of SPIR-V's specification, sections 2.3 and 3.

use std::collections::BTreeMap;

const MAGIC: u32 = 0x0723_0203;
/// Words before the first instruction.
const HEADER: usize = 5;
const OP_TYPE_INT: u16 = 21;
const OP_TYPE_FLOAT: u16 = 22;
const OP_SPEC_CONSTANT_TRUE: u16 = 48;
const OP_SPEC_CONSTANT_FALSE: u16 = 49;
const OP_SPEC_CONSTANT: u16 = 50;
const OP_DECORATE: u16 = 71;
const SPEC_ID: u32 = 1;

/// Where a constant is, and how large its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConstantPlace {
    /// Of the instruction, in words.
    at: usize,
    /// Bytes that programs pass.
    bytes: usize,
    boolean: bool,
}

fn words(module: &[u8]) -> Option<Vec<u32>> {
    let (words, []) = module.as_chunks::<4>() else {
        return None;
    };
    let words: Vec<u32> = words.iter().map(|w| u32::from_le_bytes(*w)).collect();
    (words.first() == Some(&MAGIC)).then_some(words)
}

/// The constants by the number that programs know them by; empty if the module cannot be read.
fn constants(words: &[u32]) -> BTreeMap<u32, ConstantPlace> {
    let (mut ids, mut widths, mut places) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut at = HEADER;
    while let Some(&first) = words.get(at) {
        let [count, op] = [first >> 16, first & 0xFFFF];
        let Some(instruction) = words.get(at..at + count as usize) else {
            break;
        };
        match (op as u16, instruction) {
            (OP_DECORATE, &[_, target, SPEC_ID, id]) => {
                ids.insert(target, id);
            }
            (OP_TYPE_INT | OP_TYPE_FLOAT, &[_, result, width, ..]) => {
                widths.insert(result, width as usize / 8);
            }
            (OP_SPEC_CONSTANT_TRUE | OP_SPEC_CONSTANT_FALSE, &[_, _, result]) => {
                let (bytes, boolean) = (1, true);
                places.insert(result, ConstantPlace { at, bytes, boolean });
            }
            (OP_SPEC_CONSTANT, &[_, ty, result, _, ..]) => {
                let (bytes, boolean) = (widths.get(&ty).copied().unwrap_or(0), false);
                places.insert(result, ConstantPlace { at, bytes, boolean });
            }
            _ => {}
        }
        // An instruction has at least its first word.
        at += instruction.len().max(1);
    }
    ids.into_iter()
        .filter_map(|(target, id)| Some((id, *places.get(&target)?)))
        .collect()
}

/// The version that a module says it is of, major and minor.
pub fn version_of(module: &[u8]) -> Option<(u32, u32)> {
    let version = *words(module)?.get(1)?;
    Some((version >> 16, version >> 8 & 0xFF))
}

/// Bytes of the constant with this number; none if there is no such constant.
pub fn constant_bytes(module: &[u8], id: u32) -> Option<usize> {
    constants(&words(module)?).get(&id).map(|place| place.bytes)
}

/// The module with values in place of its defaults. Values of constants that it does not have mean nothing.
pub fn specialised(module: &[u8], values: &BTreeMap<u32, Vec<u8>>) -> Vec<u8> {
    let Some(mut words) = words(module).filter(|_| !values.is_empty()) else {
        return module.to_vec();
    };
    for (id, place) in constants(&words) {
        let Some(value) = values.get(&id).filter(|v| v.len() == place.bytes) else {
            continue;
        };
        if place.boolean {
            let op = if value.iter().any(|byte| *byte != 0) {
                OP_SPEC_CONSTANT_TRUE
            } else {
                OP_SPEC_CONSTANT_FALSE
            };
            if let Some(word) = words.get_mut(place.at) {
                *word = *word & 0xFFFF_0000 | u32::from(op);
            }
            continue;
        }
        // Words of the value begin after the type and the result.
        let literals = words.get_mut(place.at + 3..).unwrap_or_default();
        for (word, bytes) in literals.iter_mut().zip(value.chunks(4)) {
            let mut padded = [0; 4];
            padded
                .iter_mut()
                .zip(bytes)
                .for_each(|(to, from)| *to = *from);
            *word = u32::from_le_bytes(padded);
        }
    }
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(instructions: &[&[u32]]) -> Vec<u8> {
        let mut words = vec![MAGIC, 0x10000, 0, 20, 0];
        for instruction in instructions {
            let (op, rest) = instruction.split_first().unwrap();
            words.push((rest.len() as u32 + 1) << 16 | op);
            words.extend(rest);
        }
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn versions_are_read() {
        for (version, read) in [(0x10000, (1, 0)), (0x10600, (1, 6)), (0x20100, (2, 1))] {
            let mut bytes = module(&[]);
            bytes[4..8].copy_from_slice(&u32::to_le_bytes(version));
            assert_eq!(version_of(&bytes), Some(read));
            bytes[0] = 0;
            assert_eq!(version_of(&bytes), None);
        }
        assert_eq!(version_of(&module(&[])[..4]), None);
    }

    #[test]
    fn values_take_the_place_of_defaults() {
        let with = |int: u32, wide: [u32; 2], truth: u32| {
            module(&[
                &[71, 7, 1, 100],
                &[71, 8, 1, 101],
                &[71, 9, 1, 102],
                &[21, 1, 32, 0],
                &[22, 2, 64],
                &[20, 3],
                &[50, 1, 7, int],
                &[50, 2, 8, wide[0], wide[1]],
                &[truth, 3, 9],
            ])
        };
        let plain = with(5, [1, 2], 49);
        let sizes = [100, 101, 102, 103].map(|id| constant_bytes(&plain, id));
        assert_eq!(sizes, [Some(4), Some(8), Some(1), None]);
        let values = BTreeMap::from([
            (100, 9_u32.to_le_bytes().to_vec()),
            (
                101,
                [3_u32, 4].into_iter().flat_map(u32::to_le_bytes).collect(),
            ),
            (102, vec![1]),
            (103, vec![1]),
        ]);
        assert_eq!(specialised(&plain, &values), with(9, [3, 4], 48));
        for end in 0..plain.len() {
            specialised(&plain[..end], &values);
        }
    }
}
