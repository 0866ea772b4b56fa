// Minima, maxima, sums and exchanges on few addresses

kernel void atomics(global const int *in, global int *out) {
    int v = in[get_global_id(0)], at = (v & 15) * 4;
    atomic_min(&out[at], v);
    atomic_max(&out[at + 1], v);
    atomic_add(&out[at + 2], v);
    atomic_xor(&out[at + 3], v);
}
