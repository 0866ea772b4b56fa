// 3x3 neighbourhoods with different treatment of the edge.

// Integer blur: cells outside the picture are skipped, the mean is over those inside.
kernel void stencil_mean(global int *out, global const int *in, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    int sum = 0, count = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            int xx = x + dx, yy = y + dy;
            if (xx < 0 || yy < 0 || xx >= width || yy >= height)
                continue;
            sum += in[yy * width + xx];
            ++count;
        }
    }
    out[y * width + x] = sum / count;
}

// Weighted float stencil: the edge is copied.
kernel void stencil_weighted(global float *out, global const float *in, constant float *weights,
                             int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    int at = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[at] = in[at];
        return;
    }
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum = fma(weights[(dy + 1) * 3 + dx + 1], in[at + dy * width + dx], sum);
    out[at] = sum;
}

// Conway's game of life on a torus of bytes.
kernel void life(global uchar *out, global const uchar *in, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    int left = x == 0 ? width - 1 : x - 1, right = x == width - 1 ? 0 : x + 1;
    int up = (y == 0 ? height - 1 : y - 1) * width, down = (y == height - 1 ? 0 : y + 1) * width;
    int row = y * width;
    int n = in[up + left] + in[up + x] + in[up + right] + in[row + left] + in[row + right]
          + in[down + left] + in[down + x] + in[down + right];
    out[row + x] = n == 3 || (n == 2 && in[row + x]);
}
