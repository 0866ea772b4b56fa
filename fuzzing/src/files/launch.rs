//! Random launches of any kernel.

use std::fmt;
use std::time::Duration;

use visa_jit::module::InputVar;
use visa_jit::{Arg, ArgKind, Argument, Error, Kernel, Launch};
use visa_runtime::{
    Addressing, Buffer, DeviceMemory, ImageKind, ImageShape, LaunchStatus, MemoryError,
    SamplerState,
};

use visa_test_common::Rng;

/// Bytes of each buffer.
const BUFFER_BYTES: usize = 4096;
/// Bytes after the last of them.
const BEHIND_BYTES: usize = 64 << 10;
/// Time to compile and run in, if nothing else is said. What the interpreter ends after its few instructions takes a small part of it.
const LIMIT: Duration = Duration::from_secs(20);
/// Work-items of a group.
const GROUP: u32 = 64;
/// Values of at least this many bytes may be structures with addresses in them.
const STRUCTURE: usize = 16;
/// Bytes of an address.
const ADDRESS: usize = 8;

/// What an argument, a surface or an input is given.
#[derive(Clone, Debug)]
pub enum Given {
    /// A value.
    Bytes(Vec<u8>),
    /// A structure, and what is an address in it: the byte where it is, and the number of the buffer.
    Structure(Vec<u8>, Vec<(usize, usize)>),
    /// Number of a buffer.
    Buffer(usize),
    /// Number of the buffer that an image is made of.
    Image(usize, ImageShape),
    /// Bytes of local memory.
    Local(u32),
    /// A sampler.
    Sampler(SamplerState),
}

impl Given {
    /// Number of the buffer that is given, if it is one.
    pub fn buffer(&self) -> Option<usize> {
        match self {
            Given::Buffer(n) | Given::Image(n, _) => Some(*n),
            _ => None,
        }
    }
}

/// What is given something.
#[derive(Clone, Debug)]
pub enum Place {
    /// An argument, by number.
    Argument(u32),
    /// A surface, by its index in the binding table.
    Surface(u32),
    /// An input of vISA text, by name.
    Input(String),
}

/// A launch for any engine.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Work-items.
    pub global: [u32; 3],
    /// Those of a group.
    pub local: [u32; 3],
    /// Everything that is given.
    pub given: Vec<(Place, Given)>,
    /// What is in the buffers at first.
    pub contents: Vec<Vec<u8>>,
    /// Time to compile and run in.
    pub limit: Duration,
    /// Whether values that are structures may hold addresses of buffers.
    addresses: bool,
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--global {:?} --local {:?}", self.global, self.local)?;
        for (place, given) in &self.given {
            if let Given::Bytes(bytes) | Given::Structure(bytes, _) = given {
                write!(f, " {place:?}={bytes:x?}")?;
            }
        }
        Ok(())
    }
}

impl Recipe {
    /// A launch that fits a kernel; none for kernels with images that a launch cannot be given.
    pub fn random(kernel: &Kernel, rng: &mut Rng) -> Option<Recipe> {
        Recipe::of(kernel, false, rng)
    }

    /// The same, where words of structures may be addresses of buffers: kernels of SYCL get most of their pointers so. Buffers need
    /// addresses that are known, as the engine's have.
    pub fn with_addresses(kernel: &Kernel, rng: &mut Rng) -> Option<Recipe> {
        Recipe::of(kernel, true, rng)
    }

    fn of(kernel: &Kernel, addresses: bool, rng: &mut Rng) -> Option<Recipe> {
        let (global, local) = shape(kernel, rng);
        let mut recipe = Recipe {
            global,
            local,
            given: Vec::new(),
            contents: Vec::new(),
            limit: LIMIT,
            addresses,
        };
        if kernel.takes_surfaces() {
            recipe.bind_text(kernel, rng);
        } else {
            for argument in kernel.arguments() {
                if let Some(given) = recipe.argument(argument, rng)? {
                    recipe.given.push((Place::Argument(argument.index), given));
                }
            }
        }
        // What is written after the other buffers by flat addresses is not left for the next engine.
        recipe.contents.push(vec![0; BEHIND_BYTES]);
        Some(recipe)
    }

