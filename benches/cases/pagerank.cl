// Page rank by gathering from neighbours

kernel void rank(global const int *rows, global const int *edges, global const float *in, global float *out) {
    int v = get_global_id(0);
    float sum = 0.0f;
    for (int e = rows[v]; e < rows[v + 1]; e++) {
        int u = edges[e];
        sum += in[u] / (float)(rows[u + 1] - rows[u]);
    }
    out[v] = 0.15f + 0.85f * sum;
}
