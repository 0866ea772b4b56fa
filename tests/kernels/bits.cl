// Bit operations.
//
// bits_T writes 10 results an item: popcount, clz, rotate(a, b), bitselect(a, b, c), hadd, rhadd,
// mul_hi, mad_hi, and for the sake of unsigned shifts: a with its lowest set bit cleared,
// a with its lowest set bit alone.

// Sub-groups of 16, which keeps the output small.
#define WIDE16 __attribute__((intel_reqd_sub_group_size(16)))

#define BITS(T) \
    WIDE16 kernel void bits_##T(global T *out, global const T *x, global const T *y, global const T *z) { \
        size_t i = get_global_id(0); \
        T a = x[i], b = y[i], c = z[i]; \
        global T *mine = out + i * 10; \
        mine[0] = popcount(a); \
        mine[1] = clz(a); \
        mine[2] = rotate(a, b); \
        mine[3] = bitselect(a, b, c); \
        mine[4] = hadd(a, b); \
        mine[5] = rhadd(a, b); \
        mine[6] = mul_hi(a, b); \
        mine[7] = mad_hi(a, b, c); \
        mine[8] = a & (a - 1); \
        mine[9] = a & -a; \
    }

BITS(char)
BITS(uchar)
BITS(short)
BITS(ushort)
BITS(int)
BITS(uint)
BITS(long)
BITS(ulong)

// Six widenings: upsample 8->16 and 16->32 and 32->64, signed and unsigned.
WIDE16 kernel void bits_upsample(global ulong *out, global const ulong *x, global const ulong *y) {
    size_t i = get_global_id(0);
    ulong a = x[i], b = y[i];
    global ulong *mine = out + i * 6;
    mine[0] = upsample((uchar)a, (uchar)b);
    mine[1] = upsample((ushort)a, (ushort)b);
    mine[2] = upsample((uint)a, (uint)b);
    mine[3] = (ulong)(long)upsample((char)a, (uchar)b);
    mine[4] = (ulong)(long)upsample((short)a, (ushort)b);
    mine[5] = (ulong)upsample((int)a, (uint)b);
}

// Four words an item: mul24, mad24, mad_sat, bit reversal by hand.
WIDE16 kernel void bits_multiply(global int *out, global const int *x, global const int *y, global const int *z) {
    size_t i = get_global_id(0);
    int a = (x[i] << 8) >> 8, b = (y[i] << 8) >> 8, c = z[i];
    uint r = x[i];
    r = ((r >> 1) & 0x55555555) | ((r & 0x55555555) << 1);
    r = ((r >> 2) & 0x33333333) | ((r & 0x33333333) << 2);
    r = ((r >> 4) & 0x0f0f0f0f) | ((r & 0x0f0f0f0f) << 4);
    r = ((r >> 8) & 0x00ff00ff) | ((r & 0x00ff00ff) << 8);
    r = (r >> 16) | (r << 16);
    global int *mine = out + i * 4;
    mine[0] = mul24(a, b);
    mine[1] = mad24(a, b, c);
    mine[2] = mad_sat(x[i], y[i], c);
    mine[3] = r;
}

// Reinterpretation and byte shuffles.
WIDE16 kernel void bits_reinterpret(global uint *out, global const float *in) {
    size_t i = get_global_id(0);
    uint u = as_uint(in[i]);
    uchar4 b = as_uchar4(u);
    ushort2 h = as_ushort2(u);
    out[i * 3] = as_uint(b.wzyx);
    out[i * 3 + 1] = as_uint(h.yx);
    out[i * 3 + 2] = (u >> 23) & 0xff;
}
