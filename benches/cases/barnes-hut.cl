// Gravity of bodies by a walk of a tree of squares with a stack in private memory

#define LEAVES 1365

kernel void leaves(global const float *jitter, global float4 *nodes) {
    int g = get_global_id(0), x = 0, y = 0;
    for (int b = 0; b < 6; b++) {
        x |= (g >> 2 * b & 1) << b;
        y |= (g >> 2 * b + 1 & 1) << b;
    }
    nodes[LEAVES + g] = (float4)(x + jitter[2 * g], y + jitter[2 * g + 1], 0.5f + jitter[2 * g], 1.0f);
}

kernel void parents(global float4 *nodes, int first, int count) {
    int n = first + (int)get_global_id(0);
    if (n >= first + count)
        return;
    float x = 0.0f, y = 0.0f, mass = 0.0f;
    for (int c = 4 * n + 1; c <= 4 * n + 4; c++) {
        float4 child = nodes[c];
        x += child.x * child.z;
        y += child.y * child.z;
        mass += child.z;
    }
    nodes[n] = (float4)(x / mass, y / mass, mass, 2.0f * nodes[4 * n + 1].w);
}

kernel void walk(global const float4 *nodes, float opening, global float2 *out) {
    int g = get_global_id(0), stack[32], depth = 1;
    float4 body = nodes[LEAVES + g];
    float fx = 0.0f, fy = 0.0f;
    stack[0] = 0;
    while (depth > 0) {
        int n = stack[--depth];
        float4 node = nodes[n];
        float dx = node.x - body.x, dy = node.y - body.y, r2 = dx * dx + dy * dy;
        if (n < LEAVES && node.w * node.w > opening * r2) {
            for (int c = 4; c >= 1; c--)
                stack[depth++] = 4 * n + c;
            continue;
        }
        float inverse = rsqrt(r2 + 0.01f), force = node.z * inverse * inverse * inverse;
        fx += force * dx;
        fy += force * dy;
    }
    out[g] = (float2)(fx, fy);
}
