//! What the compiler says about itself.
//!
//! Both questions are answered in milliseconds, as no compiler is started for them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Call, FoundBy, How, LOG_NAME, Ocloc};
use crate::container::error::ContainerError;

/// Makes a file of this name that holds the version.
const VERSION_QUERY: &str = "OCL_DRIVER_VERSION";
/// In front of a list of names, in what `ocloc compile --help` prints. There is one for names that are deprecated too.
const NAMES_FOLLOW: &str = "<device_type> can be:";
/// What this process has mapped, a line each: addresses and the file.
const MAPPINGS: &str = "/proc/self/maps";

/// A compiler that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The file, if it is known; else the name that the loader found it by.
    pub path: PathBuf,
    /// How it was found.
    pub found_by: FoundBy,
    /// How it is called.
    pub interface: Interface,
    /// Its version, as it says, such as 22.43.24595; none if it does not say.
    pub version: Option<String>,
    /// Every name that it takes as a device, families of devices among them. None if it is not Intel's compiler.
    pub devices: Vec<String>,
}

/// How a compiler is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// As a library, whose interface has this version, major and minor.
    Library(u16, u16),
    /// As a program, which is started for each source.
    Program,
}

impl Ocloc {
    /// Asks it. Like a compilation, this is best done in a process of its own.
    ///
    /// # Errors
    /// When it cannot be called. What it does not answer is left out.
    pub fn about(&self) -> Result<About, ContainerError> {
        let (_, outputs) = self.call(&Call::asking(&["query", VERSION_QUERY])?)?;
        let version = outputs
            .iter()
            .find(|output| output.name == VERSION_QUERY.as_bytes())
            .map(|output| text(&output.data))
            .filter(|version| !version.is_empty() && !version.contains('\n'));
        let (_, outputs) = self.call(&Call::asking(&["compile", "--help"])?)?;
        let help = outputs.iter().find(|output| output.name == LOG_NAME);
        let help = help.map_or_else(String::new, |output| text(&output.data));
        Ok(About {
            path: self.file().unwrap_or_else(|| self.path.clone()),
            found_by: self.found_by,
            interface: match self.how {
                How::Library { .. } => Interface::Library(self.version.0, self.version.1),
                How::Program => Interface::Program,
            },
            version,
            devices: devices(&help),
        })
    }

    /// The file that was loaded or is run, which a name does not tell.
    fn file(&self) -> Option<PathBuf> {
        let How::Library { invoke, .. } = self.how else {
            return Some(self.path.clone());
        };
        let mappings = std::fs::read_to_string(MAPPINGS).ok()?;
        mapped_at(&mappings, (invoke as *const ()).addr() as u64)
    }
}

/// The file that an address comes from.
fn mapped_at(mappings: &str, address: u64) -> Option<PathBuf> {
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let line = mappings.lines().find(|line| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let range = range.and_then(|(start, end)| Some(hex(start)?..hex(end)?));
        range.is_some_and(|range| range.contains(&address))
    })?;
    // Fields before the path have no slash but that of a device, which is `08:01`.
    line.find('/')
        .and_then(|at| line.get(at..))
        .map(PathBuf::from)
}

fn text(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    text.trim_matches(|c: char| c == '\0' || c.is_whitespace())
        .to_owned()
}

/// The names of a help text. What else may stand for a device has spaces in it: `ip version  or hexadecimal value …`.
fn devices(help: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let lists = help
        .lines()
        .filter_map(|line| line.split_once(NAMES_FOLLOW));
    for name in lists.flat_map(|(_, names)| names.split(',')) {
        let name = name.trim();
        let whole = !name.is_empty() && !name.contains(char::is_whitespace);
        if whole && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_help() {
        let help = "\
            Usage: ocloc [compile] -file <filename> -device <device_type>\n\
              -device <device_type>         Target device.\n\
                                <device_type> can be: skl, acm-g10, gen9, version  or hexadecimal value with 0x prefix\n\
                                <device_type> can be: xe_hp_sdv, dg2, skl\n\
                                - can be single target device.\n";
        assert_eq!(
            devices(help),
            ["skl", "acm-g10", "gen9", "xe_hp_sdv", "dg2"]
        );
        assert!(devices("skl, kbl").is_empty());
    }

    #[test]
    fn an_address_tells_its_file() {
        let mappings = "\
            7f10-7f20 r--p 00000000 08:01 42                 /usr/lib/libocloc.so\n\
            7f20-7f30 r-xp 00001000 08:01 42                 /usr/lib/my libocloc.so\n\
            7f30-7f40 rw-p 00000000 00:00 0 \n";
        let file = |address| mapped_at(mappings, address);
        assert_eq!(file(0x7f20), Some("/usr/lib/my libocloc.so".into()));
        assert_eq!(file(0x7f30), None);
        assert_eq!(file(0x7f40), None);
    }
}
