//! What a launch asks for.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::OobPolicy;
use visa_runtime::linked::{ArgValue as Arg, Bindings};
use visa_runtime::{Buffer, ImageShape, Interrupter, SamplerState, Schedule};

/// What to run a kernel on.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(super) global: [u32; 3],
    pub(super) local: Option<[u32; 3]>,
    pub(super) offset: [u32; 3],
    pub(super) dimensions: Option<u8>,
    pub(super) args: BTreeMap<u32, Arg>,
    pub(super) bound: Bindings,
    pub(super) inputs: BTreeMap<String, Vec<u8>>,
    pub(super) threads: Option<usize>,
    pub(super) oob: OobPolicy,
    pub(super) interrupter: Option<Interrupter>,
    pub(super) deadline: Option<Duration>,
    pub(super) schedule: Option<Schedule>,
    pub(super) context: Option<u64>,
}

impl Launch {
    /// A launch of `global` work-items in x, y and z.
    pub fn new(global: [u32; 3]) -> Launch {
        Launch {
            global,
            local: None,
            offset: [0; 3],
            dimensions: None,
            args: BTreeMap::new(),
            bound: Bindings::default(),
            inputs: BTreeMap::new(),
            threads: Some(1),
            oob: OobPolicy::default(),
            interrupter: None,
            deadline: None,
            schedule: None,
            context: None,
        }
    }

    /// Work-group size; chosen by the engine when not given.
    #[must_use]
    pub fn local(mut self, local: [u32; 3]) -> Launch {
        self.local = Some(local);
        self
    }

    /// First global id.
    #[must_use]
    pub fn offset(mut self, offset: [u32; 3]) -> Launch {
        self.offset = offset;
        self
    }

    /// Dimensions that the program names, 1 to 3: what `get_work_dim` gives. If left out, or too few, as many as have a size
    /// above 1.
    #[must_use]
    pub fn dimensions(mut self, dimensions: u8) -> Launch {
        self.dimensions = Some(dimensions);
        self
    }

    /// Sets an argument.
    #[must_use]
    pub fn arg(mut self, index: u32, arg: impl Into<Arg>) -> Launch {
        self.args.insert(index, arg.into());
        self
    }

    /// Binds a surface of a kernel from text.
    #[must_use]
    pub fn surface(mut self, bti: u32, buffer: Buffer) -> Launch {
        self.bound.surfaces.insert(bti, buffer);
        self
    }

    /// Binds a typed surface of a kernel from text.
    #[must_use]
    pub fn image(mut self, bti: u32, buffer: Buffer, shape: ImageShape) -> Launch {
        self.bound.images.insert(bti, (buffer, shape));
        self
    }

    /// Sets a sampler of a kernel from text.
    #[must_use]
    pub fn sampler(mut self, index: u32, state: SamplerState) -> Launch {
        self.bound.samplers.insert(index, state);
        self
    }

    /// Sets an `.input` variable of a kernel from text.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, bytes: Vec<u8>) -> Launch {
        self.inputs.insert(name.into(), bytes);
        self
    }

    /// OS threads to spread work-groups over.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Launch {
        self.threads = Some(threads);
        self
    }

    /// One OS thread for each processor.
    #[must_use]
    pub fn threads_of_machine(mut self) -> Launch {
        self.threads = None;
        self
    }

    /// What out-of-bounds accesses do.
    #[must_use]
    pub fn oob(mut self, oob: OobPolicy) -> Launch {
        self.oob = oob;
        self
    }

    /// The context that it belongs to, as OpenCL has them: engines that check memory report accesses to buffers of others
    /// ([`Buffer::set_context`]). Without one, it may access all.
    #[must_use]
    pub fn context(mut self, context: u64) -> Launch {
        self.context = Some(context);
        self
    }

    /// Lets another thread stop the launch.
    #[must_use]
    pub fn interrupter(mut self, interrupter: Interrupter) -> Launch {
        self.interrupter = Some(interrupter);
        self
    }

    /// Stops the launch after this long, compilation included.
    #[must_use]
    pub fn deadline(mut self, after: Duration) -> Launch {
        self.deadline = Some(after);
        self
    }

    /// Runs work-groups, and the threads of each between its barriers, in an order that is drawn from `seed`, on one thread of the
    /// host: a kernel whose result changes with it depends on an order that no GPU promises.
    #[must_use]
    pub fn schedule(mut self, seed: u64) -> Launch {
        self.schedule = Some(Schedule { seed });
        self
    }
}
