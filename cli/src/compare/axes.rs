//! Axes of strategies, and their combinations.

use std::fmt::Write as _;
use std::str::FromStr;

use crate::exit::Failure;
use visa_jit::backend::{self, AXES, BackendKind, Choice as _};
use visa_jit::engine::EngineOptions;
use visa_jit::passes::pipeline::PASSES;

/// What `--sweep` can vary.
#[derive(Clone, Copy, Debug)]
enum SweepAxis {
    /// A choice of the code generator.
    Strategy(&'static backend::Axis),
    /// Passes to leave out.
    NoPass,
}

/// Names of the axes, in the order that help and errors list them.
fn names() -> impl Iterator<Item = &'static str> {
    AXES.iter().map(|axis| axis.name).chain(["no-pass"])
}

/// What the option says of itself.
pub fn help() -> String {
    let mut help =
        "Values of an axis to try; all combinations of several axes run. Axes:".to_owned();
    for axis in AXES {
        let values = axis.values.iter().map(|(name, _)| *name);
        let values: Vec<_> = values.filter(|name| *name != "off").collect();
        let _ = write!(help, " {}={}", axis.name, values.join(","));
    }
    help + " no-pass=none,NAME (passes of visa-jit to leave out)"
}

impl SweepAxis {
    fn named(name: &str) -> Option<SweepAxis> {
        let found = backend::Axis::named(name).map(SweepAxis::Strategy);
        found.or((name == "no-pass").then_some(SweepAxis::NoPass))
    }

    fn name(self) -> &'static str {
        match self {
            SweepAxis::Strategy(axis) => axis.name,
            SweepAxis::NoPass => "no-pass",
        }
    }

    /// Values it can have.
    fn legal(self) -> Vec<&'static str> {
        match self {
            SweepAxis::Strategy(axis) => axis.values.iter().map(|(name, _)| *name).collect(),
            SweepAxis::NoPass => std::iter::once("none")
                .chain(PASSES.iter().map(|(name, _)| *name))
                .collect(),
        }
    }

    /// Sets it in the options of an engine, to a value that is legal.
    fn set(self, options: &mut EngineOptions, value: &str) {
        match self {
            SweepAxis::Strategy(axis) => drop(axis.set(&mut options.strategy, value)),
            SweepAxis::NoPass => {
                let pass = PASSES.iter().find(|(name, _)| *name == value);
                options.passes.disabled.extend(pass.map(|(name, _)| *name));
            }
        }
    }
}

/// `AXIS=VALUE[,VALUE…]` of `--sweep`.
#[derive(Clone, Debug)]
pub struct Axis {
    kind: SweepAxis,
    values: Vec<&'static str>,
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Axis, String> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        let Some(kind) = SweepAxis::named(name) else {
            let known = names().collect::<Vec<_>>().join(", ");
            return Err(format!("there is no axis `{name}`; there is {known}"));
        };
        let legal = kind.legal();
        let value = |value: &str| {
            let found = match kind {
                // Commas part the values, so the members of a set have plus signs between them.
                SweepAxis::Strategy(axis) if axis.several => {
                    let mut strategy = backend::Strategy::default();
                    let set = axis.set(&mut strategy, value);
                    set.ok().map(|()| axis.value(&strategy))
                }
                _ => legal.iter().copied().find(|l| *l == value),
            };
            found.ok_or_else(|| format!("`{value}` is no {name}; write {}", legal.join(", ")))
        };
        let values = values.split(',').map(value).collect::<Result<_, _>>()?;
        Ok(Axis { kind, values })
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
        if axes
            .iter()
            .take(n)
            .any(|other| other.kind.name() == axis.kind.name())
        {
            return Err(Failure::usage(
                "an axis is given twice: list its values in one",
            ));
        }
    }
    let usual = || {
        let backends = format!("backend={}", built().join(","));
        let axes = [backends.as_str(), "codegen=none,speed"].map(str::parse);
        axes.into_iter().collect::<Result<Vec<Axis>, _>>()
    };
    let axes = match axes {
        [] => &usual().map_err(Failure::usage)?,
        given => given,
    };
    let mut all = vec![Choice {
        name: String::new(),
        options: base.clone(),
    }];
    for axis in axes {
        let extended = |choice: &Choice| {
            let extend = |value: &&'static str| {
                let mut next = choice.clone();
                axis.kind.set(&mut next.options, value);
                // The values of these say by themselves what they are.
                next.name = match axis.kind.name() {
                    "backend" | "codegen" | "opt" => format!("{} {value}", next.name),
                    name => format!("{} {name}={value}", next.name),
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
    let built = BackendKind::ALL.iter().filter(|k| k.available().is_ok());
    built.map(|k| k.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(axes: &[&str]) -> (Vec<String>, Vec<String>) {
        let axes: Vec<Axis> = axes.iter().map(|a| a.parse().unwrap()).collect();
        let (choices, refused) = choices(&axes, &EngineOptions::default()).unwrap();
        (
            choices.into_iter().map(|c| c.name).collect(),
            refused.into_iter().map(|r| r.name).collect(),
        )
    }

    #[test]
    fn combinations() {
        let (run, refused) = names_of(&["codegen=none,speed", "opt=none,O2", "no-pass=none,gvn"]);
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
        let names: Vec<_> = AXES.iter().map(|axis| axis.name).collect();
        let listed = format!("{}, no-pass", names.join(", "));
        assert!(no_axis.ends_with(&listed), "{no_axis}");
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
