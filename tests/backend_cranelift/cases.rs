//! Builds one-operation functions and compares what the code and the SSA evaluator make of them.

use visa_jit::ssa::eval::{self, Bytes, Inputs, Thread};
use visa_jit::ssa::{Conv, Function, ICond, Input, Lane, Op, Term, Ty, Value, verify};
use visa_test_common::Rng;

use crate::rig::{NONE, Rig, SPEED, install, install_base};
use visa_runtime::CodeHandle;

/// Lane counts that tests go through.
const LANES: [u16; 9] = [1, 2, 3, 4, 5, 8, 16, 24, 32];
/// Those of a plain run: a scalar, less than a vector of the processor, one and several of these.
const FEWER_LANES: [u16; 4] = [1, 3, 8, 24];

/// Numbers of lanes.
pub fn lane_counts() -> &'static [u16] {
    match visa_test_common::full() {
        true => &LANES,
        false => &FEWER_LANES,
    }
}
pub const INTS: [Lane; 4] = [Lane::I8, Lane::I16, Lane::I32, Lane::I64];
pub const FLOATS: [Lane; 2] = [Lane::F32, Lane::F64];

/// Random lanes.
pub trait RandomLane {
    /// Random bits of a lane, edges half of the time.
    fn lane(&mut self, lane: Lane) -> u64;
}

impl RandomLane for Rng {
    fn lane(&mut self, lane: Lane) -> u64 {
        let random = self.bits();
        let bits = match lane {
            Lane::F32 => match self.below(4) {
                0 => F32_EDGES[self.below(F32_EDGES.len())].to_bits().into(),
                1 => ((random as i32) as f32).to_bits().into(),
                2 => ((random as i32) as f32 / 65536.0).to_bits().into(),
                _ => random,
            },
            Lane::F64 => match self.below(5) {
                0 => F64_EDGES[self.below(F64_EDGES.len())].to_bits(),
                1 => f64::from(F32_EDGES[self.below(F32_EDGES.len())]).to_bits(),
                2 => ((random as i64) as f64).to_bits(),
                3 => (f64::from(random as i32) / 65536.0).to_bits(),
                _ => random,
            },
            _ => match self.below(4) {
                0 => INT_EDGES[self.below(INT_EDGES.len())],
                1 => 1 << self.below(lane.bits() as usize),
                2 => random % 100,
                _ => random,
            },
        };
        bits & lane.mask()
    }
}

const INT_EDGES: [u64; 12] = [
    0,
    1,
    2,
    0x7F,
    0x80,
    0x7FFF,
    0x8000,
    0x7FFF_FFFF,
    0x8000_0000,
    0x7FFF_FFFF_FFFF_FFFF,
    0x8000_0000_0000_0000,
    u64::MAX,
];

const F32_EDGES: [f32; 27] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    127.5,
    255.5,
    -128.5,
    32767.9,
    65535.5,
    65519.9,
    65520.0,
    2_147_483_600.0,
    2_147_483_648.0,
    4_294_967_300.0,
    -2_147_483_648.0,
    9.3e18,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MIN_POSITIVE,
    1e-45,
    5.96e-8,
];

const F64_EDGES: [f64; 12] = [
    0.499_999_999_999_999_94,
    2.980_232_238_769_531e-8,
    2.980_232_238_769_532e-8,
    6.097_555_160_522_461e-5,
    65_519.999_999,
    9_223_372_036_854_775_807.0,
    18_446_744_073_709_551_615.0,
    4_294_967_295.5,
    2_147_483_647.5,
    1e-310,
    1e300,
    3.5e38,
];

/// One operation with its operand and result types.
#[derive(Clone, Debug)]
pub struct Case {
    pub op: Op,
    pub args: Vec<Arg>,
    pub results: Vec<Ty>,
}

/// Where an operand comes from.
#[derive(Clone, Debug)]
pub enum Arg {
    /// Different in every run.
    Input(Ty),
    /// Lanes of a constant.
    Const(Ty, Vec<u64>),
    /// Splat of a scalar that differs in every run.
    Splat(Ty),
    /// The mask of a comparison of two values that differ in every run.
    Compared(ICond, Ty),
}

const STRIDE: u32 = 512;
/// From one of two values that are compared to the other.
const OTHER: u32 = STRIDE / 2;

impl Case {
    /// All operands vary.
    pub fn new(op: Op, args: &[Ty], result: Ty) -> Case {
        Case {
            op,
            args: args.iter().map(|&ty| Arg::Input(ty)).collect(),
            results: vec![result],
        }
    }

    /// The function that applies the operation once.
    pub fn function(&self) -> Function {
        let mut f = Function::new("case", 32);
        let entry = Function::ENTRY;
        let mut args = Vec::new();
        for (i, arg) in self.args.iter().enumerate() {
            let at = i as u32 * STRIDE;
            args.push(match arg {
                Arg::Input(ty) => payload(&mut f, at, *ty),
                Arg::Const(ty, lanes) => {
                    let op = if ty.is_scalar() {
                        Op::Const(lanes[0])
                    } else {
                        Op::VecConst(lanes.clone().into())
                    };
                    f.push1(entry, op, vec![], *ty, 0)
                }
                Arg::Splat(ty) => {
                    let scalar = payload(&mut f, at, Ty::scalar(ty.lane));
                    f.push1(entry, Op::Splat, vec![scalar], *ty, 0)
                }
                Arg::Compared(cond, ty) => {
                    let both = vec![payload(&mut f, at, *ty), payload(&mut f, at + OTHER, *ty)];
                    f.push1(entry, Op::ICmp(*cond), both, ty.with_lane(Lane::I1), 0)
                }
            });
        }
        let inst = f.push(entry, self.op.clone(), args, &self.results, 7);
        let results = f.inst(inst).results.clone();
        for (i, v) in results.into_iter().enumerate() {
            let at = i as u32 * STRIDE;
            f.push(entry, Op::FrameStore(at), vec![v], &[], 0);
            f.frame_bytes = at + self.results[i].frame_bytes();
        }
        f.block_mut(entry).term = Term::Return;
        if let Err(errors) = verify(&f) {
            panic!("{}\n{f}", errors[0]);
        }
        f
    }

