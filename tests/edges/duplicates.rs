//! Lanes of one store at one address: what is there afterwards is the whole element of one of the enabled lanes, and nothing
//! beside it has changed.

use visa_jit::isa::Platform;
use visa_jit::{Engine, Launch};

use super::rig::options;
use visa_test_common::Rng;

/// A store: text, device, bytes of an element, components, bytes from one of a lane's components to the next in the register,
/// bytes of a lane in the register, and bytes that one unit of an offset stands for.
struct Store {
    text: &'static str,
    platform: Platform,
    element: usize,
    components: usize,
    stride: usize,
    register: usize,
    unit: u32,
}

const fn store(
    text: &'static str,
    platform: Platform,
    element: usize,
    components: usize,
    stride: usize,
    register: usize,
    unit: u32,
) -> Store {
    Store {
        text,
        platform,
        element,
        components,
        stride,
        register,
        unit,
    }
}

use Platform::{Dg2, Pvc, Skl};

const STORES: [Store; 18] = [
    store("scatter.1 (M1, 16) T6 0x0:ud OFF.0 V.0", Skl, 1, 1, 0, 4, 1),
    store("scatter.2 (M1, 16) T6 0x0:ud OFF.0 V.0", Skl, 2, 1, 0, 4, 2),
    store("scatter.4 (M1, 16) T6 0x0:ud OFF.0 V.0", Pvc, 4, 1, 0, 4, 4),
    store(
        "scatter_scaled.1 (M1, 16) T6 0x0:ud OFF.0 V.0",
        Pvc,
        1,
        1,
        0,
        4,
        1,
    ),
    store(
        "scatter_scaled.2 (M1, 16) T6 0x0:ud OFF.0 V.0",
        Skl,
        2,
        1,
        0,
        4,
        1,
    ),
    store(
        "scatter_scaled.4 (M1, 16) T6 0x0:ud OFF.0 V.0",
        Skl,
        4,
        1,
        0,
        4,
        1,
    ),
    store(
        "scatter4_scaled.RGB (M1, 16) T6 0x0:ud OFF.0 V.0",
        Skl,
        4,
        3,
        64,
        4,
        1,
    ),
    store("qw_scatter.2 (M1, 16) T6 OFF.0 V.0", Pvc, 8, 2, 128, 8, 1),
    store("svm_scatter.1.2 (M1, 16) ADDR.0 V.0", Skl, 2, 1, 0, 4, 1),
    store("svm_scatter.4.2 (M1, 16) ADDR.0 V.0", Skl, 4, 2, 64, 4, 1),
    store("svm_scatter.8.1 (M1, 16) ADDR.0 V.0", Pvc, 8, 1, 0, 8, 1),
    store(
        "lsc_store.ugm (M1, 16) bti(0x0)[OFF]:a32 V:d8c32",
        Dg2,
        1,
        1,
        0,
        4,
        1,
    ),
    store(
        "lsc_store.ugm (M1, 16) flat[ADDR]:a64 V:d16c32",
        Pvc,
        2,
        1,
        0,
        4,
        1,
    ),
    store(
        "lsc_store.ugm (M1, 16) bti(0x0)[OFF]:a32 V:d32",
        Dg2,
        4,
        1,
        0,
        4,
        1,
    ),
    store(
        "lsc_store.ugm (M1, 16) flat[ADDR]:a64 V:d32",
        Pvc,
        4,
        1,
        0,
        4,
        1,
    ),
    store(
        "lsc_store.ugm (M1, 16) flat[ADDR]:a64 V:d64",
        Pvc,
        8,
        1,
        0,
        8,
        1,
    ),
    store(
        "lsc_store.ugm (M1, 16) bti(0x0)[OFF]:a32 V:d32x4",
        Pvc,
        4,
        4,
        64,
        4,
        1,
    ),
    store(
        "lsc_store_quad.ugm (M1, 16) flat[ADDR]:a64 V:d32.xyzw",
        Dg2,
        4,
        4,
        64,
        4,
        1,
    ),
];

/// Bytes of the payload, and of the target.
const DATA: usize = 256;
const TARGET: usize = 1024;

