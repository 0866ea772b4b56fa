// Grey pictures become black and white by Floyd and Steinberg, rows follow each other two columns apart

#define WIDTH 128

kernel void diffuse(global const uchar *in, global uchar *out) {
    local short errors[65][WIDTH + 2];
    int row = get_local_id(0);
    size_t base = (get_group_id(0) * 64 + row) * WIDTH;
    for (int i = row; i < 65 * (WIDTH + 2); i += 64)
        errors[i / (WIDTH + 2)][i % (WIDTH + 2)] = 0;
    int left = 0;
    for (int t = 0; t < WIDTH + 2 * 63; t++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int x = t - 2 * row;
        if (x < 0 || x >= WIDTH)
            continue;
        int value = in[base + x] + (errors[row][x + 1] + 7 * left + 8 >> 4);
        int white = value >= 128 ? 255 : 0;
        left = value - white;
        errors[row + 1][x] += 3 * left;
        errors[row + 1][x + 1] += 5 * left;
        errors[row + 1][x + 2] += left;
        out[base + x] = white;
    }
}
