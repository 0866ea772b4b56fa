// Products of numbers of 512 bits in words of 64, with both halves of each product

#define WORDS 8

kernel void product(global const ulong *a, global const ulong *b, global ulong *out) {
    size_t g = get_global_id(0);
    ulong y[WORDS], r[2 * WORDS];
    for (int j = 0; j < WORDS; j++) {
        y[j] = b[g * WORDS + j];
        r[j] = 0;
    }
    for (int i = 0; i < WORDS; i++) {
        ulong x = a[g * WORDS + i], carry = 0;
        for (int j = 0; j < WORDS; j++) {
            ulong low = x * y[j], high = mul_hi(x, y[j]);
            low += carry;
            high += low < carry;
            r[i + j] += low;
            carry = high + (r[i + j] < low);
        }
        r[i + WORDS] = carry;
    }
    for (int i = 0; i < 2 * WORDS; i++)
        out[g * 2 * WORDS + i] = r[i];
}
