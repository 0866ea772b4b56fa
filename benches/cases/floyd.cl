// All shortest paths of 128 vertices, one launch a vertex

kernel void floyd(global int *d, int k) {
    int x = get_global_id(0), y = get_global_id(1), n = get_global_size(0);
    int through = d[y * n + k] + d[k * n + x];
    if (through < d[y * n + x] && x != k && y != k)
        d[y * n + x] = through;
}
