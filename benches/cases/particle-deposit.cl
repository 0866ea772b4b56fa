// Charges of particles spread on a grid, floats added by compare and exchange

void add(volatile global uint *word, float value) {
    uint old = *word, seen;
    do {
        seen = old;
        old = atomic_cmpxchg(word, seen, as_uint(as_float(seen) + value));
    } while (old != seen);
}

kernel void deposit(global const float *x, global const float *y, global const float *charge, int width,
                    volatile global uint *grid) {
    int g = get_global_id(0);
    float px = floor(x[g]), py = floor(y[g]), fx = x[g] - px, fy = y[g] - py, q = charge[g];
    int at = (int)py * width + (int)px;
    add(grid + at, q * (1.0f - fx) * (1.0f - fy));
    add(grid + at + 1, q * fx * (1.0f - fy));
    add(grid + at + width, q * (1.0f - fx) * fy);
    add(grid + at + width + 1, q * fx * fy);
}
