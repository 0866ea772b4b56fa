//! `--check race` where reads of some buffers are not recorded, as the launch does not write them: what compiled code then reports is what the
//! interpreter does, which records all reads.

use super::{engine, program_of};
use visa_jit::backend::{Check, Checks};
use visa_jit::isa::Platform;
use visa_jit::{Engine, FaultRecord, Launch, Program, Report};
use visa_runtime::{Buffer, FaultKind};
use visa_test_common::full;

const WORDS: u32 = 512;

/// What work-item 0 of the second group writes to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum To {
    /// Its own word.
    Own,
    /// A word that a work-item of the first group has read.
    Read,
    /// A word that one of its own group will read.
    Later,
    /// Nothing at all.
    Nothing,
}

/// An engine with the kernel `scatter`: `out[permutation[i]] = values[i]`.
struct On {
    engine: Engine,
    program: Program,
}

/// Buffers of a launch.
struct Buffers {
    out: Buffer,
    values: Buffer,
    permutation: Buffer,
}

impl On {
    fn new(checks: impl Into<Checks>, device: &str, interpret: bool) -> On {
        let engine = engine(checks, interpret);
        let program = program_of(&engine, &format!("../kernels/bin/{device}/gather"));
        On { engine, program }
    }

    fn buffers(&self, to: To) -> Buffers {
        let memory = self.engine.memory();
        let numbers = |from: u32| {
            let numbers = (from..from + WORDS).flat_map(u32::to_le_bytes);
            memory.alloc_from(&numbers.collect::<Vec<u8>>()).unwrap()
        };
        let (out, values) = (numbers(1), numbers(1000));
        let first = values.address().checked_sub(out.address()).unwrap() as u32 / 4;
        let place = |i: u32| match (i, to) {
            (256, To::Read) => first + 3,
            (256, To::Later) => first + 500,
            (256, To::Nothing) => u32::MAX,
            _ => WORDS - 1 - i,
        };
        let permutation: Vec<u8> = (0..WORDS).flat_map(|i| place(i).to_le_bytes()).collect();
        let permutation = memory.alloc_from(&permutation).unwrap();
        Buffers {
            out,
            values,
            permutation,
        }
    }

    fn run(&self, buffers: &Buffers) -> (Report, [Vec<u8>; 2]) {
        let launch = Launch::new([WORDS, 1, 1]).local([256, 1, 1]);
        let launch = launch
            .arg(0, &buffers.out)
            .arg(1, &buffers.values)
            .arg(2, &buffers.permutation);
        let report = self.program.kernel("scatter").unwrap().launch(&launch);
        let left = [&buffers.out, &buffers.values].map(Buffer::to_vec);
        (report.unwrap(), left)
    }
}

/// What was found, but for addresses, which are others on each engine.
fn texts(report: &Report) -> Vec<String> {
    let text = |f: &FaultRecord| {
        let text = f.to_string();
        let words = text.split(' ').filter(|word| !word.starts_with("0x"));
        words.collect::<Vec<_>>().join(" ")
    };
    report.faults.iter().map(text).collect()
}

fn races(report: &Report) -> usize {
    let races = report.faults.iter().filter(|f| f.kind == FaultKind::Race);
    races.count()
}

/// The interpreter carried a launch of compiled code out.
fn was_repeated(report: &Report) -> bool {
    let note = report.note.as_deref();
    note.is_some_and(|note| note.contains("outside of the buffer that its pointer points into"))
}

#[test]
fn writes_that_leave_their_buffer_are_told_apart_as_if_all_reads_were_recorded() {
    let all = [
        ("bmg-26", Check::Race),
        ("pvc", Check::Race),
        ("bmg-26", Check::All),
    ];
    for (device, checks) in all.into_iter().take(if full() { 3 } else { 1 }) {
        let [interpreted, compiled] =
            [true, false].map(|interpret| On::new(checks, device, interpret));
        let plain = On::new(Check::None, device, false);
        let kinds = [To::Own, To::Read, To::Later, To::Nothing];
        for to in kinds {
            // Another kernel handle, as one that did so once is not tried again.
            let compiled_again = On::new(checks, device, false);
            let (wanted, memory) = interpreted.run(&interpreted.buffers(to));
            let (found, same) = compiled_again.run(&compiled_again.buffers(to));
            let (_, without) = plain.run(&plain.buffers(to));
            let what = format!("{device} {} {to:?}", Checks::from(checks).name());
            assert_eq!(memory, same, "{what}");
            assert_eq!(memory, without, "{what}");
            assert_eq!(texts(&wanted), texts(&found), "{what}");
            assert_eq!(wanted.fault_count, found.fault_count, "{what}");
            let expected = usize::from(matches!(to, To::Read | To::Later));
            assert_eq!(races(&found), expected, "{what}: {:?}", texts(&found));
            assert_eq!(was_repeated(&found), to != To::Own, "{what}");
        }
        // Once is enough: from then on all reads are recorded.
        for (to, repeated) in [
            (To::Own, false),
            (To::Read, true),
            (To::Later, false),
            (To::Own, false),
        ] {
            let (wanted, _) = interpreted.run(&interpreted.buffers(to));
            let (found, _) = compiled.run(&compiled.buffers(to));
            assert_eq!(texts(&wanted), texts(&found), "{device} {to:?}");
            assert_eq!(was_repeated(&found), repeated, "{device} {to:?}");
        }
    }
}

