// Elements that pass a test, packed in each group

kernel void compact(global const uint *in, global uint *out, global uint *count) {
    local uint t[256];
    int l = get_local_id(0);
    uint v = in[get_global_id(0)];
    uint keep = v % 3 == 0;
    t[l] = keep;
    for (int d = 1; d < 256; d *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint add = l >= d ? t[l - d] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        t[l] += add;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (keep)
        out[get_group_id(0) * 256 + t[l] - 1] = v;
    if (l == 255)
        count[get_group_id(0)] = t[255];
}
