//! Version numbers, and names with versions.

/// A version as OpenCL packs it: 10 bits major, 10 minor, 12 patch.
pub const fn version(major: u32, minor: u32, patch: u32) -> u32 {
    major << 22 | minor << 12 | patch
}

/// Bytes of `cl_name_version`: the version, and a name of at most 63 bytes in 64.
pub fn name_version(version: u32, name: &str) -> Vec<u8> {
    let mut bytes = version.to_ne_bytes().to_vec();
    bytes.extend(name.bytes().take(63));
    bytes.resize(68, 0);
    bytes
}
