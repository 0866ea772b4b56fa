//! Sets of checks: what `--check memory,barrier` asks for.

use std::sync::LazyLock;

use super::axes::{Check, Choice};

/// Which errors of a kernel to look for: any number of [`Check`]s, which work together in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Checks(u8);

/// Checks that are one thing to look for, in the order of their bits and of names.
const SINGLE: [Check; 4] = [Check::Memory, Check::Init, Check::Race, Check::Barrier];

/// Names of all sets, by their bits.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let sets = (0..1 << SINGLE.len()).map(Checks);
    sets.map(Checks::spelled).collect()
});

impl Checks {
    /// Nothing is checked.
    pub const NONE: Checks = Checks(0);

    /// What `all` stands for.
    const ALL: Checks = Checks((1 << SINGLE.len()) - 1);

    /// True when nothing is checked.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True when all is checked that `check` stands for.
    pub fn contains(self, check: impl Into<Checks>) -> bool {
        let asked = check.into().0;
        self.0 & asked == asked
    }

    /// What either of two sets checks.
    #[must_use]
    pub const fn and(self, other: Checks) -> Checks {
        Checks(self.0 | other.0)
    }

    fn single(self) -> impl Iterator<Item = Check> {
        let there = move |check: &Check| self.0 & bit(*check) != 0;
        SINGLE.into_iter().filter(there)
    }

    fn spelled(self) -> String {
        if self.is_empty() || self == Checks::ALL {
            let word = if self.is_empty() {
                Check::None
            } else {
                Check::All
            };
            return word.name().to_owned();
        }
        let names: Vec<_> = self.single().map(Check::name).collect();
        names.join(",")
    }

    /// Spelling on the command line, the same for every order in which the checks may be given.
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).map_or("", String::as_str)
    }

    /// The set of these names, between commas or, where commas mean something else, plus signs.
    ///
    /// # Errors
    /// A text that lists the legal names.
    pub fn parse(names: &str) -> Result<Checks, String> {
        let mut each = names.split([',', '+']).map(Check::parse);
        each.try_fold(Checks::NONE, |all, check| Ok(all.and(check?.into())))
    }

    /// The most bytes of shadow memory that checks keep for each byte of device memory. They are used as the byte is.
    pub fn shadow_bytes(self) -> u64 {
        let of = |check, bytes| if self.contains(check) { bytes } else { 0 };
        of(Check::Memory, 1) + of(Check::Init, 1) + of(Check::Race, 8)
    }
}

const fn bit(check: Check) -> u8 {
    match check {
        Check::None | Check::All => 0,
        Check::Memory => 1,
        Check::Init => 2,
        Check::Race => 4,
        Check::Barrier => 8,
    }
}

impl From<Check> for Checks {
    fn from(check: Check) -> Checks {
        match check {
            Check::All => Checks::ALL,
            one => Checks(bit(one)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_has_one_name() {
        for bits in 0..1 << SINGLE.len() {
            let set = Checks(bits);
            assert_eq!(Checks::parse(set.name()), Ok(set));
        }
        for (text, name) in [
            ("none", "none"),
            ("barrier,memory", "memory,barrier"),
            ("race+none", "race"),
            ("memory,memory", "memory"),
            ("barrier,race,memory,init", "all"),
            ("all,race", "all"),
        ] {
            assert_eq!(Checks::parse(text).unwrap().name(), name);
        }
        for wrong in ["", "memory,", "memory barrier", "races"] {
            let error = Checks::parse(wrong).unwrap_err();
            assert!(error.contains("memory") && error.contains("all"), "{error}");
        }
    }

    #[test]
    fn a_set_contains_what_it_was_made_of() {
        let two = Checks::parse("memory,barrier").unwrap();
        assert!(two.contains(Check::Memory) && two.contains(Check::Barrier));
        assert!(!two.contains(Check::Race) && !two.contains(Check::All));
        assert!(Checks::from(Check::All).contains(two));
    }

    #[test]
    fn shadows_of_all_checks_add_up() {
        let of = |names| Checks::parse(names).unwrap().shadow_bytes();
        assert_eq!([of("none"), of("barrier"), of("memory")], [0, 0, 1]);
        assert_eq!([of("race"), of("init"), of("all")], [8, 1, 10]);
    }
}
