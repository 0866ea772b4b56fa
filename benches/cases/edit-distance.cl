// Edit distances of short words in private memory

kernel void edits(global const uchar *a, global const uchar *b, global uint *out) {
    int g = get_global_id(0);
    uint row[17];
    for (uint j = 0; j <= 16; j++)
        row[j] = j;
    for (int i = 0; i < 16; i++) {
        uint diag = row[0];
        row[0] = i + 1;
        for (int j = 0; j < 16; j++) {
            uint cost = diag + (a[g * 16 + i] != b[g * 16 + j]);
            diag = row[j + 1];
            row[j + 1] = min(cost, min(diag, row[j]) + 1);
        }
    }
    out[g] = row[16];
}
