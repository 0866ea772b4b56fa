// Canny edges: gradients, thinning across the edge, and two thresholds

kernel void gradient(global const uchar *in, global short *gx, global short *gy, global ushort *mag, int w, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    int l = max(x - 1, 0), r = min(x + 1, w - 1), t = max(y - 1, 0), b = min(y + 1, h - 1);
    short dx = in[t * w + r] + 2 * in[y * w + r] + in[b * w + r] - in[t * w + l] - 2 * in[y * w + l] - in[b * w + l];
    short dy = in[b * w + l] + 2 * in[b * w + x] + in[b * w + r] - in[t * w + l] - 2 * in[t * w + x] - in[t * w + r];
    gx[y * w + x] = dx;
    gy[y * w + x] = dy;
    mag[y * w + x] = abs(dx) + abs(dy);
}

kernel void thin(global const short *gx, global const short *gy, global const ushort *mag, global uchar *out,
                 int w, int h, int low, int high) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        out[y * w + x] = 0;
        return;
    }
    int i = y * w + x;
    int m = mag[i];
    uchar edge = 0;
    if (m > low) {
        int dx = gx[i], dy = gy[i];
        int ax = abs(dx), ay = abs(dy) << 15;
        int tan22 = ax * 13573;
        int tan67 = tan22 + (ax << 16);
        int a, b;
        if (ay < tan22) {
            a = mag[i - 1];
            b = mag[i + 1];
        } else if (ay > tan67) {
            a = mag[i - w];
            b = mag[i + w];
        } else {
            int s = (dx ^ dy) < 0 ? -1 : 1;
            a = mag[i - w - s];
            b = mag[i + w + s];
        }
        if (m > a && m >= b)
            edge = m > high ? 255 : 128;
    }
    out[i] = edge;
}