    fn buffer(&mut self, float: bool, rng: &mut Rng) -> usize {
        let small = rng.chance(70);
        let words = (0..BUFFER_BYTES / 4).flat_map(|_| {
            let word = match (float, small) {
                (true, _) => (rng.below(4000) as f32 / 500.0 - 4.0).to_bits(),
                (false, true) => rng.below(64) as u32,
                (false, false) => rng.bits() as u32,
            };
            word.to_le_bytes()
        });
        let words = words.collect();
        self.contents.push(words);
        self.contents.len() - 1
    }

    /// What an argument is given, if anything; none if nothing can be.
    #[allow(
        clippy::option_option,
        reason = "nothing to give is not the same as nothing that fits"
    )]
    fn argument(&mut self, argument: &Argument, rng: &mut Rng) -> Option<Option<Given>> {
        let float = argument.type_name.contains("float");
        Some(Some(match argument.kind {
            ArgKind::Value { size } => {
                let size = argument.narrow_bytes().unwrap_or(size as usize);
                match self.addresses && size >= STRUCTURE {
                    true => self.structure(size, float, rng),
                    false => Given::Bytes(value(size, float, rng)),
                }
            }
            ArgKind::Buffer { .. } => Given::Buffer(self.buffer(float, rng)),
            ArgKind::Local { .. } => Given::Local(256 << rng.below(3)),
            ArgKind::Image { kind, .. } => {
                let kind = kind?;
                let float = rng.chance(50);
                let shape = ImageShape {
                    kind,
                    format: if float { "r32float" } else { "rgba8unorm" }.parse().ok()?,
                    extent: match kind {
                        ImageKind::D1 | ImageKind::Buffer => [64, 1, 1],
                        ImageKind::D2 | ImageKind::D1Array => [16, 8, 1],
                        ImageKind::D3 | ImageKind::D2Array => [8, 8, 4],
                    },
                };
                Given::Image(self.buffer(float, rng), shape)
            }
            ArgKind::Sampler => Given::Sampler(SamplerState {
                addressing: *rng.pick(&[Addressing::Border, Addressing::Edge]),
                linear: false,
                normalized: rng.chance(30),
                ..SamplerState::default()
            }),
            ArgKind::Unused => return Some(None),
        }))
    }

    /// A value of which half of the 64-bit words are addresses.
    fn structure(&mut self, size: usize, float: bool, rng: &mut Rng) -> Given {
        let bytes = value(size, float, rng);
        let mut addresses = Vec::new();
        for at in (0..=size - ADDRESS).step_by(ADDRESS) {
            if rng.chance(50) {
                addresses.push((at, self.buffer(rng.chance(50), rng)));
            }
        }
        Given::Structure(bytes, addresses)
    }

    fn bind_text(&mut self, kernel: &Kernel, rng: &mut Rng) {
        for bti in 0..4 {
            let buffer = self.buffer(false, rng);
            self.given
                .push((Place::Surface(bti), Given::Buffer(buffer)));
        }
        let Some(valid) = kernel.valid() else {
            return;
        };
        // Larger ones are local ids and the like, which the launch fills.
        for input in valid.module().inputs.iter().filter(|i| i.size <= 8) {
            if let InputVar::General(var) = input.var
                && let Some(v) = valid.module().vars.general(var)
            {
                let bytes = value(input.size as usize, false, rng);
                self.given
                    .push((Place::Input(v.name.clone()), Given::Bytes(bytes)));
            }
        }
    }

    /// Memory for the buffers.
    pub fn allocate(&self, memory: &DeviceMemory) -> Result<Vec<Buffer>, MemoryError> {
        let alloc = |bytes: &Vec<u8>| memory.alloc(bytes.len() as u64);
        self.contents.iter().map(alloc).collect()
    }

    /// Launches with the buffers as they are to be at first. Returns what is in them then.
    pub fn run(
        &self,
        kernel: &Kernel,
        buffers: &[Buffer],
    ) -> Result<(LaunchStatus, Vec<Vec<u8>>), Error> {
        for (buffer, bytes) in buffers.iter().zip(&self.contents) {
            buffer.write(0, bytes)?;
        }
        let report = kernel.launch(&self.launch(buffers))?;
        Ok((report.status, buffers.iter().map(Buffer::to_vec).collect()))
    }

    /// The launch itself.
    pub fn launch(&self, buffers: &[Buffer]) -> Launch {
        // One thread: what several groups do to one place has an order then.
        let mut launch = Launch::new(self.global)
            .local(self.local)
            .threads(1)
            .deadline(self.limit);
        for (place, given) in &self.given {
            launch = match (place, given) {
                (Place::Argument(n), Given::Bytes(bytes)) => launch.arg(*n, bytes.clone()),
                (Place::Argument(n), Given::Structure(bytes, addresses)) => {
                    launch.arg(*n, with_addresses(bytes, addresses, buffers))
                }
                (Place::Argument(n), Given::Buffer(b)) => launch.arg(*n, &buffers[*b]),
                (Place::Argument(n), Given::Image(b, shape)) => {
                    launch.arg(*n, Arg::Image(buffers[*b].clone(), *shape))
                }
                (Place::Argument(n), Given::Local(bytes)) => launch.arg(*n, Arg::Local(*bytes)),
                (Place::Argument(n), Given::Sampler(state)) => launch.arg(*n, Arg::Sampler(*state)),
                (Place::Surface(n), Given::Buffer(b)) => launch.surface(*n, buffers[*b].clone()),
                (Place::Input(name), Given::Bytes(bytes)) => {
                    launch.input(name.clone(), bytes.clone())
                }
                _ => launch,
            };
        }
        launch
    }
}

