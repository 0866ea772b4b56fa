// Indirect loads and stores: the address comes from another buffer.

kernel void gather(global float *out, global const float *table, global const uint *index) {
    int i = get_global_id(0);
    out[i] = table[index[i]];
}

kernel void scatter(global uint *out, global const uint *values, global const uint *permutation) {
    int i = get_global_id(0);
    out[permutation[i]] = values[i];
}

kernel void gather4(global float4 *out, global const float4 *table, global const uint *index) {
    int i = get_global_id(0);
    out[i] = table[index[i]];
}

kernel void gather_narrow(global uchar *out8, global ushort *out16,
                          global const uchar *table8, global const ushort *table16,
                          global const uint *index) {
    int i = get_global_id(0);
    uint k = index[i];
    out8[i] = table8[k];
    out16[i] = table16[k];
}

kernel void gather_wide(global ulong *out, global const ulong *table, global const uint *index) {
    int i = get_global_id(0);
    out[i] = table[index[i]];
}

// Follow a linked list for a bounded number of steps.
kernel void chase(global uint *out, global const uint *next, uint steps) {
    uint i = get_global_id(0);
    uint at = i;
    for (uint s = 0; s < steps; ++s)
        at = next[at];
    out[i] = at;
}

// Work-items with an odd index stay masked off.
kernel void gather_odd_masked(global float *out, global const float *table,
                              global const uint *index) {
    int i = get_global_id(0);
    if ((i & 1) == 0)
        out[i] = table[index[i]];
}
