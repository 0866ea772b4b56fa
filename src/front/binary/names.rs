//! Names for a binary's strings: these may not be valid names in text, or may occur twice.

use super::super::text::spelling;
use super::error::{Problem, Walk};
use crate::limits::MAX_NAME_BYTES;
use crate::module::*;
use std::collections::HashSet;

/// Number of the sampler that exists without a declaration, [`BINDLESS_SAMPLER`].
pub(super) const BINDLESS: u8 = 31;

/// The number of a sampler. One that is not declared has no place among those that are.
pub(super) fn sampler_number(vars: &Vars, id: SamplerId) -> Walk<u8> {
    let (at, list) = (id.0 as usize, &vars.sampler);
    let number = match list.get(at) {
        Some(var) if var.predefined => return Ok(BINDLESS),
        Some(_) => list.iter().take(at).filter(|v| !v.predefined).count(),
        None => {
            return Err(Problem::unwritable(format!(
                "sampler {at}, which is not declared"
            )));
        }
    };
    let number = u8::try_from(number).ok().filter(|n| *n < BINDLESS);
    number.ok_or_else(|| Problem::unwritable(format!("more than {BINDLESS} samplers")))
}

/// Names that are taken.
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    pub(super) fn new() -> Names {
        Names {
            taken: HashSet::new(),
        }
    }

    /// The name itself if text can have it and nothing else does, else one by class and number.
    pub(super) fn variable(&mut self, name: String, class: &str, number: u32) -> String {
        let fits = spelling::is_identifier(&name)
            && !spelling::is_reserved(&name)
            && !PREDEFINED_SURFACES.contains(&name.as_str())
            && name != BINDLESS_SAMPLER
            && name != "r";
        self.unique(name, fits, class, number)
    }

    /// The same of a label.
    pub(super) fn label(&mut self, name: String, subroutine: bool, number: u32) -> String {
        let fits = subroutine && !name.is_empty() || spelling::is_label(&name);
        let class = if subroutine { "sub" } else { "label" };
        self.unique(name, fits, class, number)
    }

    fn unique(&mut self, name: String, fits: bool, class: &str, number: u32) -> String {
        let mut name = name;
        if !fits || name.len() > MAX_NAME_BYTES || self.taken.contains(&name) {
            name = format!("{class}{number:04}");
        }
        // Each round takes one more name away, of which there are as many as things with names.
        while self.taken.contains(&name) {
            name.push('_');
        }
        self.taken.insert(name.clone());
        name
    }
}
