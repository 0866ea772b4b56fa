//! Launches of compiled code under `--check init` or `--check race` that may have to be repeated on the interpreter.
//!
//! With `init`, compiled code only finds out whether something may be uninitialised. With `race`, it does not record reads of buffers that the
//! launch does not write; a write that leaves the buffer of its pointer may race with such a read. In both cases the code stops, memory is
//! restored to what it was before the launch, and the interpreter runs the launch.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use super::error::Error;
use super::kernel::Kernel;
use super::launch::Launch;
use super::setup::{Code, Ready, Setup};
use crate::backend::Check;
use crate::interp::InterpOptions;
use visa_runtime::abi::FLAT_OFFSET;
use visa_runtime::linked::ArgValue as Arg;
use visa_runtime::{Buffer, Invariant, KernelMeta, Saved};

/// Why the interpreter carries launches out that are checked for uses of what is not initialised.
const UNINITIALISED: &str = "may read what is not initialised";

/// The same of launches that are checked for races.
const UNCONFINED: &str = "has a write outside of the buffer that its pointer points into";

/// What a launch may change, and how it is interpreted.
pub(super) struct Repeat {
    /// What is not initialised is looked for.
    init: bool,
    /// Races are.
    races: bool,
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
    pub(super) fn restore(&self) {
        if let Before::Saved(all) = self {
            all.iter().for_each(Saved::restore);
        }
    }
}

impl Repeat {
    /// Of a launch of an engine that checks for one of these.
    pub(super) fn new(kernel: &Kernel, launch: &Launch) -> Option<Repeat> {
        let engine = &kernel.parts().engine.0;
        let [init, races] = [Check::Init, Check::Race].map(|check| engine.checks(check));
        (init || races).then(|| Repeat::of(kernel, launch, (init, races)))
    }

    fn of(kernel: &Kernel, launch: &Launch, (init, races): (bool, bool)) -> Repeat {
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
            init,
            races,
            read,
            written,
            anywhere,
            interpreted: OnceLock::new(),
        }
    }

    /// Whether what is not initialised is looked for.
    pub(super) const fn looks_for_uninitialised(&self) -> bool {
        self.init
    }

    /// The note of a launch that the interpreter carried out.
    pub(super) fn note(&self) -> String {
        let why = [(self.init, UNINITIALISED), (self.races, UNCONFINED)];
        let why = why.iter().filter(|(looked, _)| *looked);
        let why: Vec<&str> = why.map(|&(_, why)| why).collect();
        format!(
            "the interpreter carried the launch out, which {}",
            why.join(", or ")
        )
    }

    /// What memory holds before a run of code, as far as the run may change it and may be in vain, and which buffers it does not write.
    pub(super) fn before(&self, launch: &Setup, meta: &KernelMeta) -> (Before, Option<Invariant>) {
        let found = match self.init {
            true => self.before_uninitialised(launch, meta),
            false => Before::Unneeded,
        };
        if matches!(found, Before::Unknown) {
            return (found, None);
        }
        let Some(invariant) = self.invariant(launch, meta) else {
            return (found, None);
        };
        let changed = |buffer: &&Buffer| {
            let is_saved = matches!(found, Before::Saved(_)) && self.is_written(buffer);
            !is_saved && invariant.may_write(&range(buffer))
        };
        let more: Option<Vec<Saved>> = self.read.iter().filter(changed).map(Buffer::save).collect();
        match (found, more) {
            // Without room for it, reads are recorded.
            (found, None) => (found, None),
            (Before::Saved(mut all), Some(more)) => {
                all.extend(more);
                (Before::Saved(all), Some(invariant))
            }
            (_, Some(all)) => (Before::Saved(all), Some(invariant)),
        }
    }

    fn is_written(&self, buffer: &Buffer) -> bool {
        self.written.iter().any(|of| range(of) == range(buffer))
    }

    /// The buffers that a launch of code with checks of races does not write, where that is known.
    fn invariant(&self, launch: &Setup, meta: &KernelMeta) -> Option<Invariant> {
        let written = meta.written.as_ref().filter(|_| self.races)?;
        // What was in vain once is not tried again.
        if launch.kernel.0.unconfined.load(Ordering::Relaxed) {
            return None;
        }
        let buffers: Vec<Range<u64>> = self.read.iter().map(range).collect();
        Invariant::new(launch.arguments.payload.as_slice(), &buffers, written)
    }

    fn before_uninitialised(&self, launch: &Setup, meta: &KernelMeta) -> Before {
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
    pub(super) fn interpreted(&self, launch: &Setup) -> Result<&Ready, Error> {
        let made = self.interpreted.get_or_init(|| {
            let options = InterpOptions::default();
            let code = launch.kernel.interpreted(&options, launch.oob)?;
            Ready::new(Code::Interpreted(code), launch.shape)
        });
        made.as_ref().map_err(Clone::clone)
    }
}

/// Addresses of a buffer.
fn range(buffer: &Buffer) -> Range<u64> {
    buffer.address()..buffer.address() + buffer.len()
}

/// Whether bytes may hold an address of device memory.
fn holds_address(bytes: &[u8], memory: &visa_runtime::DeviceMemory) -> bool {
    let address = |b: &[u8]| b.try_into().map_or(0, u64::from_le_bytes) & FLAT_OFFSET;
    let inside = |at: u64| at.wrapping_sub(memory.base()) < memory.capacity();
    bytes.windows(8).any(|b| inside(address(b)))
}
