// Halves in memory, floats in registers

kernel void scale(global const ushort *x, global ushort *out) {
    int g = get_global_id(0);
    float v = vload_half(g, (global const half *)x);
    vstore_half(v * 0.5f + 1.0f, g, (global half *)out);
}
