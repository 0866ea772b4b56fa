// Exclusive prefix sums of groups of 512, up and down a tree

kernel void scan(global const uint *in, global uint *out) {
    local uint t[512];
    int l = get_local_id(0), base = get_group_id(0) * 512;
    t[2 * l] = in[base + 2 * l];
    t[2 * l + 1] = in[base + 2 * l + 1];
    int step = 1;
    for (int d = 256; d > 0; d >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d)
            t[step * (2 * l + 2) - 1] += t[step * (2 * l + 1) - 1];
        step *= 2;
    }
    if (l == 0)
        t[511] = 0;
    for (int d = 1; d < 512; d *= 2) {
        step >>= 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) {
            int a = step * (2 * l + 1) - 1, b = step * (2 * l + 2) - 1;
            uint old = t[a];
            t[a] = t[b];
            t[b] += old;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + 2 * l] = t[2 * l];
    out[base + 2 * l + 1] = t[2 * l + 1];
}
