// Small symmetric systems in doubles, factored and solved in private memory

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define N 6

kernel void solve(global const double *matrices, global const double *right, global double *out) {
    size_t g = get_global_id(0), count = get_global_size(0);
    double l[N][N], y[N];
    for (int i = 0, at = 0; i < N; i++)
        for (int j = 0; j <= i; j++, at++)
            l[i][j] = matrices[at * count + g] + (i == j ? 2.0 * N : 0.0);
    for (int j = 0; j < N; j++) {
        for (int k = 0; k < j; k++)
            for (int i = j; i < N; i++)
                l[i][j] -= l[i][k] * l[j][k];
        double root = sqrt(l[j][j]);
        l[j][j] = root;
        for (int i = j + 1; i < N; i++)
            l[i][j] /= root;
    }
    for (int i = 0; i < N; i++) {
        double sum = right[i * count + g];
        for (int k = 0; k < i; k++)
            sum -= l[i][k] * y[k];
        y[i] = sum / l[i][i];
    }
    for (int i = N - 1; i >= 0; i--) {
        double sum = y[i];
        for (int k = i + 1; k < N; k++)
            sum -= l[k][i] * y[k];
        y[i] = sum / l[i][i];
        out[i * count + g] = y[i];
    }
}
