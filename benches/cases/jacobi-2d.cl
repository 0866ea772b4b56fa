// Five points in two dimensions, twenty steps between two buffers

kernel void jacobi(global const float *in, global float *out) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    int at = y * w + x;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        out[at] = in[at];
        return;
    }
    out[at] = 0.2f * (in[at] + in[at - 1] + in[at + 1] + in[at - w] + in[at + w]);
}
