// Breadth-first search, one pass of all vertices a level

kernel void seed(global int *level) { level[0] = 0; }
kernel void bfs(global const int *rows, global const int *edges, global int *level, int depth) {
    int v = get_global_id(0);
    if (level[v] != depth)
        return;
    for (int e = rows[v]; e < rows[v + 1]; e++)
        if (level[edges[e]] > depth + 1)
            level[edges[e]] = depth + 1;
}
