//! Files that hold several images, as compilers and linkers of SYCL programs lay them out.

/// An `ar` archive, which `ocloc` makes for several devices.
pub fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let (name, size) = (format!("{name}/"), data.len());
        out.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).bytes());
        out.extend_from_slice(data);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    out
}

/// An offload binary of LLVM's offloading driver, as `llvm/Object/OffloadBinary.h` lays it out: one image, and pairs of text such as
/// `("arch", "pvc")` that describe it.
pub fn offload(described: &[(&str, &str)], image: &[u8]) -> Vec<u8> {
    let (entry, pairs) = (32_u64, 32 + 40_u64);
    let mut at = pairs + 16 * described.len() as u64;
    let (mut table, mut text) = (Vec::new(), Vec::new());
    for word in described.iter().flat_map(|(key, value)| [key, value]) {
        table.extend(at.to_le_bytes());
        text.extend(word.bytes().chain([0]));
        at += word.len() as u64 + 1;
    }
    let mut out = b"\x10\xff\x10\xad\x01\0\0\0".to_vec();
    for number in [at + image.len() as u64, entry, 40] {
        out.extend(number.to_le_bytes());
    }
    // Kinds of image and offloading, and flags.
    out.extend([0; 8]);
    for number in [pairs, described.len() as u64, at, image.len() as u64] {
        out.extend(number.to_le_bytes());
    }
    out.extend(table);
    out.extend(text);
    out.extend_from_slice(image);
    out
}

/// An ELF file with nothing but sections, as programs and libraries have them among others.
pub fn host(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut contents, mut names, mut table) = (Vec::new(), vec![0], vec![0; 64]);
    let mut header = |names: &[u8], kind: u32, offset: usize, size: usize| {
        table.extend((names.len() as u32).to_le_bytes());
        table.extend(kind.to_le_bytes());
        for number in [0, 0, offset as u64, size as u64, 0, 16, 0] {
            // The link and the information are a number of eight bytes here.
            table.extend(number.to_le_bytes());
        }
    };
    for (name, data) in sections {
        header(&names, 1, 64 + contents.len(), data.len());
        names.extend(name.bytes().chain([0]));
        contents.extend_from_slice(data);
    }
    let list = [&names[..], b".shstrtab\0"].concat();
    header(&names, 3, 64 + contents.len(), list.len());
    contents.extend(list);
    let start = 64 + contents.len() as u64;
    let count = sections.len() as u16 + 2;
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    for number in [0, 0, start] {
        out.extend(number.to_le_bytes());
    }
    out.extend(0_u32.to_le_bytes());
    for number in [64, 56, 0, 64, count, count - 1] {
        out.extend(number.to_le_bytes());
    }
    out.extend(contents);
    out.extend(table);
    out
}

/// A SPIR-V module with kernels of these names, and an entry point that is no kernel.
pub fn spirv(kernels: &[&str]) -> Vec<u8> {
    let mut words = vec![0x0723_0203_u32, 0x0001_0000, 0, 16, 0];
    let mut entry = |model: u32, name: &str| {
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        text.resize(text.len().next_multiple_of(4), 0);
        let count = 3 + text.len() as u32 / 4;
        words.extend([count << 16 | 15, model, 7]);
        let (text, _) = text.as_chunks::<4>();
        words.extend(text.iter().map(|word| u32::from_le_bytes(*word)));
    };
    entry(4, "shader");
    kernels.iter().for_each(|name| entry(6, name));
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
