//! Validation against the opcode table: for every row, operands of wrong classes, of wrong types, and platforms
//! without the instruction are synthesised, and each must be refused with a position and a rule.
//!
//! Where one of the three does not exist for a row, `tests/valid/negatives.txt` says so and why; `BLESS=1`
//! rewrites it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use visa_jit::front::text::parse;
use visa_jit::isa::{
    Classes, Form, Opcode, OpcodeInfo, Platform, PredKind, Status, Type, TypeClass,
};
use visa_jit::module::{Body, Dst, Inst, Module, OperandMut, PredId, Src, SurfaceId};
use visa_jit::valid::{Target, validate};

mod sends;

/// Column of the instruction in [`program`].
const COLUMN: u32 = 5;

/// Types of variables.
const TYPES: [Type; 12] = [
    Type::Ud,
    Type::F,
    Type::D,
    Type::Uw,
    Type::W,
    Type::Ub,
    Type::B,
    Type::Uq,
    Type::Q,
    Type::Hf,
    Type::Df,
    Type::Bf,
];

fn variable(ty: Type, n: usize) -> String {
    format!("{}{n}", ty.name().to_uppercase())
}

/// A program with one instruction, and variables of every type and class. Of those of registers it has what the instruction names: most
/// tests read hundreds of programs.
fn program(line: &str) -> String {
    let mut decls = String::new();
    for ty in TYPES.into_iter().chain([Type::Bool]) {
        for n in 0..4 {
            let name = variable(ty, n);
            if line.contains(&name) {
                let _ = write!(
                    decls,
                    ".decl {name} v_type=G type={ty} num_elts=256 align=GRF"
                );
            }
            // The instruction is in the same line in all.
            decls.push('\n');
        }
    }
    decls += ".decl A0 v_type=A num_elts=16\n.decl P1 v_type=P num_elts=16\n.decl P2 v_type=P num_elts=16\n\
              .decl S0 v_type=S num_elts=1\n.decl T6 v_type=T num_elts=1\n";
    format!(
        ".version 4.1\n.kernel \"k\"\n{decls}.kernel_attr SimdSize=16\n.function \"main\"\n    {line}\nL1:\n    \
         ret (M1, 1)\n.function \"foo_1\"\n    ret (M1, 8)\n"
    )
}

/// Number of the instruction's line.
fn line_number() -> u32 {
    let before = program("@")
        .split('@')
        .next()
        .map_or(0, |s| s.matches('\n').count());
    before as u32 + 1
}

fn module(line: &str) -> Result<Module, String> {
    parse("test", &program(line)).map_err(|e| e.to_string())
}

/// The instruction under test; the subroutine's start is the first of the module.
const AT: usize = 1;

/// Refused with the instruction's position and a rule that names it: the messages.
fn refused(module: Module, platform: Platform) -> Option<Vec<String>> {
    let name = module.insts[AT].mnemonic();
    let errors = validate(module, Target { platform }).err()?.0;
    let here =
        |e: &&visa_jit::valid::ValidError| (e.pos.line, e.pos.col) == (line_number(), COLUMN);
    assert!(errors.iter().any(|e| here(&e)), "{errors:?}");
    let rule = format!("`{name}`: ");
    let rules: Vec<String> = errors
        .iter()
        .filter(here)
        .filter_map(|e| e.message.strip_prefix(&rule))
        .map(str::to_owned)
        .collect();
    assert!(!rules.is_empty(), "no rule of {name}: {errors:?}");
    Some(rules)
}

/// An instruction that its row allows.
struct Sample {
    line: String,
    platforms: Vec<Platform>,
}

