//! Storage of general variables: alias chains end in roots.

use super::{Target, ValidError};
use crate::module::{GeneralVar, Module, PREDEFINED, VarId};

/// A storage root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RootId(pub u32);

/// A byte position in a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootOffset {
    /// Root.
    pub root: RootId,
    /// Byte offset.
    pub offset: u32,
}

/// Storage shared by a variable and its aliases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The variable at its origin.
    pub var: VarId,
    /// Bytes, a multiple of the register size; aliases that run past the variable are included.
    pub bytes: u32,
}

/// Alias chains longer than this are refused.
const MAX_ALIAS_DEPTH: u32 = 64;
/// Largest storage of one root: 65535 qwords.
const MAX_ROOT_BYTES: u32 = 1 << 20;

/// Places of every variable of a module.
#[derive(Clone, Debug)]
pub struct Places {
    roots: Vec<Root>,
    /// Indexed by variable id.
    places: Vec<RootOffset>,
}

impl Places {
    /// Follows aliases, sizes roots; reports cycles and overlong chains.
    pub fn resolve(module: &Module, target: Target, errors: &mut Vec<ValidError>) -> Places {
        let grf = target.grf();
        let mut roots: Vec<Root> = PREDEFINED
            .iter()
            .map(|p| Root {
                var: p.id,
                bytes: (p.elements * p.ty.bytes()).next_multiple_of(grf),
            })
            .collect();
        let mut places: Vec<RootOffset> = (0..VarId::FIRST_USER)
            .map(|i| RootOffset {
                root: RootId(i.min(PREDEFINED.len() as u32 - 1)),
                offset: 0,
            })
            .collect();
        let mut root_of = vec![None; module.vars.general.len()];
        for (i, v) in module.vars.general.iter().enumerate() {
            if v.alias.is_none() {
                root_of[i] = Some(RootId(roots.len() as u32));
                roots.push(Root {
                    var: VarId(VarId::FIRST_USER + i as u32),
                    bytes: 0,
                });
            }
        }
        for i in 0..module.vars.general.len() {
            let place = follow(module, &root_of, i).unwrap_or_else(|message| {
                errors.push(ValidError {
                    pos: module.vars.general[i].pos,
                    message,
                });
                RootOffset {
                    root: RootId(0),
                    offset: 0,
                }
            });
            let v = &module.vars.general[i];
            let end = u64::from(place.offset) + u64::from(v.elements) * u64::from(v.ty.bytes());
            if end > u64::from(MAX_ROOT_BYTES) {
                errors.push(ValidError {
                    pos: v.pos,
                    message: format!(
                        "`{}` needs {end} bytes of registers; the limit is {MAX_ROOT_BYTES}",
                        v.name
                    ),
                });
            } else if let Some(message) = misplaced(v, place, end, &roots) {
                let pos = v.pos;
                errors.push(ValidError { pos, message });
            } else {
                let root = &mut roots[place.root.0 as usize];
                root.bytes = root.bytes.max((end as u32).next_multiple_of(grf));
            }
            places.push(place);
        }
        Places { roots, places }
    }

    /// Where a variable starts; unknown ids give `%null` (validation has refused them).
    pub fn root_offset(&self, var: VarId) -> RootOffset {
        self.places
            .get(var.0 as usize)
            .copied()
            .unwrap_or(RootOffset {
                root: RootId(0),
                offset: 0,
            })
    }

    /// True when the id names a variable.
    pub fn exists(&self, var: VarId) -> bool {
        (var.0 as usize) < PREDEFINED.len()
            || (var.0 >= VarId::FIRST_USER && (var.0 as usize) < self.places.len())
    }

    /// All roots.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Bytes from the start of `var` to the end of its root.
    pub fn room(&self, var: VarId) -> u32 {
        let p = self.root_offset(var);
        self.roots[p.root.0 as usize].bytes.saturating_sub(p.offset)
    }
}

/// What is wrong with a name for part of another variable: no register operand begins between elements, and predefined variables
/// are as large as they are.
fn misplaced(v: &GeneralVar, place: RootOffset, end: u64, roots: &[Root]) -> Option<String> {
    let root = roots.get(place.root.0 as usize)?;
    let of = PREDEFINED.get(place.root.0 as usize).map(|p| p.name);
    let (name, element) = (&v.name, v.ty.bytes());
    if let Some(of) = of
        && end > u64::from(root.bytes)
    {
        let room = root.bytes;
        return Some(format!(
            "`{name}` reaches byte {end} of {of}, which has {room}"
        ));
    }
    (!place.offset.is_multiple_of(element)).then(|| {
        let (at, of) = (place.offset, of.unwrap_or("its storage"));
        format!("`{name}` begins at byte {at} of {of}, which is no multiple of its elements' {element} bytes")
    })
}

fn follow(module: &Module, root_of: &[Option<RootId>], start: usize) -> Result<RootOffset, String> {
    let mut at = start;
    let mut offset: u64 = 0;
    for _ in 0..MAX_ALIAS_DEPTH {
        let v = &module.vars.general[at];
        let Some((parent, bytes)) = v.alias else {
            let root = root_of[at].unwrap_or(RootId(0));
            let offset = u32::try_from(offset)
                .map_err(|_| format!("alias offset of `{}` overflows", v.name))?;
            return Ok(RootOffset { root, offset });
        };
        offset += u64::from(bytes);
        if parent.is_predefined() {
            if parent.0 as usize >= PREDEFINED.len() {
                return Err(format!(
                    "`{}` is an alias of an unknown predefined variable",
                    v.name
                ));
            }
            let offset = u32::try_from(offset)
                .map_err(|_| format!("alias offset of `{}` overflows", v.name))?;
            return Ok(RootOffset {
                root: RootId(parent.0),
                offset,
            });
        }
        at = parent
            .user_index()
            .filter(|&i| i < module.vars.general.len())
            .ok_or_else(|| format!("`{}` is an alias of a variable that does not exist", v.name))?;
    }
    Err(format!(
        "alias chain of `{}` is longer than {MAX_ALIAS_DEPTH} or goes in a circle",
        module.vars.general[start].name
    ))
}
