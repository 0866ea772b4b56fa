//! Names: variables in nested scopes, labels, and suggestions for names that are neither.

use super::super::error::ErrorKind;
use super::super::lexer::{Head, Token};
use super::super::spelling;
use super::{PResult, Parser, Reported};
use crate::limits::{MAX_LABELS, MAX_NAME_BYTES, MAX_SCOPES};
use crate::module::*;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What a variable name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sym {
    General(VarId),
    Address(AddrId),
    Pred(PredId),
    Sampler(SamplerId),
    Surface(SurfaceId),
    /// Its declaration was wrong, or its absence has been reported: uses fail silently.
    Poison,
}

impl Sym {
    fn describe(self) -> &'static str {
        match self {
            Sym::General(_) => "a general variable",
            Sym::Address(_) => "an address variable",
            Sym::Pred(_) => "a predicate variable",
            Sym::Sampler(_) => "a sampler",
            Sym::Surface(_) => "a surface",
            Sym::Poison => "unknown",
        }
    }
}

/// Every name of a file.
pub(super) struct Symbols<'s> {
    /// Innermost scope last; the first is the file's own and is never closed.
    scopes: Vec<HashMap<&'s str, Sym>>,
    /// Names given to variables of the module, which has no scopes.
    taken: HashSet<Cow<'s, str>>,
    /// Grows with every renaming attempt, so that renaming stays linear.
    renames: u64,
    labels: HashMap<Cow<'s, str>, LabelId>,
    /// Where each label was first named, by label id.
    first_use: Vec<(Head, Token)>,
}

impl<'s> Symbols<'s> {
    pub(super) fn new() -> Symbols<'s> {
        let mut predefined: HashMap<&'s str, Sym> = HashMap::new();
        for p in &PREDEFINED {
            predefined.insert(p.name, Sym::General(p.id));
        }
        for (id, name) in (0u32..).zip(PREDEFINED_SURFACES) {
            predefined.insert(name, Sym::Surface(SurfaceId(id)));
        }
        Symbols {
            scopes: vec![predefined],
            taken: HashSet::new(),
            renames: 0,
            labels: HashMap::new(),
            first_use: Vec::new(),
        }
    }

    /// Number of open scopes, the file's own included.
    pub(super) fn depth(&self) -> usize {
        self.scopes.len()
    }

    fn find(&self, name: &str) -> Option<Sym> {
        self.scopes.iter().rev().find_map(|s| s.get(name)).copied()
    }

    fn insert(&mut self, name: &'s str, sym: Sym) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, sym);
        }
    }

    /// A name that no other variable of the module has: the declared one, unless an earlier scope used it.
    fn unique(&mut self, name: &'s str) -> String {
        let mut candidate = Cow::Borrowed(name);
        while self.taken.contains(&candidate) {
            self.renames = self.renames.saturating_add(1);
            candidate = Cow::Owned(format!("{name}_{}", self.renames));
        }
        self.taken.insert(candidate.clone());
        candidate.into_owned()
    }
}

impl<'s> Parser<'s> {
    /// `{` or `}` on a line of its own.
    pub(super) fn scope(&mut self) -> PResult<()> {
        let token = self.bump();
        if self.text(token) == "{" {
            if self.symbols.depth() >= MAX_SCOPES {
                let message = format!("more than {MAX_SCOPES} scopes inside each other");
                return Err(self.error(token, ErrorKind::Limit, message));
            }
            self.symbols.scopes.push(HashMap::new());
        } else if self.symbols.depth() > 1 {
            self.symbols.scopes.pop();
        } else {
            return Err(self.error(token, ErrorKind::Syntax, "`}` without `{`".into()));
        }
        self.end_of_statement()
    }

