// A convolution of 3x3, eight channels in and eight out

kernel void conv(global const float *in, constant float *w, global float *out) {
    int x = get_global_id(0), y = get_global_id(1), o = get_global_id(2);
    float sum = 0.0f;
    for (int c = 0; c < 8; c++)
        for (int i = 0; i < 9; i++) {
            int sx = x + i % 3 - 1, sy = y + i / 3 - 1;
            if (sx >= 0 && sy >= 0 && sx < 128 && sy < 128)
                sum += in[(c * 128 + sy) * 128 + sx] * w[(o * 8 + c) * 9 + i];
        }
    out[(o * 128 + y) * 128 + x] = max(sum, 0.0f);
}
