// Inclusive prefix sums of groups of 128, two local buffers

kernel void scan(global const uint *in, global uint *out, local uint *t) {
    int l = get_local_id(0), n = get_local_size(0), from = 0;
    t[l] = in[get_global_id(0)];
    for (int d = 1; d < n; d *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint v = t[from + l];
        if (l >= d)
            v += t[from + l - d];
        from = n - from;
        t[from + l] = v;
    }
    out[get_global_id(0)] = t[from + l];
}
