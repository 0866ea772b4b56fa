// y = a*x + y, with and without a bounds guard.

kernel void saxpy(global float *y, global const float *x, float a) {
    int i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}

kernel void saxpy_guarded(global float *y, global const float *x, float a, int n) {
    int i = get_global_id(0);
    if (i < n)
        y[i] = a * x[i] + y[i];
}

kernel void saxpy_scaled(global float *restrict y, global const float *restrict x,
                         float a, float b) {
    size_t i = get_global_id(0);
    y[i] = fma(a, x[i], b * y[i]);
}
