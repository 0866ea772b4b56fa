// FNV-1a of records of 64 bytes

kernel void fnv(global const uchar *data, global uint *out) {
    int g = get_global_id(0);
    uint h = 2166136261u;
    for (int i = 0; i < 64; i++)
        h = (h ^ data[g * 64 + i]) * 16777619u;
    out[g] = h;
}
