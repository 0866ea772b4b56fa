// A depthwise 3x3 convolution of signed bytes with requantisation

int requantise(int value, int multiplier, int shift) {
    long product = (long)value * multiplier;
    int high = (int)((product + (1l << 30)) >> 31);
    return (high + (1 << (shift - 1))) >> shift;
}

kernel void depthwise(global const char *in, global const char *weights, global const int *bias,
                      global const int *multiplier, global const char *shift, global char *out, int zero_point) {
    int c = get_global_id(0), x = get_global_id(1), y = get_global_id(2);
    int channels = get_global_size(0), width = get_global_size(1), height = get_global_size(2);
    int sum = bias[c];
    for (int ky = 0; ky < 3; ky++) {
        int iy = y + ky - 1;
        if (iy < 0 || iy >= height)
            continue;
        for (int kx = 0; kx < 3; kx++) {
            int ix = x + kx - 1;
            if (ix < 0 || ix >= width)
                continue;
            sum += (in[(iy * width + ix) * channels + c] - zero_point) * weights[(ky * 3 + kx) * channels + c];
        }
    }
    out[(y * width + x) * channels + c] = convert_char_sat(requantise(sum, multiplier[c], shift[c]));
}