/// Types that a row allows somewhere.
fn types(row: &OpcodeInfo) -> Option<(Option<Type>, Vec<Type>)> {
    let typed = !matches!(
        row.dst_types,
        TypeClass::Predicate | TypeClass::Address | TypeClass::None
    );
    let dsts: Vec<Option<Type>> = match typed {
        true => TYPES.into_iter().map(Some).collect(),
        false => vec![None],
    };
    let n = usize::from(row.sources);
    let fits = |class: TypeClass, t: &Type| class == TypeClass::Address || class.contains(*t);
    for dst in dsts {
        for first in TYPES {
            for rest in TYPES {
                for last in TYPES {
                    let mut srcs = vec![rest; n];
                    srcs[0] = first;
                    if n > 2 {
                        srcs[n - 1] = last;
                    }
                    let known: Vec<Option<Type>> = (0..n)
                        .map(|i| Some(srcs[i]).filter(|_| row.src_type(i) != TypeClass::Address))
                        .collect();
                    let all = srcs
                        .iter()
                        .enumerate()
                        .all(|(i, t)| fits(row.src_type(i), t));
                    if all && row.type_rule(dst, &known).is_none() {
                        return Some((dst, srcs));
                    }
                }
            }
        }
    }
    None
}

fn mnemonic(row: &OpcodeInfo) -> String {
    let name = row.mnemonics[0];
    match row.form {
        Form::Cmp => format!("{name}.lt"),
        Form::Bfn => format!("{name}.xd8"),
        _ => name.to_owned(),
    }
}

/// Text of an instruction that computes, after its row.
fn computed(row: &OpcodeInfo) -> String {
    let (dst, srcs) = types(row).unwrap_or_else(|| panic!("{}: no types", row.name));
    let mut operands = vec![match dst {
        Some(ty) => format!("{}(0,0)<1>", variable(ty, 0)),
        None if row.dst.predicate() => "P1".into(),
        None => "A0(0)<1>".into(),
    }];
    if row.form == Form::AluPair {
        operands.push(match row.dst.predicate() {
            true => "P2".into(),
            false => format!("{}(0,0)<1>", variable(dst.expect("typed"), 1)),
        });
    }
    for (i, ty) in srcs.into_iter().enumerate() {
        operands.push(match row.src(i).general() {
            true => format!("{}(0,0)<1;1,0>", variable(ty, i % 4)),
            false => format!("&{}", variable(ty, i)),
        });
    }
    let guard = match row.predicate {
        PredKind::Output | PredKind::Selector => "(P1) ",
        _ => "",
    };
    format!("{guard}{} (M1_NM, 8) {}", mnemonic(row), operands.join(" "))
}

fn op_of(line: &str) -> Opcode {
    module(line).unwrap_or_else(|e| panic!("{e}")).insts[AT].op
}

/// An instruction of each row that can be written down.
fn samples() -> BTreeMap<Opcode, Sample> {
    let messages = include_str!("messages.txt");
    let written: BTreeMap<Opcode, &str> = messages
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(|l| (op_of(l), l))
        .collect();
    let mut out = BTreeMap::new();
    for &op in Opcode::ALL {
        let row = op.info();
        let alu = matches!(row.form, Form::Alu | Form::AluPair | Form::Cmp | Form::Bfn);
        if row.status == Status::Rejected || row.form == Form::Label {
            continue;
        }
        let line = match written.get(&op) {
            Some(line) => (*line).to_owned(),
            None if alu => computed(row),
            None => panic!("{}: no instruction in tests/valid/messages.txt", row.name),
        };
        let platforms = Platform::ALL
            .into_iter()
            .filter(|p| row.platforms.contains(*p))
            // The execution size of matrices is that of a register.
            .filter(|p| row.form != Form::Dpas || p.grf_bytes() == 32)
            .collect();
        out.insert(op, Sample { line, platforms });
    }
    out
}

/// Sources that rows say the classes of.
fn sources(inst: &mut Inst) -> Vec<&mut Src> {
    let mut all = Vec::new();
    let sampler = matches!(inst.body, Body::Sample(_));
    inst.operands_mut(|operand| match operand {
        OperandMut::Src(s) | OperandMut::Scalar(s) if !sampler => all.push(s),
        _ => {}
    });
    all
}

fn destinations(inst: &mut Inst) -> Vec<&mut Dst> {
    let mut all = Vec::new();
    inst.operands_mut(|operand| match operand {
        OperandMut::Dst(d) | OperandMut::ScalarDst(d) => all.push(d),
        _ => {}
    });
    all
}

