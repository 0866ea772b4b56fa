// Mean of five by five bytes, by integer division

kernel void blur(global const uchar *in, global uchar *out) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    int sum = 0, n = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++)
            if (x + dx >= 0 && x + dx < w && y + dy >= 0 && y + dy < h) {
                sum += in[(y + dy) * w + x + dx];
                n++;
            }
    out[y * w + x] = sum / n;
}
