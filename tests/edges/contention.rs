//! Atomics that many threads send to one place at once: nothing may be lost or happen twice.

use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Launch};

/// Items of a group.
const LOCAL: u32 = 64;

/// Where the contended word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Surface,
    Flat,
    /// Each group has its own.
    Local,
}

/// An operation, how its operands come from the item's number `GID`, and what must be there afterwards.
struct Contest {
    name: &'static str,
    operands: &'static str,
    sources: &'static str,
    initial: u32,
    /// Given the numbers of the items that took part, what they saw, and what is there now.
    check: fn(&[u32], &[u32], u32) -> bool,
}

const NUMBER: &str = "    add (M1, 16) A(0,0)<1> GID(0,0)<1;1,0> 0x1:ud\n";
const HASH: &str = "    mul (M1, 16) A(0,0)<1> GID(0,0)<1;1,0> 0x9e3779b1:ud\n";
const BIT: &str = "    shl (M1, 16) A(0,0)<1> 0x1:ud GID(0,0)<1;1,0>\n";
const NOT_BIT: &str = "    shl (M1, 16) A(0,0)<1> 0x1:ud GID(0,0)<1;1,0>\n    \
                       not (M1, 16) A(0,0)<1> A(0,0)<1;1,0>\n";
const ONE: &str = "    mov (M1, 16) AF(0,0)<1> 0x3f800000:f\n";
const FLOAT: &str = "    mov (M1, 16) AF(0,0)<1> GID(0,0)<1;1,0>\n";
const ZERO_TO_NUMBER: &str = "    mov (M1, 16) A(0,0)<1> 0x0:ud\n    \
                              add (M1, 16) B(0,0)<1> GID(0,0)<1;1,0> 0x1:ud\n";
const ZERO_TO_FLOAT: &str = "    mov (M1, 16) AF(0,0)<1> 0x0:f\n    \
                             add (M1, 16) B(0,0)<1> GID(0,0)<1;1,0> 0x1:ud\n    \
                             mov (M1, 16) BF(0,0)<1> B(0,0)<1;1,0>\n";

fn hash(id: u32) -> u32 {
    id.wrapping_mul(0x9e37_79b1)
}

fn hashes(ids: &[u32]) -> impl Iterator<Item = u32> {
    ids.iter().map(|&id| hash(id))
}

/// Each item saw another number: together all from `first` on, one step after the other.
fn counted(olds: &[u32], first: u32, step: i32) -> bool {
    let mut seen: Vec<u32> = olds
        .iter()
        .map(|o| (o.wrapping_sub(first) as i32).wrapping_mul(step) as u32)
        .collect();
    seen.sort_unstable();
    seen.iter().enumerate().all(|(i, &s)| s == i as u32)
}

/// One item saw the initial zero, and all others what that one left.
fn one_winner(ids: &[u32], olds: &[u32], now: u32, left: fn(u32) -> u32) -> bool {
    let winners: Vec<u32> = (0..ids.len())
        .filter(|&i| olds[i] == 0)
        .map(|i| left(ids[i] + 1))
        .collect();
    winners == [now] && olds.iter().all(|&o| o == 0 || o == now)
}

fn sum(ids: &[u32]) -> u32 {
    ids.iter().fold(0, |s, id| s.wrapping_add(id + 1))
}

const fn contest(
    name: &'static str,
    operands: &'static str,
    sources: &'static str,
    initial: u32,
    check: fn(&[u32], &[u32], u32) -> bool,
) -> Contest {
    Contest {
        name,
        operands,
        sources,
        initial,
        check,
    }
}

