// Functions that are not inlined, in a loop

__attribute__((noinline)) uint step_a(uint v, uint i) { return rotate(v, i & 31) * 2654435761u; }
__attribute__((noinline)) uint step_b(uint v, uint i) { return (v ^ (v >> 15)) + step_a(v, i + 1); }
kernel void chain(global const uint *x, global uint *out) {
    uint v = x[get_global_id(0)];
    for (uint i = 0; i < 16; i++)
        v = v & 1 ? step_a(v, i) : step_b(v, i);
    out[get_global_id(0)] = v;
}
