// Conversions that round and saturate

kernel void convert(global const float *x, global int *out) {
    float v = x[get_global_id(0)];
    int a = convert_int_rte(v), b = convert_int_rtn(v * 3.0f), c = convert_uchar_sat(v), d = convert_char_sat_rtp(v);
    out[get_global_id(0)] = a + b * 3 + c * 5 + d * 7;
}
