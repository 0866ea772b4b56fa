// LU decomposition in tiles of local memory

#define B 16

kernel void diagonal(global float *m, int n, int step) {
    local float t[B][B];
    int i = get_local_id(0), at = step * B;
    for (int r = 0; r < B; r++)
        t[r][i] = m[(at + r) * n + at + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < B - 1; k++) {
        if (i > k) {
            for (int j = 0; j < k; j++)
                t[i][k] -= t[i][j] * t[j][k];
            t[i][k] /= t[k][k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i > k)
            for (int j = 0; j < k + 1; j++)
                t[k + 1][i] -= t[k + 1][j] * t[j][i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int r = 0; r < B; r++)
        m[(at + r) * n + at + i] = t[r][i];
}

// One half of the work-items solves for the row of tiles, the other for the column.
kernel void perimeter(global float *m, int n, int step) {
    local float d[B][B], row[B][B], col[B][B];
    int tile = get_group_id(0) + step + 1, at = step * B;
    if (tile * B >= n)
        return;
    int l = get_local_id(0), i = l % B;
    for (int r = l / B; r < B; r += 2) {
        d[r][i] = m[(at + r) * n + at + i];
        row[r][i] = m[(at + r) * n + tile * B + i];
        col[r][i] = m[(tile * B + r) * n + at + i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < B) {
        for (int r = 1; r < B; r++)
            for (int j = 0; j < r; j++)
                row[r][i] -= d[r][j] * row[j][i];
    } else {
        for (int c = 0; c < B; c++) {
            for (int j = 0; j < c; j++)
                col[i][c] -= col[i][j] * d[j][c];
            col[i][c] /= d[c][c];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = l / B; r < B; r += 2) {
        m[(at + r) * n + tile * B + i] = row[r][i];
        m[(tile * B + r) * n + at + i] = col[r][i];
    }
}

kernel void inner(global float *m, int n, int step) {
    local float row[B][B], col[B][B];
    int x = get_local_id(0), y = get_local_id(1), at = step * B;
    int gx = (get_group_id(0) + step + 1) * B + x;
    int gy = (get_group_id(1) + step + 1) * B + y;
    if (gx - x >= n || gy - y >= n)
        return;
    row[y][x] = m[(at + y) * n + gx];
    col[y][x] = m[gy * n + at + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int i = 0; i < B; i++)
        sum += col[y][i] * row[i][x];
    m[gy * n + gx] -= sum;
}

kernel void dominate(global float *m, int n) {
    int i = get_global_id(0);
    m[i * n + i] += n;
}
