// Functions that must not be inlined.

__attribute__((noinline)) int step_once(int v, int k) {
    int r = v;
    for (int i = 0; i < (v & 3) + 1; ++i)
        r = r * 3 + k;
    return r ^ (v >> 3);
}

__attribute__((noinline)) float blend(float a, float b, float t) {
    if (t < 0.5f)
        return fma(b - a, t, a);
    return fma(a - b, 1.0f - t, b);
}

__attribute__((noinline)) void store_twice(global int *out, int i, int v) {
    out[i * 2] = v;
    out[i * 2 + 1] = step_once(v, 7);
}

// Called by all lanes, then by some.
kernel void call_simple(global int *out, global const int *in) {
    int i = get_global_id(0);
    int v = step_once(in[i], 5);
    if (v & 1)
        v = step_once(v, 11);
    out[i] = v;
}

// A call inside a call, from a loop.
kernel void call_nested(global int *out, global const int *in) {
    int i = get_global_id(0);
    int v = in[i];
    for (int k = 0; k < (i & 3); ++k)
        v = step_once(v, k);
    store_twice(out, i, v);
}

kernel void call_float(global float *out, global const float *x, global const float *y) {
    int i = get_global_id(0);
    float t = (float)(i & 15) / 16.0f;
    float v = blend(x[i], y[i], t);
    if (v > 0.0f)
        v = blend(v, x[i], 0.25f);
    out[i] = v;
}
