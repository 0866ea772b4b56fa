// Heat with power, tiles with a border in local memory

#define T 16
kernel void hotspot(global const float *temp, global const float *power, global float *out) {
    local float tile[T + 2][T + 2];
    int w = get_global_size(0), h = get_global_size(1);
    int x0 = get_group_id(0) * T - 1, y0 = get_group_id(1) * T - 1;
    int lx = get_local_id(0), ly = get_local_id(1);
    for (int i = ly * T + lx; i < (T + 2) * (T + 2); i += T * T) {
        int x = clamp(x0 + i % (T + 2), 0, w - 1), y = clamp(y0 + i / (T + 2), 0, h - 1);
        tile[i / (T + 2)][i % (T + 2)] = temp[y * w + x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float c = tile[ly + 1][lx + 1];
    float around = tile[ly][lx + 1] + tile[ly + 2][lx + 1] + tile[ly + 1][lx] + tile[ly + 1][lx + 2];
    int at = get_global_id(1) * w + get_global_id(0);
    out[at] = c + 0.1f * (around - 4.0f * c) + 0.05f * power[at] + 0.001f * (300.0f - c);
}
