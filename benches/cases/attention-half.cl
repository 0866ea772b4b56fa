// Attention of one query a group on keys and values that are stored as halves

#define DIM 64
#define KEYS 256

kernel void attention(global const float *q, global const half *k, global const half *v, global float *out, float scale) {
    local float query[DIM], score[KEYS], part[DIM];
    int l = get_local_id(0), query_at = get_group_id(0), head = get_group_id(1);
    int row = head * get_num_groups(0) + query_at;
    query[l] = q[row * DIM + l] * scale;
    barrier(CLK_LOCAL_MEM_FENCE);

    float best = -INFINITY;
    for (int t = l; t < KEYS; t += DIM) {
        float dot = 0.0f;
        for (int d = 0; d < DIM; d++)
            dot += query[d] * vload_half((head * KEYS + t) * DIM + d, k);
        score[t] = dot;
        best = fmax(best, dot);
    }
    part[l] = best;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = DIM / 2; s > 0; s /= 2) {
        if (l < s)
            part[l] = fmax(part[l], part[l + s]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    best = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);

    float sum = 0.0f;
    for (int t = l; t < KEYS; t += DIM) {
        float e = exp(score[t] - best);
        score[t] = e;
        sum += e;
    }
    part[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = DIM / 2; s > 0; s /= 2) {
        if (l < s)
            part[l] += part[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    float result = 0.0f;
    for (int t = 0; t < KEYS; t++)
        result += score[t] * vload_half((head * KEYS + t) * DIM + l, v);
    out[row * DIM + l] = result / part[0];
}
