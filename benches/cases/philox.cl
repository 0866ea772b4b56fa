// A counter-based generator, ten rounds of 32-bit products

kernel void philox(global uint4 *out, uint key) {
    uint g = get_global_id(0), k0 = key, k1 = ~key;
    uint4 c = (uint4)(g, 0, 7, 11);
    for (int i = 0; i < 10; i++) {
        uint h0 = mul_hi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
        uint h1 = mul_hi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = (uint4)(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[g] = c;
}