/// Operands of each class, for sources.
fn source_operands(general: &Src) -> Vec<(Classes, Src)> {
    vec![
        (Classes::GEN, general.clone()),
        (
            Classes::IMM,
            Src::Imm {
                bits: 1,
                ty: Type::Ud,
            },
        ),
        (Classes::PRED, Src::Pred(PredId(1))),
        (Classes::STATE, Src::Surface(SurfaceId(6), 0)),
        (
            Classes::ADDR,
            Src::Address {
                addr: visa_jit::module::AddrId(0),
                index: 0,
                width: 1,
            },
        ),
    ]
}

fn general_source() -> Src {
    match module("not (M1_NM, 8) UD0(0,0)<1> UD0(0,0)<1;1,0>").map(|m| m.insts[AT].body.clone()) {
        Ok(Body::Alu(a)) => a.srcs[0].clone(),
        other => panic!("{other:?}"),
    }
}

fn destination_operands(module: &Module) -> Vec<(Classes, Dst)> {
    let address = Dst::Address {
        addr: visa_jit::module::AddrId(0),
        index: 0,
        width: 1,
    };
    let mut out = vec![
        (Classes::PRED, Dst::Pred(PredId(1))),
        (Classes::STATE, Dst::Surface(SurfaceId(6), 0)),
        (Classes::ADDR, address),
    ];
    if let Body::Alu(a) = &module.insts[AT].body
        && let Dst::General { .. } = a.dst
    {
        out.push((Classes::GEN, a.dst.clone()));
    }
    out
}

/// What an opcode's sources and destinations may be, one entry an operand.
fn allowed(row: &OpcodeInfo, dst: bool, i: usize) -> Classes {
    let seed = row.form == Form::AluPair && row.dst.predicate();
    match (dst, seed, i) {
        (true, true, 0) => Classes::GEN,
        (true, true, _) => Classes::PRED,
        (true, false, _) => row.dst,
        (false, ..) => row.src(i),
    }
}

/// Decoded instructions with one operand of a class that the row does not allow; how many were refused.
fn wrong_classes(op: Opcode, sample: &Sample) -> usize {
    let row = op.info();
    let good = module(&sample.line).expect("parsed");
    let platform = sample.platforms[0];
    let mut count = 0;
    let mut try_one = |what: String, bad: Module, word: &str| {
        let rules = refused(bad, platform).unwrap_or_else(|| panic!("{}: {what}", row.name));
        let named = rules
            .iter()
            .any(|r| r.contains(word) && r.contains("allowed"));
        assert!(named, "{}: {what}: {rules:?}", row.name);
        count += 1;
    };
    let mut copy = good.clone();
    let n = sources(&mut copy.insts[AT]).len();
    for i in 0..n {
        for (class, operand) in source_operands(&general_source()) {
            if !allowed(row, false, i).has(class) {
                let mut bad = good.clone();
                *sources(&mut bad.insts[AT])[i] = operand;
                try_one(
                    format!("source {i}, {:?}", class.names()),
                    bad,
                    &format!("source {i} is"),
                );
            }
        }
    }
    let n = destinations(&mut copy.insts[AT]).len();
    for i in 0..n {
        for (class, operand) in destination_operands(&good) {
            if !allowed(row, true, i).has(class) {
                let mut bad = good.clone();
                *destinations(&mut bad.insts[AT])[i] = operand;
                try_one(
                    format!("destination, {:?}", class.names()),
                    bad,
                    "the destination is",
                );
            }
        }
    }
    count
}

/// Positions of the names of variables in a line.
fn names(line: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut start = None;
    for (i, c) in line.char_indices().chain([(line.len(), ' ')]) {
        let word = c.is_ascii_alphanumeric() || c == '_' || c == '%' || c == '"';
        match (word, start) {
            (true, None) => start = Some(i),
            (false, Some(s)) => {
                out.push((s, i));
                start = None;
            }
            _ => {}
        }
    }
    let variable = |w: &str| {
        let digits = w.trim_start_matches(|c: char| c.is_ascii_uppercase());
        digits.len() < w.len()
            && digits.len() == 1
            && digits.as_bytes()[0].is_ascii_digit()
            && !w.starts_with('M')
    };
    out.retain(|&(a, b)| variable(&line[a..b]) || &line[a..b] == "foo_1");
    out
}

