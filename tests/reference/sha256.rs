//! SHA-256 (FIPS 180-4), for `sha256.cl`.

/// First 32 bits of the fractional parts of the roots of the first primes: computed, not copied.
fn constants(count: usize, root: u32) -> Vec<u32> {
    let prime = |n: &u128| {
        (2..*n)
            .take_while(|d| d * d <= *n)
            .all(|d| !n.is_multiple_of(d))
    };
    (2u128..)
        .filter(prime)
        .take(count)
        .map(|p| root_fraction(p, root))
        .collect()
}

/// Low 32 bits of `floor(n^(1/root) * 2^32)`, by bisection on whole numbers.
fn root_fraction(n: u128, root: u32) -> u32 {
    let target = n << (32 * root);
    let (mut low, mut high) = (0u128, 1u128 << 38);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if middle.pow(root) <= target {
            low = middle
        } else {
            high = middle
        }
    }
    low as u32
}

/// A message as big-endian words, padded to whole blocks of 16.
pub fn pad(message: &[u8]) -> Vec<u32> {
    let mut bytes = message.to_vec();
    bytes.push(0x80);
    while bytes.len() % 64 != 56 {
        bytes.push(0);
    }
    bytes.extend((message.len() as u64 * 8).to_be_bytes());
    bytes
        .chunks_exact(4)
        .map(|b| u32::from_be_bytes(b.try_into().unwrap()))
        .collect()
}

fn compress(state: [u32; 8], block: &[u32], k: &[u32]) -> [u32; 8] {
    let mut w = block.to_vec();
    for t in 16..64 {
        let (a, b) = (w[t - 15], w[t - 2]);
        let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
        let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
        w.push(
            w[t - 16]
                .wrapping_add(s0)
                .wrapping_add(w[t - 7])
                .wrapping_add(s1),
        );
    }
    let mut v = state;
    for t in 0..64 {
        let [a, b, c, d, e, f, g, h] = v;
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = [s1, choice, k[t], w[t]]
            .iter()
            .fold(h, |sum, x| sum.wrapping_add(*x));
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        v = [
            t1.wrapping_add(s0).wrapping_add(majority),
            a,
            b,
            c,
            d.wrapping_add(t1),
            e,
            f,
            g,
        ];
    }
    std::array::from_fn(|i| state[i].wrapping_add(v[i]))
}

/// `sha256`: eight words for each message of `blocks` padded blocks.
pub fn sha256(messages: &[u32], blocks: usize) -> Vec<u32> {
    let k = constants(64, 3);
    let start: [u32; 8] = constants(8, 2).try_into().unwrap();
    let hash = |m: &[u32]| {
        m.chunks_exact(16)
            .fold(start, |state, block| compress(state, block, &k))
    };
    messages.chunks_exact(blocks * 16).flat_map(hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(message: &[u8]) -> String {
        let words = pad(message);
        sha256(&words, words.len() / 16)
            .iter()
            .map(|w| format!("{w:08x}"))
            .collect()
    }

    #[test]
    fn known_digests() {
        assert_eq!(
            hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(
            hex(two_blocks),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }
}
