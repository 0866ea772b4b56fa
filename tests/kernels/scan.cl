// Prefix sums of each work-group's slice.

// Hillis-Steele, inclusive; any group size.
kernel void scan_inclusive(global int *out, global const int *in, local int *tile) {
    uint lid = get_local_id(0), size = get_local_size(0);
    tile[lid] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < size; step <<= 1) {
        int add = lid >= step ? tile[lid - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        tile[lid] += add;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = tile[lid];
}

// Blelloch, exclusive; the group size is a power of two.
kernel void scan_exclusive(global uint *out, global const uint *in, local uint *tile) {
    uint lid = get_local_id(0), size = get_local_size(0);
    tile[lid] = in[get_global_id(0)];
    uint step = 1;
    for (uint active = size >> 1; active > 0; active >>= 1, step <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < active) {
            uint left = step * (2 * lid + 1) - 1, right = left + step;
            tile[right] += tile[left];
        }
    }
    if (lid == 0)
        tile[size - 1] = 0;
    for (uint active = 1; active < size; active <<= 1) {
        step >>= 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < active) {
            uint left = step * (2 * lid + 1) - 1, right = left + step;
            uint t = tile[left];
            tile[left] = tile[right];
            tile[right] += t;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = tile[lid];
}

// The built-ins of OpenCL C 2.0.
kernel void scan_builtin(global int *inclusive, global int *exclusive, global int *total,
                         global int *largest, global const int *in) {
    size_t i = get_global_id(0);
    int v = in[i];
    inclusive[i] = work_group_scan_inclusive_add(v);
    exclusive[i] = work_group_scan_exclusive_add(v);
    total[i] = work_group_reduce_add(v);
    largest[i] = work_group_reduce_max(v);
}

kernel void vote_builtin(global int *any, global int *all, global int *first, global const int *in) {
    size_t i = get_global_id(0);
    int v = in[i];
    any[i] = work_group_any(v > 0) != 0;
    all[i] = work_group_all(v > 0) != 0;
    first[i] = work_group_broadcast(v, get_local_size(0) - 1);
}