    /// Checks a name that is being declared and gives the name the module will use.
    pub(super) fn declare(&mut self, token: Token, name: &'s str) -> PResult<String> {
        if name.len() > MAX_NAME_BYTES {
            let message = format!("a name is longer than {MAX_NAME_BYTES} bytes");
            return Err(self.error(token, ErrorKind::Limit, message));
        }
        if name.starts_with('%') || PREDEFINED_SURFACES.contains(&name) {
            let message = format!("`{name}` is predefined and cannot be declared");
            return Err(self.error(token, ErrorKind::Name, message));
        }
        if spelling::is_reserved(name) {
            let message = format!("`{name}` is a keyword and cannot name a variable");
            return Err(self.error(token, ErrorKind::Name, message));
        }
        let here = self.symbols.scopes.last().and_then(|s| s.get(name));
        match here {
            Some(Sym::Poison) | None => Ok(self.symbols.unique(name)),
            Some(sym) => {
                let message = format!("`{name}` is declared twice");
                let label = format!("it is {} already", sym.describe());
                Err(self.error_full(token, ErrorKind::Name, message, label, None))
            }
        }
    }

    /// Makes a declared name known.
    pub(super) fn define(&mut self, name: &'s str, sym: Sym) {
        self.symbols.insert(name, sym);
    }

    /// Marks a name whose declaration failed, unless an earlier declaration stands.
    pub(super) fn poison(&mut self, name: &'s str) {
        if self.symbols.find(name).is_none() {
            self.symbols.insert(name, Sym::Poison);
        }
    }

    /// Takes a variable name.
    pub(super) fn variable(&mut self, what: &str) -> PResult<(Token, Sym)> {
        let (token, name) = self.word(what)?;
        match self.symbols.find(name) {
            Some(Sym::Poison) => Err(Reported),
            Some(sym) => Ok((token, sym)),
            None if name == BINDLESS_SAMPLER => Ok((token, self.bindless_sampler(name))),
            None => Err(self.undefined(token, name)),
        }
    }

    /// Few kernels use it, so it is there from its first use on.
    fn bindless_sampler(&mut self, name: &'s str) -> Sym {
        let samplers = &mut self.module.vars.sampler;
        let sym = Sym::Sampler(SamplerId(u32::try_from(samplers.len()).unwrap_or(u32::MAX)));
        samplers.push(OtherVar {
            name: name.to_owned(),
            elements: 1,
            v_name: None,
            attrs: Vec::new(),
            predefined: true,
            pos: Pos::default(),
        });
        if let Some(scope) = self.symbols.scopes.first_mut() {
            scope.insert(name, sym);
        }
        sym
    }

    fn undefined(&mut self, token: Token, name: &'s str) -> Reported {
        let surface = name
            .strip_prefix('T')
            .and_then(|n| n.parse::<usize>().ok())
            .and_then(|n| PREDEFINED_SURFACES.get(n));
        let hint = match surface {
            Some(s) => Some(format!("this surface is written `{s}`")),
            None => {
                let vars = &self.module.vars;
                let others = [&vars.predicate, &vars.address, &vars.surface, &vars.sampler]
                    .into_iter()
                    .flatten()
                    .map(|v| v.name.as_str());
                let names = vars
                    .general
                    .iter()
                    .map(|v| v.name.as_str())
                    .chain(others)
                    .chain(PREDEFINED.iter().map(|p| p.name))
                    .chain(PREDEFINED_SURFACES);
                closest(name, names).map(|n| format!("did you mean `{n}`?"))
            }
        };
        // One report a name: the rest of the file says nothing new.
        self.symbols.insert(name, Sym::Poison);
        let message = format!("`{name}` is not declared");
        self.error_full(token, ErrorKind::Name, message, String::new(), hint)
    }

    /// Reports a variable of the wrong class.
    pub(super) fn wrong_class(&mut self, token: Token, sym: Sym, wanted: &str) -> Reported {
        let message = format!("`{}` is {}", self.text(token), sym.describe());
        let label = format!("expected {wanted}");
        self.error_full(token, ErrorKind::Name, message, label, None)
    }

