// Similarities of sets of bits by population counts

kernel void best(global const ulong *a, global const ulong *b, global uint *out) {
    ulong v = a[get_global_id(0)];
    uint most = 0;
    for (int i = 0; i < 64; i++)
        most = max(most, (uint)popcount(v & b[i]));
    out[get_global_id(0)] = most;
}
