// CRC of records, a byte at a time by a constant table that the set-up makes

kernel void make(global uint *table) {
    uint c = get_global_id(0);
    for (int b = 0; b < 8; b++)
        c = (c >> 1) ^ (0xedb88320u & -(c & 1));
    table[get_global_id(0)] = c;
}
kernel void crc(global const uchar *data, constant uint *table, global uint *out) {
    int g = get_global_id(0);
    uint c = ~0u;
    for (int i = 0; i < 64; i++)
        c = (c >> 8) ^ table[(c ^ data[g * 64 + i]) & 255];
    out[g] = ~c;
}