/// Two arguments that are one buffer, or parts of one: it is written, and its reads are recorded.
#[test]
fn buffers_that_another_argument_writes_are_recorded() {
    let [wanted, found] = [true, false].map(|interpret| {
        let on = On::new(Check::Race, "pvc", interpret);
        let buffers = on.buffers(To::Own);
        let same = Buffers {
            values: buffers.out.clone(),
            ..buffers
        };
        let part = Buffers {
            values: same.out.clone(),
            out: same.out.part(1024, 1024).unwrap(),
            permutation: same.permutation.clone(),
        };
        [same, part].map(|buffers| on.run(&buffers).0)
    });
    for (wanted, found) in wanted.iter().zip(&found) {
        assert!(races(found) > 0);
        assert_eq!(texts(wanted), texts(found));
        assert_eq!(wanted.fault_count, found.fault_count);
    }
    assert!(!was_repeated(&found[0]));
}

/// Each thread reads sixteen words of `A`. The first one adds to as many words at `O`, the second one stores sums at `O + D`.
const TEXT: &str = r#".version 4.1
.kernel "tagged"
.kernel_attr SimdSize=16
.decl A v_type=G type=uq num_elts=1 align=qword
.decl O v_type=G type=uq num_elts=1 align=qword
.decl D v_type=G type=q num_elts=1 align=qword
.decl E v_type=G type=q num_elts=1 align=qword
.decl N v_type=G type=d num_elts=1 align=dword
.decl I v_type=G type=ud num_elts=16 align=wordx32
.decl X v_type=G type=ud num_elts=16 align=wordx32
.decl Y v_type=G type=ud num_elts=16 align=wordx32
.decl Q v_type=G type=uq num_elts=16 align=wordx32
.decl W v_type=G type=uq num_elts=16 align=wordx32
.input A offset=64 size=8
.input O offset=72 size=8
.input D offset=80 size=8
.function "main"
    mov (M1_NM, 8) I(0,0)<1> 0x76543210:uv
    add (M1_NM, 8) I(0,8)<1> I(0,0)<1;1,0> 0x8:ud
    mov (M1_NM, 1) N(0,0)<1> %r0(0,1)<0;1,0>
    add (M1_NM, 1) N(0,0)<1> (-)N(0,0)<0;1,0> 0x0:d
    mov (M1_NM, 1) E(0,0)<1> N(0,0)<0;1,0>
    and (M1_NM, 1) E(0,0)<1> E(0,0)<0;1,0> D(0,0)<0;1,0>
    shl (M1, 16) X(0,0)<1> I(0,0)<1;1,0> 0x2:ud
    mov (M1, 16) W(0,0)<1> X(0,0)<1;1,0>
    add (M1, 16) Q(0,0)<1> W(0,0)<1;1,0> A(0,0)<0;1,0>
    lsc_load.ugm (M1, 16) X:d32 flat[Q]:a64
    add (M1, 16) Q(0,0)<1> W(0,0)<1;1,0> O(0,0)<0;1,0>
    lsc_load.ugm (M1, 16) Y:d32 flat[Q]:a64
    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> Y(0,0)<1;1,0>
    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> I(0,0)<1;1,0>
    add (M1, 16) Q(0,0)<1> Q(0,0)<1;1,0> E(0,0)<0;1,0>
    lsc_store.ugm (M1, 16) flat[Q]:a64 X:d32
    ret (M1, 1)
"#;

/// Bits 63:48 of an address do not count. Where a pointer is into no buffer, writes may go anywhere, with such bits too.
#[test]
fn pointers_with_tags() {
    // A tag of the pointer, whether it is into a buffer, whether a write strays into the one that is read, and whether there is a race.
    for (tag, known, strays, expected) in [
        (0, true, true, true),
        (1 << 62, true, true, true),
        (1 << 63, true, true, true),
        (1 << 63, true, false, true),
        (1 << 63, false, false, false),
        (u64::MAX << 48, false, true, true),
    ] {
        let [wanted, found] = [true, false].map(|interpret| {
            let on = On::new(Check::Race, "pvc", interpret);
            let memory = on.engine.memory();
            let [a, o] = [1, 2].map(|byte| memory.alloc_from(&[byte; 64]).unwrap());
            let program = on.engine.program_from_text("tagged", TEXT, Platform::Pvc);
            // Far beyond all memory, from where a distance leads back.
            let o_address = o.address() + if known { 0 } else { 1 << 46 };
            let distance = match strays {
                true => a.address().wrapping_sub(o_address),
                false => 0,
            };
            let launch = Launch::new([32, 1, 1]).local([16, 1, 1]);
            let launch = launch
                .input("A", a.address().to_le_bytes().to_vec())
                .input("O", (o_address | tag).to_le_bytes().to_vec())
                .input("D", distance.to_le_bytes().to_vec())
                .surface(0, a.clone())
                .surface(1, o.clone());
            let report = program.unwrap().kernel("tagged").unwrap().launch(&launch);
            (report.unwrap(), [a.to_vec(), o.to_vec()])
        });
        let what = format!("{tag:#x} {known} {strays}");
        assert_eq!(texts(&wanted.0), texts(&found.0), "{what}");
        assert_eq!(wanted.1, found.1, "{what}");
        assert_eq!(
            races(&found.0) > 0,
            expected,
            "{what}: {:?}",
            texts(&found.0)
        );
        assert_eq!(was_repeated(&found.0), known && strays, "{what}");
    }
}