/// Text with one name replaced by a variable of another class. Neither reading nor validating may let it pass.
fn wrong_names(op: Opcode, sample: &Sample) -> usize {
    let row = op.info();
    let mut count = 0;
    for (a, b) in names(&sample.line) {
        let other = match &sample.line[a..b] {
            name if name.starts_with('P') => "S0",
            _ if row.form == Form::Lifetime => "T6",
            _ => "P1",
        };
        // Predicates are data of these.
        if matches!(row.form, Form::Alu | Form::Cmp)
            && (row.dst.predicate() || row.src(0).predicate())
        {
            continue;
        }
        let line = format!("{}{other}{}", &sample.line[..a], &sample.line[b..]);
        match parse("test", &program(&line)) {
            Err(e) => {
                let here = e
                    .errors
                    .iter()
                    .any(|e| e.pos.line == line_number() && e.pos.col > 0);
                assert!(here, "{line}: {e}");
            }
            Ok(module) => {
                let rules = refused(module, sample.platforms[0]);
                assert!(rules.is_some(), "{line}");
            }
        }
        count += 1;
    }
    count
}

/// Operands whose variable is of a type that the row does not allow there; how many were refused.
fn wrong_types(op: Opcode, sample: &Sample) -> usize {
    let row = op.info();
    let mut count = 0;
    let typed: Vec<(usize, usize)> = names(&sample.line)
        .into_iter()
        .filter(|&(_, b)| sample.line[b..].starts_with("(0,0)<"))
        .collect();
    let has_dst = row.dst != Classes::NONE && row.dst_types != TypeClass::None;
    let computes = matches!(row.form, Form::Alu | Form::AluPair | Form::Cmp | Form::Bfn);
    for &(a, b) in &typed {
        for ty in TYPES.into_iter().chain([Type::Bool]) {
            let line = format!(
                "{}{}{}",
                &sample.line[..a],
                variable(ty, 3),
                &sample.line[b..]
            );
            let bad = module(&line).unwrap_or_else(|e| panic!("{e}"));
            let broken = {
                let mut copy = bad.clone();
                let inst = &mut copy.insts[AT];
                let ty_of = |v| bad.vars.ty(v);
                let srcs: Vec<Option<Type>> = sources(inst)
                    .iter()
                    .map(|s| match s {
                        Src::General { origin, .. } => ty_of(origin.var),
                        _ => None,
                    })
                    .collect();
                let dst = destinations(inst).iter().find_map(|d| match d {
                    Dst::General { origin, .. } => ty_of(origin.var),
                    _ => None,
                });
                let dst = dst.filter(|_| has_dst || computes);
                outside(row, dst, &srcs)
            };
            if !broken {
                continue;
            }
            let rules =
                refused(bad, sample.platforms[0]).unwrap_or_else(|| panic!("{line} passes"));
            let named = |r: &String| r.contains(&format!("type `{ty}`")) || r.contains(MIXED);
            assert!(rules.iter().any(named), "{line}: {rules:?}");
            count += 1;
        }
    }
    count
}

const MIXED: &str = "the operands are all integers or all floats";

/// Some operand is outside of its column's class, or an instruction of numbers has integers and floats.
fn outside(row: &OpcodeInfo, dst: Option<Type>, srcs: &[Option<Type>]) -> bool {
    let wrong = dst.is_some_and(|t| !row.dst_types.contains(t));
    let mut each = srcs.iter().enumerate();
    let mut numbers: Vec<Type> = srcs.iter().copied().flatten().collect();
    if row.dst_types == TypeClass::Numeric {
        numbers.extend(dst);
    }
    let floats = numbers.iter().filter(|t| t.is_float()).count();
    let mixed = row.src_type(0) == TypeClass::Numeric && floats > 0 && floats < numbers.len();
    wrong || mixed || each.any(|(i, t)| t.is_some_and(|t| !row.src_type(i).contains(t)))
}

