// Kernels that go wrong only as their arguments say: `far` moves addresses, so that the same code is right with 0.
// tests/checks/build.sh compiles them.

kernel void store_int(global int *o, int far) {
    size_t i = get_global_id(0);
    o[i + far] = (int)i;
}

kernel void store_char(global char *o, int far) {
    size_t i = get_global_id(0);
    o[i + far] = (char)i;
}

kernel void store_short(global short *o, int far) {
    size_t i = get_global_id(0);
    o[i + far] = (short)i;
}

kernel void store_long(global long *o, int far) {
    size_t i = get_global_id(0);
    o[i + far] = (long)i;
}

kernel void store_int4(global int4 *o, int far) {
    size_t i = get_global_id(0);
    o[i + far] = (int4)(i, i + 1, i + 2, i + 3);
}

kernel void load_int(global int *o, global const int *a, int far) {
    size_t i = get_global_id(0);
    o[i] = a[i + far];
}

kernel void load_char(global int *o, global const char *a, int far) {
    size_t i = get_global_id(0);
    o[i] = a[i + far];
}

kernel void load_int4(global int *o, global const int4 *a, int far) {
    size_t i = get_global_id(0);
    int4 v = a[i + far];
    o[i] = v.x + v.w;
}

kernel void uniform(global int *o, global const int *a, int far) {
    o[get_global_id(0)] = a[64 + far - 1];
}

kernel void backwards(global int *o, global const int *a, int far) {
    size_t i = get_global_id(0);
    o[i] = a[63 - (int)i - far];
}

kernel void strided(global int *o, global const int *a, int far) {
    size_t i = get_global_id(0);
    o[i] = a[3 * i + far];
}

// One item of all that are enabled reads beyond the table.
kernel void gather(global int *o, global const int *a, int far) {
    size_t i = get_global_id(0);
    int at = (int)((i * 37) & 63);
    o[i] = a[i == 21 ? 63 + far : at];
}

kernel void scatter(global int *o, int far) {
    size_t i = get_global_id(0);
    int at = (int)((i * 37) & 63);
    o[at == 63 ? 63 + far : at] = (int)i;
}

// Items that are masked off have addresses far outside, which is no error.
kernel void masked(global int *o, global const int *a, int far) {
    size_t i = get_global_id(0);
    int v = 0;
    if (i & 1)
        v = a[i + far];
    else if (i > 1000)
        v = a[i << 20];
    o[i] = v;
}

kernel void diverging(global int *o, global const int *a, int far) {
    size_t i = get_global_id(0);
    int sum = 0;
    for (int k = 0; k < (int)(i & 7) + far; k++)
        sum += a[(i & ~(size_t)7) + k];
    o[i] = sum;
}

kernel void atomics(global int *o, int far) {
    size_t i = get_global_id(0);
    atomic_add(&o[(i & 15) == 15 ? 15 + far : (int)(i & 15)], 1);
}

kernel void compare_exchange(global int *o, int far) {
    size_t i = get_global_id(0);
    atomic_cmpxchg(&o[i + far], 0, 7);
}

// A pointer that lies in memory.
kernel void linked(global int *o, global const ulong *pointers, int far) {
    size_t i = get_global_id(0);
    global const int *a = (global const int *)pointers[0];
    o[i] = a[i + far];
}

kernel void sub_group_read(global int *o, global const uint *a, int far) {
    size_t i = get_global_id(0);
    uint start = (uint)(i & ~(size_t)15);
    uint v = intel_sub_group_block_read(a + (i & ~(size_t)(get_max_sub_group_size() - 1)) + far);
    o[i] = (int)v;
}

kernel void sub_group_write(global uint *o, int far) {
    size_t i = get_global_id(0);
    intel_sub_group_block_write(o + (i & ~(size_t)(get_max_sub_group_size() - 1)) + far, (uint)i);
}

// The items of a group write a row; the last row is too far.
kernel void rows(global int *o, int pitch, int far) {
    size_t x = get_global_id(0), y = get_global_id(1);
    o[(y + far) * pitch + x] = (int)(x + y);
}

__attribute__((intel_reqd_sub_group_size(16)))
kernel void store_16(global int *o, int far) {
    size_t i = get_global_id(0);
    o[i + far] = (int)i;
}

__attribute__((intel_reqd_sub_group_size(32)))
kernel void store_32(global int *o, int far) {
    size_t i = get_global_id(0);
    o[i + far] = (int)i;
}
