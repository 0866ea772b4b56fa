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

// Bytes of local memory, of which four lie in a word.
kernel void local_bytes(global int *o, int far) {
    local char part[128];
    int l = get_local_id(0);
    part[l] = (char)(l + 1); // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = part[127 - l]; // (R)
}

kernel void local_shorts(global int *o, int far) {
    local short part[256];
    int l = get_local_id(0);
    part[2 * l] = (short)(l + 1); // (W)
    part[2 * l + 1] = 3;
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = part[254 - 2 * l]; // (R)
}

kernel void local_longs(global int *o, int far) {
    local long part[128];
    int l = get_local_id(0);
    part[l] = l + 1; // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = (int)part[127 - l]; // (R)
}

kernel void local_vectors(global int *o, int far) {
    local int4 part[128];
    int l = get_local_id(0);
    part[l] = (int4)(l + 1, l + 2, l + 3, l + 4); // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    int4 v = part[127 - l]; // (R)
    o[get_global_id(0)] = v.x + v.w;
}

// One work-item writes for all, and they do not wait for it.
kernel void broadcast(global int *o, int far) {
    local int part[1];
    int l = get_local_id(0);
    if (l == 0)
        part[0] = o[0] + 77; // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0) + 512] = part[0]; // (R)
}

// A sum as a tree: the barrier is missing after its first step.
kernel void tree(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    part[l] = l + 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 64)
        part[l] += part[l + 64]; // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    int v = l < 32 ? part[l] + part[63 - l] : 0; // (R)
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = v + part[0];
}

// A running sum in place, without a barrier between reading and writing.
kernel void scan(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    part[l] = l + 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    int v = l >= 32 ? part[l - 32] : 0; // (R)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    part[l] += v + 1000; // (W)
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = part[l];
}

// A tile is read by columns before all rows are there.
kernel void transpose_tile(global int *o, int far) {
    local int tile[8][16];
    int l = get_local_id(0);
    tile[l / 16][l % 16] = l + 1; // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = tile[l % 8][l / 8]; // (R)
}

// Neighbours of a ring; the barrier at the end of a round is missing.
kernel void rounds(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    int sum = 0;
    for (int k = 0; k < 4; k++) {
        part[l] = sum + l + 1; // (W)
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += part[(l + 64) & 127]; // (R)
        if (far == 0)
            barrier(CLK_LOCAL_MEM_FENCE);
    }
    o[get_global_id(0)] = sum;
}

// In a function that is not inlined.
__attribute__((noinline)) void put(local int *part, int l) {
    part[l] = l + 1;
}

kernel void called(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    put(part, l);
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = part[127 - l]; // (R)
}

// Only some lanes write.
kernel void masked(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    part[l] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((l & 3) == 1)
        part[l] = l + 1; // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    int v = 0;
    if ((l & 3) == 2)
        v = part[127 - l]; // (R)
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = v;
}

