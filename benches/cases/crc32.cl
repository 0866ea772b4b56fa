// CRC of records, bit by bit

kernel void crc(global const uchar *data, global uint *out) {
    int g = get_global_id(0);
    uint c = ~0u;
    for (int i = 0; i < 32; i++) {
        c ^= data[g * 32 + i];
        for (int b = 0; b < 8; b++)
            c = (c >> 1) ^ (0xedb88320u & -(c & 1));
    }
    out[g] = ~c;
}
