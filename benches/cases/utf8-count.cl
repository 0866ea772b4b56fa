// Characters of UTF-8 decoded and classified in blocks

kernel void count(global const uchar *text, global uint *out) {
    int g = get_global_id(0);
    uint sum = 0;
    for (int i = g * 64; i < g * 64 + 64; i++) {
        uchar c = text[i];
        if (c < 0x80)
            sum += 1;
        else if (c >= 0xf0)
            sum += 0x1000000;
        else if (c >= 0xe0)
            sum += 0x10000;
        else if (c >= 0xc0)
            sum += 0x100;
    }
    out[g] = sum;
}
