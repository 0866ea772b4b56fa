// Bytes multiplied by vectors of sixteen

kernel void q8(global const char16 *w, global const char16 *x, global int *out) {
    int g = get_global_id(0);
    int16 sum = 0;
    for (int b = 0; b < 32; b++)
        sum += convert_int16(w[g * 32 + b]) * convert_int16(x[b]);
    int8 a = sum.lo + sum.hi;
    int4 c = a.lo + a.hi;
    out[g] = c.x + c.y + c.z + c.w;
}
