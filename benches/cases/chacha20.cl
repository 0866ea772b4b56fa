// The stream cipher ChaCha20

#define QUARTER(a, b, c, d)        \
    a += b; d = rotate(d ^ a, 16u); \
    c += d; b = rotate(b ^ c, 12u); \
    a += b; d = rotate(d ^ a, 8u);  \
    c += d; b = rotate(b ^ c, 7u);

kernel void encrypt(constant uint *key, uint counter, constant uint *nonce, global const uint *in, global uint *out) {
    uint state[16], x[16];
    state[0] = 0x61707865;
    state[1] = 0x3320646e;
    state[2] = 0x79622d32;
    state[3] = 0x6b206574;
    for (int i = 0; i < 8; i++)
        state[4 + i] = key[i];
    state[12] = counter + get_global_id(0);
    for (int i = 0; i < 3; i++)
        state[13 + i] = nonce[i];
    for (int i = 0; i < 16; i++)
        x[i] = state[i];
    for (int round = 0; round < 10; round++) {
        QUARTER(x[0], x[4], x[8], x[12])
        QUARTER(x[1], x[5], x[9], x[13])
        QUARTER(x[2], x[6], x[10], x[14])
        QUARTER(x[3], x[7], x[11], x[15])
        QUARTER(x[0], x[5], x[10], x[15])
        QUARTER(x[1], x[6], x[11], x[12])
        QUARTER(x[2], x[7], x[8], x[13])
        QUARTER(x[3], x[4], x[9], x[14])
    }
    for (int i = 0; i < 16; i++)
        out[get_global_id(0) * 16 + i] = in[get_global_id(0) * 16 + i] ^ (x[i] + state[i]);
}
