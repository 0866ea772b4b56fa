// Matrix times vector, one row a work-item

kernel void gemv(global const float *a, global const float *x, global float *y, int n) {
    int row = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[k * n + row] * x[k];
    y[row] = sum;
}
