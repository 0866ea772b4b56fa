// Kernels for the tests of `--check race`. `far` is 1 in a launch with the race that the kernel is named after, and 0 in a right one.
// The line with the mark (W) or (R) is one side of it, as the tests say.

// Local memory is read before the neighbour's barrier.
kernel void local_read(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    part[l] = l + 1;
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = part[127 - l]; // (R)
}

// Local memory is written again while others still read it.
kernel void local_write(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    part[l] = l + 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    int v = part[127 - l];
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    part[l] = v + 1000; // (W)
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = part[l];
}

// Threads of a group write one element of a buffer.
kernel void global_write(global int *o, int far) {
    int l = get_local_id(0);
    o[far ? get_global_id(0) / 128 * 128 + (l & 31) : get_global_id(0)] = l + 1; // (W)
}

// A buffer is read and written in place without a barrier between.
kernel void in_place(global int *o, int far) {
    int l = get_local_id(0), i = get_global_id(0);
    o[i] = l + 1; // (W)
    if (far == 0)
        barrier(CLK_GLOBAL_MEM_FENCE);
    o[i + 256] = o[i - l + 127 - l]; // (R)
}

// Groups write to each other's part.
kernel void groups_write(global int *o, int far) {
    int i = get_global_id(0);
    o[far ? get_local_id(0) : i] = i + 1; // (W)
}

// Groups read what others write; a barrier does not help.
kernel void groups_read(global int *o, int far) {
    int i = get_global_id(0);
    o[i] = i + 1; // (W)
    barrier(CLK_GLOBAL_MEM_FENCE);
    o[i + 256] = o[far ? get_local_id(0) : i]; // (R)
}

// A plain addition among atomic ones.
kernel void plain_add(global int *o, int far) {
    int i = get_global_id(0);
    if (far && get_local_id(0) == 127)
        o[0] = 5; // (W)
    else
        atomic_inc((volatile global int *)o);
    o[i + 1] = i + 1;
}

// All lanes of an instruction write one element.
kernel void lanes_differ(global int *o, int far) {
    int i = get_global_id(0);
    o[far ? i & ~7 : i] = i + 1; // (W)
}

// Many write the same value: not reported.
kernel void same_value(global int *o, int far) {
    o[0] = 7;
    o[1] = far + 1;
}
