// American options by a tree of 64 steps in private memory

#define N 64
kernel void price(global const float *s, global float *out) {
    float v[N + 1], spot = s[get_global_id(0)], u = 1.02f, d = 1.0f / 1.02f, p = 0.51f, r = 0.9995f;
    float x = spot;
    for (int i = 0; i < N; i++)
        x *= d;
    for (int i = 0; i <= N; i++) {
        v[i] = max(100.0f - x, 0.0f);
        x *= u * u;
    }
    for (int t = N - 1; t >= 0; t--)
        for (int i = 0; i <= t; i++)
            v[i] = r * (p * v[i + 1] + (1.0f - p) * v[i]);
    out[get_global_id(0)] = v[0];
}
