//! Options of strategies, one for each axis of [`AXES`].

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use visa_jit::backend::{AXES, Axis, Strategy, Tuning};

/// Arguments of commands that generate code: all axes but the code generator itself, which `--backend` names.
#[derive(Clone, Copy, Debug, Default)]
pub struct TuningArgs {
    /// What was given, or the defaults.
    pub tuning: Tuning,
}

/// The axes that are options here.
fn axes() -> impl Iterator<Item = &'static Axis> {
    AXES.iter().filter(|axis| axis.name != "backend")
}

fn option(axis: &'static Axis) -> Arg {
    let values = axis.values.iter();
    let option = Arg::new(axis.name)
        .long(axis.name)
        .value_name(axis.placeholder)
        .default_value(axis.value(&Strategy::default()));
    if axis.several {
        let names: Vec<_> = values.map(|(name, _)| *name).collect();
        let several = move |text: &str| {
            let set = axis.set(&mut Strategy::default(), text);
            set.map(|()| text.to_owned())
        };
        return option
            .help(format!(
                "{} [possible values: {}]",
                axis.help,
                names.join(", ")
            ))
            .value_parser(several);
    }
    let values = values.map(|(name, does)| PossibleValue::new(*name).help(*does));
    option
        .help(axis.help)
        .value_parser(PossibleValuesParser::new(values))
}

impl Args for TuningArgs {
    fn augment_args(command: Command) -> Command {
        command.args(axes().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        TuningArgs::augment_args(command)
    }
}

impl FromArgMatches for TuningArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<TuningArgs, clap::Error> {
        let mut args = TuningArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let mut strategy = Strategy {
            tuning: self.tuning,
            ..Strategy::default()
        };
        for axis in axes() {
            if let Some(value) = matches.get_one::<String>(axis.name) {
                let set = axis.set(&mut strategy, value);
                set.map_err(|error| clap::Error::raw(ErrorKind::InvalidValue, error))?;
            }
        }
        self.tuning = strategy.tuning;
        Ok(())
    }
}
