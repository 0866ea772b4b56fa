// Products of weights of four bits in blocks with bytes

kernel void q4(global const uchar *w, global const char *x, global int *out) {
    int g = get_global_id(0), sum = 0;
    for (int b = 0; b < 16; b++) {
        int part = 0;
        for (int i = 0; i < 16; i++) {
            uchar v = w[g * 256 + b * 16 + i];
            part += ((v & 15) - 8) * x[b * 32 + i] + ((v >> 4) - 8) * x[b * 32 + 16 + i];
        }
        sum += part * (b + 1);
    }
    out[g] = sum;
}
