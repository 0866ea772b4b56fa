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

kernel void constant_load(global int *o, constant int *a, int far) {
    size_t i = get_global_id(0);
    o[i] = a[i + far];
}

kernel void vload_3(global int *o, global const int *a, int far) {
    size_t i = get_global_id(0);
    int3 v = vload3(i + far, a);
    o[i] = v.x + v.y + v.z;
}

kernel void vstore_8(global short *o, int far) {
    size_t i = get_global_id(0);
    vstore8((short8)(i + 1), i + far, o);
}

kernel void store_half(global half *o, int far) {
    size_t i = get_global_id(0);
    vstore_half((float)i, i + far, o);
}

kernel void store_char16(global char16 *o, int far) {
    size_t i = get_global_id(0);
    o[i + far] = (char16)((char)i);
}

kernel void load_long(global long *o, global const long *a, int far) {
    size_t i = get_global_id(0);
    o[i] = a[i + far] + 1;
}

kernel void atomic_least(global int *o, int far) {
    size_t i = get_global_id(0);
    atomic_min(&o[i + far], -(int)i - 1);
}

kernel void exchange_float(global float *o, int far) {
    size_t i = get_global_id(0);
    atomic_xchg(&o[i + far], 2.0f + i);
}

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
kernel void add_long(global long *o, int far) {
    size_t i = get_global_id(0);
    atom_add(&o[i + far], (long)i + 1);
}

// One of two buffers.
kernel void chosen(global int *o, global int *a, int far) {
    size_t i = get_global_id(0);
    global int *p = i & 1 ? a : o;
    p[i + far] = (int)i;
}

struct item {
    int key;
    char tag[8];
    short weight;
    float value;
};

kernel void structs(global struct item *o, int far) {
    size_t i = get_global_id(0);
    o[i + far].value = (float)i;
}

// The usual guard, with a length that is wrong.
kernel void guarded(global int *o, int far) {
    size_t i = get_global_id(0);
    if (i < 50 + far)
        o[i] = (int)i + 1;
}

// A loop that goes up to its bound, where that is too much.
kernel void inclusive(global int *o, global const int *a, int far) {
    size_t i = get_global_id(0);
    int sum = 0;
    for (int k = 0; k < 4 + far; k++)
        sum += a[4 * i + k];
    o[i] = sum;
}

__attribute__((noinline)) void put(global int *o, size_t at, int v) {
    o[at] = v; // in a function
}

kernel void called(global int *o, int far) {
    size_t i = get_global_id(0);
    put(o, i + far, (int)i);
}

// A row of a matrix, by the bytes of a row.
kernel void pitched(global char *o, int far) {
    size_t i = get_global_id(0);
    global int *row = (global int *)(o + (i >> 3) * 32);
    row[(i & 7) + far] = (int)i;
}

kernel void copied(global int *o, global const int *a, int far) {
    local int part[80];
    size_t i = get_local_id(0);
    event_t e = async_work_group_copy(part, a, 64 + far, 0); // here
    wait_group_events(1, &e);
    o[i] = part[63 - i];
}

// Unsigned arithmetic that wraps.
kernel void wrapped(global int *o, global const int *a, int far) {
    uint i = get_global_id(0);
    o[i] = a[(i - (uint)far) & 0x3fffffff];
}

// In every round of a loop another element.
kernel void rounds(global int *o, int far) {
    size_t i = get_global_id(0);
    for (int k = 0; k < 3; k++)
        o[64 * k + i + far] = (int)i;
}

kernel void local_store(global int *o, int far) {
    local int part[256];
    size_t i = get_local_id(0);
    part[i] = (int)i;
    part[i + 64] = 7;
    barrier(CLK_LOCAL_MEM_FENCE);
    part[i == 33 ? i + 100000 * far : i] = 2; // here
    barrier(CLK_LOCAL_MEM_FENCE);
    o[i] = part[63 - i] + part[64 + i];
}

kernel void local_load(global int *o, int far) {
    local int part[64];
    size_t i = get_local_id(0);
    part[i] = (int)i;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[i] = part[63 - i + 100000 * far]; // here
}

kernel void local_atomic(global int *o, int far) {
    local int part[64];
    size_t i = get_local_id(0);
    part[i] = (int)i;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc((volatile local int *)&part[i + 100000 * far]); // here
    barrier(CLK_LOCAL_MEM_FENCE);
    o[i] = part[63 - i];
}
