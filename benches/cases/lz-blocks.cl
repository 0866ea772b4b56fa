// Blocks of 256 bytes compressed: matches found by a private table of hashes, copied as literals and references

#define BLOCK 256
#define MOST 272

uint word(global const uchar *s) {
    return s[0] | s[1] << 8 | s[2] << 16 | (uint)s[3] << 24;
}

kernel void compress(global const uchar *text, global uchar *packed, global uint *sizes) {
    int g = get_global_id(0);
    global const uchar *s = text + g * BLOCK;
    global uchar *to = packed + g * MOST;
    uchar last[64];
    for (int i = 0; i < 64; i++)
        last[i] = 0;
    int at = 0, start = 0, size = 0;
    while (at + 4 <= BLOCK) {
        uint w = word(s + at), slot = w * 2654435761u >> 26;
        int from = last[slot];
        last[slot] = at;
        if (from >= at || word(s + from) != w) {
            at++;
            continue;
        }
        int length = 4;
        while (at + length < BLOCK && s[from + length] == s[at + length])
            length++;
        to[size++] = at - start;
        while (start < at)
            to[size++] = s[start++];
        to[size++] = length;
        to[size++] = at - from;
        at += length;
        start = at;
    }
    to[size++] = BLOCK - start;
    while (start < BLOCK)
        to[size++] = s[start++];
    sizes[g] = size;
}
