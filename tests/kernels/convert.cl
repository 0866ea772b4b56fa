// Every conversion between char..ulong, half and float.
//
// Kernel convert_FROM_integers converts one integer type to all eight, wrapping and saturating:
// two results an item for each type. Kernel convert_FROM_TO writes M results an item, at out[i * M ..]:
//   integer to float    M = 4: rte, rtz, rtp, rtn
//   float to integer    M = 5: sat (truncating), sat_rte, sat_rtz, sat_rtp, sat_rtn
//   float to half       M = 4: rte, rtz, rtp, rtn
//   half to float       M = 1

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Sub-groups of 16, which keeps the output small.
#define WIDE16 __attribute__((intel_reqd_sub_group_size(16)))

#define HEAD(FROM, TO) \
    WIDE16 kernel void convert_##FROM##_##TO(global TO *out, global const FROM *in) { \
        size_t i = get_global_id(0); \
        FROM v = in[i];

#define WRAP_AND_SATURATE(TO) \
        to_##TO[i * 2] = convert_##TO(v); \
        to_##TO[i * 2 + 1] = convert_##TO##_sat(v);

#define INT_INTS(FROM) \
    WIDE16 kernel void convert_##FROM##_integers( \
        global char *to_char, global uchar *to_uchar, global short *to_short, global ushort *to_ushort, \
        global int *to_int, global uint *to_uint, global long *to_long, global ulong *to_ulong, \
        global const FROM *in) { \
        size_t i = get_global_id(0); \
        FROM v = in[i]; \
        WRAP_AND_SATURATE(char) WRAP_AND_SATURATE(uchar) \
        WRAP_AND_SATURATE(short) WRAP_AND_SATURATE(ushort) \
        WRAP_AND_SATURATE(int) WRAP_AND_SATURATE(uint) \
        WRAP_AND_SATURATE(long) WRAP_AND_SATURATE(ulong) \
    }

#define ROUNDED(FROM, TO) \
    HEAD(FROM, TO) \
        out[i * 4] = convert_##TO##_rte(v); \
        out[i * 4 + 1] = convert_##TO##_rtz(v); \
        out[i * 4 + 2] = convert_##TO##_rtp(v); \
        out[i * 4 + 3] = convert_##TO##_rtn(v); \
    }

#define FLOAT_INT(FROM, TO) \
    HEAD(FROM, TO) \
        out[i * 5] = convert_##TO##_sat(v); \
        out[i * 5 + 1] = convert_##TO##_sat_rte(v); \
        out[i * 5 + 2] = convert_##TO##_sat_rtz(v); \
        out[i * 5 + 3] = convert_##TO##_sat_rtp(v); \
        out[i * 5 + 4] = convert_##TO##_sat_rtn(v); \
    }

#define WIDEN(FROM, TO) \
    HEAD(FROM, TO) \
        out[i] = convert_##TO(v); \
    }

#define FROM_INT(T) INT_INTS(T) ROUNDED(T, half) ROUNDED(T, float)

#define FROM_FLOAT(T) \
    FLOAT_INT(T, char) FLOAT_INT(T, uchar) FLOAT_INT(T, short) FLOAT_INT(T, ushort) \
    FLOAT_INT(T, int) FLOAT_INT(T, uint) FLOAT_INT(T, long) FLOAT_INT(T, ulong)

FROM_INT(char)
FROM_INT(uchar)
FROM_INT(short)
FROM_INT(ushort)
FROM_INT(int)
FROM_INT(uint)
FROM_INT(long)
FROM_INT(ulong)
FROM_FLOAT(half)
FROM_FLOAT(float)
ROUNDED(float, half)
WIDEN(half, float)
