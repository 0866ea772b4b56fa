// Points in a circle counted with a linear congruential generator

kernel void pi(global uint *out) {
    uint s = get_global_id(0) * 747796405u + 2891336453u, n = 0;
    for (int i = 0; i < 64; i++) {
        s = s * 1664525u + 1013904223u;
        uint x = s >> 17;
        s = s * 1664525u + 1013904223u;
        uint y = s >> 17;
        n += x * x + y * y < 1073741824u;
    }
    out[get_global_id(0)] = n;
}