/// Payloads in the order they are written in: where their names stand, `%null` with none.
fn payloads(line: &str) -> Vec<Option<(usize, usize)>> {
    let names = names(line);
    let mut out = Vec::new();
    let mut at = line.find(") ").map_or(line.len(), |i| i + 2);
    for word in line[at..].split(' ') {
        let name = names.iter().copied().find(|&(a, _)| a == at);
        let rest = name.map_or("", |(_, b)| &line[b..at + word.len()]);
        if word == "%null.0" || rest == ".0" || rest == "(0,0)" {
            out.push(name);
        }
        at += word.len() + 1;
    }
    out
}

/// Payloads whose variable is of a type that the row does not allow; how many were refused.
fn wrong_payloads(op: Opcode, sample: &Sample) -> usize {
    let row = op.info();
    let places = payloads(&sample.line);
    if !row.payloads.is_empty() {
        assert_eq!(places.len(), row.payloads.len(), "{}", sample.line);
    }
    let mut count = 0;
    for (i, (a, b)) in places
        .iter()
        .enumerate()
        .filter_map(|(i, p)| Some((i, (*p)?)))
    {
        for ty in TYPES.into_iter().filter(|t| !row.payload(i).contains(*t)) {
            let name = variable(ty, 3);
            let line = format!("{}{name}{}", &sample.line[..a], &sample.line[b..]);
            let bad = module(&line).unwrap_or_else(|e| panic!("{e}"));
            let rules =
                refused(bad, sample.platforms[0]).unwrap_or_else(|| panic!("{line} passes"));
            let rule = format!("payload {i} has type `{ty}`; allowed: ");
            assert!(rules.iter().any(|r| r.contains(&rule)), "{line}: {rules:?}");
            count += 1;
        }
    }
    count
}

/// As `GenX_IR` of IGC 1.0.12504 has it, on every platform.
#[test]
fn data_of_dword_atomics_has_the_operations_type() {
    for (op, operands, allowed) in [
        ("add", 1, "ud d"),
        ("sub", 1, "ud d"),
        ("inc", 0, "ud"),
        ("dec", 0, "ud"),
        ("min", 1, "ud"),
        ("max", 1, "ud"),
        ("xchg", 1, "ud"),
        ("cmpxchg", 2, "ud"),
        ("and", 1, "ud"),
        ("or", 1, "ud"),
        ("xor", 1, "ud"),
        ("minsint", 1, "d"),
        ("maxsint", 1, "d"),
        ("fmax", 1, "f"),
        ("fmin", 1, "f"),
        ("fcmpwr", 2, "f"),
        ("fadd", 1, "f"),
        ("fsub", 1, "f"),
        ("add.16", 1, "ud"),
        ("minsint.16", 1, "ud"),
        ("fmax.16", 1, "ud"),
    ] {
        let good = variable(parse_type(allowed.split(' ').next().unwrap()), 0);
        // Sources, then the destination.
        for k in 0..=operands {
            for ty in TYPES {
                let mut words = vec![format!("{good}.0"); operands];
                words.resize(2, "%null.0".into());
                words.push(format!("{good}.0"));
                words[if k == operands { 2 } else { k }] = format!("{}.0", variable(ty, 1));
                let line = format!("dword_atomic.{op} (M1, 8) T6 UD3.0 {}", words.join(" "));
                let module = module(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
                let legal = allowed.split(' ').any(|name| parse_type(name) == ty);
                let refused = refused(module, Platform::Skl);
                assert_eq!(refused.is_none(), legal, "{line}: {refused:?}");
            }
        }
    }
}

fn parse_type(name: &str) -> Type {
    TYPES.into_iter().find(|t| t.name() == name).unwrap()
}

/// Platforms without the instruction, or without it on some type; how many refused it.
fn wrong_platforms(op: Opcode, sample: &Sample) -> usize {
    let row = op.info();
    let mut count = 0;
    let mut lines = vec![sample.line.clone()];
    // Types of operands that not every platform has.
    for ty in TYPES {
        let mut line = sample.line.clone();
        for (a, b) in names(&sample.line).into_iter().rev() {
            if line[b..].starts_with("(0,0)<") {
                line.replace_range(a..b, &variable(ty, 3));
            }
        }
        lines.push(line);
    }
    for line in lines {
        let Ok(good) = module(&line) else { continue };
        let on = |platform| {
            let errors = validate(good.clone(), Target { platform });
            errors
                .map(drop)
                .map_err(|_| refused(good.clone(), platform).unwrap_or_default())
        };
        let some = Platform::ALL.into_iter().any(|p| on(p).is_ok());
        if !some && row.platforms != visa_jit::isa::Platforms::NONE {
            continue;
        }
        for platform in Platform::ALL {
            if row.platforms.contains(platform) && !sample.platforms.contains(&platform) {
                continue;
            }
            if let Err(rules) = on(platform) {
                let told = format!("does not exist on {platform}, only on ");
                assert!(rules.iter().any(|r| r.contains(&told)), "{line}: {rules:?}");
                count += 1;
            }
        }
    }
    count
}

/// Why a row has none of a kind.
fn reason(op: Opcode, kind: &str) -> &'static str {
    let row = op.info();
    match (kind, row.status, row.form) {
        (_, Status::Rejected, _) => "refused by name when read",
        (_, _, Form::Label) => "a label, not written as an instruction",
        ("platform", ..) => "legal on every platform, with every type",
        _ if row.platforms == visa_jit::isa::Platforms::NONE => "on no platform here",
        ("type", ..) if row.dst.raw() || row.src(0).raw() => "payloads of any type",
        ("type", ..) => "no typed operands",
        _ => "no operands",
    }
}