    /// Runs at both effort levels with `rounds` sets of operands. A plain run leaves out two of five cases.
    pub fn check(&self, rng: &mut Rng, rounds: usize) {
        if !visa_test_common::full() && rng.chance(40) {
            return;
        }
        let f = self.function();
        crate::generator::compiles_elsewhere(&f);
        let rounds = visa_test_common::share(rounds as u64, 12);
        let mut codes = vec![install(&f, &SPEED)];
        // A plain run leaves out code that is not optimised, and every second time that for other processors.
        if visa_test_common::full() {
            codes.extend([install_base(&f), install(&f, &NONE)]);
        } else if rng.chance(50) {
            codes.push(install_base(&f));
        }
        for code in codes {
            self.check_with(&f, &code, rng, rounds);
        }
    }

    fn check_with(&self, f: &Function, code: &CodeHandle, rng: &mut Rng, rounds: u64) {
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        for _ in 0..rounds {
            let mut bytes = vec![0; 8192];
            for (i, arg) in self.args.iter().enumerate() {
                let at = i * STRIDE as usize;
                if let Arg::Input(ty) | Arg::Splat(ty) | Arg::Compared(_, ty) = arg {
                    fill(&mut bytes[at..], *ty, rng);
                }
                if let Arg::Compared(_, ty) = arg {
                    fill(&mut bytes[at + OTHER as usize..], *ty, rng);
                }
            }
            rig.payload.write(&bytes);
            rig.threads[0].state = 0;
            assert_eq!(rig.run(code.entry()), 0);
            let got = rig.frames[0].read();
            let inputs = Inputs {
                payload: bytes.clone(),
                ..Inputs::default()
            };
            let mut thread = Thread::new(f);
            let mut memory = Bytes::default();
            eval::run(f, &inputs, &mut thread, &mut memory, 1000);
            for (i, &ty) in self.results.iter().enumerate() {
                let at = i * STRIDE as usize;
                let half = matches!(self.op, Op::Convert(Conv::FToF16))
                    || matches!(self.op, Op::FpEnv(_)) && ty.lane == Lane::I16;
                if let Err(text) = same(&thread.frame[at..], &got[at..], ty, half) {
                    let operands = self.show(&bytes);
                    panic!("{text}\n{operands}{f}");
                }
            }
        }
    }

    fn show(&self, bytes: &[u8]) -> String {
        let mut text = String::new();
        for (i, arg) in self.args.iter().enumerate() {
            if let Arg::Input(ty) | Arg::Splat(ty) | Arg::Compared(_, ty) = arg {
                let at = i * STRIDE as usize;
                text += &format!("operand {i}: {:x?}\n", lanes(&bytes[at..], *ty));
            }
        }
        text
    }
}

fn fill(bytes: &mut [u8], ty: Ty, rng: &mut Rng) {
    if ty.lane == Lane::I1 {
        let bits = match rng.below(4) {
            0 => 0,
            1 => u32::MAX,
            _ => rng.bits() as u32,
        };
        bytes[..4].copy_from_slice(&bits.to_le_bytes());
        return;
    }
    let width = ty.lane.bytes() as usize;
    for lane in 0..usize::from(ty.lanes) {
        let bits = rng.lane(ty.lane).to_le_bytes();
        bytes[lane * width..][..width].copy_from_slice(&bits[..width]);
    }
}

/// A value read from the payload; conditions from the bits of a word.
pub fn payload(f: &mut Function, at: u32, ty: Ty) -> Value {
    let entry = Function::ENTRY;
    if ty.lane != Lane::I1 {
        return f.push1(entry, Op::Input(Input::Payload(at)), vec![], ty, 0);
    }
    let word = f.push1(entry, Op::Input(Input::Payload(at)), vec![], Ty::I32, 0);
    let op = if ty.is_scalar() {
        Op::Convert(Conv::Trunc)
    } else {
        Op::BitsToMask
    };
    f.push1(entry, op, vec![word], ty, 0)
}

/// Lanes of a value as it lies in a frame.
pub fn lanes(bytes: &[u8], ty: Ty) -> Vec<u64> {
    if ty.lane == Lane::I1 {
        let bits = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        return vec![u64::from(bits)];
    }
    bytes
        .chunks(ty.lane.bytes() as usize)
        .take(usize::from(ty.lanes))
        .map(|c| {
            let mut word = [0; 8];
            word[..c.len()].copy_from_slice(c);
            u64::from_le_bytes(word)
        })
        .collect()
}

/// Compares two values; all NaNs are equal.
pub fn same(want: &[u8], got: &[u8], ty: Ty, half: bool) -> Result<(), String> {
    let (want, got) = (lanes(want, ty), lanes(got, ty));
    let nan = |bits: u64| match ty.lane {
        Lane::F32 => f32::from_bits(bits as u32).is_nan(),
        Lane::F64 => f64::from_bits(bits).is_nan(),
        Lane::I16 => half && bits & 0x7FFF > 0x7C00,
        _ => false,
    };
    for (i, (&w, &g)) in want.iter().zip(&got).enumerate() {
        if w != g && !(nan(w) && nan(g)) {
            return Err(format!(
                "lane {i} of {ty}: expected {w:#x}, got {g:#x}\nexpected {want:x?}\ngot      {got:x?}"
            ));
        }
    }
    Ok(())
}
