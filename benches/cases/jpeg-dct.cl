// Cosine transforms of blocks of 8x8 bytes in integers, quantised and written in zigzag order

constant short cosines[64] = {
    5793, 5793, 5793, 5793, 5793, 5793, 5793, 5793, 8035, 6811, 4551, 1598, -1598, -4551, -6811, -8035,
    7568, 3135, -3135, -7568, -7568, -3135, 3135, 7568, 6811, -1598, -8035, -4551, 4551, 8035, 1598, -6811,
    5793, -5793, -5793, 5793, 5793, -5793, -5793, 5793, 4551, -8035, 1598, 6811, -6811, -1598, 8035, -4551,
    3135, -7568, 7568, -3135, -3135, 7568, -7568, 3135, 1598, -4551, 6811, -8035, 8035, -6811, 4551, -1598,
};
constant uchar places[64] = {
    0, 1, 5, 6, 14, 15, 27, 28, 2, 4, 7, 13, 16, 26, 29, 42, 3, 8, 12, 17, 25, 30, 41, 43, 9, 11, 18, 24, 31, 40, 44, 53,
    10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38, 46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63,
};

kernel void encode(global const uchar *picture, constant ushort *quanta, global short *out, global int *lengths) {
    local int samples[8][8], rows[8][8];
    local int length;
    int u = get_local_id(0), v = get_local_id(1);
    size_t block = get_group_id(1) * get_num_groups(0) + get_group_id(0);
    samples[v][u] = picture[get_global_id(1) * get_global_size(0) + get_global_id(0)] - 128;
    if (u == 0 && v == 0)
        length = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
    for (int x = 0; x < 8; x++)
        sum += samples[v][x] * cosines[u * 8 + x];
    rows[v][u] = sum + (1 << 10) >> 11;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (int y = 0; y < 8; y++)
        sum += rows[y][u] * cosines[v * 8 + y];
    int value = sum + (1 << 16) >> 17, quantum = quanta[v * 8 + u];
    value = (value < 0 ? value - quantum / 2 : value + quantum / 2) / quantum;
    int place = places[v * 8 + u];
    out[block * 64 + place] = value;
    if (value != 0)
        atomic_max(&length, place + 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (u == 0 && v == 0)
        lengths[block] = length;
}
