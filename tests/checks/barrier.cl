// Kernels of which some work-items miss a barrier only as the argument says: with 0 for `far`, the same code is right.
// tests/checks/build.sh compiles them.

// The first `far` work-items.
kernel void divergent(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    t[l] = (int)l;
    if ((int)l >= far)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = t[63 - l];
}

// They have returned.
kernel void early(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    t[l] = (int)l;
    if ((int)l < far)
        return;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = t[63 - l];
}

// A loop goes round more often for some.
kernel void trips(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    int sum = 0;
    for (int k = 0; k < 2 + ((int)l & far); k++) {
        t[l] = (int)l + k;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += t[63 - l];
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    o[get_global_id(0)] = sum;
}

// Some leave a loop before its barrier.
kernel void leaves(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    int sum = 0;
    for (int k = 0;; k++) {
        t[l] = (int)l + k;
        if ((int)l < far && k == 1)
            break;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += t[63 - l];
        if (k == 2)
            break;
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    o[get_global_id(0)] = sum;
}

// A sum as a tree, with the barrier inside of the condition.
kernel void tree(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    t[l] = (int)l;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 32; s > 0; s >>= 1) {
        if ((int)l < s || far == 0) {
            if ((int)l < s)
                t[l] += t[l + s];
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
    }
    o[get_global_id(0)] = t[0];
}

// The same number of barriers for all, but not the same ones.
kernel void different(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    t[l] = (int)l;
    if ((int)l < far) {
        for (int k = 0; k < 3; k++) {
            barrier(CLK_LOCAL_MEM_FENCE); // near
            t[l] += 2;
        }
        o[get_global_id(0)] = t[l];
    } else {
        for (int k = 1; k < 7; k += 2) {
            barrier(CLK_LOCAL_MEM_FENCE); // the other
            t[l] *= k;
        }
        o[get_global_id(0)] = t[l] + 5;
    }
}

// In a function that is not inlined.
__attribute__((noinline)) void meet(local int *t, int v) {
    t[get_local_id(0)] = v;
    barrier(CLK_LOCAL_MEM_FENCE); // in a function
}

kernel void called(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    t[l] = 3;
    if ((int)l >= far)
        meet(t, (int)l);
    o[get_global_id(0)] = t[63 - l];
}

// Rows of eight: those of a row return.
kernel void rows(global int *o, int far) {
    local int t[64];
    size_t x = get_local_id(0), y = get_local_id(1);
    t[8 * y + x] = (int)x;
    if ((int)y < far)
        return;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(1) * 8 + x] = t[63 - 8 * y - x];
}

__attribute__((intel_reqd_sub_group_size(16)))
kernel void narrow(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    t[l] = (int)l;
    if ((int)(l & 15) >= far)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = t[63 - l];
}

#ifdef SPLIT
// Halves of a split barrier: some never signal, or never wait.
kernel void signals(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    t[l] = (int)l;
    if ((int)l >= far)
        intel_work_group_barrier_arrive(CLK_LOCAL_MEM_FENCE);
    intel_work_group_barrier_wait(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = t[63 - l];
}

kernel void waits(global int *o, int far) {
    local int t[64];
    size_t l = get_local_id(0);
    t[l] = (int)l;
    intel_work_group_barrier_arrive(CLK_LOCAL_MEM_FENCE);
    if ((int)l >= far)
        intel_work_group_barrier_wait(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = t[63 - l];
}
#endif
