// Lengths of sequences of 64-bit integers

kernel void collatz(global uint *out) {
    ulong x = get_global_id(0) + 1;
    uint n = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x >> 1;
        n++;
    }
    out[get_global_id(0)] = n;
}