    /// The label of this name, defined or not.
    pub(super) fn label_id(&mut self, token: Token, name: Cow<'s, str>) -> PResult<LabelId> {
        if let Some(id) = self.symbols.labels.get(&name) {
            return Ok(*id);
        }
        if name.len() > MAX_NAME_BYTES || self.module.labels.len() >= MAX_LABELS {
            let message = "too many labels, or a label that is too long".into();
            return Err(self.error(token, ErrorKind::Limit, message));
        }
        let id = LabelId(u32::try_from(self.module.labels.len()).unwrap_or(u32::MAX));
        self.module.labels.push(Label {
            name: name.to_string(),
            subroutine: false,
            def: None,
        });
        self.symbols.labels.insert(name, id);
        self.symbols.first_use.push((self.head, token));
        Ok(id)
    }

    /// Reports every label that is named but not defined.
    pub(super) fn undefined_labels(&mut self) {
        for index in 0..self.module.labels.len() {
            let Some(label) = self.module.labels.get(index).filter(|l| l.def.is_none()) else {
                continue;
            };
            let message = format!("label `{}` is not defined", label.name);
            let defined = self.module.labels.iter().filter(|l| l.def.is_some());
            let hint = closest(&label.name, defined.map(|l| l.name.as_str()))
                .map(|n| format!("did you mean `{n}`?"));
            let Some((head, token)) = self.symbols.first_use.get(index).copied() else {
                continue;
            };
            self.head = head;
            self.error_full(token, ErrorKind::Name, message, String::new(), hint);
            if self.errors.len() >= crate::limits::MAX_ERRORS {
                return;
            }
        }
    }
}

/// The candidate that a person most likely meant: same but for case, or at most a third of the letters off.
/// Names that differ in digits only (`V0033`, `V0034`) are no misspellings of each other.
pub(super) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    /// Enough for any hand-written file; bounds the cost of an error in a generated one.
    const CANDIDATES: usize = 5000;
    const LONGEST: usize = 64;
    if name.is_empty() || name.len() > LONGEST {
        return None;
    }
    let letters = |s: &str| -> String { s.chars().filter(|c| !c.is_ascii_digit()).collect() };
    let limit = name.len() / 3;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.take(CANDIDATES) {
        if candidate.len().abs_diff(name.len()) > limit || candidate.len() > LONGEST {
            continue;
        }
        let d = if candidate.eq_ignore_ascii_case(name) {
            0
        } else {
            distance(name.as_bytes(), candidate.as_bytes())
        };
        let numbered = d > 0 && letters(name) == letters(candidate);
        if d <= limit && !numbered && best.is_none_or(|(b, _)| d < b) {
            best = Some((d, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// Edit distance in which swapping two neighbours is one edit.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut above = row.clone();
    let at = |row: &[usize], i: usize| row.get(i).copied().unwrap_or(usize::MAX);
    let mut previous = None;
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i.saturating_add(1)];
        let mut left_letter = None;
        for (j, y) in b.iter().enumerate() {
            let insert = at(&next, j).saturating_add(1);
            let delete = at(&row, j.saturating_add(1)).saturating_add(1);
            let substitute = at(&row, j).saturating_add(usize::from(x != y));
            let swapped = previous == Some(y) && left_letter == Some(x);
            let swap = match j.checked_sub(1) {
                Some(two_left) if swapped => at(&above, two_left).saturating_add(1),
                _ => usize::MAX,
            };
            next.push(insert.min(delete).min(substitute).min(swap));
            left_letter = Some(y);
        }
        previous = Some(x);
        above = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"ab"), 2);
        assert_eq!(distance(b"mov", b"mvo"), 1);
        assert_eq!(distance(b"abcd", b"badc"), 2);
    }

    #[test]
    fn closest_prefers_case_then_distance() {
        let names = ["scatter", "gather", "shr"];
        assert_eq!(closest("SCATTER", names.into_iter()), Some("scatter"));
        assert_eq!(closest("gathr", names.into_iter()), Some("gather"));
        assert_eq!(closest("dpas", names.into_iter()), None);
        assert_eq!(closest("V0033", ["V0034"].into_iter()), None);
    }
}
