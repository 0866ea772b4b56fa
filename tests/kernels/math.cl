// Mathematical functions. math_F: out[i] = F(in[i]), precise; native_F: the hardware's.

#define UNARY(F) \
    kernel void math_##F(global float *out, global const float *in) { \
        size_t i = get_global_id(0); \
        out[i] = F(in[i]); \
    }

#define NATIVE(F) \
    kernel void native_##F##_(global float *out, global const float *in) { \
        size_t i = get_global_id(0); \
        out[i] = native_##F(in[i]); \
    }

#define BINARY(F) \
    kernel void math_##F(global float *out, global const float *x, global const float *y) { \
        size_t i = get_global_id(0); \
        out[i] = F(x[i], y[i]); \
    }

UNARY(exp)
UNARY(log)
UNARY(sin)
UNARY(cos)
UNARY(sqrt)
UNARY(rsqrt)
UNARY(atan)

BINARY(pow)

NATIVE(exp)
NATIVE(exp2)
NATIVE(log)
NATIVE(log2)
NATIVE(sin)
NATIVE(cos)
NATIVE(sqrt)
NATIVE(rsqrt)
NATIVE(recip)

kernel void native_powr_(global float *out, global const float *x, global const float *y) {
    size_t i = get_global_id(0);
    out[i] = native_powr(x[i], y[i]);
}

kernel void math_divide(global float *plain, global float *native, global const float *x, global const float *y) {
    size_t i = get_global_id(0);
    plain[i] = x[i] / y[i];
    native[i] = native_divide(x[i], y[i]);
}

// Exact functions. Eleven results an item: floor ceil rint trunc round fmin fmax fabs fma copysign sign.
kernel void math_exact(global float *out, global const float *x, global const float *y, global const float *z) {
    size_t i = get_global_id(0);
    float a = x[i], b = y[i], c = z[i];
    global float *mine = out + i * 11;
    mine[0] = floor(a);
    mine[1] = ceil(a);
    mine[2] = rint(a);
    mine[3] = trunc(a);
    mine[4] = round(a);
    mine[5] = fmin(a, b);
    mine[6] = fmax(a, b);
    mine[7] = fabs(a);
    mine[8] = fma(a, b, c);
    mine[9] = copysign(a, b);
    mine[10] = sign(a);
}

// mad may or may not be fused; so may a * b + c.
kernel void math_mad(global float *out, global const float *x, global const float *y, global const float *z) {
    size_t i = get_global_id(0);
    out[i * 3] = mad(x[i], y[i], z[i]);
    out[i * 3 + 1] = x[i] * y[i] + z[i];
    out[i * 3 + 2] = x[i] * y[i] - z[i];
}

// Bits and classes. Eight words an item: isnan isinf isfinite isnormal signbit, ilogb, exponent of
// frexp, bits of frexp's mantissa.
kernel void math_classify(global int *out, global const float *in) {
    size_t i = get_global_id(0);
    float v = in[i];
    int e;
    float m = frexp(v, &e);
    global int *mine = out + i * 8;
    mine[0] = isnan(v);
    mine[1] = isinf(v);
    mine[2] = isfinite(v);
    mine[3] = isnormal(v);
    mine[4] = signbit(v);
    mine[5] = ilogb(v);
    mine[6] = e;
    mine[7] = as_int(m);
}

// Six results an item: dot, length of (a, b, c, d), mix, smoothstep, step, fract.
kernel void math_geometry(global float *out, global const float4 *in) {
    size_t i = get_global_id(0);
    float4 v = in[i];
    float whole;
    global float *mine = out + i * 6;
    mine[0] = dot(v, v.wzyx);
    mine[1] = length(v);
    mine[2] = mix(v.x, v.y, 0.25f);
    mine[3] = smoothstep(-1.0f, 1.0f, v.x);
    mine[4] = step(v.x, v.y);
    mine[5] = fract(v.z, &whole);
}
