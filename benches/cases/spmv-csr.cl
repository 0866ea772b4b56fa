// Sparse matrix times vector, one row of unequal length a work-item

kernel void spmv(global const int *rows, global const int *cols, global const float *vals,
                 global const float *x, global float *y) {
    int row = get_global_id(0);
    float sum = 0.0f;
    for (int i = rows[row]; i < rows[row + 1]; i++)
        sum += vals[i] * x[cols[i]];
    y[row] = sum;
}
