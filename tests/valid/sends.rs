//! Hardware messages become the instructions of which the vendor's assembler makes them (`sends.txt`).

use visa_jit::front::text::parse;
use visa_jit::isa::Platform;
use visa_jit::module::{Body, Inst, SurfaceId, VarId};
use visa_jit::valid::{Target, ValidKernel, validate};

/// In front of instructions that messages are which the vendor's assembler makes for something else, or never.
const DOCUMENTED: &str = "documented: ";

const TABLE: &str = include_str!("sends.txt");

/// Declarations, what makes the headers, and one line.
fn kernel(line: &str) -> String {
    let mut text = String::from(
        ".version 4.1\n.kernel \"k\"\n.kernel_attr SimdSize=32\n.decl P1 v_type=P num_elts=32\n\
         .decl T6 v_type=T num_elts=1\n",
    );
    for (name, ty, elements) in [
        ("H", "ud", 16),
        ("S", "d", 16),
        ("W", "ud", 16),
        ("O", "ud", 64),
        ("A", "uq", 64),
        ("B", "ud", 256),
        ("P", "ud", 256),
        ("D", "d", 64),
        ("D2", "d", 64),
        ("F", "f", 64),
        ("F2", "f", 64),
        ("ALL", "ud", 256),
        ("G", "ud", 16),
        ("G2", "ud", 16),
        ("G3", "ud", 16),
        ("G4", "ud", 16),
        ("G5", "ud", 16),
        ("Z", "ud", 16),
        ("M", "ud", 64),
    ] {
        text += &format!(".decl {name} v_type=G type={ty} num_elts={elements} align=GRF\n");
    }
    text += ".decl H64 v_type=G type=uq num_elts=8 align=GRF alias=<H, 0>\n\
             .decl W64 v_type=G type=uq num_elts=8 align=GRF alias=<W, 0>\n\
             .decl R0B v_type=G type=ub num_elts=32 align=GRF alias=<%r0, 0>\n\
             .decl G3B v_type=G type=ub num_elts=32 align=GRF alias=<G3, 0>\n\
             .decl G4B v_type=G type=ub num_elts=32 align=GRF alias=<G4, 0>\n\
             .decl G5B v_type=G type=ub num_elts=32 align=GRF alias=<G5, 0>\n\
             .function \"main\"\n    movs (M1_NM, 1) T6(0) 0x3:ud\n    \
             mov (M1_NM, 1) S(0,2)<1> 0x7000f:ud\n    mov (M1_NM, 1) W(0,7)<1> 0x70f:ud\n    \
             mov (M1_NM, 8) Z(0,0)<1> 0x0:ud\n    \
             mov (M1_NM, 8) M(0,0)<1> 0x0:ud\n    mov (M1_NM, 1) M(0,7)<1> 0xffff:ud\n    \
             and (M1_NM, 8) G(0,0)<1> %r0(0,2)<0;1,0> 0x8f000000:ud\n    \
             and (M1_NM, 8) G2(0,0)<1> %r0(0,2)<0;1,0> 0x7f000000:ud\n    \
             mov (M1_NM, 1) G3(0,2)<1> 0x0:ud\n    \
             mov (M1_NM, 2) G3B(0,10)<1> R0B(0,11)<0;1,0>\n    \
             mov (M1_NM, 1) G4(0,2)<1> 0x1:ud\n    \
             mov (M1_NM, 2) G4B(0,10)<1> R0B(0,11)<0;1,0>\n    \
             mov (M1_NM, 1) G5(0,2)<1> 0x0:ud\n    \
             mov (M1_NM, 2) G5B(0,10)<1> R0B(0,11)<1;1,0>\n";
    text += &format!("    {line}\n    ret (M1, 1)\n");
    text
}

fn valid(line: &str, platform: Platform) -> ValidKernel {
    let module = parse("test", &kernel(line)).unwrap_or_else(|e| panic!("{line}\n{e}"));
    validate(module, Target { platform }).unwrap_or_else(|e| panic!("{line} on {platform}\n{e}"))
}

/// The instruction of the line.
fn inst(k: &ValidKernel) -> &Inst {
    k.module().insts.iter().rev().nth(1).expect("a line")
}

/// A number after some text, and where it ends.
fn number(text: &str, behind: &str) -> Option<(u32, usize)> {
    let at = text.find(behind)? + behind.len();
    let digits = text[at..].find(|c: char| !c.is_ascii_digit())?;
    Some((text[at..at + digits].parse().ok()?, at + digits))
}

