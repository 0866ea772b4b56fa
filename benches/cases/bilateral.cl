// Bilateral filter, weights by exponentials

kernel void bilateral(global const float *in, global float *out) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    float c = in[y * w + x], sum = 0.0f, weights = 0.0f;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            float v = in[clamp(y + dy, 0, h - 1) * w + clamp(x + dx, 0, w - 1)];
            float k = exp(-0.2f * (float)(dx * dx + dy * dy) - 8.0f * (v - c) * (v - c));
            sum += k * v;
            weights += k;
        }
    out[y * w + x] = sum / weights;
}
