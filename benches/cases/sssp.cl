// Shortest paths by relaxing all edges with atomic minima

kernel void seed(global int *dist) { dist[0] = 0; }
kernel void relax(global const int *rows, global const int *edges, global const int *weights, global int *dist) {
    int v = get_global_id(0);
    int d = dist[v];
    if (d >= 1000000)
        return;
    for (int e = rows[v]; e < rows[v + 1]; e++)
        atomic_min(&dist[edges[e]], d + weights[e]);
}
