// Game of life with wrapped edges, on bytes

kernel void life(global const uchar *in, global uchar *out) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    int n = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            n += in[((y + dy) & (h - 1)) * w + ((x + dx) & (w - 1))];
    uchar self = in[y * w + x];
    out[y * w + x] = (n - self == 3) || (self && n - self == 2);
}