const CONTESTS: [Contest; 18] = [
    contest("iadd", NUMBER, "A %null", 7, |ids, _, now| {
        now == sum(ids).wrapping_add(7)
    }),
    contest("isub", NUMBER, "A %null", 7, |ids, _, now| {
        now == 7u32.wrapping_sub(sum(ids))
    }),
    contest("iinc", "", "%null %null", 5, |ids, olds, now| {
        now == 5 + ids.len() as u32 && counted(olds, 5, 1)
    }),
    contest("idec", "", "%null %null", 5, |ids, olds, now| {
        now == 5u32.wrapping_sub(ids.len() as u32) && counted(olds, 5, -1)
    }),
    contest("umin", HASH, "A %null", u32::MAX, |ids, _, now| {
        hashes(ids).min() == Some(now)
    }),
    contest("umax", HASH, "A %null", 0, |ids, _, now| {
        hashes(ids).max() == Some(now)
    }),
    contest("smin", HASH, "A %null", i32::MAX as u32, |ids, _, now| {
        hashes(ids).map(|h| h as i32).min() == Some(now as i32)
    }),
    contest("smax", HASH, "A %null", i32::MIN as u32, |ids, _, now| {
        hashes(ids).map(|h| h as i32).max() == Some(now as i32)
    }),
    contest("and", NOT_BIT, "A %null", u32::MAX, |_, olds, now| {
        now == 0 && olds.contains(&u32::MAX)
    }),
    contest("or", BIT, "A %null", 0, |_, olds, now| {
        now == u32::MAX && olds.contains(&0)
    }),
    contest("xor", HASH, "A %null", 0x1234, |ids, _, now| {
        now == hashes(ids).fold(0x1234, |x, h| x ^ h)
    }),
    contest("store", NUMBER, "A %null", 0, |ids, olds, now| {
        // What was put in came out once, or is still there.
        let mut all: Vec<u32> = olds.iter().copied().chain([now]).collect();
        let mut put: Vec<u32> = ids.iter().map(|id| id + 1).chain([0]).collect();
        all.sort_unstable();
        put.sort_unstable();
        all == put
    }),
    contest("icas", ZERO_TO_NUMBER, "A B", 0, |ids, olds, now| {
        one_winner(ids, olds, now, |n| n)
    }),
    contest("fcas", ZERO_TO_FLOAT, "A B", 0, |ids, olds, now| {
        one_winner(ids, olds, now, |n| (n as f32).to_bits())
    }),
    contest("fadd", ONE, "A %null", 0, |ids, _, now| {
        f32::from_bits(now) == ids.len() as f32
    }),
    contest("fsub", ONE, "A %null", 0, |ids, _, now| {
        f32::from_bits(now) == -(ids.len() as f32)
    }),
    contest("fmin", FLOAT, "A %null", 0x7f80_0000, |ids, _, now| {
        ids.iter().min().map(|&id| id as f32) == Some(f32::from_bits(now))
    }),
    contest("fmax", FLOAT, "A %null", 0xff80_0000, |ids, _, now| {
        ids.iter().max().map(|&id| id as f32) == Some(f32::from_bits(now))
    }),
];

