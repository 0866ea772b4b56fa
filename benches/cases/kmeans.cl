// The nearest of sixteen centres in eight dimensions

kernel void assign(global const float *x, constant float *c, global uint *out) {
    int g = get_global_id(0), n = get_global_size(0);
    float best = 1e30f;
    uint at = 0;
    for (uint k = 0; k < 16; k++) {
        float sum = 0.0f;
        for (int d = 0; d < 8; d++) {
            float t = x[d * n + g] - c[k * 8 + d];
            sum += t * t;
        }
        if (sum < best) {
            best = sum;
            at = k;
        }
    }
    out[g] = at;
}
