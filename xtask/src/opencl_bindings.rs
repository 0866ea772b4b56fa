//! Makes the OpenCL driver's bindings anew, with the command that its header file has.

use std::path::PathBuf;
use std::process::Command;

/// Runs `bindgen` as `opencl/src/abi/headers.h` says.
///
/// # Errors
/// When `bindgen` or the headers (Debian: `opencl-c-headers`) are missing, or the command in the file cannot be read.
pub fn run() -> Result<(), String> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../opencl/src/abi"));
    let headers = std::fs::read_to_string(folder.join("headers.h")).map_err(|e| e.to_string())?;
    let arguments = arguments(&headers).ok_or("headers.h has no command")?;
    let done = Command::new("bindgen")
        .args(arguments)
        .args(["-o", "bindings.rs"])
        .current_dir(&folder)
        .status();
    let status = done.map_err(|e| format!("bindgen (cargo install bindgen-cli): {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("bindgen: {status}"))
    }
}

/// The arguments of `bindgen`, from the comment that the file begins with.
fn arguments(headers: &str) -> Option<Vec<String>> {
    let (comment, _) = headers.split_once("*/")?;
    let (_, command) = comment.split_once("* bindgen ")?;
    let lines = command.lines().map(|line| {
        let line = line.trim().trim_start_matches("* ");
        line.trim_end_matches('\\')
    });
    let text = lines.collect::<Vec<_>>().join(" ");
    let words = text.split_whitespace();
    Some(
        words
            .map(|word| word.trim_matches('\'').to_owned())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::arguments;

    #[test]
    fn the_command_is_found() {
        let text = include_str!("../../opencl/src/abi/headers.h");
        let words = arguments(text).unwrap();
        assert_eq!(words[0], "headers.h");
        let at = words.iter().position(|w| w == "--allowlist-var").unwrap();
        assert_eq!(words[at + 1], "CL_.*");
        assert!(words.iter().all(|w| !w.contains(['\'', '\\']) && w != "*"));
    }
}
