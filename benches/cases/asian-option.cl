// Monte Carlo price of an Asian option, with the Box-Muller transform

uint next(uint *state) {
    uint x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    *state = x;
    return x;
}

float uniform(uint *state) {
    return ((next(state) >> 8) + 0.5f) / 16777216.0f;
}

kernel void price(global const uint *seeds, global float *sums, float s0, float strike, float drift, float vol, int steps) {
    local float part[128];
    int l = get_local_id(0);
    uint state = seeds[get_global_id(0)] | 1;
    float s = s0, mean = 0.0f;
    for (int i = 0; i < steps; i += 2) {
        float r = sqrt(-2.0f * log(uniform(&state)));
        float angle = 6.283185307f * uniform(&state);
        s *= exp(drift + vol * r * cos(angle));
        mean += s;
        s *= exp(drift + vol * r * sin(angle));
        mean += s;
    }
    part[l] = fmax(mean / steps - strike, 0.0f);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = get_local_size(0) / 2; d > 0; d >>= 1) {
        if (l < d)
            part[l] += part[l + d];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        sums[get_group_id(0)] = part[0];
}