fn kernel(s: &Store) -> String {
    format!(
        ".version 4.1\n.kernel \"duplicates\"\n.kernel_attr SimdSize=16\n\
         .decl OFF v_type=G type=ud num_elts=16 align=GRF\n.decl ADDR v_type=G type=uq num_elts=16 align=GRF\n\
         .decl BASE v_type=G type=uq num_elts=1 align=qword\n.decl V v_type=G type=ud num_elts=64 align=GRF\n\
         .decl M v_type=G type=ud num_elts=4 align=GRF\n.decl P1 v_type=P num_elts=16\n\
         .decl T6 v_type=T num_elts=1\n.decl T7 v_type=T num_elts=1\n.input BASE offset=256 size=8\n\
         .function \"main\"\n    movs (M1_NM, 1) T6(0) 0x0:ud\n    movs (M1_NM, 1) T7(0) 0x1:ud\n    \
         oword_ld (4) T7 0x0:ud OFF.0\n    oword_ld (1) T7 0x4:ud M.0\n    oword_ld (8) T7 0x5:ud V.0\n    \
         oword_ld (8) T7 0xd:ud V.128\n    add (M1_NM, 16) ADDR(0,0)<1> BASE(0,0)<0;1,0> OFF(0,0)<1;1,0>\n    \
         setp (M1_NM, 16) P1 M(0,0)<0;1,0>\n    (!P1) goto (M1, 16) SKIP\n    {}\nSKIP:\n    ret (M1, 1)\n",
        s.text
    )
}

/// Checks what is at each place that lanes were sent to.
fn check(s: &Store, places: &[u32], mask: u32, data: &[u8], before: &[u8], after: &[u8]) {
    let mut touched = vec![false; TARGET];
    for (lane, place) in places.iter().enumerate() {
        if mask >> lane & 1 == 0 {
            continue;
        }
        for c in 0..s.components {
            let at = (*place * s.unit) as usize + c * s.element;
            touched[at..at + s.element].fill(true);
            let now = &after[at..at + s.element];
            let stored = |other: usize| {
                let same = mask >> other & 1 != 0 && places[other] == *place;
                let from = c * s.stride + other * s.register;
                same && data[from..from + s.element] == *now
            };
            assert!(
                (0..places.len()).any(stored),
                "{}: no lane has stored {now:x?} at {at}, mask {mask:#x}, at {places:x?}",
                s.text
            );
        }
    }
    for i in (0..TARGET).filter(|i| !touched[*i]) {
        assert_eq!(after[i], before[i], "{}: byte {i}, {places:x?}", s.text);
    }
}

#[test]
fn one_of_the_lanes_at_an_address_wins() {
    let engine = Engine::with_options(options()).unwrap();
    let memory = engine.memory();
    let mut rng = Rng::new(71);
    let inputs = memory.alloc(80 + DATA as u64).unwrap();
    let target = memory.alloc(TARGET as u64).unwrap();
    for s in &STORES {
        let program = engine.program_from_text("duplicates", &kernel(s), s.platform);
        let program = program.unwrap_or_else(|e| panic!("{}: {e}", s.text));
        let launch = Launch::new([16, 1, 1])
            .local([16, 1, 1])
            .surface(0, target.clone())
            .surface(1, inputs.clone())
            .input("BASE", target.address().to_le_bytes().to_vec());
        let prepared = program.kernels()[0].prepare(&launch).unwrap();
        for n in 0..200 {
            // Few places, each for several lanes; structs do not overlap.
            let bytes = (s.element * s.components) as u32;
            let count = [1, 2, 3, 8][n % 4];
            let first = rng.word_below(8);
            let at = |k: u32| (first + k) * bytes.div_ceil(s.unit);
            let places: Vec<u32> = (0..16).map(|_| at(rng.word_below(count))).collect();
            let mask = [0xffff, rng.word() & 0xffff][n / 4 % 2];
            let (data, before) = (rng.bytes(DATA), rng.bytes(TARGET));
            let mut input: Vec<u8> = places.iter().flat_map(|p| p.to_le_bytes()).collect();
            input.extend(mask.to_le_bytes());
            input.resize(80, 0);
            input.extend(&data);
            inputs.write(0, &input).unwrap();
            target.write(0, &before).unwrap();
            prepared.run().unwrap();
            check(s, &places, mask, &data, &before, &target.to_vec());
        }
    }
}
