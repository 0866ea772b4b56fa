//! Comparing samples and levels of detail, which no OpenCL source asks for: every comparison, kind, format and sampler, in vISA.

use visa_jit::interp::InterpOptions;
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Launch, Program};
use visa_runtime::{Comparison, ImageKind, ImageShape, SamplerState};

use super::images::{close, spots, states};
use crate::reference::image::Picture;
use visa_test_common::Rng;

const LANES: usize = 16;

/// Coordinates and references from surface 1; what is found of image 0 to surface 2: a comparison, four, a level.
const KERNEL: &str = ".version 4.1
.kernel \"comparing\"
.kernel_attr SimdSize=16
.decl U v_type=G type=f num_elts=16 align=GRF
.decl V v_type=G type=f num_elts=16 align=GRF
.decl R v_type=G type=f num_elts=16 align=GRF
.decl C v_type=G type=f num_elts=16 align=GRF
.decl D v_type=G type=f num_elts=64 align=GRF
.decl S0 v_type=S num_elts=1
.decl T6 v_type=T num_elts=1
.decl T7 v_type=T num_elts=1
.decl T8 v_type=T num_elts=1
.function \"main\"
    movs (M1_NM, 1) T6(0) 0x0:ud
    movs (M1_NM, 1) T7(0) 0x1:ud
    movs (M1_NM, 1) T8(0) 0x2:ud
    movs (M1_NM, 1) S0(0) 0x0:ud
    oword_ld (4) T7 0x0:ud U.0
    oword_ld (4) T7 0x4:ud V.0
    oword_ld (4) T7 0x8:ud R.0
    oword_ld (4) T7 0xc:ud C.0
    sample_c.R (M1, 16) 0x0:uw S0 T6 D.0 C.0 U.0 V.0 R.0
    oword_st (4) T8 0x0:ud D.0
    lod.G (M1, 16) 0x0:uw S0 T6 D.0 U.0 V.0 R.0
    oword_st (4) T8 0x4:ud D.0
    sample4_c.R (M1, 16) 0x0:uw S0 T6 D.0 C.0 U.0 V.0 R.0
    oword_st (8) T8 0x8:ud D.0
    oword_st (8) T8 0x10:ud D.128
    ret (M1, 1)
";

/// References around the numbers of a picture, many of them equal to one.
fn numbers(picture: &Picture, at: &[[f32; 3]], state: SamplerState, rng: &mut Rng) -> Vec<f32> {
    let nearest = SamplerState {
        linear: false,
        ..state
    };
    at.iter()
        .map(|a| match rng.word_below(3) {
            0 => rng.float(-4.0, 4.0),
            1 => rng.float(0.0, 1.0),
            _ => picture.sample(nearest, a.map(f64::from))[0] as f32,
        })
        .collect()
}

/// One launch: `at` are lanes' coordinates.
fn check(
    engine: &Engine,
    program: &Program,
    picture: &Picture,
    state: SamplerState,
    rng: &mut Rng,
) {
    let at = spots(picture, state, rng, LANES);
    let references = numbers(picture, &at, state, rng);
    let column = |k: usize| at.iter().map(move |a| a[k]);
    let inputs: Vec<f32> = column(0)
        .chain(column(1))
        .chain(column(2))
        .chain(references.iter().copied())
        .collect();
    let memory = engine.memory();
    let results = memory.alloc(6 * 4 * LANES as u64).unwrap();
    let launch = Launch::new([LANES as u32, 1, 1])
        .local([LANES as u32, 1, 1])
        .image(0, memory.alloc_from(&picture.bytes).unwrap(), picture.shape)
        .surface(1, memory.alloc_from(&inputs).unwrap())
        .surface(2, results.clone())
        .sampler(0, state);
    program.kernels()[0].launch(&launch).unwrap();
    let got = results.to_vec_of::<f32>();
    for lane in 0..LANES {
        let what = || {
            format!(
                "{:?} {state:?} at {:?}: {}",
                picture.shape, at[lane], references[lane]
            )
        };
        let place = at[lane].map(f64::from);
        let number = references[lane].into();
        let want = picture.compare(state, place, number);
        assert!(
            close(got[lane], want),
            "{}: {} not {want}",
            what(),
            got[lane]
        );
        let first = at[lane & !3].map(f64::from);
        let distance = |k: usize| {
            let near = at[(lane & !3) + k].map(f64::from);
            std::array::from_fn(|axis| near[axis] - first[axis])
        };
        let want = picture.level(state, [distance(1), distance(2)]);
        let level = got[LANES + lane];
        assert!(
            level == want as f32 || close(level, want),
            "{}: {level} not {want}",
            what()
        );
        if picture.shape.kind.axes() > 1 && picture.shape.kind.layer_axis() != Some(1) {
            let want = picture.compare_four(state, place, number);
            let four: [f32; 4] = std::array::from_fn(|k| got[(2 + k) * LANES + lane]);
            assert_eq!(four.map(f64::from), want, "{}", what());
        }
    }
}

fn run(interpret: Option<InterpOptions>) {
    let engine = Engine::with_options(EngineOptions {
        interpret,
        ..EngineOptions::default()
    });
    let engine = engine.unwrap();
    let program = engine.program_from_text("comparing", KERNEL, Platform::Skl);
    let program = program.unwrap();
    let mut rng = Rng::new(53);
    for (kind, extent) in [
        (ImageKind::D1, [8, 1, 1]),
        (ImageKind::D1Array, [8, 3, 1]),
        (ImageKind::D2, [8, 5, 1]),
        (ImageKind::D2Array, [4, 3, 2]),
    ] {
        for format in ["r16unorm", "r32float"] {
            let shape = ImageShape {
                kind,
                format: format.parse().unwrap(),
                extent,
            };
            let picture = Picture::random(shape, &mut rng);
            for state in [states(true), states(false)].concat() {
                for (comparison, _) in Comparison::ALL {
                    let state = SamplerState {
                        comparison,
                        ..state
                    };
                    check(&engine, &program, &picture, state, &mut rng);
                }
            }
        }
    }
}

#[test]
fn comparisons_and_levels() {
    run(None);
}

#[test]
fn comparisons_and_levels_interpreted() {
    run(Some(InterpOptions::default()));
}
