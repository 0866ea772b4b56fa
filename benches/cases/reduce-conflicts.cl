// Sum of integers by interleaved indices in local memory

kernel void reduce(global const int *in, global int *out) {
    local int part[256];
    int l = get_local_id(0);
    part[l] = in[get_global_id(0)];
    for (int s = 1; s < 256; s *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int at = 2 * s * l;
        if (at < 256)
            part[at] += part[at + s];
    }
    if (l == 0)
        out[get_group_id(0)] = part[0];
}
