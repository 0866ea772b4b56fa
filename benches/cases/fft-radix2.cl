// Transforms of 256 points in local memory

kernel void fft(global const float *re, global const float *im, global float *outr, global float *outi) {
    local float a[256], b[256];
    int l = get_local_id(0), base = get_group_id(0) * 256;
    for (int i = l; i < 256; i += 128) {
        uint r = 0;
        for (int k = 0; k < 8; k++)
            r |= ((i >> k) & 1) << (7 - k);
        a[r] = re[base + i];
        b[r] = im[base + i];
    }
    for (int half_n = 1; half_n < 256; half_n *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int k = l & (half_n - 1), i = 2 * (l - k) + k, j = i + half_n;
        float angle = -3.14159265f * (float)k / (float)half_n;
        float c = cos(angle), s = sin(angle);
        float x = a[j] * c - b[j] * s, y = a[j] * s + b[j] * c;
        a[j] = a[i] - x;
        b[j] = b[i] - y;
        a[i] += x;
        b[i] += y;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = l; i < 256; i += 128) {
        outr[base + i] = a[i];
        outi[base + i] = b[i];
    }
}
