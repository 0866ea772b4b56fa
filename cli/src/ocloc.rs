//! `ocloc`: which compiler of OpenCL C and SPIR-V is used, how it was found, and what devices it offers.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::load::worker;
use visa_jit::container::{
    About, Attempt, ContainerError, FoundBy, Interface, OCLOC_ENV, Survey, survey_in_worker,
};
use visa_jit::isa::{DeviceName, Platform};

/// How long the compiler may take to say what it is. It takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What to do when there is none.
const ADVICE: &str = "\
Install it: `apt install intel-opencl-icd` on Debian and Ubuntu, `intel-ocloc` or `intel-compute-runtime` elsewhere.
Or set VISA_JIT_OCLOC to a library, or to a program to run in its place. In the sources of visa-jit,
`cargo run --release -p xtask -- current-ocloc` unpacks today's compiler and prints the program.";

/// Arguments of `ocloc`.
#[derive(Args, Debug)]
pub struct OclocArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The compiler. Scripts rely on the keys.
#[derive(Serialize)]
struct Report<'a> {
    /// Whether there is one.
    found: bool,
    path: Option<&'a PathBuf>,
    /// How it was found.
    by: Option<FoundBy>,
    /// `library` or `program`.
    kind: Option<&'static str>,
    /// Version of a library's interface.
    interface: Option<String>,
    version: Option<&'a str>,
    /// The devices that it offers.
    devices: Vec<Device>,
    /// What was tried before it was found, or all that was.
    tried: &'a [Attempt],
}

/// A device for which it compiles.
#[derive(Serialize)]
struct Device {
    name: &'static str,
    /// The name that stands for all that are treated alike.
    class: &'static str,
}

/// Carries `ocloc` out; the text is for standard output.
pub fn ocloc(args: &OclocArgs) -> Result<(String, Exit), Failure> {
    let survey = survey_in_worker(worker()?, TIMEOUT).map_err(|error| match error {
        // What a worker reports is the compiler's own message.
        ContainerError::Worker(message) => Failure::environment(message),
        other => other.into(),
    })?;
    let offered = survey.compiler.as_ref().map(offered).unwrap_or_default();
    let problem = match &survey.compiler {
        None => Some(missing(&survey.tried)),
        Some(about) if about.devices.is_empty() => Some(format!(
            "{} is not ocloc: `compile --help` names no devices",
            about.path.display()
        )),
        Some(_) => None,
    };
    if args.json {
        let exit = problem.map_or(Exit::Fine, |_| Exit::Environment);
        return Ok((json(&survey, &offered)?, exit));
    }
    match (problem, &survey.compiler) {
        (None, Some(about)) => Ok((describe(about, &offered, &survey.tried), Exit::Fine)),
        (problem, _) => Err(Failure::environment(problem.unwrap_or_default())),
    }
}

/// The names of our table that a compiler takes.
fn offered(about: &About) -> Vec<DeviceName> {
    DeviceName::all()
        .filter(|device| about.devices.iter().any(|name| name == device.as_str()))
        .collect()
}

fn missing(tried: &[Attempt]) -> String {
    let mut text = "no compiler of OpenCL C was found. This was tried:\n".to_owned();
    list_tried(&mut text, tried);
    text.push_str(ADVICE);
    text
}

fn list_tried(text: &mut String, tried: &[Attempt]) {
    for Attempt { name, message } in tried {
        let _ = writeln!(text, "  {name}: {message}");
    }
}

fn describe(about: &About, offered: &[DeviceName], tried: &[Attempt]) -> String {
    let mut text = String::new();
    let kind = match about.interface {
        Interface::Library(major, minor) => {
            format!("a library with interface {major}.{minor}")
        }
        Interface::Program => "a program".to_owned(),
    };
    let found = match about.found_by {
        FoundBy::Variable => format!("named by {OCLOC_ENV}"),
        FoundBy::Loader => "found in the loader's search path".to_owned(),
        FoundBy::Directory => "found in a directory where packages put it".to_owned(),
    };
    let version = about.version.as_deref().unwrap_or("not told");
    let _ = writeln!(text, "{}: {kind}, {found}", about.path.display());
    let _ = writeln!(text, "version: {version}");
    let _ = writeln!(text, "\ndevices, by the class that stands for them:");
    for platform in Platform::ALL {
        let names: Vec<_> = offered
            .iter()
            .filter(|device| device.platform() == platform)
            .map(|device| device.as_str())
            .collect();
        let names = match names.as_slice() {
            [] => "none; this compiler does not know them".to_owned(),
            names => names.join(" "),
        };
        let _ = writeln!(text, "  {:<8} {names}", platform.device());
    }
    if !tried.is_empty() {
        let _ = writeln!(text, "\ntried before it:");
        list_tried(&mut text, tried);
    }
    text
}

fn json(survey: &Survey, offered: &[DeviceName]) -> Result<String, Failure> {
    let about = survey.compiler.as_ref();
    let device = |device: &DeviceName| Device {
        name: device.as_str(),
        class: device.platform().device(),
    };
    let (kind, interface) = match about.map(|about| about.interface) {
        Some(Interface::Library(major, minor)) => {
            (Some("library"), Some(format!("{major}.{minor}")))
        }
        Some(Interface::Program) => (Some("program"), None),
        None => (None, None),
    };
    let report = Report {
        found: about.is_some(),
        path: about.map(|about| &about.path),
        by: about.map(|about| about.found_by),
        kind,
        interface,
        version: about.and_then(|about| about.version.as_deref()),
        devices: offered.iter().map(device).collect(),
        tried: &survey.tried,
    };
    let text = serde_json::to_string(&report).map_err(|error| Failure {
        exit: Exit::Internal,
        message: error.to_string(),
    })?;
    Ok(format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(devices: &[&str]) -> About {
        About {
            path: "/opt/libocloc.so".into(),
            found_by: FoundBy::Directory,
            interface: Interface::Library(1, 0),
            version: None,
            devices: devices.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn names_follow_their_class() {
        let about = about(&["gen9", "kbl", "skl", "cri", "mtl-h", "unheard-of"]);
        let names = offered(&about);
        let text = describe(&about, &names, &[]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "/opt/libocloc.so: a library with interface 1.0, found in a directory where packages put it"
        );
        assert_eq!(lines[1], "version: not told");
        assert_eq!(lines[4], "  skl      skl kbl");
        assert_eq!(lines[6], "  acm-g10  mtl-h");
        assert_eq!(
            lines[9],
            "  ptl-h    none; this compiler does not know them"
        );
        assert_eq!(lines.len(), 10);
    }

    #[test]
    fn what_was_tried_is_said() {
        let tried = [Attempt {
            name: "libocloc.so".to_owned(),
            message: "no such file".to_owned(),
        }];
        let text = missing(&tried);
        assert!(text.contains("\n  libocloc.so: no such file\n"), "{text}");
        assert!(text.contains("apt install intel-opencl-icd") && text.contains("current-ocloc"));
        assert!(
            describe(&about(&["skl"]), &[], &tried).contains("tried before it:\n  libocloc.so")
        );
    }
}
