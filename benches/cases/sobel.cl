// Edges of a picture of bytes

kernel void sobel(global const uchar *in, global uchar *out) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
        return;
    global const uchar *p = in + y * w + x;
    int gx = p[1 - w] + 2 * p[1] + p[1 + w] - p[-1 - w] - 2 * p[-1] - p[w - 1];
    int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[1 - w];
    out[y * w + x] = min(abs(gx) + abs(gy), 255u);
}
