// SHA-256 (FIPS 180-4): one message a work-item. Messages are padded by the host and given
// as big-endian words; all have the same number of 64-byte blocks.

constant uint round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint rotate_right(uint x, uint n) { return rotate(x, 32u - n); }

void compress(uint state[8], uint w[16]) {
    uint a = state[0], b = state[1], c = state[2], d = state[3];
    uint e = state[4], f = state[5], g = state[6], h = state[7];
#pragma unroll 1
    for (uint t = 0; t < 64; t += 16) {
#pragma unroll
        for (uint i = 0; i < 16; ++i) {
            uint s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
            uint t1 = h + s1 + bitselect(g, f, e) + round_constants[t + i] + w[i];
            uint s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
            uint t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + t1;
            d = c, c = b, b = a, a = t1 + t2;
            uint w1 = w[(i + 1) & 15], w14 = w[(i + 14) & 15];
            w[i] += (rotate_right(w1, 7) ^ rotate_right(w1, 18) ^ (w1 >> 3)) + w[(i + 9) & 15]
                  + (rotate_right(w14, 17) ^ rotate_right(w14, 19) ^ (w14 >> 10));
        }
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

kernel void sha256(global uint *digests, global const uint *messages, uint blocks) {
    uint i = get_global_id(0);
    uint state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    global const uint *next = messages + (size_t)i * blocks * 16;
    for (uint b = 0; b < blocks; ++b, next += 16) {
        uint w[16];
        for (uint k = 0; k < 16; ++k)
            w[k] = next[k];
        compress(state, w);
    }
    for (uint k = 0; k < 8; ++k)
        digests[i * 8 + k] = state[k];
}
