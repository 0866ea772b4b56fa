// Half-precision mathematical functions; compared after conversion to double.

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define UNARY(F) \
    kernel void half_##F##_(global half *out, global const half *in) { \
        size_t i = get_global_id(0); \
        out[i] = F(in[i]); \
    }

UNARY(exp2)
UNARY(log2)
UNARY(sqrt)
UNARY(rsqrt)

// Five results an item: floor ceil rint trunc, x / y.
kernel void half_exact(global half *out, global const half *x, global const half *y) {
    size_t i = get_global_id(0);
    half a = x[i];
    global half *mine = out + i * 5;
    mine[0] = floor(a);
    mine[1] = ceil(a);
    mine[2] = rint(a);
    mine[3] = trunc(a);
    mine[4] = a / y[i];
}

// Storage conversions that need no half arithmetic.
kernel void half_store(global half *out, global float *back, global const float *in) {
    size_t i = get_global_id(0);
    vstore_half(in[i], i, out);
    back[i] = vload_half(i, out);
}
