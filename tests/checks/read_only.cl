// Kernels for the tests of what is found of writes to memory that kernels only read, and of atomics at addresses that are no multiples of
// their elements. `far` is 1 in a launch with the error, and 0 in a right one. The line with the mark (K) is the one of the error.

constant int table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

// Work-items 0, 4, 8 and so on write to a constant.
kernel void constant_store(global int *o, int far) {
    size_t i = get_global_id(0);
    global int *p = o + i;
    if (far && (i & 3) == 0)
        p = (global int *)(ulong)&table[i & 15];
    *p = (int)i; // (K)
}

kernel void constant_atomic(global int *o, int far) {
    size_t i = get_global_id(0);
    global int *p = o + i;
    if (far && i < 2)
        p = (global int *)(ulong)&table[i];
    atomic_add(p, 5); // (K)
}

// An atomic that only reads: the old value is what is there.
kernel void atomic_only_reads(global int *o, global int *a, int far) {
    size_t i = get_global_id(0);
    o[i] = atomic_or(&a[i], 0);
}

// The addresses of all work-items are odd.
kernel void odd_add(global int *o, int far) {
    size_t i = get_global_id(0);
    global char *p = (global char *)o + 4 * (i & 31) + far;
    atomic_add((global int *)p, 1); // (K)
}

// That of one.
kernel void one_odd_exchange(global int *o, int far) {
    size_t i = get_global_id(0);
    global char *p = (global char *)o + 4 * i + (i == 21 ? 2 * far : 0);
    atomic_xchg((global int *)p, (int)i); // (K)
}

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
// Half an element.
kernel void half_long(global long *o, int far) {
    size_t i = get_global_id(0);
    global char *p = (global char *)o + 8 * (i & 31) + (i & 1 ? 4 * far : 0);
    atom_add((global long *)p, (long)i); // (K)
}

kernel void odd_compare_exchange(global int *o, int far) {
    size_t i = get_global_id(0);
    global char *p = (global char *)o + 4 * (i & 31) + (i > 60 ? far : 0);
    atomic_cmpxchg((global int *)p, (int)i, 7); // (K)
}

// The same address for all.
kernel void odd_counter(global int *o, int far) {
    atomic_inc((global int *)((global char *)o + 3 * far)); // (K)
}

// Work-items that are masked off have odd addresses, which is no error.
kernel void odd_masked(global int *o, int far) {
    size_t i = get_global_id(0);
    global char *p = (global char *)o + 4 * (i & 31) + (i & 1);
    if ((i & 1) == 0 || (far && i == 33))
        atomic_add((global int *)p, 1); // (K)
}

kernel void odd_local(global int *o, int far) {
    local int part[64];
    size_t i = get_local_id(0);
    part[i] = (int)i;
    barrier(CLK_LOCAL_MEM_FENCE);
    local char *p = (local char *)part + 4 * (i & 31) + (i == 7 ? far : 0);
    atomic_add((local int *)p, 3); // (K)
    barrier(CLK_LOCAL_MEM_FENCE);
    o[i] = part[63 - i];
}