fn kernel(c: &Contest, place: Place) -> String {
    let (unit, at) = match place {
        Place::Surface => ("ugm", "bti(0x0)[OFF]:a32"),
        Place::Flat => ("ugm", "flat[ADDR]:a64"),
        Place::Local => ("slm", "flat[OFF]:a32"),
    };
    let atomic = format!(
        "    lsc_atomic_{}.{unit} (M1, 16) OLD:d32 {at} {}\n",
        c.name, c.sources
    );
    let contested = if place == Place::Local {
        format!(
            "    mov (M1, 16) NOW(0,0)<1> {:#x}:ud\n    lsc_store.slm (M1, 16) {at} NOW:d32\n    \
             lsc_fence.slm.none.group\n    barrier\n{atomic}    lsc_fence.slm.none.group\n    barrier\n    \
             lsc_load.slm (M1, 16) NOW:d32 {at}\n    shl (M1, 16) OFF(0,0)<1> %r0(0,1)<0;1,0> 0x2:ud\n    \
             lsc_store.ugm (M1, 16) bti(0x2)[OFF]:a32 NOW:d32\n",
            c.initial
        )
    } else {
        atomic
    };
    format!(
        ".version 4.1\n.kernel \"contention\"\n.kernel_attr SimdSize=16\n.kernel_attr SLMSize=1\n\
         .decl IDS v_type=G type=uw num_elts=16 align=GRF\n.decl BASE v_type=G type=uq num_elts=1 align=qword\n\
         .decl G v_type=G type=ud num_elts=1 align=dword\n.decl GID v_type=G type=ud num_elts=16 align=GRF\n\
         .decl A v_type=G type=ud num_elts=16 align=GRF\n.decl AF v_type=G type=f num_elts=16 alias=<A, 0>\n\
         .decl B v_type=G type=ud num_elts=16 align=GRF\n.decl BF v_type=G type=f num_elts=16 alias=<B, 0>\n\
         .decl OLD v_type=G type=ud num_elts=16 align=GRF\n.decl OFF v_type=G type=ud num_elts=16 align=GRF\n\
         .decl NOW v_type=G type=ud num_elts=16 align=GRF\n.decl ADDR v_type=G type=uq num_elts=16 align=GRF\n\
         .input IDS offset=64 size=32\n.input BASE offset=256 size=8\n.function \"main\"\n    \
         shl (M1_NM, 1) G(0,0)<1> %r0(0,1)<0;1,0> 0x6:ud\n    \
         add (M1, 16) GID(0,0)<1> IDS(0,0)<1;1,0> G(0,0)<0;1,0>\n    \
         mov (M1, 16) OFF(0,0)<1> 0x0:ud\n    mov (M1, 16) ADDR(0,0)<1> BASE(0,0)<0;1,0>\n\
         {}{contested}    shl (M1, 16) OFF(0,0)<1> GID(0,0)<1;1,0> 0x2:ud\n    \
         lsc_store.ugm (M1, 16) bti(0x1)[OFF]:a32 OLD:d32\n    ret (M1, 1)\n",
        c.operands
    )
}

#[test]
fn atomics_under_contention() {
    let interpret = std::env::var_os("VISA_JIT_TEST_INTERP").map(|_| Default::default());
    let groups = if interpret.is_some() { 16 } else { 400 };
    let engine = Engine::with_options(EngineOptions {
        memory_bytes: 1 << 22,
        interpret,
        ..EngineOptions::default()
    })
    .unwrap();
    let items = groups * LOCAL;
    let word = engine.memory().alloc(4).unwrap();
    let olds = engine.memory().alloc(u64::from(4 * items)).unwrap();
    let locals = engine.memory().alloc(u64::from(4 * groups)).unwrap();
    for c in &CONTESTS {
        for place in [Place::Surface, Place::Flat, Place::Local] {
            let text = kernel(c, place);
            let program = engine
                .program_from_text("contention", &text, Platform::Pvc)
                .unwrap_or_else(|e| panic!("{}: {e}\n{text}", c.name));
            word.write(0, &c.initial.to_le_bytes()).unwrap();
            olds.fill(0xa5);
            let launch = Launch::new([items, 1, 1])
                .local([LOCAL, 1, 1])
                .threads(2)
                .surface(0, word.clone())
                .surface(1, olds.clone())
                .surface(2, locals.clone())
                .input("BASE", word.address().to_le_bytes().to_vec());
            program.kernels()[0]
                .launch(&launch)
                .unwrap_or_else(|e| panic!("{}: {e}", c.name));
            let seen = olds.to_vec_of::<u32>();
            let ids: Vec<u32> = (0..items).collect();
            if place == Place::Local {
                let now = locals.to_vec_of::<u32>();
                for (g, &now) in now.iter().enumerate() {
                    let own = g * LOCAL as usize..(g + 1) * LOCAL as usize;
                    let ok = (c.check)(&ids[own.clone()], &seen[own], now);
                    assert!(ok, "{} in local memory of group {g}: {now:#x}", c.name);
                }
            } else {
                let now = word.to_vec_of::<u32>()[0];
                assert!(
                    (c.check)(&ids, &seen, now),
                    "{} {place:?}: {now:#x}",
                    c.name
                );
            }
        }
    }
}