/// Operands as text, with places in registers instead of variables.
fn operands(k: &ValidKernel) -> String {
    let inst = inst(k);
    let place = |var: u32, byte: u32| {
        let p = k.root_offset(VarId(var));
        format!("@{}+{}", p.root.0, p.offset + byte)
    };
    let mut text = format!(
        "{:?} {:?} {:?} {:?}",
        inst.op, inst.pred, inst.exec, inst.body
    );
    let variable = format!("{:?}", SurfaceId(SurfaceId::FIRST_USER));
    text = text.replace(&variable, &format!("{:?}", SurfaceId::entry(3)));
    while let Some(at) = text.find("Raw { var: VarId(") {
        let (var, _) = number(&text[at..], "VarId(").expect("a variable");
        let (offset, end) = number(&text[at..], "offset: ").expect("an offset");
        text.replace_range(at..at + end + 2, &place(var, offset));
    }
    while let Some(at) = text.find("Origin { var: VarId(") {
        let (var, _) = number(&text[at..], "VarId(").expect("a variable");
        let (row, _) = number(&text[at..], "row: ").expect("a row");
        let (col, end) = number(&text[at..], "col: ").expect("a column");
        let ty = k.module().vars.ty(VarId(var)).expect("a type");
        let byte = row * k.target().grf() + col * ty.bytes();
        let element = format!("{}:{ty}", place(var, byte));
        text.replace_range(at..at + end + 2, &element);
    }
    text
}

