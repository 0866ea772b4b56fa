// Arithmetic on every scalar type except double.
//
// Integer kernels arith_T write 17 results an item: + - * neg, min max, abs_diff, add_sat, sub_sat,
// and or xor not, << >> (shift count b modulo the width), a < b, a == b.
// Float kernels arith_half and arith_float write 12: + - * neg, fma, min max, fabs,
// a < b, a == b (0 or 1), a > b ? a : c, clamp(a, min(b, c), max(b, c)).

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Sub-groups of 16, which keeps the output small.
#define WIDE16 __attribute__((intel_reqd_sub_group_size(16)))

#define INTEGER(T) \
    WIDE16 kernel void arith_##T(global T *out, global const T *x, global const T *y) { \
        size_t i = get_global_id(0); \
        T a = x[i], b = y[i]; \
        int shift = (int)(b & (T)(sizeof(T) * 8 - 1)); \
        global T *mine = out + i * 17; \
        mine[0] = a + b; \
        mine[1] = a - b; \
        mine[2] = a * b; \
        mine[3] = -a; \
        mine[4] = min(a, b); \
        mine[5] = max(a, b); \
        mine[6] = (T)abs_diff(a, b); \
        mine[7] = add_sat(a, b); \
        mine[8] = sub_sat(a, b); \
        mine[9] = a & b; \
        mine[10] = a | b; \
        mine[11] = a ^ b; \
        mine[12] = ~a; \
        mine[13] = (T)(a << shift); \
        mine[14] = a >> shift; \
        mine[15] = a < b; \
        mine[16] = a == b; \
    }

INTEGER(char)
INTEGER(uchar)
INTEGER(short)
INTEGER(ushort)
INTEGER(int)
INTEGER(uint)
INTEGER(long)
INTEGER(ulong)

#define FLOATING(T) \
    WIDE16 kernel void arith_##T(global T *out, global const T *x, global const T *y, global const T *z) { \
        size_t i = get_global_id(0); \
        T a = x[i], b = y[i], c = z[i]; \
        global T *mine = out + i * 12; \
        mine[0] = a + b; \
        mine[1] = a - b; \
        mine[2] = a * b; \
        mine[3] = -a; \
        mine[4] = fma(a, b, c); \
        mine[5] = fmin(a, b); \
        mine[6] = fmax(a, b); \
        mine[7] = fabs(a); \
        mine[8] = a < b; \
        mine[9] = a == b; \
        mine[10] = a > b ? a : c; \
        mine[11] = clamp(a, fmin(b, c), fmax(b, c)); \
    }

FLOATING(half)
FLOATING(float)

// Vector types take the same code in another shape: 4 items of work a lane.
kernel void arith_char4(global char4 *out, global const char4 *x, global const char4 *y) {
    size_t i = get_global_id(0);
    out[i] = add_sat(x[i], y[i]) ^ (x[i] * y[i]).wzyx;
}

kernel void arith_half4(global half4 *out, global const half4 *x, global const half4 *y) {
    size_t i = get_global_id(0);
    out[i] = fma(x[i], y[i], y[i].yxwz);
}
