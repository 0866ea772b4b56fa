//! `--check race` where reads of some buffers are not recorded, as the launch does not write them: what compiled code then reports is what the
//! interpreter does, which records all reads.

use super::strategy;
use visa_jit::backend::{Check, Checks};
use visa_jit::{Engine, EngineOptions, FaultRecord, Launch, Program, Report};
use visa_runtime::{Buffer, FaultKind};

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
        let options = EngineOptions {
            interpret: interpret.then(Default::default),
            strategy: strategy(),
            memory_bytes: 1 << 30,
            ..EngineOptions::default()
        };
        let engine = Engine::with_options(options.check(checks.into())).unwrap();
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let file = std::fs::read(format!("{root}/tests/kernels/bin/{device}/gather.zebin"));
        let program = engine.program_from_zebin(&file.unwrap(), None).unwrap();
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
    for (device, checks) in [
        ("pvc", Check::Race),
        ("bmg-26", Check::All),
        ("bmg-26", Check::Race),
    ] {
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
