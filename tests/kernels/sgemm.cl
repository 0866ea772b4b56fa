// C = A * B, row-major, all sizes multiples of 16. Products are accumulated with fma in
// order of k, so the result is bit-exact.

#define TILE 16

kernel void sgemm_naive(global float *c, global const float *a, global const float *b, int n, int k) {
    int col = get_global_id(0);
    int row = get_global_id(1);
    float sum = 0.0f;
    for (int i = 0; i < k; ++i)
        sum = fma(a[row * k + i], b[i * n + col], sum);
    c[row * n + col] = sum;
}

__attribute__((reqd_work_group_size(TILE, TILE, 1)))
kernel void sgemm_tiled(global float *c, global const float *a, global const float *b, int n, int k) {
    local float tile_a[TILE][TILE];
    local float tile_b[TILE][TILE];
    int x = get_local_id(0), y = get_local_id(1);
    int col = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int t = 0; t < k; t += TILE) {
        tile_a[y][x] = a[row * k + t + x];
        tile_b[y][x] = b[(t + y) * n + col];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TILE; ++i)
            sum = fma(tile_a[y][i], tile_b[i][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + col] = sum;
}

// Each work-item computes four columns.
kernel void sgemm_wide(global float4 *c, global const float *a, global const float4 *b, int n4, int k) {
    int col = get_global_id(0);
    int row = get_global_id(1);
    float4 sum = (float4)(0.0f);
    for (int i = 0; i < k; ++i)
        sum = fma((float4)(a[row * k + i]), b[i * n4 + col], sum);
    c[row * n4 + col] = sum;
}
