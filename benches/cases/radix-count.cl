// Digits of keys counted for each group, by local atomics

kernel void count(global const uint *keys, global uint *counts) {
    local uint c[16];
    int l = get_local_id(0), g = get_group_id(0);
    if (l < 16)
        c[l] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 4; i++)
        atomic_inc(&c[(keys[g * 1024 + i * 256 + l] >> 8) & 15]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 16)
        counts[g * 16 + l] = c[l];
}
