// European options in doubles with exponentials and logarithms

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void price(global const double *s, global const double *x, global double *out) {
    int g = get_global_id(0);
    double v = 0.3, r = 0.02, t = 2.0, q = v * sqrt(t);
    double d1 = (log(s[g] / x[g]) + (r + 0.5 * v * v) * t) / q, d2 = d1 - q;
    double n1 = 1.0 / (1.0 + exp(-1.702 * d1)), n2 = 1.0 / (1.0 + exp(-1.702 * d2));
    out[g] = s[g] * n1 - x[g] * exp(-r * t) * n2;
}
