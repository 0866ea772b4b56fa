//! Axes of strategies, and their combinations.

use std::str::FromStr;

use crate::exit::Failure;
use visa_jit::backend::{
    BackendKind, Bounds, Cpu, Dispatch, Gather, HalfAccesses, Masks, OptLevel, PassLevel, RegAlloc,
    VectorWidth,
};
use visa_jit::engine::EngineOptions;
use visa_jit::passes::pipeline::PASSES;

/// What `--sweep` can vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Backend,
    Codegen,
    Opt,
    Gather,
    Bounds,
    VectorWidth,
    Cpu,
    RegAlloc,
    Masks,
    Halves,
    Dispatch,
    NoPass,
}

const KINDS: [(&str, Kind); 12] = [
    ("backend", Kind::Backend),
    ("codegen", Kind::Codegen),
    ("opt", Kind::Opt),
    ("gather", Kind::Gather),
    ("bounds", Kind::Bounds),
    ("vector-width", Kind::VectorWidth),
    ("cpu", Kind::Cpu),
    ("regalloc", Kind::RegAlloc),
    ("masks", Kind::Masks),
    ("halves", Kind::Halves),
    ("dispatch", Kind::Dispatch),
    ("no-pass", Kind::NoPass),
];

impl Kind {
    /// Values it can have.
    fn legal(self) -> Vec<&'static str> {
        match self {
            Kind::Backend => BackendKind::ALL.map(BackendKind::name).to_vec(),
            Kind::Codegen => OptLevel::ALL.map(OptLevel::name).to_vec(),
            Kind::Opt => PassLevel::ALL.map(PassLevel::name).to_vec(),
            Kind::Gather => Gather::ALL.map(Gather::name).to_vec(),
            Kind::Bounds => Bounds::ALL.map(Bounds::name).to_vec(),
            Kind::VectorWidth => names::<VectorWidth>(),
            Kind::Cpu => names::<Cpu>(),
            Kind::RegAlloc => names::<RegAlloc>(),
            Kind::Masks => names::<Masks>(),
            Kind::Halves => names::<HalfAccesses>(),
            Kind::Dispatch => names::<Dispatch>(),
            Kind::NoPass => std::iter::once("none")
                .chain(PASSES.iter().map(|(name, _)| *name))
                .collect(),
        }
    }

    /// Sets it in the options of an engine.
    fn set(self, options: &mut EngineOptions, value: &str) {
        let strategy = &mut options.strategy;
        match self {
            Kind::Backend => {
                let found = BackendKind::ALL.into_iter().find(|k| k.name() == value);
                strategy.backend = found.unwrap_or_default();
            }
            Kind::Codegen => {
                let found = OptLevel::ALL.into_iter().find(|l| l.name() == value);
                strategy.opt = found.unwrap_or_default();
            }
            Kind::Opt => {
                let found = PassLevel::ALL.into_iter().find(|l| l.name() == value);
                strategy.passes = found.unwrap_or_default();
            }
            Kind::Gather => {
                let found = Gather::ALL.into_iter().find(|g| g.name() == value);
                strategy.gather = found.unwrap_or_default();
            }
            Kind::Bounds => {
                let found = Bounds::ALL.into_iter().find(|b| b.name() == value);
                strategy.bounds = found.unwrap_or_default();
            }
            Kind::VectorWidth => set(&mut strategy.tuning.width, value),
            Kind::Cpu => set(&mut strategy.tuning.cpu, value),
            Kind::RegAlloc => set(&mut strategy.tuning.regalloc, value),
            Kind::Masks => set(&mut strategy.tuning.masks, value),
            Kind::Halves => set(&mut strategy.tuning.halves, value),
            Kind::Dispatch => set(&mut strategy.tuning.dispatch, value),
            Kind::NoPass => {
                let pass = PASSES.iter().find(|(name, _)| *name == value);
                options.passes.disabled.extend(pass.map(|(name, _)| *name));
            }
        }
    }
}

/// Names of an axis's values.
fn names<C: visa_jit::backend::Choice>() -> Vec<&'static str> {
    C::ALL.iter().map(|c| c.name()).collect()
}

/// Sets a value by a name that is known to be one.
fn set<C: visa_jit::backend::Choice>(to: &mut C, name: &str) {
    *to = C::parse(name).unwrap_or_default();
}

/// `AXIS=VALUE[,VALUE…]` of `--sweep`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    kind: Kind,
    values: Vec<&'static str>,
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Axis, String> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == name) else {
            let known = KINDS.map(|(name, _)| name).join(", ");
            return Err(format!("there is no axis `{name}`; there is {known}"));
        };
        let legal = kind.legal();
        let value = |value: &str| {
            let found = legal.iter().copied().find(|l| *l == value);
            found.ok_or_else(|| format!("`{value}` is no {name}; write {}", legal.join(", ")))
        };
        let values = values.split(',').map(value).collect::<Result<_, _>>()?;
        Ok(Axis {
            kind: *kind,
            values,
        })
    }
}

