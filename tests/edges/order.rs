//! What several OS threads see of each other's memory: between fences, stores and loads of one group are seen in their order by
//! another that runs at the same time.
//!
//! Two groups meet at a counter and then work through slots, sixteen at a time. How often they really meet is up to the host; what
//! may not be seen may never be seen.

use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Launch};

use super::rig::options;

/// Slots of a launch.
const SLOTS: u32 = 1 << 15;
/// Launches of a test.
const LAUNCHES: usize = 40;

/// A kernel of two groups: `each` is done for every sixteen slots, at `OWN` of the group's array and `OTHER` of the other's;
/// `first` and `second` are what the groups do apart.
fn kernel(each: &str, first: &str, second: &str) -> String {
    let bytes = 4 * SLOTS;
    // How often a group looks whether the other has come.
    let patience = match std::env::var_os("VISA_JIT_TEST_INTERP") {
        Some(_) => 1 << 10,
        None => 1 << 22,
    };
    format!(
        ".version 4.1\n.kernel \"order\"\n.kernel_attr SimdSize=16\n\
         .decl L v_type=G type=uw num_elts=16 align=GRF\n.decl OFF v_type=G type=ud num_elts=16 align=GRF\n\
         .decl OWN v_type=G type=ud num_elts=16 align=GRF\n.decl OTHER v_type=G type=ud num_elts=16 align=GRF\n\
         .decl ONE v_type=G type=ud num_elts=16 align=GRF\n.decl A v_type=G type=ud num_elts=16 align=GRF\n\
         .decl B v_type=G type=ud num_elts=16 align=GRF\n.decl G v_type=G type=ud num_elts=1 align=dword\n\
         .decl H v_type=G type=ud num_elts=1 align=dword\n.decl Z v_type=G type=ud num_elts=16 align=GRF\n\
         .decl N v_type=G type=ud num_elts=16 align=GRF\n.decl I v_type=G type=ud num_elts=1 align=dword\n\
         .decl P1 v_type=P num_elts=16\n.decl P2 v_type=P num_elts=16\n.function \"main\"\n    \
         mov (M1_NM, 8) L(0,0)<1> 0x76543210:uv\n    add (M1_NM, 8) L(0,8)<1> L(0,0)<1;1,0> 0x8:uw\n    \
         mul (M1_NM, 16) OFF(0,0)<1> L(0,0)<1;1,0> 0x4:uw\n    mov (M1_NM, 16) ONE(0,0)<1> 0x1:ud\n    \
         mov (M1_NM, 16) Z(0,0)<1> 0x0:ud\n    mul (M1_NM, 1) G(0,0)<1> %r0(0,1)<0;1,0> {bytes:#x}:ud\n    \
         add (M1_NM, 1) H(0,0)<1> G(0,0)<0;1,0> -{bytes}:d\n    and (M1_NM, 1) H(0,0)<1> H(0,0)<0;1,0> {bytes:#x}:ud\n    \
         cmp.eq (M1_NM, 16) P2 G(0,0)<0;1,0> 0x0:ud\n    \
         lsc_atomic_iinc.ugm (M1_NM, 1) %null:d32 bti(0x2)[Z]:a32 %null %null\n    mov (M1_NM, 1) I(0,0)<1> 0x0:ud\n\
         MEET:\n    lsc_atomic_load.ugm (M1_NM, 1) N:d32 bti(0x2)[Z]:a32 %null %null\n    \
         add (M1_NM, 1) I(0,0)<1> I(0,0)<0;1,0> 0x1:ud\n    cmp.gt (M1_NM, 1) P1 I(0,0)<0;1,0> {patience:#x}:ud\n    \
         (P1) jmp (M1, 1) BEGIN\n    cmp.lt (M1_NM, 1) P1 N(0,0)<0;1,0> 0x2:ud\n    (P1) jmp (M1, 1) MEET\n\
         BEGIN:\n    mov (M1_NM, 1) I(0,0)<1> 0x0:ud\nNEXT:\n    \
         add (M1_NM, 16) OWN(0,0)<1> OFF(0,0)<1;1,0> G(0,0)<0;1,0>\n    \
         add (M1_NM, 16) OTHER(0,0)<1> OFF(0,0)<1;1,0> H(0,0)<0;1,0>\n{each}    \
         (P2) goto (M1, 16) FIRST\n{second}    goto (M1, 16) DONE\nFIRST:\n{first}DONE:\n    \
         add (M1_NM, 16) OFF(0,0)<1> OFF(0,0)<1;1,0> 0x40:ud\n    add (M1_NM, 1) I(0,0)<1> I(0,0)<0;1,0> 0x10:ud\n    \
         cmp.lt (M1_NM, 16) P1 I(0,0)<0;1,0> {SLOTS:#x}:ud\n    (P1) goto (M1, 16) NEXT\n    ret (M1, 1)\n"
    )
}