/// The structure with the buffers' addresses where they belong.
fn with_addresses(bytes: &[u8], addresses: &[(usize, usize)], buffers: &[Buffer]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for &(at, buffer) in addresses {
        bytes[at..at + ADDRESS].copy_from_slice(&buffers[buffer].address().to_le_bytes());
    }
    bytes
}

/// Sizes of the launch and of a group.
fn shape(kernel: &Kernel, rng: &mut Rng) -> ([u32; 3], [u32; 3]) {
    let dimensions = 1 + rng.below(3);
    let mut local = [1; 3];
    let mut left = GROUP;
    for size in local.iter_mut().take(dimensions) {
        *size = match rng.below(3) {
            0 => 1 << rng.below(left.ilog2() as usize + 1),
            1 => left.min(16),
            _ => 1 + rng.below(left as usize) as u32,
        };
        left /= *size;
    }
    let local = kernel.required_local_size().unwrap_or(local);
    let mut global = local;
    let mut groups = 4;
    for size in global.iter_mut().take(dimensions) {
        let along = 1 + rng.below(groups) as u32;
        groups /= along as usize;
        *size *= along;
    }
    // A group may be a partial one.
    if rng.chance(20) && global[0] > 1 && kernel.required_local_size().is_none() {
        global[0] -= 1;
    }
    (global, local)
}

/// A small number, or a few of them.
fn value(size: usize, float: bool, rng: &mut Rng) -> Vec<u8> {
    let words = (0..size.div_ceil(4)).flat_map(|n| {
        let word = match float {
            true => (rng.below(4000) as f32 / 500.0 - 4.0).to_bits(),
            // The upper half of a number of 64 bits is small, too.
            false if n % 2 == 1 && size == 8 => 0,
            false => rng.below(40) as u32,
        };
        word.to_le_bytes()
    });
    words.take(size).collect()
}
