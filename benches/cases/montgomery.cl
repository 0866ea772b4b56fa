// Modular powers by Montgomery's products of 64 bits

ulong product(ulong a, ulong b, ulong n, ulong inverse) {
    ulong low = a * b, high = mul_hi(a, b);
    ulong m = low * inverse;
    ulong carry = mul_hi(m, n);
    return high >= carry ? high - carry : high - carry + n;
}

ulong twice(ulong a, ulong n) {
    return a >= n - a ? a - (n - a) : a + a;
}

kernel void power(global const ulong *base, global const uint *exponent, global const ulong *modulus, global ulong *out) {
    int g = get_global_id(0);
    ulong n = modulus[g] | 1;
    ulong inverse = n;
    for (int i = 0; i < 5; i++)
        inverse *= 2 - n * inverse;
    ulong one = (0 - n) % n;
    ulong square = one;
    for (int i = 0; i < 64; i++)
        square = twice(square, n);
    ulong x = product(base[g] % n, square, n, inverse);
    ulong result = one;
    for (uint e = exponent[g]; e != 0; e >>= 1) {
        if (e & 1)
            result = product(result, x, n, inverse);
        x = product(x, x, n, inverse);
    }
    out[g] = product(result, 1, n, inverse);
}
