// Covariance matrix of the columns of a table

kernel void column_mean(global const float *data, global float *mean, int m, int n) {
    int j = get_global_id(0);
    if (j >= m)
        return;
    float sum = 0.0f;
    for (int i = 0; i < n; i++)
        sum += data[i * m + j];
    mean[j] = sum / n;
}

kernel void subtract_mean(global float *data, global const float *mean, int m, int n) {
    int j = get_global_id(0);
    int i = get_global_id(1);
    if (i < n && j < m)
        data[i * m + j] -= mean[j];
}

kernel void covariance(global const float *data, global float *cov, int m, int n) {
    int j1 = get_global_id(0);
    if (j1 >= m)
        return;
    for (int j2 = j1; j2 < m; j2++) {
        float sum = 0.0f;
        for (int i = 0; i < n; i++)
            sum += data[i * m + j1] * data[i * m + j2];
        sum /= n - 1;
        cov[j1 * m + j2] = sum;
        cov[j2 * m + j1] = sum;
    }
}
