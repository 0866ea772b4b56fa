// Bytes and shorts with saturating sums and differences

kernel void saturate(global const short8 *a, global const short8 *b, global short8 *out) {
    int g = get_global_id(0);
    short8 s = add_sat(a[g], b[g]), d = sub_sat(a[g], b[g]);
    out[g] = max(s, d) - rhadd(s, b[g]);
}
