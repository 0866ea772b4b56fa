//! The evaluator of the IR as an engine: slow and obvious, it shows what lowering and passes mean without any
//! code generator.

use visa_jit::EngineOptions;
use visa_jit::isa::Platform;
use visa_jit::limits::TEXT_SCRATCH_BYTES;
use visa_jit::module::InputVar;
use visa_jit::ssa::eval::{Bytes, ElementAddr, Inputs, Memory, Outcome as End, Thread, run};
use visa_jit::ssa::{Function, Space, verify};

use crate::engines::{Input, Launch, Loaded, Machine, Outcome, Stop, guarded};
use crate::native::{read, stop};

/// IR instructions that a thread may execute.
const FUEL: u64 = 4_000_000;
/// Flat address of the first surface, and the distance from one to the next.
const FLAT: u64 = 1 << 32;

struct Evaluator {
    engine: visa_jit::Engine,
    optimised: bool,
}

/// A machine that evaluates what lowering made, before or after the passes.
///
/// # Panics
/// When this computer cannot generate code, though none is run.
pub(crate) fn machine(optimised: bool) -> Box<dyn Machine> {
    let options = EngineOptions {
        memory_bytes: 1 << 20,
        ..EngineOptions::default()
    };
    Box::new(Evaluator {
        engine: visa_jit::Engine::with_options(options).expect("an engine"),
        optimised,
    })
}

impl Machine for Evaluator {
    fn load(&mut self, text: &str, platform: Platform) -> Result<Box<dyn Loaded>, Stop> {
        guarded(|| self.program(text, platform))
    }

    fn images(&self) -> bool {
        false
    }
}

impl Evaluator {
    fn program(&mut self, text: &str, platform: Platform) -> Result<Box<dyn Loaded>, Stop> {
        let program = read(&self.engine, text, platform).map_err(|e| stop(&e))?;
        let kernel = &program.kernels()[0];
        let function = kernel.ssa(self.optimised).map_err(|e| stop(&e))?;
        verify(&function).map_err(|e| Stop::Broken(format!("malformed IR: {}", e[0])))?;
        let module = kernel.valid().expect("has vISA").module();
        let mut inputs = Vec::new();
        for i in &module.inputs {
            if let InputVar::General(v) = i.var {
                let name = module.vars.general(v).map_or("", |g| &g.name);
                inputs.push((name.to_owned(), i.offset as usize));
            }
        }
        Ok(Box::new(Program {
            function,
            inputs,
            slm: kernel.slm_bytes(),
            r0: platform.grf_bytes() as usize,
        }))
    }
}

struct Program {
    function: Function,
    /// Offset of each input in the payload.
    inputs: Vec<(String, usize)>,
    slm: u32,
    /// Bytes of the register in front of the arguments; generated kernels have no local ids there.
    r0: usize,
}

impl Loaded for Program {
    fn run(&self, launch: &Launch) -> Outcome {
        guarded(|| self.evaluate(launch))
    }
}

impl Program {
    fn evaluate(&self, launch: &Launch) -> Outcome {
        let mut payload = Vec::new();
        for (name, value) in &launch.inputs {
            let bytes = match value {
                Input::Bytes(bytes) => bytes.clone(),
                Input::Address(s) => (FLAT * (u64::from(*s) + 1)).to_le_bytes().to_vec(),
            };
            let known = self.inputs.iter().find(|(n, _)| n == name);
            let at = known.map_or(0, |(_, at)| *at);
            payload.resize(payload.len().max(at + bytes.len()), 0);
            payload[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        let args = payload.get(self.r0..).unwrap_or(&[]).to_vec();
        let mut inputs = Inputs {
            dispatch_mask: u32::MAX >> (32 - launch.lanes),
            payload,
            ..Inputs::default()
        };
        inputs.local_ids[0] = std::array::from_fn(|l| l as u16);
        let mut world = World {
            surfaces: launch.surfaces.clone(),
            slm: vec![0; self.slm as usize],
            scratch: vec![0; TEXT_SCRATCH_BYTES as usize],
            args,
        };
        let mut thread = Thread::new(&self.function);
        loop {
            match run(&self.function, &inputs, &mut thread, &mut world, FUEL) {
                End::Done => return Ok(world.surfaces),
                End::OutOfFuel => return Err(Stop::Timeout),
                // The only thread of its group need not wait at a barrier.
                End::Suspended => {}
            }
        }
    }
}

struct World {
    surfaces: Vec<Vec<u8>>,
    slm: Vec<u8>,
    scratch: Vec<u8>,
    /// Indirect data: the payload after `r0`.
    args: Vec<u8>,
}

impl World {
    fn element(&mut self, place: ElementAddr, bytes: u32) -> Option<&mut [u8]> {
        let (memory, at) = match place.space {
            Space::Surface => (
                self.surfaces.get_mut(place.surface as usize)?,
                place.address,
            ),
            Space::Flat => {
                // The upper bits are a tag.
                let address = place.address & Bytes::FLAT_BITS;
                let surface = (address / FLAT).checked_sub(1)?;
                (self.surfaces.get_mut(surface as usize)?, address % FLAT)
            }
            Space::Slm => (&mut self.slm, place.address),
            Space::Scratch => (&mut self.scratch, place.address),
            Space::Args => (&mut self.args, place.address),
            // Registers are a thread's, and there are no marks here.
            _ => return None,
        };
        let at = usize::try_from(at).ok()?;
        memory.get_mut(at..at.checked_add(bytes as usize)?)
    }
}

impl Memory for World {
    fn load(&mut self, place: ElementAddr, bytes: u32) -> Option<u64> {
        self.element(place, bytes).map(|b| crate::engines::bits(b))
    }

    fn store(&mut self, place: ElementAddr, bytes: u32, bits: u64) {
        if let Some(b) = self.element(place, bytes) {
            b.copy_from_slice(&bits.to_le_bytes()[..bytes as usize]);
        }
    }
}