/// One combination.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its values on the axes.
    pub name: String,
    /// What makes it so.
    pub options: EngineOptions,
}

/// A combination that a code generator cannot honour, and why.
#[derive(Debug)]
pub struct Refused {
    /// Its values on the axes.
    pub name: String,
    /// What the code generator says.
    pub why: String,
}

/// All combinations; without axes, every code generator of this build at each of its levels.
pub fn choices(
    axes: &[Axis],
    base: &EngineOptions,
) -> Result<(Vec<Choice>, Vec<Refused>), Failure> {
    for (n, axis) in axes.iter().enumerate() {
        if axes.iter().take(n).any(|other| other.kind == axis.kind) {
            return Err(Failure::usage(
                "an axis is given twice: list its values in one",
            ));
        }
    }
    let usual = [
        Axis {
            kind: Kind::Backend,
            values: built(),
        },
        Axis {
            kind: Kind::Codegen,
            values: Kind::Codegen.legal(),
        },
    ];
    let axes = if axes.is_empty() { &usual } else { axes };
    let mut all = vec![Choice {
        name: String::new(),
        options: base.clone(),
    }];
    for axis in axes {
        let extended = |choice: &Choice| {
            let extend = |value: &&'static str| {
                let mut next = choice.clone();
                axis.kind.set(&mut next.options, value);
                let plain = matches!(axis.kind, Kind::Backend | Kind::Codegen | Kind::Opt);
                let axis = KINDS.iter().find(|(_, kind)| *kind == axis.kind);
                next.name = match axis.filter(|_| !plain) {
                    Some((axis, _)) => format!("{} {axis}={value}", next.name),
                    None => format!("{} {value}", next.name),
                };
                next.name = next.name.trim().to_owned();
                next
            };
            axis.values.iter().map(extend).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extended).collect();
    }
    let mut refused = Vec::new();
    all.retain(|choice| match choice.options.strategy.check() {
        Ok(()) => true,
        Err(error) => {
            refused.push(Refused {
                name: choice.name.clone(),
                why: error.to_string(),
            });
            false
        }
    });
    match (all.is_empty(), refused.first()) {
        (true, Some(first)) => Err(Failure::unsupported(first.why.clone())),
        _ => Ok((all, refused)),
    }
}

/// Code generators that this program has.
fn built() -> Vec<&'static str> {
    let kinds = BackendKind::ALL.into_iter();
    let built = kinds.filter(|k| *k != BackendKind::Llvm || cfg!(feature = "llvm-codegen"));
    built.map(BackendKind::name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axes: &[&str]) -> (Vec<String>, Vec<String>) {
        let axes: Vec<Axis> = axes.iter().map(|a| a.parse().unwrap()).collect();
        let (choices, refused) = choices(&axes, &EngineOptions::default()).unwrap();
        (
            choices.into_iter().map(|c| c.name).collect(),
            refused.into_iter().map(|r| r.name).collect(),
        )
    }

    #[test]
    fn combinations() {
        let (run, refused) = names(&["codegen=none,speed", "opt=none,O2", "no-pass=none,gvn"]);
        assert_eq!(
            run,
            [
                "none none no-pass=none",
                "none none no-pass=gvn",
                "speed none no-pass=none",
                "speed none no-pass=gvn"
            ]
        );
        assert_eq!(refused.len(), 4, "Cranelift has no O2");
        let axis: Axis = "no-pass=gvn".parse().unwrap();
        let (one, _) = choices(&[axis], &EngineOptions::default()).unwrap();
        assert!(one[0].options.passes.disabled.contains("gvn"));
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        let no_axis = "width=3".parse::<Axis>().unwrap_err();
        assert!(
            no_axis.contains(
                "opt, gather, bounds, vector-width, cpu, regalloc, masks, halves, dispatch, no-pass"
            ),
            "{no_axis}"
        );
        let no_value = "opt=O7".parse::<Axis>().unwrap_err();
        assert!(no_value.contains("none, O1, O2, O3"), "{no_value}");
        assert!("opt".parse::<Axis>().is_err());
        let twice: Vec<Axis> = ["opt=none", "opt=O1"].map(|a| a.parse().unwrap()).to_vec();
        assert!(choices(&twice, &EngineOptions::default()).is_err());
    }

    #[test]
    fn nothing_that_can_run_is_an_error() {
        let axis: Axis = "opt=O3".parse().unwrap();
        let error = choices(&[axis], &EngineOptions::default()).unwrap_err();
        assert!(error.message.contains("O3"), "{}", error.message);
    }
}