/// What the two groups saw, slot by slot, of all launches.
fn seen(text: &str) -> Vec<[u32; 2]> {
    let engine = Engine::with_options(EngineOptions {
        memory_bytes: 1 << 24,
        ..options()
    });
    let engine = engine.unwrap();
    let program = engine.program_from_text("order", text, Platform::Pvc);
    let program = program.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let memory = engine.memory();
    let array = || memory.alloc(8 * u64::from(SLOTS)).unwrap();
    let (shared, results, counter) = (array(), array(), memory.alloc(64).unwrap());
    let launch = Launch::new([32, 1, 1])
        .local([16, 1, 1])
        .threads(2)
        .surface(0, shared.clone())
        .surface(1, results.clone())
        .surface(2, counter.clone());
    let prepared = program.kernels()[0].prepare(&launch).unwrap();
    let mut out = Vec::new();
    let launches = match std::env::var_os("VISA_JIT_TEST_INTERP") {
        Some(_) => 1,
        None => LAUNCHES,
    };
    for _ in 0..launches {
        for buffer in [&shared, &results, &counter] {
            buffer.fill(0);
        }
        prepared.run().unwrap();
        let results = results.to_vec_of::<u32>();
        let (first, second) = results.split_at(SLOTS as usize);
        out.extend(first.iter().zip(second).map(|(a, b)| [*a, *b]));
    }
    out
}

fn count(seen: &[[u32; 2]], what: [u32; 2]) -> usize {
    seen.iter().filter(|s| **s == what).count()
}

/// On a machine that never ran the two groups at once, nothing was tested; the test says so.
fn say_if_apart(met: bool) {
    if !met {
        eprintln!("skipped: the two groups never ran at the same time here");
    }
}

/// Whoever stores last sees what the other stored: not both may see nothing.
#[test]
fn stores_are_seen_before_loads_behind_a_fence() {
    let each = "    lsc_store.ugm (M1_NM, 16) bti(0x0)[OWN]:a32 ONE:d32\n    lsc_fence.ugm.evict.gpu\n    \
                lsc_load.ugm (M1_NM, 16) A:d32 bti(0x0)[OTHER]:a32\n    \
                lsc_store.ugm (M1_NM, 16) bti(0x1)[OWN]:a32 A:d32\n";
    let seen = seen(&kernel(each, "", ""));
    let [neither, one, other, both] =
        [[0, 0], [0, 1], [1, 0], [1, 1]].map(|what| count(&seen, what));
    println!("stores seen by both {both}, by one {one} and {other}, by neither {neither}");
    // One after the other, the second sees all and the first nothing.
    say_if_apart(both > 0);
    assert_eq!(neither, 0);
    assert_eq!(one + other + both, seen.len());
}

/// Who sees the second of two stores sees the first.
#[test]
fn messages_are_passed_between_fences() {
    // The first group stores the data, then the mark; the second loads the mark, then the data.
    let first = "    lsc_store.ugm (M1, 16) bti(0x0)[OWN]:a32 ONE:d32\n    lsc_fence.ugm.evict.gpu\n    \
                 lsc_store.ugm (M1, 16) bti(0x0)[OTHER]:a32 ONE:d32\n";
    let second = "    lsc_load.ugm (M1, 16) A:d32 bti(0x0)[OWN]:a32\n    lsc_fence.ugm.invalidate.gpu\n    \
                  lsc_load.ugm (M1, 16) B:d32 bti(0x0)[OTHER]:a32\n    \
                  lsc_store.ugm (M1, 16) bti(0x1)[OWN]:a32 A:d32\n    \
                  lsc_store.ugm (M1, 16) bti(0x1)[OTHER]:a32 B:d32\n";
    let seen = seen(&kernel("", first, second));
    // Data, mark.
    let [neither, data, both, mark] =
        [[0, 0], [1, 0], [1, 1], [0, 1]].map(|what| count(&seen, what));
    println!("seen: both {both}, the data alone {data}, nothing {neither}, the mark alone {mark}");
    let mixed = |launch: &[[u32; 2]]| count(launch, [0, 0]) > 0 && count(launch, [1, 1]) > 0;
    say_if_apart(data > 0 || seen.chunks(SLOTS as usize).any(mixed));
    assert_eq!(mark, 0);
    assert_eq!(neither + data + both, seen.len());
}
