//! The digest that closes a shared library: checked before the system's loader sees the file, as that loader trusts what it
//! maps and can crash on a damaged one.
//!
//! It stands after the ELF file's own bytes, where loaders and linkers do not look. Libraries that were linked from
//! object files have none; the records in them are still checked once they are loaded.

/// Last bytes of a file that has a digest.
const MAGIC: &[u8; 8] = b"VISAJITz";
/// Bytes of digest and magic.
const LENGTH: usize = 32 + MAGIC.len();

/// Appends the digest of all bytes so far, and the magic.
pub fn close(file: &mut Vec<u8>) {
    let digest = blake3::hash(file);
    file.extend_from_slice(digest.as_bytes());
    file.extend_from_slice(MAGIC);
}

/// False when the file ends in a digest that is not that of the bytes in front of it.
pub fn is_intact(file: &[u8]) -> bool {
    let Some((contents, closing)) = file.split_last_chunk::<LENGTH>() else {
        return true;
    };
    match closing.strip_suffix(MAGIC) {
        Some(digest) => blake3::hash(contents).as_bytes() == digest,
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_shows() {
        let mut file = b"contents".to_vec();
        assert!(is_intact(&file), "without a digest");
        close(&mut file);
        assert!(is_intact(&file));
        for at in 0..file.len() - MAGIC.len() {
            file[at] ^= 4;
            assert!(!is_intact(&file), "{at}");
            file[at] ^= 4;
        }
        assert!(is_intact(b""));
    }
}
