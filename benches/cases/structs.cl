// Records of a byte, a short, an integer and a float

typedef struct { uchar kind; short delta; int count; float weight; } record;
kernel void make(global const uint *seeds, global record *r) {
    int g = get_global_id(0);
    uint s = seeds[g];
    r[g].kind = s & 3;
    r[g].delta = s >> 8;
    r[g].count = s >> 16;
    r[g].weight = (s & 1023) * 0.125f;
}
kernel void use(global const record *r, global float *out) {
    record v = r[get_global_id(0)];
    float x = v.kind == 0 ? v.delta : v.kind == 1 ? v.count : v.weight;
    out[get_global_id(0)] = x * v.weight + v.delta;
}
