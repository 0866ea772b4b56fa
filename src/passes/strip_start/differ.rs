//! Lanes in which a strip may compute something else than the thread.

use crate::ssa::Value;

/// Most sets of lanes for one value.
const SETS: usize = 6;
/// Most masks that describe a set.
const MASKS: usize = 6;

/// Lanes of a mask, or those outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lanes {
    pub(super) mask: Value,
    /// All lanes that are not in the mask, instead of those that are.
    pub(super) outside: bool,
}

impl Lanes {
    pub(super) fn of(mask: Value) -> Lanes {
        Lanes {
            mask,
            outside: false,
        }
    }

    /// All but these.
    pub(super) fn others(self) -> Lanes {
        Lanes {
            outside: !self.outside,
            ..self
        }
    }
}

/// Lanes in which a value may differ: the union of sets, each of which is an intersection. No sets are no lanes; a set of nothing is all lanes.
/// A scalar differs only in strips all of whose lanes are in one of the sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Differ(Vec<Vec<Lanes>>);

impl Differ {
    pub(super) const NOWHERE: Differ = Differ(Vec::new());

    /// Maybe in all lanes.
    pub(super) fn anywhere() -> Differ {
        Differ(vec![Vec::new()])
    }

    pub(super) fn sets(&self) -> &[Vec<Lanes>] {
        &self.0
    }

    /// In these lanes, too.
    pub(super) fn or(mut self, more: &Differ) -> Differ {
        more.0.iter().for_each(|set| self.add(set.clone()));
        self
    }

    /// In lanes of a set, too.
    pub(super) fn add(&mut self, mut set: Vec<Lanes>) {
        set.truncate(MASKS);
        let within = |a: &[Lanes], b: &[Lanes]| b.iter().all(|l| a.contains(l));
        if self.0.iter().any(|old| within(&set, old)) {
            return;
        }
        self.0.retain(|old| !within(old, &set));
        // Lanes of a mask and the others are all that there are.
        let other = self.0.iter().position(|old| split(old, &set).is_some());
        if let Some(other) = other {
            let split = split(&self.0.remove(other), &set);
            set.retain(|&l| Some(l) != split);
            return self.add(set);
        }
        self.0.push(set);
        if self.0.len() > SETS {
            self.widen();
        }
    }

    /// One set instead of many.
    fn widen(&mut self) {
        let mut sets = std::mem::take(&mut self.0).into_iter();
        let mut all = sets.next().unwrap_or_default();
        sets.for_each(|set| all.retain(|l| set.contains(l)));
        self.0.push(all);
    }
}

/// The lanes of the second set that the first has the others of, if they differ in nothing else.
fn split(a: &[Lanes], b: &[Lanes]) -> Option<Lanes> {
    let mut more = b.iter().filter(|l| !a.contains(l));
    let (&lanes, rest) = (more.next()?, more.next());
    (rest.is_none() && a.len() == b.len() && a.contains(&lanes.others())).then_some(lanes)
}
