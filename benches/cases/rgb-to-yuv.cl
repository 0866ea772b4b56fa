// Colours of bytes in integers, vectors of four

kernel void convert(global const uchar4 *in, global uchar4 *out) {
    int4 c = convert_int4(in[get_global_id(0)]);
    int y = (66 * c.x + 129 * c.y + 25 * c.z + 128) >> 8;
    int u = (-38 * c.x - 74 * c.y + 112 * c.z + 128) >> 8;
    int v = (112 * c.x - 94 * c.y - 18 * c.z + 128) >> 8;
    out[get_global_id(0)] = convert_uchar4_sat((int4)(y + 16, u + 128, v + 128, c.w));
}
