// Frequencies of bytes, local atomics and then global ones

kernel void histogram(global const uchar *text, global uint *out) {
    local uint c[256];
    int l = get_local_id(0);
    c[l] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; i++)
        atomic_inc(&c[text[i * 32768 + get_global_id(0)]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&out[l], c[l]);
}
