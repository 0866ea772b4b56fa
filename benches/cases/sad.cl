// Sums of absolute differences of blocks of pixels, for motion search

#define RANGE 8
#define POSITIONS (2 * RANGE * 2 * RANGE)

kernel void block_sad(global const uchar *current, global const uchar *reference, global ushort *sad, int width, int height) {
    int position = get_global_id(0);
    int bx = get_global_id(1), by = get_global_id(2);
    int mx = position % (2 * RANGE) - RANGE;
    int my = position / (2 * RANGE) - RANGE;
    ushort sum = 0;
    for (int y = 0; y < 4; y++) {
        for (int x = 0; x < 4; x++) {
            int cx = bx * 4 + x, cy = by * 4 + y;
            int rx = clamp(cx + mx, 0, width - 1);
            int ry = clamp(cy + my, 0, height - 1);
            sum += abs_diff(current[cy * width + cx], reference[ry * width + rx]);
        }
    }
    sad[(by * get_global_size(1) + bx) * POSITIONS + position] = sum;
}

// The sums of 8x8 blocks, out of those of their four quarters.
kernel void larger(global const ushort *sad, global ushort *sad8, int blocks) {
    int position = get_global_id(0);
    int bx = get_global_id(1), by = get_global_id(2);
    ushort sum = 0;
    for (int q = 0; q < 4; q++)
        sum += sad[((by * 2 + q / 2) * blocks + bx * 2 + q % 2) * POSITIONS + position];
    sad8[(by * get_global_size(1) + bx) * POSITIONS + position] = sum;
}
