// Bitonic sort, ascending. The host runs bitonic_step for k = 2, 4 .. n and j = k/2 .. 1.

kernel void bitonic_step(global uint *data, uint j, uint k) {
    uint i = get_global_id(0);
    uint partner = i ^ j;
    if (partner > i) {
        uint a = data[i], b = data[partner];
        bool ascending = (i & k) == 0;
        if ((a > b) == ascending) {
            data[i] = b;
            data[partner] = a;
        }
    }
}

// Sorts each group's slice in local memory; the group size is a power of two.
kernel void bitonic_group(global int *data, local int *tile) {
    uint lid = get_local_id(0), size = get_local_size(0);
    tile[lid] = data[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 2; k <= size; k <<= 1) {
        for (uint j = k >> 1; j > 0; j >>= 1) {
            uint partner = lid ^ j;
            int mine = tile[lid], other = tile[partner];
            barrier(CLK_LOCAL_MEM_FENCE);
            bool keep_small = ((lid & k) == 0) == (lid < partner);
            tile[lid] = keep_small ? min(mine, other) : max(mine, other);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
    data[get_global_id(0)] = tile[lid];
}
