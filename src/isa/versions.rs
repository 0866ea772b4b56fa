//! Which versions of vISA, and of what lies beside it in files, are read.

use serde::{Deserialize, Serialize};

/// How to override the refusal of a version, for messages.
pub const OVERRIDE: &str = "--any-version (in the library `EngineOptions::versions`)";

/// Versions that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Versions {
    /// Those that are known; others are an error.
    #[default]
    Known,
    /// All: a version that is not known is read as the known one next to it. What differs between the two is an error at best,
    /// and a wrong result at worst.
    Any,
}

impl Versions {
    /// The version as which `found` is read, given the first and the last version that are known (major, minor).
    pub fn read_as<N: Ord + Copy>(self, found: (N, N), known: [(N, N); 2]) -> Option<(N, N)> {
        let [first, last] = known;
        match self {
            Versions::Any => Some(found.max(first).min(last)),
            Versions::Known => (first <= found && found <= last).then_some(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_versions_are_read_as_their_neighbours() {
        let known = [(3, 4), (4, 1)];
        for (found, neighbour) in [
            ((3, 3), (3, 4)),
            ((0, 9), (3, 4)),
            ((4, 2), (4, 1)),
            ((9, 0), (4, 1)),
        ] {
            assert_eq!(Versions::Known.read_as(found, known), None);
            assert_eq!(Versions::Any.read_as(found, known), Some(neighbour));
        }
        for found in [(3, 4), (3, 99), (4, 0), (4, 1)] {
            for versions in [Versions::Known, Versions::Any] {
                assert_eq!(versions.read_as(found, known), Some(found));
            }
        }
    }
}
