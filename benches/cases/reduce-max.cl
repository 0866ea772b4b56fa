// Largest of a million integers, by a tree in local memory

kernel void reduce(global const int *in, global int *out) {
    local int part[256];
    int l = get_local_id(0);
    part[l] = in[get_global_id(0)];
    for (int s = 128; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s)
            part[l] = max(part[l], part[l + s]);
    }
    if (l == 0)
        out[get_group_id(0)] = part[0];
}
