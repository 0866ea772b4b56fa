//! Strategies for engines, from the table of axes: a new axis, or a new value of one, takes part without a word here.
//!
//! Guarantees: each value that a code generator honours on this machine, alone or with one value of another axis, is in one of its
//! strategies. A strategy has values of many axes at once, so that there are not more strategies than an axis has values.
//! Checks are all in one strategy, and alone there, because they add code of their own. [`crate::planted`] runs each by itself.

use visa_jit::backend::{AXES, Axis, BackendKind, Strategy};

/// A value of an axis.
type Choice = (&'static Axis, &'static str);

/// Axes but that of the code generator.
fn axes() -> impl Iterator<Item = &'static Axis> {
    AXES.iter().filter(|axis| axis.name != "backend")
}

/// Every value of every axis.
pub(crate) fn choices() -> impl Iterator<Item = Choice> {
    axes().flat_map(|axis| axis.values.iter().map(move |(value, _)| (axis, *value)))
}

/// The strategy with other values, if the code generator honours that.
fn changed(strategy: &Strategy, choices: &[(&Axis, &str)]) -> Option<Strategy> {
    let mut changed = *strategy;
    for (axis, value) in choices {
        axis.set(&mut changed, value).ok()?;
    }
    changed.check().is_ok().then_some(changed)
}

/// The usual strategy of a code generator with one value, and with one of another axis where that is needed; `None` for values that
/// are not honoured.
pub(crate) fn with(backend: BackendKind, choice: Choice) -> Option<Strategy> {
    let usual = Strategy::from(backend);
    let others = choices().filter(|(axis, _)| axis.name != choice.0.name);
    let mut pairs = others.map(|other| changed(&usual, &[other, choice]));
    changed(&usual, &[choice]).or_else(|| pairs.find_map(|pair| pair))
}

/// Whether a strategy has a value, or a set that the value is in.
pub(crate) fn has(strategy: &Strategy, (axis, value): Choice) -> bool {
    let own = axis.value(strategy);
    if !axis.several {
        return own == value;
    }
    let joined = changed(strategy, &[(axis, &joined([own, value]))]);
    joined.is_some_and(|joined| axis.value(&joined) == own)
}

fn joined<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    values.into_iter().collect::<Vec<_>>().join(",")
}

/// Strategies of a code generator that between them, and the usual one, have every value.
pub(crate) fn of(backend: BackendKind) -> Vec<Strategy> {
    let usual = Strategy::from(backend);
    let mut all = vec![usual];
    loop {
        let missing = missing(&all);
        let Some(first) = missing.iter().find_map(|first| with(backend, *first)) else {
            break;
        };
        let add = |strategy: Strategy, choice: &Choice| {
            // What the first value needs has to stay.
            let is_free = choice.0.value(&strategy) == choice.0.value(&usual);
            let changed = changed(&strategy, &[*choice]).filter(|_| is_free);
            changed.unwrap_or(strategy)
        };
        all.push(missing.iter().fold(first, add));
    }
    let mut checks = usual;
    for axis in axes().filter(|axis| axis.several) {
        let members = joined(axis.values.iter().map(|(value, _)| *value));
        axis.set(&mut checks, &members)
            .expect("a set of its values");
    }
    all.push(checks);
    all.remove(0);
    all
}

/// Values that none of some strategies has; those that are sets' are left out.
fn missing(all: &[Strategy]) -> Vec<Choice> {
    let single = choices().filter(|(axis, _)| !axis.several);
    let is_missing = |choice: &Choice| !all.iter().any(|s| has(s, *choice));
    single.filter(is_missing).collect()
}

/// A strategy as the command takes it: what is not as usual.
pub(crate) fn name(strategy: &Strategy) -> String {
    let usual = Strategy::from(strategy.backend);
    let unusual = axes().filter(|axis| axis.value(strategy) != axis.value(&usual));
    unusual.fold(strategy.backend.name().to_owned(), |name, axis| {
        format!("{name} --{} {}", axis.name, axis.value(strategy))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use visa_jit::backend::{Bounds, Check, Choice as _, Gather, RegAlloc};

    #[test]
    fn strategies_are_honoured_and_few() {
        for &backend in BackendKind::ALL {
            let strategies = of(backend);
            for strategy in &strategies {
                println!("{}", name(strategy));
                assert!(strategy.check().is_ok(), "{}", name(strategy));
            }
            let most = axes().map(|axis| axis.values.len()).max();
            assert!(Some(strategies.len()) <= most, "{strategies:#?}");
        }
    }

    #[test]
    fn values_are_taken_where_they_are_honoured() {
        let any = |backend, what: fn(&Strategy) -> bool| of(backend).iter().any(what);
        let (cranelift, llvm) = (BackendKind::Cranelift, BackendKind::Llvm);
        assert!(any(cranelift, |s| s.tuning.gather == Gather::Branch));
        assert!(!any(llvm, |s| s.tuning.gather == Gather::Branch));
        // Only with the least effort of code generation.
        assert!(any(llvm, |s| s.tuning.regalloc == RegAlloc::Fast));
        for backend in [cranelift, llvm] {
            assert!(!any(backend, |s| s.tuning.bounds == Bounds::Off));
            assert!(any(backend, |s| s.tuning.check.contains(Check::All)));
        }
    }
}
