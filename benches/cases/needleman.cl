// Alignment scores by diagonals, one pair of sequences a group

kernel void align(global const uchar *a, global const uchar *b, global int *out) {
    local int d[3][65];
    int l = get_local_id(0), base = get_group_id(0) * 64;
    uchar c = a[base + l];
    for (int i = l; i < 65; i += 64)
        d[0][i] = d[1][i] = d[2][i] = -i;
    int score = 0;
    for (int s = 0; s < 127; s++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int j = s - l, now = (s + 2) % 3, one = (s + 1) % 3, two = s % 3;
        if (j >= 0 && j < 64) {
            int diag = l == 0 ? -j : (j == 0 ? -l : d[two][l]);
            int up = l == 0 ? -j - 1 : d[one][l];
            int left = j == 0 ? -l - 1 : d[one][l + 1];
            score = max(diag + (c == b[base + j] ? 1 : -1), max(up, left) - 1);
            d[now][l + 1] = score;
        }
    }
    if (l == 63)
        out[get_group_id(0)] = score;
}
