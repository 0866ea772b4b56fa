//! Launches of compiled code that is checked for uses of what is not initialised. The code only finds out whether something may be wrong. Then
//! memory becomes what it was before the launch, and the interpreter carries the launch out.

use std::sync::OnceLock;

use super::error::Error;
use super::kernel::Kernel;
use super::launch::Launch;
use super::prepared::{Code, Prepared, Ready};
use crate::interp::InterpOptions;
use visa_runtime::linked::ArgValue as Arg;
use visa_runtime::{Buffer, KernelMeta, Saved};

/// The note of a launch that the interpreter carried out.
pub(super) const REPEATED: &str =
    "the interpreter carried the launch out, which may read what is not initialised";

/// What a launch may change, and how it is interpreted.
pub(super) struct Repeat {
    /// Buffers that the kernel may read.
    read: Vec<Buffer>,
    /// Those among them that it may write.
    written: Vec<Buffer>,
    /// Values among the arguments may hold addresses of other memory.
    anywhere: bool,
    interpreted: OnceLock<Result<Ready, Error>>,
}

/// What memory held before a launch.
pub(super) enum Before {
    /// Nothing can be found.
    Unneeded,
    /// That.
    Saved(Vec<Saved>),
    /// The launch has to be interpreted at once: there is no room for it, not all memory keeps account of what is initialised, or it is not
    /// known which memory the launch may change. What others do with the rest at the same time must stay.
    Unknown,
}

impl Before {
    /// Makes memory what it was.
    pub fn restore(&self) {
        if let Before::Saved(all) = self {
            all.iter().for_each(Saved::restore);
        }
    }
}

impl Repeat {
    /// Of a launch.
    pub fn new(kernel: &Kernel, launch: &Launch) -> Repeat {
        let manifest = &kernel.parts().manifest;
        let memory = kernel.parts().engine.memory();
        let (mut read, mut written, mut anywhere) = (Vec::new(), Vec::new(), false);
        for (index, arg) in &launch.args {
            match arg {
                Arg::Buffer(buffer) | Arg::Image(buffer, _) => {
                    read.push(buffer.clone());
                    if !manifest.read_only.contains(index) {
                        written.push(buffer.clone());
                    }
                }
                Arg::Bytes(bytes) => anywhere |= holds_address(bytes, memory),
                _ => {}
            }
        }
        for bytes in launch.inputs.values() {
            anywhere |= holds_address(bytes, memory);
        }
        let bound = launch.bound.surfaces.values();
        let images = launch.bound.images.values().map(|(buffer, _)| buffer);
        let variables = kernel.parts().data.data.buffers();
        for buffer in bound.chain(images).chain(variables) {
            read.push(buffer.clone());
            written.push(buffer.clone());
        }
        Repeat {
            read,
            written,
            anywhere,
            interpreted: OnceLock::new(),
        }
    }

    /// What memory holds before a run of code, as far as the run may change it and may be in vain.
    pub fn before(&self, launch: &Prepared, meta: &KernelMeta) -> Before {
        if !launch.arguments.are_tracked() {
            return Before::Unknown;
        }
        let memory = launch.kernel.parts().engine.memory();
        let plan = launch.kernel.plan();
        let mut bases = meta.bases.iter();
        let anywhere = self.anywhere
            || meta.follows_pointers
            || !bases.all(|&offset| plan.has_address(offset));
        let private = launch.own.private();
        let found = meta.suspects
            || private.is_some()
            || match anywhere {
                true => memory.has_uninitialised(),
                false => self.read.iter().any(Buffer::has_uninitialised),
            };
        if !found {
            return Before::Unneeded;
        }
        if anywhere {
            return Before::Unknown;
        }
        let written = self.written.iter().chain(private);
        let saved: Option<Vec<Saved>> = written.map(Buffer::save).collect();
        saved.map_or(Before::Unknown, Before::Saved)
    }

    /// The launch for the interpreter.
    pub fn interpreted(&self, launch: &Prepared) -> Result<&Ready, Error> {
        let made = self.interpreted.get_or_init(|| {
            let options = InterpOptions::default();
            let code = launch.kernel.interpreted(&options, launch.oob)?;
            Ready::new(Code::Interpreted(code), launch.shape())
        });
        made.as_ref().map_err(Clone::clone)
    }
}

/// Whether bytes may hold an address of device memory.
fn holds_address(bytes: &[u8], memory: &visa_runtime::DeviceMemory) -> bool {
    let address = |b: &[u8]| b.try_into().map_or(0, u64::from_le_bytes) & ((1 << 48) - 1);
    let inside = |at: u64| at.wrapping_sub(memory.base()) < memory.capacity();
    bytes.windows(8).any(|b| inside(address(b)))
}
