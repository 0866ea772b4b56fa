// Rows of 256 through local memory

kernel void softmax(global const float *in, global float *out) {
    local float t[64];
    int l = get_local_id(0), base = get_group_id(0) * 256;
    float m = -INFINITY, sum = 0.0f;
    for (int i = l; i < 256; i += 64)
        m = fmax(m, in[base + i]);
    t[l] = m;
    for (int s = 32; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s) t[l] = fmax(t[l], t[l + s]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    m = t[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = l; i < 256; i += 64)
        sum += exp(in[base + i] - m);
    t[l] = sum;
    for (int s = 32; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s) t[l] += t[l + s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = l; i < 256; i += 64)
        out[base + i] = exp(in[base + i] - m) / t[0];
}
