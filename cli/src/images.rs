//! Options that say how a file is read; `--image`: one of the images of a file that holds several.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use super::exit::{Exit, Failure};
use visa_jit::container::{Image, ImageFormat};
use visa_jit::isa::{DeviceName, Platform, Versions};

/// Options that say how a file is read.
#[derive(Args, Clone, Debug, Default)]
pub struct ReadArgs {
    /// The image to take from an ocloc archive or a SYCL program or library: its number, or what it is for, as `list` shows them;
    /// if left out, the one that --device and --kernel leave
    #[arg(long, value_name = "NUMBER|TARGET")]
    pub image: Option<String>,
    /// Read vISA and .ze_info of a version that is not known as if it were the nearest one that is
    #[arg(long)]
    pub any_version: bool,
}

impl ReadArgs {
    /// Versions that are read.
    pub fn versions(&self) -> Versions {
        match self.any_version {
            true => Versions::Any,
            false => Versions::Known,
        }
    }
}

/// How a file is read, and which image of it is chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// `--image`.
    pub image: Option<&'a str>,
    /// `--kernel`.
    pub kernel: Option<&'a str>,
    /// `--device`.
    pub device: Option<DeviceName>,
    /// `--any-version`.
    pub versions: Versions,
    /// Sources are compiled with information about their lines, which reports name.
    pub lines: bool,
}

/// Images that a message names at most.
const NAMED: usize = 10;

/// The number and the image that `choice` leaves.
pub fn choose<'i, 'd>(
    file: &str,
    images: &'i [Image<'d>],
    choice: Choice<'_>,
) -> Result<(usize, &'i Image<'d>), Failure> {
    if let Some(wanted) = choice.image {
        return asked_for(file, images, wanted);
    }
    let fits = |(_, image): &(usize, &Image<'_>)| {
        let runs = matches!(image.format, ImageFormat::Zebin | ImageFormat::Spirv);
        let device = image.format != ImageFormat::Zebin
            || choice
                .device
                .is_none_or(|device| image.device == Some(device.platform()));
        let has = |name: &str| image.kernels.iter().any(|kernel| kernel == name);
        runs && device && choice.kernel.is_none_or(has)
    };
    let left: Vec<_> = images.iter().enumerate().filter(fits).collect();
    match left.as_slice() {
        [only] => Ok(*only),
        [] => Err(Failure::usage(format!(
            "{file}: none of its {} images is a zebin or SPIR-V{}{}; `visa-jit list` shows them",
            images.len(),
            choice
                .device
                .map_or(String::new(), |device| format!(" for {device}")),
            choice
                .kernel
                .map_or(String::new(), |name| format!(" with a kernel `{name}`")),
        ))),
        several => Err(several_left(file, several)),
    }
}

fn asked_for<'i, 'd>(
    file: &str,
    images: &'i [Image<'d>],
    wanted: &str,
) -> Result<(usize, &'i Image<'d>), Failure> {
    let by_number = wanted.parse().ok().and_then(|number: usize| {
        let image = images.get(number)?;
        Some((number, image))
    });
    let named: Vec<_> = images
        .iter()
        .enumerate()
        .filter(|(_, image)| image.target == wanted)
        .collect();
    match (by_number, named.as_slice()) {
        (Some(found), _) => Ok(found),
        (None, [only]) => Ok(*only),
        (None, []) => Err(Failure::usage(format!(
            "{file}: no image `{wanted}` among its {}; `visa-jit list` shows them",
            images.len()
        ))),
        (None, several) => Err(several_left(file, several)),
    }
}

fn several_left(file: &str, left: &[(usize, &Image<'_>)]) -> Failure {
    let mut message = format!(
        "{file}: {} images are possible; choose one with --image, --device or --kernel:",
        left.len()
    );
    for (number, image) in left.iter().take(NAMED) {
        let _ = write!(message, "\n  {number}: {}", describe(image));
    }
    if left.len() > NAMED {
        message.push_str("\n  ...");
    }
    Failure::usage(message)
}

fn describe(image: &Image<'_>) -> String {
    let device = image
        .device
        .map_or(String::new(), |device| format!(" ({device})"));
    let kernels = match image.kernels.as_slice() {
        [] => String::new(),
        names => format!(", {}", names.join(", ")),
    };
    format!(
        "{} for {}{device}, {} bytes{kernels}",
        image.format.name(),
        image.target,
        image.bytes.len()
    )
}

/// A file of images. Scripts rely on the keys.
#[derive(Serialize)]
struct Listing<'a> {
    file: &'a str,
    kind: &'static str,
    images: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    image: usize,
    target: &'a str,
    format: &'static str,
    device: Option<&'static str>,
    bytes: usize,
    kernels: &'a [String],
}

/// The text of `list` for a file of images, or its JSON object.
pub fn list(file: &str, images: &[Image<'_>], json: bool) -> Result<String, Failure> {
    if !json {
        let plural = if images.len() == 1 { "" } else { "s" };
        let mut out = format!("{file}: {} image{plural}\n\n", images.len());
        for (number, image) in images.iter().enumerate() {
            let _ = writeln!(out, "{number}: {}", describe(image));
        }
        return Ok(out);
    }
    let rows = images.iter().enumerate().map(|(number, image)| Row {
        image: number,
        target: &image.target,
        format: image.format.name(),
        device: image.device.map(Platform::device),
        bytes: image.bytes.len(),
        kernels: &image.kernels,
    });
    let listing = Listing {
        file,
        kind: "images",
        images: rows.collect(),
    };
    let text = serde_json::to_string(&listing).map_err(|error| Failure {
        exit: Exit::Internal,
        message: error.to_string(),
    })?;
    Ok(format!("{text}\n"))
}
