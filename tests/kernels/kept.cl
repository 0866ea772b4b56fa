// Indirect loads and stores under a mask that differs from lane to lane.

kernel void gather_kept(global float *out, global const float *table, global const uint *index,
                        global const uint *keep) {
    int i = get_global_id(0);
    if (keep[i])
        out[i] = table[index[i]];
}

kernel void scatter_kept(global uint *out, global const uint *values, global const uint *index,
                         global const uint *keep) {
    int i = get_global_id(0);
    if (keep[i])
        out[index[i]] = values[i];
}
