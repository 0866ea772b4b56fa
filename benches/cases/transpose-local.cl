// Transposition through tiles in local memory, with bank conflicts

kernel void transpose(global const float *in, global float *out) {
    local float tile[16][16];
    int lx = get_local_id(0), ly = get_local_id(1), n = get_global_size(0);
    tile[ly][lx] = in[get_global_id(1) * n + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[(get_group_id(0) * 16 + ly) * n + get_group_id(1) * 16 + lx] = tile[lx][ly];
}