#[test]
fn messages_are_instructions() {
    let mut platforms = Vec::new();
    let mut counted = [0; 2];
    let mut wrong = String::new();
    let mut lines = TABLE
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(names) = line.strip_prefix("== ") {
            let all = Platform::ALL.into_iter();
            platforms = all
                .filter(|p| {
                    names
                        .split(' ')
                        .any(|n| n == format!("{p:?}").to_lowercase())
                })
                .collect();
            continue;
        }
        let message = lines.next().expect("a message");
        for &platform in &platforms {
            let sent = valid(message, platform);
            if let Some(why) = line.strip_prefix("refused: ") {
                let refusal = match &inst(&sent).body {
                    Body::RawSend(r) => r.refusal(),
                    _ => "it is decoded".into(),
                };
                if !refusal.ends_with(&format!(": {why}")) {
                    wrong += &format!("{message}\n{why}\non {platform}: {refusal}\n");
                }
                counted[1] += 1;
                continue;
            }
            let row = valid(line.strip_prefix(DOCUMENTED).unwrap_or(line), platform);
            let (is, wanted) = (operands(&sent), operands(&row));
            if is != wanted {
                wrong += &format!("{message}\n{line}\non {platform}:\n{is}\n{wanted}\n");
            }
            assert!(inst(&sent).mnemonic().starts_with("raw_send"), "{message}");
            counted[0] += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    println!(
        "{} messages are instructions, {} are refused",
        counted[0], counted[1]
    );
    assert!(counted[0] > 300 && counted[1] > 40, "{counted:?}");
}

/// A block of rows whose header is made by some lines, each in a program of its own: whether its size is known.
#[test]
fn sizes_of_blocks_are_known_numbers() {
    let size = "mov (M1_NM, 1) H(0,2)<1> 0x7000f:ud";
    let other = "mov (M1_NM, 1) H(0,2)<1> 0x3000f:ud";
    let copy = "mov (M1_NM, 8) H(0,0)<1> %r0(0,0)<1;1,0>";
    let cases: [(&[&str], bool); 16] = [
        (&[copy, size, "mov (M1_NM, 2) H(0,0)<1> 0x1:ud"], true),
        (&[size, "L1:"], true),
        (&[size, "L1:", size], true),
        (&["L1:", other, size], true),
        (
            &[
                size,
                "mov (M1_NM, 8) O(0,0)<1> 0x0:ud",
                "oword_ld (2) T6 0x0:ud B.0",
            ],
            true,
        ),
        (&[], false),
        (&[size, copy], false),
        (&[size, "L1:", other, "L2:"], false),
        (&["mov (M1, 1) H(0,2)<1> 0x7000f:ud"], false),
        (&["(P1) mov (M1_NM, 1) H(0,2)<1> 0x7000f:ud"], false),
        (&[size, "mov (M1_NM, 4) H(0,1)<1> 0x3000f:ud"], true),
        (&[size, "mov (M1_NM, 4) H(0,1)<2> 0x3000f:ud"], false),
        // The lower half of it.
        (&[size, "mov (M1_NM, 2) B8(0,2)<1> 0x3:uw"], false),
        (&[size, "oword_ld (2) T6 0x0:ud H.0"], false),
        (&["mov (M1_NM, 1) O(0,2)<1> 0x7000f:ud"], false),
        (
            &[
                size,
                "addr_add (M1_NM, 1) A0(0)<1> &H 0x8:uw",
                "mov (M1_NM, 1) r[A0(0),0]<1>:ud 0x1:ud",
            ],
            false,
        ),
    ];
    for (lines, known) in cases {
        let text = format!(
            "{}\n    raw_send (M1_NM, 8) 0xc 1 4 0x02490003:ud H.0 B.0",
            lines.join("\n    ")
        );
        let text = kernel(&text)
            .replace("    L", "L")
            .replace(".decl T6", ".decl A0 v_type=A num_elts=1\n.decl T6")
            .replace(
                ".function",
                ".decl B8 v_type=G type=uw num_elts=16 alias=<H, 2>\n.function",
            );
        let module = parse("test", &text).unwrap_or_else(|e| panic!("{text}\n{e}"));
        let platform = Platform::Skl;
        let k = validate(module, Target { platform }).unwrap_or_else(|e| panic!("{text}\n{e}"));
        let is = matches!(inst(&k).body, Body::Mem(_));
        assert_eq!(is, known, "{lines:?}");
    }
}

/// The vendor's assembler makes each message of the table of its instruction: the descriptors are equal but for lengths, which
/// differ with the size of registers.
#[test]
#[ignore = "needs the vendor's assembler, GenX_IR"]
fn the_vendors_assembler_agrees() {
    const LENGTHS: u32 = 0x1FF << 20;
    // The assembler of pvc does not end on some of them.
    let names = [("skl", "SKL"), ("tgllp", "TGLLP"), ("dg2", "DG2")];
    let dir = std::env::temp_dir().join(format!("visa-sends-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let (mut platforms, mut compared, mut wrong) = (String::new(), 0, String::new());
    let mut lines = TABLE
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(all) = line.strip_prefix("== ") {
            platforms = all.into();
            continue;
        }
        let message = lines.next().expect("a message");
        let descriptor = message
            .split(' ')
            .rev()
            .find_map(|w| hex(w.strip_suffix(":ud")?));
        for (name, device) in names {
            if line.starts_with("refused")
                || line.starts_with(DOCUMENTED)
                || !platforms.split(' ').any(|p| p == name)
            {
                continue;
            }
            let asm = assembled(&dir, line, device);
            let found = asm.split([' ', ':']).filter_map(hex);
            let same = |d: u32| Some(d & !LENGTHS) == descriptor.map(|d| d & !LENGTHS);
            if !found.clone().any(same) {
                let found: Vec<_> = found.map(|d| format!("{d:#x}")).collect();
                wrong += &format!("{line} on {name}: {message}, but {found:?}\n");
            }
            compared += 1;
        }
    }
    // A plane is the surface that many entries of the binding table further.
    let plane = "media_ld.nomod (16,8) T6 2 S(0,0)<0;1,0> S(0,1)<0;1,0> B.0";
    let plane = assembled(&dir, plane, "SKL");
    assert!(plane.contains("0x02490005"), "{plane}");
    let _ = std::fs::remove_dir_all(&dir);
    assert!(
        wrong.is_empty() && compared > 250,
        "{compared} compared\n{wrong}"
    );
}

fn hex(word: &str) -> Option<u32> {
    u32::from_str_radix(word.trim().strip_prefix("0x")?, 16).ok()
}

/// What the vendor's assembler makes of an instruction.
fn assembled(dir: &std::path::Path, line: &str, device: &str) -> String {
    let mut text = String::new();
    let mut offset = 64;
    let before = kernel(line);
    for l in before
        .lines()
        .filter(|l| !l.contains(" mov ") && !l.contains("    and "))
    {
        // The tool of this version reads a base in dwords.
        let l = l.replace("0x0:uq", "0x0:ud");
        if l.starts_with(".function") {
            for d in before
                .lines()
                .filter(|l| l.contains("v_type=G") && !l.contains("alias"))
            {
                let mut words = d.split_whitespace();
                let name = words.nth(1).expect("a name");
                let field = |f: &str| d.split(f).nth(1).and_then(|v| v.split(' ').next());
                let bytes = if field("type=G type=") == Some("uq") {
                    8
                } else {
                    4
                };
                let n: u32 = field("num_elts=")
                    .and_then(|n| n.parse().ok())
                    .expect("elements");
                let used = line.split(|c: char| !c.is_ascii_alphanumeric());
                if used.clone().any(|w| w == name || w == format!("{name}64")) {
                    text += &format!(".input {name} offset={offset} size={}\n", n * bytes);
                    offset += n * bytes;
                }
            }
        }
        text += &l;
        text += "\n";
    }
    let text = text.replace("SimdSize=32", "SimdSize=16");
    std::fs::write(dir.join("k.visaasm"), text).expect("a file");
    let _ = std::fs::remove_file(dir.join("k.asm"));
    let run = std::process::Command::new("GenX_IR")
        .args(["k.visaasm", "-platform", device, "-output", "-noschedule"])
        .current_dir(dir)
        .output();
    assert!(run.is_ok(), "GenX_IR: {run:?}");
    std::fs::read_to_string(dir.join("k.asm")).unwrap_or_default()
}
