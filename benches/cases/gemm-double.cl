// Matrix product in doubles, tiles in local memory

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void gemm(global const double *a, global const double *b, global double *c, int n) {
    local double ta[8][8], tb[8][8];
    int x = get_global_id(0), y = get_global_id(1);
    int lx = get_local_id(0), ly = get_local_id(1);
    double sum = 0.0;
    for (int k = 0; k < n; k += 8) {
        ta[ly][lx] = a[y * n + k + lx];
        tb[ly][lx] = b[(k + ly) * n + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < 8; i++)
            sum += ta[ly][i] * tb[i][lx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[y * n + x] = sum;
}
