// Double precision; results of arith_double are laid out as in arith.cl.

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void arith_double(global double *out, global const double *x, global const double *y,
                         global const double *z) {
    size_t i = get_global_id(0);
    double a = x[i], b = y[i], c = z[i];
    global double *mine = out + i * 12;
    mine[0] = a + b;
    mine[1] = a - b;
    mine[2] = a * b;
    mine[3] = -a;
    mine[4] = fma(a, b, c);
    mine[5] = fmin(a, b);
    mine[6] = fmax(a, b);
    mine[7] = fabs(a);
    mine[8] = a < b;
    mine[9] = a == b;
    mine[10] = a > b ? a : c;
    mine[11] = clamp(a, fmin(b, c), fmax(b, c));
}

kernel void double_divide(global double *quotient, global double *root, global const double *x,
                          global const double *y) {
    size_t i = get_global_id(0);
    quotient[i] = x[i] / y[i];
    root[i] = sqrt(fabs(x[i]));
}

kernel void double_round(global double *out, global const double *x) {
    size_t i = get_global_id(0);
    double v = x[i];
    global double *mine = out + i * 4;
    mine[0] = floor(v);
    mine[1] = ceil(v);
    mine[2] = rint(v);
    mine[3] = trunc(v);
}

kernel void daxpy(global double *y, global const double *x, double a) {
    size_t i = get_global_id(0);
    y[i] = fma(a, x[i], y[i]);
}

__attribute__((reqd_work_group_size(32, 1, 1)))
kernel void dot_double(global double *partial, global const double *x, global const double *y) {
    local double tile[32];
    uint lid = get_local_id(0);
    tile[lid] = x[get_global_id(0)] * y[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint h = 16; h > 0; h >>= 1) {
        if (lid < h)
            tile[lid] += tile[lid + h];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid == 0)
        partial[get_group_id(0)] = tile[0];
}
