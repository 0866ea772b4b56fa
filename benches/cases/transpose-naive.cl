// Transposition with strided stores

kernel void transpose(global const float *in, global float *out) {
    int x = get_global_id(0), y = get_global_id(1), n = get_global_size(0);
    out[x * n + y] = in[y * n + x];
}
