// Short-range forces between particles of neighbouring cells

kernel void forces(global const float *x, global const float *y, global float *f, int per) {
    int g = get_global_id(0), cell = g / per, cells = get_global_size(0) / per;
    float fx = 0.0f;
    for (int c = max(cell - 2, 0); c <= min(cell + 2, cells - 1); c++)
        for (int i = 0; i < per; i++) {
            int o = c * per + i;
            float dx = x[g] - x[o], dy = y[g] - y[o], r2 = dx * dx + dy * dy + 0.01f;
            if (o == g || r2 > 0.25f)
                continue;
            float r6 = 1.0f / (r2 * r2 * r2);
            fx += dx * r6 * (r6 * 1e-6f - 1e-3f);
        }
    f[g] = fx;
}
