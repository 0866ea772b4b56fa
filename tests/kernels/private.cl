// Private arrays with run-time indices: small ones live in registers behind an address register,
// large ones in scratch memory.

kernel void private_small(global int *out, global const int *in, global const int *index) {
    int i = get_global_id(0);
    int table[8];
    for (int k = 0; k < 8; ++k)
        table[k] = in[i] * (k + 1) + k;
    int sum = 0;
    for (int k = 0; k < 4; ++k) {
        int at = (index[i] >> (3 * k)) & 7;
        sum = sum * 5 + table[at];
        table[at] = sum;
    }
    out[i] = sum;
}

// Insertion sort of 32 values an item.
kernel void private_sort(global int *data) {
    int i = get_global_id(0);
    int v[32];
#pragma unroll 1
    for (int k = 0; k < 32; ++k)
        v[k] = data[i * 32 + k];
#pragma unroll 1
    for (int k = 1; k < 32; ++k) {
        int x = v[k], j = k;
        while (j > 0 && v[j - 1] > x) {
            v[j] = v[j - 1];
            --j;
        }
        v[j] = x;
    }
#pragma unroll 1
    for (int k = 0; k < 32; ++k)
        data[i * 32 + k] = v[k];
}

// 1 KiB an item: too much for registers.
kernel void private_large(global uint *out, global const uint *in, uint n) {
    uint i = get_global_id(0);
    uint table[256];
#pragma unroll 1
    for (uint k = 0; k < 256; ++k)
        table[k] = k ^ i;
#pragma unroll 1
    for (uint k = 0; k < n; ++k) {
        uint a = in[(i + k) % n] & 255, b = in[(i * 7 + k) % n] & 255;
        uint t = table[a];
        table[a] = table[b] + 1;
        table[b] = t;
    }
    uint sum = 0;
#pragma unroll 1
    for (uint k = 0; k < 256; ++k)
        sum = sum * 31 + table[k];
    out[i] = sum;
}

// Bytes and 16-bit words.
kernel void private_bytes(global uchar *out, global const uchar *in) {
    uint i = get_global_id(0);
    uchar seen[64];
    ushort where[64];
#pragma unroll 1
    for (uint k = 0; k < 64; ++k) {
        seen[k] = 0;
        where[k] = 0xffff;
    }
#pragma unroll 1
    for (uint k = 0; k < 64; ++k) {
        uchar v = in[(i * 64 + k)] & 63;
        seen[v]++;
        if (where[v] == 0xffff)
            where[v] = k;
    }
#pragma unroll 1
    for (uint k = 0; k < 64; ++k)
        out[i * 64 + k] = seen[k] * 3 + (uchar)where[k];
}

// A constant table of the program, indexed by data.
constant ushort primes[32] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29,  31,  37,  41,  43,  47,  53,
                              59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131};

kernel void constant_table(global uint *out, global const uint *in) {
    uint i = get_global_id(0);
    out[i] = primes[in[i] & 31] * primes[(in[i] >> 5) & 31];
}

// A generic pointer that is private, local or global depending on the lane.
kernel void generic_pointer(global int *out, global int *in, local int *tile) {
    int i = get_global_id(0), lid = get_local_id(0);
    int own[4] = {i, i * 3, i * 5, i * 7};
    tile[lid] = in[i] + 1000;
    barrier(CLK_LOCAL_MEM_FENCE);
    int *p;
    switch (i % 3) {
    case 0: p = &own[in[i] & 3]; break;
    case 1: p = &tile[lid]; break;
    default: p = &in[i]; break;
    }
    *p += 1;
    out[i] = *p * 2;
}
