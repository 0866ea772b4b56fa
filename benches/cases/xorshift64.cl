// Sixty-four steps of a generator with 64 bits of state

kernel void rng(global const ulong *seeds, global ulong *out) {
    int g = get_global_id(0);
    ulong x = seeds[g] | 1, sum = 0;
    for (int i = 0; i < 64; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += x;
    }
    out[g] = sum;
}
