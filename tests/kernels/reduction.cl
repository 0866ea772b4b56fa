// Work-group reductions through local memory and barriers.
// `tile` holds one element per work-item; the group size is a power of two.

kernel void reduce_sum(global float *partial, global const float *in, local float *tile) {
    uint lid = get_local_id(0);
    tile[lid] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (lid < half_size)
            tile[lid] += tile[lid + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid == 0)
        partial[get_group_id(0)] = tile[0];
}

#define GROUP 64

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
kernel void reduce_sum_fixed(global int *partial, global const int *in, uint n) {
    local int tile[GROUP];
    uint lid = get_local_id(0);
    int sum = 0;
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        sum += in[i];
    tile[lid] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_size = GROUP / 2; half_size > 0; half_size >>= 1) {
        if (lid < half_size)
            tile[lid] += tile[lid + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid == 0)
        partial[get_group_id(0)] = tile[0];
}

// Value and position of the largest element of each group; ties go to the lowest index.
kernel void reduce_argmax(global uint *best_index, global int *best_value, global const int *in,
                          local int *values, local uint *indices) {
    uint lid = get_local_id(0);
    uint gid = get_global_id(0);
    values[lid] = in[gid];
    indices[lid] = gid;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (lid < half_size) {
            int a = values[lid], b = values[lid + half_size];
            uint ia = indices[lid], ib = indices[lid + half_size];
            if (b > a || (b == a && ib < ia)) {
                values[lid] = b;
                indices[lid] = ib;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid == 0) {
        best_index[get_group_id(0)] = indices[0];
        best_value[get_group_id(0)] = values[0];
    }
}
