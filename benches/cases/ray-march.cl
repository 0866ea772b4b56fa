// A scene of distance fields, by sphere tracing with shadows

float sphere(float3 p, float radius) {
    return length(p) - radius;
}

float box(float3 p, float3 size) {
    float3 d = fabs(p) - size;
    return length(fmax(d, 0.0f)) + fmin(fmax(d.x, fmax(d.y, d.z)), 0.0f);
}

float smooth_min(float a, float b, float k) {
    float h = clamp(0.5f + 0.5f * (b - a) / k, 0.0f, 1.0f);
    return mix(b, a, h) - k * h * (1.0f - h);
}

float scene(float3 p) {
    float s = sphere(p - (float3)(0.0f, 0.6f, 0.0f), 0.7f);
    float b = box(p - (float3)(0.8f, 0.3f, 0.2f), (float3)(0.5f, 0.3f, 0.4f));
    return fmin(smooth_min(s, b, 0.3f), p.y);
}

float march(float3 from, float3 dir, float far) {
    float t = 0.02f;
    for (int i = 0; i < 80; i++) {
        float d = scene(from + t * dir);
        if (d < 0.001f)
            return t;
        t += d;
        if (t > far)
            break;
    }
    return -1.0f;
}

float3 normal(float3 p) {
    float2 e = (float2)(0.005f, 0.0f);
    return normalize((float3)(scene(p + e.xyy) - scene(p - e.xyy),
                              scene(p + e.yxy) - scene(p - e.yxy),
                              scene(p + e.yyx) - scene(p - e.yyx)));
}

kernel void render(global float4 *out, float height, float sun) {
    int x = get_global_id(0), y = get_global_id(1);
    int w = get_global_size(0), h = get_global_size(1);
    float3 eye = (float3)(0.0f, height, -3.0f);
    float3 light = normalize((float3)(sun, 0.8f, -0.4f));
    float3 dir = normalize((float3)((x - w / 2) / (float)h, (h / 2 - y) / (float)h, 1.2f));
    float t = march(eye, dir, 20.0f);
    float3 color = (float3)(0.4f, 0.6f, 0.9f) * (1.0f - fabs(dir.y));
    if (t > 0.0f) {
        float3 p = eye + t * dir;
        float3 n = normal(p);
        float shade = fmax(dot(n, light), 0.0f);
        if (shade > 0.0f && march(p + 0.02f * n, light, 10.0f) > 0.0f)
            shade *= 0.2f;
        color = (float3)(0.9f, 0.8f, 0.7f) * (0.15f + 0.85f * shade);
    }
    out[y * w + x] = (float4)(sqrt(color), 1.0f);
}
