// Rays against 64 spheres, the nearest hit

kernel void trace(constant float4 *s, global float *out) {
    float3 d = normalize((float3)(get_global_id(0) / 128.0f, get_global_id(1) / 128.0f, 2.0f));
    float best = 1e9f;
    for (int i = 0; i < 64; i++) {
        float3 c = s[i].xyz;
        float b = dot(c, d), q = b * b - dot(c, c) + 0.04f * s[i].w;
        if (q < 0.0f)
            continue;
        float t = b - sqrt(q);
        if (t > 0.0f && t < best)
            best = t;
    }
    out[get_global_id(1) * get_global_size(0) + get_global_id(0)] = best;
}
