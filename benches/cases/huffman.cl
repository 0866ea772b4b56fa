// Streams of bits decoded by a table of prefix codes that the set-up makes

#define WORDS 32
#define MOST 512

kernel void make(global const uchar *lengths, int count, global ushort *table) {
    int at = 0;
    for (int i = 0; i < count; i++)
        for (int end = at + (1024 >> lengths[i]); at < end; at++)
            table[at] = lengths[i] << 8 | (i * 37 & 255);
}

kernel void decode(global const uint *streams, global const ushort *table, global uchar *out, global uint *counts) {
    int g = get_global_id(0), next = 0, left = 0, count = 0;
    ulong bits = 0;
    while (true) {
        if (left <= 32 && next < WORDS) {
            uint word = as_uint(as_uchar4(streams[g * WORDS + next++]).wzyx);
            bits |= (ulong)word << (32 - left);
            left += 32;
        }
        ushort entry = table[bits >> 54];
        int length = entry >> 8;
        if (length > left)
            break;
        out[g * MOST + count++] = entry;
        bits <<= length;
        left -= length;
    }
    counts[g] = count;
}
