// Layers of bytes with alpha laid over each other in vectors of 16, with saturating sums and differences

uchar16 over(uchar16 top, uchar16 below) {
    ushort16 part = convert_ushort16(below) * ((ushort16)255 - convert_ushort16(top.s33337777bbbbffff)) + (ushort16)128;
    return add_sat(top, convert_uchar16((part + (part >> (ushort16)8)) >> (ushort16)8));
}

kernel void blend(global const uchar16 *layers, uchar fade, global uchar16 *out, global ushort8 *sums) {
    size_t g = get_global_id(0), count = get_global_size(0);
    uchar16 pixels = layers[g];
    for (int i = 1; i < 4; i++)
        pixels = over(sub_sat(layers[i * count + g], (uchar16)fade), pixels);
    out[g] = rhadd(pixels, layers[g]);
    ushort8 wide = convert_ushort8(pixels.even) * (ushort8)300;
    sums[g] = add_sat(wide, sub_sat(convert_ushort8(pixels.odd) * (ushort8)257, wide));
}
