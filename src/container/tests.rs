//! Hand-built zebins and `.ze_info` texts: one test for each thing a reader must accept or refuse.

use object::write::{
    Object, Relocation as WriteRelocation, SectionId, Symbol as WriteSymbol, SymbolSection,
};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags,
    SymbolKind as ObjectSymbolKind, SymbolScope,
};

use super::*;
use crate::isa::Versions;

const VISA: &str = ".version 4.1\n.kernel \"kernel\"\n";
const FUNCTION: &str = ".version 4.1\n.global_function \"f\"\n";

/// Builds a zebin section by section. Its e_machine is that of x86-64, which the reader must tolerate.
struct Builder(Object<'static>);

impl Builder {
    fn new() -> Self {
        Self(Object::new(
            BinaryFormat::Elf,
            Architecture::X86_64,
            Endianness::Little,
        ))
    }

    fn raw(&mut self, name: &str, kind: SectionKind, bytes: &[u8]) -> SectionId {
        let section = self
            .0
            .add_section(Vec::new(), name.as_bytes().to_vec(), kind);
        if !bytes.is_empty() {
            self.0.append_section_data(section, bytes, 1);
        }
        section
    }

    fn section(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.raw(name, SectionKind::Metadata, bytes.as_ref());
        self
    }

    fn notes(self, notes: &[(u32, &[u8])]) -> Self {
        let mut bytes = Vec::new();
        for (kind, desc) in notes {
            for number in [8, u32::try_from(desc.len()).unwrap(), *kind] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(b"IntelGT\0");
            bytes.extend(*desc);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let mut this = self;
        this.raw(".note.intelgt.compat", SectionKind::Note, &bytes);
        this
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.write().unwrap()
    }

    fn parse(&self) -> Result<Zebin, ContainerError> {
        Zebin::parse(&self.bytes())
    }
}

/// `.ze_info` with these kernels, SIMD16 and one register of local ids a dimension.
fn ze_info(kernels: &[&str]) -> String {
    let mut yaml = "---\nversion: '1.20'\nkernels:\n".to_owned();
    for name in kernels {
        yaml += &format!(
            "  - name: {name}\n    execution_env:\n      grf_count: 128\n      simd_size: 16\n    \
             per_thread_payload_arguments:\n      - arg_type: local_id\n        offset: 0\n        size: 96\n"
        );
    }
    yaml + "...\n"
}

fn kernel_info(simd: u32, per_thread: &str, more: &str) -> KernelInfo {
    let yaml = format!(
        "kernels:\n  - name: k\n    execution_env:\n      simd_size: {simd}\n{more}{per_thread}    \
         payload_arguments:\n      - arg_type: arg_byvalue\n        offset: 40\n        size: 4\n        \
         arg_index: 0\n"
    );
    ZeInfo::parse(&yaml, Versions::Known)
        .unwrap()
        .kernels
        .remove(0)
}

fn local_ids(kind: &str, size: u32) -> String {
    format!("    per_thread_payload_arguments:\n      - arg_type: {kind}\n        size: {size}\n")
}

fn parse_error(yaml: &str) -> ContainerError {
    ZeInfo::parse(yaml, Versions::Known).unwrap_err()
}

// Pairing of texts with kernels.

#[test]
fn kernels_and_functions_pair_by_position() {
    let zebin = Builder::new()
        .section(".visaasm", VISA)
        .section(".visaasm.f", FUNCTION)
        .section(".visaasm", VISA)
        .section(".visaasm.f", FUNCTION)
        .section(".ze_info", ze_info(&["one", "two"]))
        .parse()
        .unwrap();
    let names: Vec<_> = zebin
        .kernels
        .iter()
        .map(|kernel| kernel.name.as_str())
        .collect();
    assert_eq!(names, ["one", "two"]);
    let owners: Vec<_> = zebin
        .functions
        .iter()
        .map(|function| function.owner)
        .collect();
    assert_eq!(owners, [Some(0), Some(1)]);
    let section = |function: &ZebinFunction| function.visa.section_index;
    assert_ne!(
        section(zebin.function(0, "f").unwrap()),
        section(zebin.function(1, "f").unwrap())
    );
    assert!(zebin.function(0, "g").is_none());
}

#[test]
fn address_taken_functions_are_seen_by_every_kernel() {
    let zebin = Builder::new()
        .section(".visaasm", VISA)
        .section(".visaasm", VISA)
        .section(".visaasm.f", FUNCTION)
        .section(
            ".ze_info",
            ze_info(&["one", "Intel_Symbol_Table_Void_Program"]),
        )
        .parse()
        .unwrap();
    assert_eq!(zebin.function(0, "f").unwrap().owner, Some(1));
    assert_eq!(zebin.launchable().count(), 1);
}

/// The compiler lists the holder of address-taken functions even when it left none of them over.
#[test]
fn an_empty_holder_of_functions_is_no_kernel() {
    let zebin = Builder::new()
        .section(".visaasm.one", VISA)
        .section(".visaasm.f", FUNCTION)
        .section(
            ".ze_info",
            ze_info(&["Intel_Symbol_Table_Void_Program", "one"]),
        )
        .parse()
        .unwrap();
    assert_eq!(zebin.kernels.len(), 1);
    assert_eq!(zebin.function(0, "f").unwrap().owner, Some(0));
    let missing = Builder::new()
        .section(".visaasm.one", VISA)
        .section(".ze_info", ze_info(&["one", "two"]))
        .parse();
    assert!(missing.unwrap_err().to_string().contains("`two`"));
}

#[test]
fn a_text_named_after_its_kernel_is_that_kernel() {
    let zebin = Builder::new()
        .section(".visaasm.two", VISA.replace("kernel\"", "second\""))
        .section(".visaasm", VISA)
        .section(".ze_info", ze_info(&["one", "two"]))
        .parse()
        .unwrap();
    assert!(zebin.kernel("two").unwrap().visa.text.contains("second"));
    assert!(zebin.functions.is_empty());
}

#[test]
fn counts_and_orders_must_agree() {
    let kernels = ze_info(&["one", "two"]);
    let cases = [
        Builder::new()
            .section(".visaasm", VISA)
            .section(".ze_info", &kernels),
        Builder::new()
            .section(".visaasm", VISA)
            .section(".visaasm", VISA)
            .section(".visaasm", VISA)
            .section(".ze_info", &kernels),
        Builder::new().section(".visaasm", VISA),
        Builder::new()
            .section(".text.two", "")
            .section(".text.one", "")
            .section(".visaasm", VISA)
            .section(".visaasm", VISA)
            .section(".ze_info", &kernels),
        Builder::new()
            .section(".ze_info", &kernels)
            .section(".ze_info", &kernels),
    ];
    for (case, builder) in cases.iter().enumerate() {
        let error = builder.parse().unwrap_err();
        assert!(
            matches!(error, ContainerError::Inconsistent(_)),
            "{case}: {error}"
        );
    }
}

#[test]
fn a_zebin_without_kernels_is_fine() {
    let zebin = Builder::new().section(".spv", "x").parse().unwrap();
    assert!(zebin.kernels.is_empty() && zebin.functions.is_empty());
}

#[test]
fn a_zebin_without_visa_says_how_to_get_it() {
    for builder in [
        Builder::new().section(".ze_info", ze_info(&["one"])),
        Builder::new()
            .section(".ze_info", ze_info(&["one"]))
            .section(".text.one", "code"),
    ] {
        let error = builder.parse().unwrap_err();
        assert_eq!(error, ContainerError::MissingVisa { kernels: 1 });
        assert!(error.to_string().contains("-ze-emit-zebin-visa-sections"));
    }
}

#[test]
fn text_must_be_utf8() {
    let error = Builder::new()
        .section(".visaasm", b".version 4.1\n\xff")
        .section(".ze_info", ze_info(&["one"]))
        .parse()
        .unwrap_err();
    assert!(matches!(error, ContainerError::NotText { .. }), "{error}");
}

// Data, symbols, relocations.

#[test]
fn data_symbols_and_relocations_are_read() {
    let mut builder = Builder::new()
        .section(".visaasm", VISA)
        .section(".ze_info", ze_info(&["one"]));
    let text = builder.raw(".text.one", SectionKind::Text, &[0; 16]);
    let global = builder.raw(".data.global", SectionKind::Data, &[1; 24]);
    let zeros = builder.raw(".bss.global", SectionKind::UninitializedData, &[]);
    builder.0.append_section_bss(zeros, 100, 8);
    let mut symbol = |name: &str, section, value, kind| {
        builder.0.add_symbol(WriteSymbol {
            name: name.as_bytes().to_vec(),
            value,
            size: 8,
            kind,
            scope: SymbolScope::Dynamic,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        })
    };
    let counter = symbol("counter", global, 8, ObjectSymbolKind::Data);
    symbol("one", text, 0, ObjectSymbolKind::Text);
    for (section, r_type, addend) in [(text, 2, 0), (text, 3, 0), (global, 1, 4)] {
        let flags = RelocationFlags::Elf {
            r_type: object::elf::RelocationType(r_type),
        };
        let relocation = WriteRelocation {
            offset: 8,
            symbol: counter,
            addend,
            flags,
        };
        builder.0.add_relocation(section, relocation).unwrap();
    }
    let zebin = builder.parse().unwrap();
    assert_eq!(zebin.data[0].kind, DataKind::Global);
    assert_eq!(zebin.data[0].bytes, [1; 24]);
    assert_eq!((zebin.data[1].bytes.len(), zebin.data[1].size), (0, 100));
    assert_eq!(zebin.variable("counter"), Some((0, 8)));
    assert_eq!(zebin.variable("one"), None);
    let seen: Vec<_> = zebin
        .relocations
        .iter()
        .map(|r| (r.place, r.kind, r.addend))
        .collect();
    assert!(seen.contains(&(
        RelocationPlace::Kernel(0),
        RelocationKind::AddressLow32,
        Some(0)
    )));
    assert!(seen.contains(&(
        RelocationPlace::Kernel(0),
        RelocationKind::AddressHigh32,
        Some(0)
    )));
    assert!(seen.contains(&(RelocationPlace::Data(0), RelocationKind::Address, Some(4))));
    for relocation in &zebin.relocations {
        let symbol = &zebin.symbols[relocation.symbol.unwrap()];
        assert_eq!(
            (symbol.name.as_str(), symbol.kind),
            ("counter", SymbolKind::Object)
        );
        assert_eq!(symbol.place, SymbolPlace::Data(0));
    }
}

#[test]
fn overlapping_sections_do_not_multiply_memory() {
    let mut builder = Builder::new();
    let count = 200;
    for _ in 0..count {
        builder = builder.section(".data.x", [0; 1]);
    }
    let mut bytes = builder.section(".filler", vec![0; 100_000]).bytes();
    // Every data section becomes the whole file.
    let length = bytes.len() as u64;
    let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    for index in 1..=count {
        let header = table + index * 64;
        bytes[header + 24..header + 32].fill(0);
        bytes[header + 32..header + 40].copy_from_slice(&length.to_le_bytes());
    }
    let error = Zebin::parse(&bytes).unwrap_err();
    assert_eq!(error.blame(), Blame::Limit, "{error}");
}

// Other files.

#[test]
fn other_files_are_named() {
    let mut class32 = Builder::new().bytes();
    class32[4] = 1;
    let mut big_endian = Builder::new().bytes();
    big_endian[5] = 2;
    let cases: [(&[u8], &str); 9] = [
        (b"", "empty"),
        (b"CTNI\0\0\0\0", "patch-token"),
        (b"!<arch>\n", "one `-device`"),
        (b"\x03\x02\x23\x07", "SPIR-V"),
        (b".version 4.1\n", "vISA text"),
        (b"CISA\x03\x06", ".isa"),
        (b"hello", "no ELF magic"),
        (&class32, "32-bit"),
        (&big_endian, "big-endian"),
    ];
    for (bytes, expected) in cases {
        let error = Zebin::parse(bytes).unwrap_err();
        assert!(matches!(error, ContainerError::NotZebin { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.blame(), Blame::Input);
    }
    assert!(matches!(
        Zebin::parse(b"\x7fELF"),
        Err(ContainerError::Malformed { offset: 4, .. })
    ));
}

// Devices.

fn device_of(notes: &[(u32, &[u8])]) -> Inference {
    let builder = Builder::new()
        .section(".visaasm", VISA)
        .section(".ze_info", ze_info(&["one"]))
        .notes(notes);
    infer_device(&builder.parse().unwrap())
}

#[test]
fn notes_name_the_device() {
    let product = |number: u32| device_of(&[(1, &number.to_le_bytes()), (2, &[0; 4])]).device;
    assert_eq!(product(18), Some(Device::Skl));
    assert_eq!(product(29), Some(Device::Tgllp));
    assert_eq!(product(33), Some(Device::Tgllp));
    assert_eq!(product(1270), Some(Device::Dg2));
    assert_eq!(product(1275), None);
    let core = |number: u32| device_of(&[(2, &number.to_le_bytes())]).device;
    assert_eq!(core(12), Some(Device::Skl));
    assert_eq!(core(18), Some(Device::Tgllp));
    assert_eq!(core(0xc07), Some(Device::Dg2));
    assert_eq!(core(0x2000), None);
    // The kernel is one of 32-byte registers.
    for (number, size) in [(0xc09_u32, 32), (0x1e00, 32)] {
        let inference = device_of(&[(2, &number.to_le_bytes())]);
        assert_eq!(inference.device, None);
        let clash = format!("laid out for {size}-byte registers");
        assert!(inference.reason.contains(&clash), "{}", inference.reason);
    }
}

#[test]
fn a_note_that_contradicts_the_kernels_is_not_believed() {
    let inference = device_of(&[(1, &1271_u32.to_le_bytes())]);
    assert_eq!(inference.device, None);
    assert!(
        inference.reason.contains("32-byte registers"),
        "{}",
        inference.reason
    );
}

#[test]
fn without_notes_the_device_is_not_guessed() {
    let inference = device_of(&[]);
    assert_eq!(inference.device, None);
    assert!(
        inference.reason.contains("skl and tgllp"),
        "{}",
        inference.reason
    );
}

#[test]
fn foreign_and_short_notes_are_skipped() {
    assert_eq!(device_of(&[(1, &[1, 2])]).device, None);
    assert_eq!(
        device_of(&[(9, b"later"), (1, &18_u32.to_le_bytes())]).device,
        Some(Device::Skl)
    );
    let builder = Builder::new().notes(&[(4, b"1.20\0"), (3, &0x0029_0900_u32.to_le_bytes())]);
    let target = builder.parse().unwrap().target;
    assert_eq!(target.zebin_version.as_deref(), Some("1.20"));
    assert_eq!(target.metadata, Some(0x0029_0900));
}

// .ze_info.

#[test]
fn unknown_keys_and_names_are_tolerated() {
    let yaml = "kernels:\n- name: k\n  execution_env:\n    simd_size: 8\n    new_flag: true\n  \
                new_list: [{a: 1}]\n  payload_arguments:\n  - arg_type: new_type\n    offset: 0\n    size: 4\n\
                new_top: {x: [1, 2]}\n";
    let info = ZeInfo::parse(yaml, Versions::Known).unwrap();
    assert_eq!(
        info.kernels[0].payload_arguments[0].arg_type,
        ArgType::Unknown("new_type".into())
    );
    assert_eq!(ArgType::from("new_type").to_string(), "new_type");
    assert_eq!(ArgType::from("arg_byvalue"), ArgType::ByValue);
}

#[test]
fn errors_carry_the_line() {
    let error = parse_error("kernels:\n- name: k\n  execution_env:\n    simd_size: many\n");
    let ContainerError::ZeInfo { line, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*line, 4, "{error}");
    assert!(error.to_string().starts_with(".ze_info line 4"), "{error}");
}

#[test]
fn yaml_that_the_compiler_never_writes_is_refused() {
    let nested = format!("kernels: {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let block: String = (0..5000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    let cases = [
        "kernels: &a []\nfunctions: *a\n",
        "a: &a {b: 1}\nc: {<<: *a}\n",
        "kernels: []\nkernels: []\n",
        "kernels: []\n---\nkernels: []\n",
        "kernels: 5\n",
        "kernels:\n- execution_env: {simd_size: 8}\n",
        "kernels:\n- name: k\n",
        "kernels:\n- name: k\n  execution_env: {simd_size: -8}\n",
        "]",
        &nested,
        &block,
    ];
    for yaml in cases {
        let error = parse_error(yaml);
        let start: String = yaml.chars().take(40).collect();
        assert!(
            matches!(error, ContainerError::ZeInfo { .. }),
            "{start}: {error}"
        );
    }
}

#[test]
fn kernels_must_make_sense() {
    let kernel = |name: &str, simd: u32, size: u32| {
        format!(
            "- name: '{name}'\n  execution_env: {{simd_size: {simd}}}\n  payload_arguments:\n  \
             - {{arg_type: arg_byvalue, offset: 4294967295, size: {size}}}\n"
        )
    };
    let file = |kernels: &[String]| format!("kernels:\n{}", kernels.concat());
    assert_eq!(
        parse_error(&file(&[kernel("k", 8, 4)])).blame(),
        Blame::Limit
    );
    let fine = "- name: k\n  execution_env: {simd_size: 8}\n".to_owned();
    for kernels in [
        file(&[fine.clone(), fine.clone()]),
        file(&[fine.replace("8", "7")]),
        file(&[fine.replace("name: k", "name: ''")]),
    ] {
        let error = parse_error(&kernels);
        assert!(
            matches!(error, ContainerError::KernelInfo { .. }),
            "{error}"
        );
    }
    assert_eq!(parse_error("version: '2.0'\n").blame(), Blame::Unsupported);
    let long = "# ".repeat(limits::MAX_ZE_INFO_BYTES);
    assert_eq!(parse_error(&long).blame(), Blame::Limit);
}

// Layouts.

#[test]
fn layouts_follow_the_documented_formula() {
    let cases = [
        (8, 96, Device::Skl, 32 + 96),
        (16, 96, Device::Tgllp, 32 + 96),
        (32, 192, Device::Dg2, 32 + 192),
        (16, 192, Device::Pvc, 64 + 192),
        (32, 192, Device::Pvc, 64 + 192),
        (32, 192, Device::Bmg, 64 + 192),
    ];
    for (simd, size, device, expected) in cases {
        let layout =
            PayloadLayout::new(&kernel_info(simd, &local_ids("local_id", size), ""), device)
                .unwrap();
        assert_eq!(layout.cross_thread_offset, expected, "SIMD{simd} {device}");
        assert_eq!(layout.grf_offset_of(40), Some(expected + 40));
        assert_eq!(
            layout.classify(expected + 40, 4),
            Some(PayloadSource::CrossThread { payload_offset: 40 })
        );
        assert!(matches!(
            layout.local_ids,
            LocalIds::PerDimension { dims: 3, .. }
        ));
    }
}

#[test]
fn without_local_ids_older_devices_keep_a_register_free() {
    for (device, expected) in [
        (Device::Skl, 64),
        (Device::Tgllp, 64),
        (Device::Dg2, 32),
        (Device::Pvc, 64),
    ] {
        let layout = PayloadLayout::new(&kernel_info(32, "", ""), device).unwrap();
        assert_eq!(layout.cross_thread_offset, expected, "{device}");
        assert_eq!(layout.classify(0, 4), Some(PayloadSource::R0 { offset: 0 }));
    }
    let layout = PayloadLayout::new(&kernel_info(32, "", ""), Device::Skl).unwrap();
    assert_eq!(layout.classify(32, 32), Some(PayloadSource::Unused));
}

#[test]
fn wide_kernels_have_two_registers_of_local_ids() {
    let layout = PayloadLayout::new(
        &kernel_info(32, &local_ids("local_id", 192), ""),
        Device::Skl,
    )
    .unwrap();
    let id = |dim, first_lane, lanes| {
        Some(PayloadSource::LocalId {
            dim,
            first_lane,
            lanes,
        })
    };
    assert_eq!(layout.classify(32, 32), id(0, 0, 16));
    assert_eq!(layout.classify(64, 32), id(0, 16, 16));
    assert_eq!(layout.classify(192, 32), id(2, 16, 16));
    assert_eq!(layout.classify(32, 64), id(0, 0, 32));
    assert_eq!(layout.classify(64, 64), None, "x and y are not one thing");
    assert_eq!(layout.classify(33, 2), None, "not on an id");
    assert_eq!(
        layout.classify(16, 32),
        None,
        "r0 and ids are not one thing"
    );
    let narrow =
        PayloadLayout::new(&kernel_info(8, &local_ids("local_id", 96), ""), Device::Skl).unwrap();
    assert_eq!(narrow.classify(64, 32), id(1, 0, 8));
    assert_eq!(narrow.classify(80, 16), None, "padding");
}

#[test]
fn packed_local_ids_are_words() {
    let layout = PayloadLayout::new(
        &kernel_info(1, &local_ids("packed_local_ids", 6), ""),
        Device::Dg2,
    )
    .unwrap();
    assert_eq!(layout.cross_thread_offset, 64);
    let packed = |first_dim, count| Some(PayloadSource::PackedLocalIds { first_dim, count });
    assert_eq!(layout.classify(32, 6), packed(0, 3));
    assert_eq!(layout.classify(34, 2), packed(1, 1));
    assert_eq!(layout.classify(33, 2), None);
}

#[test]
fn inline_data_splits_the_payload_where_registers_are_wider() {
    let inline = "      inline_data_payload_size: 32\n";
    let info = kernel_info(32, &local_ids("local_id", 192), inline);
    let layout = PayloadLayout::new(&info, Device::Pvc).unwrap();
    assert_eq!(layout.grf_offset_of(0), Some(256));
    assert_eq!(layout.grf_offset_of(31), Some(287));
    assert_eq!(layout.grf_offset_of(32), Some(320));
    assert_eq!(layout.grf_offset_of(40), Some(328));
    assert_eq!(
        layout.classify(328, 4),
        Some(PayloadSource::CrossThread { payload_offset: 40 })
    );
    assert_eq!(layout.classify(288, 4), None, "the gap");
    let layout = PayloadLayout::new(&info, Device::Dg2).unwrap();
    assert_eq!(layout.inline_gap, 0);
    assert_eq!(layout.grf_offset_of(40), Some(264));
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let cases = [
        kernel_info(16, &local_ids("local_id", 192), ""),
        kernel_info(16, &local_ids("local_id", 40), ""),
        kernel_info(16, &local_ids("local_id", 0), ""),
        kernel_info(16, &local_ids("packed_local_ids", 6), ""),
        kernel_info(16, &local_ids("something", 32), ""),
        kernel_info(16, "", "      inline_data_payload_size: 4294967295\n"),
    ];
    for info in cases {
        let error = PayloadLayout::new(&info, Device::Skl).unwrap_err();
        assert!(
            matches!(error, ContainerError::KernelInfo { .. }),
            "{error}"
        );
    }
}

#[test]
fn payload_arguments_that_overlap_are_refused() {
    let file = |second: u32| {
        let argument =
            |offset| format!("  - {{arg_type: arg_byvalue, offset: {offset}, size: 8}}\n");
        format!(
            "kernels:\n- name: k\n  execution_env: {{simd_size: 16}}\n  payload_arguments:\n{}{}",
            argument(40),
            argument(second)
        )
    };
    for apart in [32, 48] {
        assert!(ZeInfo::parse(&file(apart), Versions::Known).is_ok());
    }
    for within in [33, 40, 47] {
        let error = parse_error(&file(within)).to_string();
        assert!(error.contains("overlap"), "{error}");
    }
}

#[test]
fn payload_arguments_are_found_by_offset() {
    let info = kernel_info(16, "", "");
    assert_eq!(info.payload_argument_at(43).unwrap().arg_index, Some(0));
    assert!(info.payload_argument_at(44).is_none());
    assert_eq!(info.arg_count(), 1);
}
