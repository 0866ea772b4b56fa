// Places in space become 64-bit Morton codes; neighbours, the way back, and reversed bits

ulong spread(uint v) {
    ulong x = v & 0x1fffff;
    x = (x | x << 32) & 0x001f00000000fffful;
    x = (x | x << 16) & 0x001f0000ff0000fful;
    x = (x | x << 8) & 0x100f00f00f00f00ful;
    x = (x | x << 4) & 0x10c30c30c30c30c3ul;
    return (x | x << 2) & 0x1249249249249249ul;
}

uint gather(ulong x) {
    x &= 0x1249249249249249ul;
    x = (x | x >> 2) & 0x10c30c30c30c30c3ul;
    x = (x | x >> 4) & 0x100f00f00f00f00ful;
    x = (x | x >> 8) & 0x001f0000ff0000fful;
    x = (x | x >> 16) & 0x001f00000000fffful;
    return (x | x >> 32) & 0x1fffff;
}

ulong reverse(ulong x) {
    x = (x >> 1 & 0x5555555555555555ul) | (x & 0x5555555555555555ul) << 1;
    x = (x >> 2 & 0x3333333333333333ul) | (x & 0x3333333333333333ul) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0ful) | (x & 0x0f0f0f0f0f0f0f0ful) << 4;
    return as_ulong(as_uchar8(x).s76543210);
}

kernel void codes(global const uint *x, global const uint *y, global const uint *z, global ulong *out, global uint *ranks) {
    size_t g = get_global_id(0);
    ulong mask = 0x1249249249249249ul;
    ulong code = spread(x[g]) | spread(y[g]) << 1 | spread(z[g]) << 2;
    // One more in y, one less in z, without decoding.
    ulong up = (((code | ~(mask << 1)) + 1) & mask << 1) | (code & ~(mask << 1));
    ulong next = (((up & mask << 2) - 1) & mask << 2) | (up & ~(mask << 2));
    out[g] = reverse(next) ^ code;
    ranks[g] = gather(next) + 3 * gather(next >> 1) + 5 * gather(next >> 2);
}
