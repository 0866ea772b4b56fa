// Escape-time iteration: every lane leaves the loop at its own time.
// No contraction beyond the written fma: the counts are then exact.

#pragma OPENCL FP_CONTRACT OFF

kernel void mandelbrot(global int *out, float x0, float y0, float dx, float dy,
                       int width, int limit) {
    int px = get_global_id(0);
    int py = get_global_id(1);
    float cx = fma((float)px, dx, x0);
    float cy = fma((float)py, dy, y0);
    float zx = 0.0f, zy = 0.0f;
    int n = 0;
    while (n < limit) {
        float xx = zx * zx;
        float yy = zy * zy;
        if (xx + yy > 4.0f)
            break;
        zy = fma(2.0f * zx, zy, cy);
        zx = xx - yy + cx;
        ++n;
    }
    out[py * width + px] = n;
}

// The same set in fixed point (4.28): bit-exact by construction, with 64-bit products.
kernel void mandelbrot_fixed(global int *out, int x0, int y0, int dx, int dy,
                             int width, int limit) {
    const long four = 4L << 28;
    int px = get_global_id(0);
    int py = get_global_id(1);
    long cx = x0 + px * dx;
    long cy = y0 + py * dy;
    long zx = 0, zy = 0;
    int n = 0;
    for (; n < limit; ++n) {
        long xx = (zx * zx) >> 28;
        long yy = (zy * zy) >> 28;
        if (xx + yy > four)
            break;
        zy = ((zx * zy) >> 27) + cy;
        zx = xx - yy + cx;
    }
    out[py * width + px] = n;
}
