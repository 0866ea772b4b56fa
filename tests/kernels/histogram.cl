// Counting with atomics: directly in global memory, and per group in local memory.

#define BINS 256

kernel void histogram_global(global uint *bins, global const uchar *in, uint n) {
    uint i = get_global_id(0);
    if (i < n)
        atomic_inc(&bins[in[i]]);
}

kernel void histogram_local_array(global uint *bins, global const uchar *in, uint n) {
    local uint tile[BINS];
    for (uint b = get_local_id(0); b < BINS; b += get_local_size(0))
        tile[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&tile[in[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint b = get_local_id(0); b < BINS; b += get_local_size(0))
        atomic_add(&bins[b], tile[b]);
}

// Values at or above `count` are not counted.
kernel void histogram_local_pointer(global uint *bins, global const uchar *in, uint n,
                                    local uint *tile, uint count) {
    for (uint b = get_local_id(0); b < count; b += get_local_size(0))
        tile[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        uint v = in[i];
        if (v < count)
            atomic_add(&tile[v], 1u);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint b = get_local_id(0); b < count; b += get_local_size(0))
        if (tile[b])
            atomic_add(&bins[b], tile[b]);
}

// Two local pointer arguments and a local array in one kernel: tests the layout of local memory.
kernel void histogram_local_mixed(global uint *bins, global uint *sums, global const uchar *in, uint n,
                                  local uint *low, local uint *high) {
    local uint total;
    uint lid = get_local_id(0);
    for (uint b = lid; b < BINS / 2; b += get_local_size(0)) {
        low[b] = 0;
        high[b] = 0;
    }
    if (lid == 0)
        total = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        uint v = in[i];
        local uint *half_bins = v < BINS / 2 ? low : high;
        atomic_inc(&half_bins[v % (BINS / 2)]);
        atomic_add(&total, v);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint b = lid; b < BINS / 2; b += get_local_size(0)) {
        atomic_add(&bins[b], low[b]);
        atomic_add(&bins[b + BINS / 2], high[b]);
    }
    if (lid == 0)
        sums[get_group_id(0)] = total;
}
