// Variables at program scope.

global int counters[4] = {10, 20, 30, 40};
global const float scale = 2.5f;

// counters[i & 3] is raised once by each item, then read by the second kernel.
kernel void global_count(global float *out, global const float *in) {
    int i = get_global_id(0);
    atomic_inc((volatile global int *)&counters[i & 3]);
    out[i] = in[i] * scale;
}

kernel void global_read(global int *out) {
    int i = get_global_id(0);
    out[i] = counters[i & 3];
}
