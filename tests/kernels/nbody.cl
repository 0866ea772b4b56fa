// One time step of n gravitating bodies: xyz is the position, w the mass.

float3 pull(float4 body, float4 other, float softening) {
    float3 r = other.xyz - body.xyz;
    float d2 = fma(r.x, r.x, fma(r.y, r.y, fma(r.z, r.z, softening)));
    float inv = rsqrt(d2);
    return r * (other.w * inv * inv * inv);
}

kernel void nbody(global float4 *new_position, global float4 *velocity,
                  global const float4 *position, uint n, float dt, float softening) {
    uint i = get_global_id(0);
    float4 body = position[i];
    float3 acceleration = (float3)(0.0f);
    for (uint j = 0; j < n; ++j)
        acceleration += pull(body, position[j], softening);
    float3 v = velocity[i].xyz + acceleration * dt;
    velocity[i] = (float4)(v, 0.0f);
    new_position[i] = (float4)(body.xyz + v * dt, body.w);
}

// The same through a tile of local memory; n is a multiple of the group size.
kernel void nbody_tiled(global float4 *new_position, global float4 *velocity,
                        global const float4 *position, uint n, float dt, float softening,
                        local float4 *tile) {
    uint i = get_global_id(0), lid = get_local_id(0), size = get_local_size(0);
    float4 body = position[i];
    float3 acceleration = (float3)(0.0f);
    for (uint base = 0; base < n; base += size) {
        tile[lid] = position[base + lid];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < size; ++j)
            acceleration += pull(body, tile[j], softening);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float3 v = velocity[i].xyz + acceleration * dt;
    velocity[i] = (float4)(v, 0.0f);
    new_position[i] = (float4)(body.xyz + v * dt, body.w);
}
