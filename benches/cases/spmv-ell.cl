// Sparse matrix in padded columns times vector

kernel void spmv(global const int *cols, global const float *vals, global const float *x, global float *y,
                 int width) {
    int row = get_global_id(0), rows = get_global_size(0);
    float sum = 0.0f;
    for (int i = 0; i < width; i++) {
        float v = vals[i * rows + row];
        if (v != 0.0f)
            sum += v * x[cols[i * rows + row]];
    }
    y[row] = sum;
}
