// Maxwell's equations in two dimensions, in doubles

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void update_ey(global const double *source, global double *ey, global const double *hz, int t, int nx, int ny) {
    int j = get_global_id(0);
    int i = get_global_id(1);
    if (i < nx && j < ny) {
        if (i == 0)
            ey[j] = source[t];
        else
            ey[i * ny + j] = ey[i * ny + j] - 0.5 * (hz[i * ny + j] - hz[(i - 1) * ny + j]);
    }
}

kernel void update_ex(global double *ex, global const double *hz, int nx, int ny) {
    int j = get_global_id(0);
    int i = get_global_id(1);
    if (i < nx && j < ny && j > 0)
        ex[i * (ny + 1) + j] = ex[i * (ny + 1) + j] - 0.5 * (hz[i * ny + j] - hz[i * ny + j - 1]);
}

kernel void update_hz(global const double *ex, global const double *ey, global double *hz, int nx, int ny) {
    int j = get_global_id(0);
    int i = get_global_id(1);
    if (i < nx - 1 && j < ny)
        hz[i * ny + j] = hz[i * ny + j] - 0.7 * (ex[i * (ny + 1) + j + 1] - ex[i * (ny + 1) + j]
                                                 + ey[(i + 1) * ny + j] - ey[i * ny + j]);
}
