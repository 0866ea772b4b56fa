// Three bytes to four characters by a table in constant memory

constant uchar digits[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
kernel void encode(global const uchar *in, global uchar *out) {
    int g = get_global_id(0);
    uint v = (in[3 * g] << 16) | (in[3 * g + 1] << 8) | in[3 * g + 2];
    for (int i = 0; i < 4; i++)
        out[4 * g + i] = digits[(v >> (18 - 6 * i)) & 63];
}
