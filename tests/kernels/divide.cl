// Integer division and remainder; divisors are never zero, and never -1 for the least dividend.

// Sub-groups of 16, which keeps the output small.
#define WIDE16 __attribute__((intel_reqd_sub_group_size(16)))

#define DIVIDE(T) \
    WIDE16 kernel void divide_##T(global T *quotient, global T *remainder, global const T *x, global const T *y) { \
        size_t i = get_global_id(0); \
        quotient[i] = x[i] / y[i]; \
        remainder[i] = x[i] % y[i]; \
    }

DIVIDE(char)
DIVIDE(uchar)
DIVIDE(short)
DIVIDE(ushort)
DIVIDE(int)
DIVIDE(uint)
DIVIDE(long)
DIVIDE(ulong)

// Constant divisors become multiplications and shifts. Six results an item:
// quotient and remainder by 7, 10 and 64.
#define BY_CONSTANT(T) \
    WIDE16 kernel void divide_constant_##T(global T *out, global const T *in) { \
        size_t i = get_global_id(0); \
        T v = in[i]; \
        global T *mine = out + i * 6; \
        mine[0] = v / 7; \
        mine[1] = v % 7; \
        mine[2] = v / 10; \
        mine[3] = v % 10; \
        mine[4] = v / 64; \
        mine[5] = v % 64; \
    }

BY_CONSTANT(int)
BY_CONSTANT(uint)
BY_CONSTANT(long)
BY_CONSTANT(ulong)

// The divisor is a kernel argument, equal in all lanes.
WIDE16 kernel void divide_uniform(global int *out, global const int *in, int divisor, uint udivisor) {
    size_t i = get_global_id(0);
    out[i * 2] = in[i] / divisor;
    out[i * 2 + 1] = (int)((uint)in[i] % udivisor);
}
