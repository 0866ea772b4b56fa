//! Older versions, devices, and what the format has no place for.

use super::writer::write_version;
use super::*;
use crate::front::text::{parse, print};
use crate::module::Module;

/// What differs between versions: inputs, names, split messages, sampler messages.
const SOURCE: &str = ".version 4.1\n.kernel \"k\"\n\
    .decl V0032 v_type=G type=d num_elts=64 align=GRF\n.decl V0033 v_type=G type=d num_elts=300\n\
    .decl A0 v_type=A num_elts=1\n.decl S0 v_type=S num_elts=1 v_name=S0\n.decl T6 v_type=T num_elts=1 v_name=T6\n\
    .input V0032 offset=32 size=32\n.kernel_attr Target=\"cs\"\n.kernel_attr SimdSize=16\n.kernel_attr Extern\n\
    .function \"main\"\n    \
    raw_sends.10.1.1.2 (M1, 16) 0x4c:ud 0x210:ud V0032.0 V0032.32 V0032.64\n    \
    sample_3d.pixel_null_mask.RG (M1, 16) 0x0:ud S0 T6 V0032.0 V0032.0\n    \
    resinfo.RGB (M1, 16) T6 V0032.0 V0032.64\n    \
    ret (M1, 1)\n";

fn module(lines: &str) -> Module {
    let source = SOURCE.replace("    ret", &format!("    {lines}\n    ret"));
    parse("k", &source).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_version_comes_back() {
    let mut module = module("yield");
    for version in [(3, 4), (3, 5), (3, 6), (3, 7), (4, 0), (4, 1)] {
        module.version = (version.0.into(), version.1.into());
        if version <= (3, 5) {
            // Those have no place for the shared function.
            module.insts[1].body = parse("k", &SOURCE.replace("raw_sends.10", "raw_sends.0"))
                .unwrap()
                .insts[1]
                .body
                .clone();
        }
        let bytes = write_version(std::slice::from_ref(&module), None, version).unwrap();
        let back = read(&bytes, None).unwrap_or_else(|e| panic!("{version:?}: {e}"));
        assert_eq!(back, std::slice::from_ref(&module), "{version:?}");
        module = self::module("yield");
    }
}

#[test]
fn addresses_may_depend_on_the_device() {
    let near = module("addr_add (M1_NM, 1) A0(0)<1> &V0033[64] 0x0:uw");
    let far = module("addr_add (M1_NM, 1) A0(0)<1> &V0033[1088] 0x0:uw");
    let inside = module("addr_add (M1_NM, 1) A0(0)<1> &V0033[33] 0x0:uw");
    let one = std::slice::from_ref::<Module>;
    // Near ones have room in a column.
    let bytes = write(one(&near), None).unwrap();
    assert_eq!(read(&bytes, None).unwrap(), one(&near));
    let fault = |module| write(one(module), None).unwrap_err().fault;
    assert_eq!(fault(&far), Fault::Device);
    assert_eq!(fault(&inside), Fault::Unwritable);
    for platform in Platform::ALL {
        for module in [&near, &far] {
            let bytes = write(one(module), Some(platform)).unwrap();
            let back = read(&bytes, Some(platform)).unwrap();
            assert_eq!(back, one(module), "{platform}");
            assert_eq!(read(&bytes, None).unwrap_err().fault, Fault::Device);
        }
    }
}

#[test]
fn what_has_no_place_is_named() {
    for (line, why) in [
        (
            "mov (M1, 1) V0033(0,256)<1> 0x0:d",
            "kernel `k`, instruction 4, line 16: `mov` cannot be written as binary vISA: a column is 256, which is more \
             than the format holds",
        ),
        (
            "oword_st (1) T6 0x0:ud V0033.65536",
            "kernel `k`, instruction 4, line 16: `oword_st` cannot be written as binary vISA: the byte offset of a payload \
             is 65536, which is more than the format holds",
        ),
        (
            "lsc_load.ugm.cc.ca (M1, 16) V0032:d32 flat[V0033]:a32",
            "kernel `k`, instruction 4, line 16: `lsc_load` cannot be written as binary vISA: a cache control of code 7, \
             which only text has",
        ),
    ] {
        let error = write(&[module(line)], None).unwrap_err();
        assert_eq!(error.fault, Fault::Unwritable);
        assert_eq!(error.to_string(), why);
    }
}

/// Names that text cannot have, or that two variables have, are given others.
#[test]
fn names_are_made_to_fit() {
    let mut module = module("yield");
    module.vars.general[0].name = "two words".into();
    module.vars.general[1].name = "add".into();
    module.vars.address[0].name = "V0032".into();
    module.labels[0].name = "a \"quoted\"\nname".into();
    let bytes = write(&[module], None).unwrap();
    let back = read(&bytes, None).unwrap().remove(0);
    let names: Vec<&str> = back.vars.general.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["V0032", "V0033"]);
    assert_eq!(back.vars.address[0].name, "A0000");
    assert_eq!(parse("printed", &print(&back)).unwrap(), back);
}

#[test]
fn several_modules_are_one_text() {
    let (kernel, mut other) = (module("yield"), module("barrier"));
    other.name = "other".into();
    let bytes = write(&[kernel.clone(), other.clone()], None).unwrap();
    let text = to_text(&bytes, None, Versions::Known).unwrap();
    let back = crate::front::text::parse_all("both", &text, Versions::Known).unwrap();
    assert_eq!(back, [kernel, other]);
}
