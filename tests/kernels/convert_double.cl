// Conversions from and to double; results are laid out as in convert.cl.

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// Sub-groups of 16, which keeps the output small.
#define WIDE16 __attribute__((intel_reqd_sub_group_size(16)))

#define HEAD(FROM, TO) \
    WIDE16 kernel void convert_##FROM##_##TO(global TO *out, global const FROM *in) { \
        size_t i = get_global_id(0); \
        FROM v = in[i];

#define ROUNDED(FROM, TO) \
    HEAD(FROM, TO) \
        out[i * 4] = convert_##TO##_rte(v); \
        out[i * 4 + 1] = convert_##TO##_rtz(v); \
        out[i * 4 + 2] = convert_##TO##_rtp(v); \
        out[i * 4 + 3] = convert_##TO##_rtn(v); \
    }

#define FROM_DOUBLE(TO) \
    HEAD(double, TO) \
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

#define PAIR(T) ROUNDED(T, double) FROM_DOUBLE(T)

PAIR(char)
PAIR(uchar)
PAIR(short)
PAIR(ushort)
PAIR(int)
PAIR(uint)
PAIR(long)
PAIR(ulong)
ROUNDED(double, float)
ROUNDED(double, half)
WIDEN(float, double)
WIDEN(half, double)
