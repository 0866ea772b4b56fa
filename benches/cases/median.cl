// Median of nine bytes by exchanges

#define S(a, b) { uchar t = min(a, b); b = max(a, b); a = t; }
kernel void median(global const uchar *in, global uchar *out) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    uchar v[9];
    for (int i = 0; i < 9; i++)
        v[i] = in[clamp(y + i / 3 - 1, 0, h - 1) * w + clamp(x + i % 3 - 1, 0, w - 1)];
    S(v[1], v[2]) S(v[4], v[5]) S(v[7], v[8]) S(v[0], v[1]) S(v[3], v[4]) S(v[6], v[7])
    S(v[1], v[2]) S(v[4], v[5]) S(v[7], v[8]) S(v[0], v[3]) S(v[5], v[8]) S(v[4], v[7])
    S(v[3], v[6]) S(v[1], v[4]) S(v[2], v[5]) S(v[4], v[7]) S(v[4], v[2]) S(v[6], v[4]) S(v[4], v[2])
    out[y * w + x] = v[4];
}
