// The four nearest of 512 integer points, by insertion

kernel void nearest(global const int *x, global const int *p, global int4 *out) {
    int v = x[get_global_id(0)];
    int4 b = (int4)(INT_MAX);
    for (int i = 0; i < 512; i++) {
        int d = abs(p[i] - v);
        if (d >= b.w)
            continue;
        b.w = d;
        if (b.w < b.z) b.zw = b.wz;
        if (b.z < b.y) b.yz = b.zy;
        if (b.y < b.x) b.xy = b.yx;
    }
    out[get_global_id(0)] = b;
}
