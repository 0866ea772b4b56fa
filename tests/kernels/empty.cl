// Kernels that do nothing.

kernel void empty(void) {}

kernel void empty_with_arguments(global uint *out, local uint *tile, float a, ulong b, char c) {}