#[test]
fn every_row_has_its_negatives() {
    let samples = samples();
    let mut table = String::from(
        "# Instructions made wrong in one way and refused by validation, by row: operand class (decoded, and as text), operand\n\
         # type, platform. Written by tests/valid.rs with BLESS=1.\n",
    );
    let mut totals = [0; 4];
    let mut none: BTreeMap<String, usize> = BTreeMap::new();
    // A plain run has a third of the rows, and looks for their lines.
    let all = visa_test_common::full() || std::env::var_os("BLESS").is_some();
    for &op in Opcode::ALL.iter().step_by(if all { 1 } else { 3 }) {
        let row = op.info();
        let mut counts = [0; 4];
        if let Some(sample) = samples.get(&op) {
            for &platform in &sample.platforms {
                let good = module(&sample.line).unwrap_or_else(|e| panic!("{e}"));
                let checked = validate(good, Target { platform });
                let limited = row.limited.iter().any(|(_, set)| !set.contains(platform));
                assert!(
                    checked.is_ok() || limited,
                    "{}: {:?}",
                    sample.line,
                    checked.err()
                );
            }
            if !sample.platforms.is_empty() {
                counts[0] = wrong_classes(op, sample);
                counts[1] = wrong_names(op, sample);
                counts[2] = wrong_types(op, sample) + wrong_payloads(op, sample);
            }
            counts[3] = wrong_platforms(op, sample);
        }
        let mut why = |kind: &str, n: usize| match n {
            0 => {
                let reason = reason(op, kind);
                *none.entry(format!("{kind}: {reason}")).or_default() += 1;
                format!("{kind} none ({reason})")
            }
            n => format!("{kind} {n}"),
        };
        let _ = writeln!(
            table,
            "{}: {}, {}, {}",
            row.name,
            why("class", counts[0] + counts[1]),
            why("type", counts[2]),
            why("platform", counts[3])
        );
        for (t, c) in totals.iter_mut().zip(counts) {
            *t += c;
        }
    }
    let path = "tests/valid/negatives.txt";
    if !all {
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let expected = std::fs::read_to_string(path).expect("the list");
        for row in rows {
            let found = expected.lines().any(|line| line == row);
            assert!(
                found,
                "{path} has another line for {row}; BLESS=1 accepts it"
            );
        }
        return;
    }
    let [decoded, text, types, platforms] = totals;
    let _ = writeln!(
        table,
        "\n{} rows: {decoded} decoded operands and {text} written ones of wrong classes, {types} of wrong types, {platforms} wrong platforms.",
        Opcode::ALL.len()
    );
    for (why, n) in none {
        let _ = writeln!(table, "{n} rows without {why}.");
    }
    bless_or_compare(path, &table);
}

fn bless_or_compare(path: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, actual).expect("writable");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        actual,
        expected,
        "{} differs; BLESS=1 accepts it",
        path.display()
    );
}
