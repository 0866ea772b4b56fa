// Rows of 128 normalised, one row a work-item

kernel void norm(global const float *in, global float *out) {
    int base = get_global_id(0) * 128;
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < 128; i++)
        sum += in[base + i];
    float mean = sum / 128.0f;
    for (int i = 0; i < 128; i++)
        squares += (in[base + i] - mean) * (in[base + i] - mean);
    float k = rsqrt(squares / 128.0f + 1e-5f);
    for (int i = 0; i < 128; i++)
        out[base + i] = (in[base + i] - mean) * k;
}
