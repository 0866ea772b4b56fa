// Groups of 256 keys sorted in local memory

kernel void sort(global const uint *in, global uint *out) {
    local uint t[256];
    int l = get_local_id(0);
    t[l] = in[get_global_id(0)];
    for (int k = 2; k <= 256; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            int o = l ^ j;
            if (o > l) {
                uint a = t[l], b = t[o];
                if ((a > b) == ((l & k) == 0)) {
                    t[l] = b;
                    t[o] = a;
                }
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = t[l];
}
