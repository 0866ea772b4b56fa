// A convolutional code of 64 states decoded from soft bits, a block a group

#define STEPS 96

kernel void decode(global const char *soft, global uint *bits, global int *metrics) {
    local int metric[2][64];
    local uchar decision[STEPS][64];
    int s = get_local_id(0), block = get_group_id(0);
    int before = s * 2 & 63;
    int first = popcount(s * 2 & 0171) & 1 ? 1 : -1, second = popcount(s * 2 & 0133) & 1 ? 1 : -1;
    metric[0][s] = s == 0 ? 0 : -100000;
    for (int t = 0; t < STEPS; t++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int branch = first * soft[(block * STEPS + t) * 2] + second * soft[(block * STEPS + t) * 2 + 1];
        // Both polynomials have the last bit, so the other predecessor's branch is the opposite.
        int zero = metric[t & 1][before] + branch, one = metric[t & 1][before + 1] - branch;
        metric[~t & 1][s] = max(zero, one);
        decision[t][s] = one > zero;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (s != 0)
        return;
    int state = 0;
    for (int i = 1; i < 64; i++)
        if (metric[STEPS & 1][i] > metric[STEPS & 1][state])
            state = i;
    metrics[block] = metric[STEPS & 1][state];
    uint word = 0;
    for (int t = STEPS - 1; t >= 0; t--) {
        word = word << 1 | state >> 5;
        state = (state * 2 & 63) | decision[t][state];
        if (t % 32 == 0)
            bits[block * (STEPS / 32) + t / 32] = word;
    }
}
