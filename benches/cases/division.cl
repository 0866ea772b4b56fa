// Quotients and remainders of 32 and 64 bits

kernel void divide(global const int *a, global const int *b, global long *out) {
    int g = get_global_id(0), x = a[g], y = b[g];
    long big = (long)x * 1000003;
    out[g] = x / y + x % y + big / y + (uint)x / (uint)y;
}