// A counter is set to zero after others have begun to count.
kernel void local_reset(global int *o, int far) {
    local int count[1];
    int l = get_local_id(0);
    if (far == 0) {
        if (l == 0)
            count[0] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    atomic_inc((volatile local int *)count); // (R)
    if (far != 0 && l == 5)
        count[0] = 5; // (W)
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = count[0] + 1;
}

// The count is read before all have counted.
kernel void local_count(global int *o, int far) {
    local int count[1];
    int l = get_local_id(0);
    if (l == 0)
        count[0] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc((volatile local int *)count); // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = count[0]; // (R)
}

__attribute__((intel_reqd_sub_group_size(16)))
kernel void narrow(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    part[l] = l + 1; // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    // The neighbour's sub-group.
    o[get_global_id(0)] = part[l ^ 16]; // (R)
}

__attribute__((intel_reqd_sub_group_size(32)))
kernel void wide(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    part[l] = l + 1; // (W)
    // Inside of a sub-group no barrier is needed.
    int own = part[l ^ 31];
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = own + part[l ^ 32]; // (R)
}

// Two values a work-item; the ranges of neighbours overlap by one.
kernel void overlap(global int *o, int far) {
    int i = get_global_id(0);
    o[2 * i] = i + 1; // (W)
    o[2 * i + 1 + far] = i + 1000; // (W)
}

// Bytes of a buffer, the same byte of a word by two threads.
kernel void global_bytes(global int *o, int far) {
    int l = get_local_id(0), g = get_group_id(0);
    ((global char *)o)[128 * g + (far ? l ^ (l & 64) : l)] = (char)(l + 1); // (W)
}

// Rows of sub-groups, written as blocks and read as the neighbour's block.
__attribute__((intel_reqd_sub_group_size(16)))
kernel void blocks(global int *o, int far) {
    int i = get_global_id(0), row = i & ~15;
    intel_sub_group_block_write((global uint *)o + row, (uint)i + 1); // (W)
    if (far == 0)
        barrier(CLK_GLOBAL_MEM_FENCE);
    o[i + 512] = intel_sub_group_block_read((global const uint *)o + (row ^ 16)); // (R)
}

// A halo of one element is written by two groups.
kernel void halo(global int *o, int far) {
    int i = get_global_id(0), l = get_local_id(0);
    o[i] = i + 1; // (W)
    if (far && l == 127)
        o[i + 1] = 1000 + i; // (W)
}

// A stencil in place.
kernel void stencil(global int *o, int far) {
    int i = get_global_id(0), l = get_local_id(0);
    o[512 + i] = i + 1;
    int left = far ? o[(i + 128) & 255] : i; // (R)
    o[i] = left + i + 1; // (W)
}

// A histogram without atomics.
kernel void counts(global int *o, int far) {
    int i = get_global_id(0);
    if (far == 0)
        o[i] += 1;
    else if ((i & 127) == 5)
        o[7] += 1; // (W)
}

// What others add up is read by a group that does not wait.
kernel void total(global int *o, int far) {
    int i = get_global_id(0), l = get_local_id(0);
    if (far == 0 || get_group_id(0) == 0)
        atomic_inc((volatile global int *)o); // (W)
    if (far != 0 && get_group_id(0) == 1)
        o[512 + i] = o[0]; // (R)
}

// Rows of a picture in groups of 8 by 16, of which one column is the next group's.
kernel void column(global int *o, int far) {
    int i = get_global_id(0), l = get_local_id(0), g = get_group_id(0);
    int x = 8 * g + (l & 7), y = l >> 3;
    o[16 * y + (far && (l & 7) == 7 && g == 0 ? x + 1 : x)] = i + 1; // (W)
}

// Vectors of which one element is another work-item's.
kernel void vectors(global int *o, int far) {
    int i = get_global_id(0), l = get_local_id(0);
    vstore2((int2)(i + 1, i + 2000), 0, o + 2 * i); // (W)
    if (far)
        o[2 * (i ^ 64) + 1] = i + 3000; // (W)
}

// Rows of work-items that all read the same words of local memory, which others write.
kernel void rows(global int *o, int far) {
    local int part[256];
    int x = get_local_id(0), y = get_local_id(1), l = get_local_size(0) * y + x;
    part[l] = l + 1; // (W)
    if (far == 0)
        barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
    for (int k = 0; k < 8; k++)
        sum += part[16 * k + x]; // (R)
    o[128 * get_group_id(0) + l] = sum;
}

// An exchange among plain writes.
kernel void exchanged(global int *o, int far) {
    int i = get_global_id(0), l = get_local_id(0);
    if (far && l == 127)
        o[0] = i + 5; // (W)
    else if (l == 3)
        atomic_xchg((volatile global int *)o, i + 1);
}

// Different elements in one word, and arrays beside each other in local memory: not reported.
kernel void neighbours(global int *o, int far) {
    local char bytes[128];
    local short shorts[128];
    int i = get_global_id(0), l = get_local_id(0);
    bytes[l] = (char)(l + 1);
    shorts[127 - l] = (short)(l + far);
    ((global char *)o)[i] = (char)(bytes[l] + shorts[127 - l]);
    o[512 + i] = ((global char *)o)[i];
}

// Two copies of a group whose destinations overlap.
kernel void copies(global int *o, int far) {
    local int part[128];
    int l = get_local_id(0);
    global int *to = o + 256 * get_group_id(0);
    part[l] = l + 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t e = async_work_group_copy(to, part, 128, 0); // (W)
    e = async_work_group_copy(to + 128 - 64 * far, part, 128, e); // (W)
    wait_group_events(1, &e);
}
