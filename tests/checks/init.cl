// Kernels for the tests of `--check init`. `far` is 1 in a launch with the error that the kernel is named after, and 0 in a right one. The
// line with the mark (U) is where the uninitialised value decides something.

// Local memory of which one element was never written says where to go.
kernel void local_index(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0 || l != 5)
        part[l] = l ^ 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[l] = a[part[63 - l]]; // (U)
}

// A branch on local memory.
kernel void local_branch(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0 || l < 48)
        part[l] = a[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part[l ^ 1] > 7) // (U)
        atomic_inc(o + l);
}

// A histogram in local memory that nobody sets to zero.
kernel void local_atomic(global int *o, global const int *a, int far) {
    local int bins[64];
    int l = get_local_id(0);
    if (far == 0)
        bins[l] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc((volatile local int *)&bins[a[l] & 63]); // (U)
    barrier(CLK_LOCAL_MEM_FENCE);
    o[l] = bins[l];
}

// A private array with a hole, which compilers keep in registers.
kernel void private_array(global int *o, global const int *a, int far) {
    int mine[40];
    int l = get_local_id(0);
    for (int i = 0; i < 40; i++)
        if (far == 0 || i != a[l + 64])
            mine[i] = a[i] + l;
    o[l] = a[mine[a[l + 128] & 31] & 63]; // (U)
}

// The same, too large for registers.
kernel void private_memory(global int *o, global const int *a, int far) {
    int mine[700];
    int l = get_local_id(0);
    for (int i = 0; i < 700; i++)
        if (far == 0 || i != a[l + 64])
            mine[i] = a[i & 63] + l;
    o[l] = a[mine[a[l + 128]] & 63]; // (U)
}

// A buffer that the host made without content.
kernel void buffer_index(global int *o, global const int *a, global const int *b, int far) {
    int l = get_local_id(0);
    o[l] = a[b[l] & 63]; // (U)
}

// The same, through a copy of the kernel's own.
kernel void buffer_copy(global int *o, global const int *a, global int *b, int far) {
    int l = get_local_id(0);
    b[l + 64] = b[l];
    barrier(CLK_GLOBAL_MEM_FENCE);
    o[l] = a[b[64 + (l ^ 1)] & 63]; // (U)
}

// Only half of each element was written.
kernel void partial_write(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    ((local ushort *)part)[2 * l] = (ushort)l;
    if (far == 0)
        ((local ushort *)part)[2 * l + 1] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[l] = a[part[l ^ 1]]; // (U)
}

// A counter that nobody sets to zero.
kernel void buffer_atomic(global int *o, global const int *a, global int *b, int far) {
    int l = get_local_id(0);
    o[l] = atomic_add((volatile global int *)&b[l & 3], a[l]); // (U)
}

// What is added was never written.
kernel void atomic_operand(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0 || (l & 1) == 0)
        part[l] = a[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add((volatile global int *)&o[l], part[l ^ 1]); // (U)
}

// A lane reads the register of one that did not write it.
kernel __attribute__((intel_reqd_sub_group_size(16)))
void shuffle(global int *o, global const int *a, int far) {
    int l = get_local_id(0);
    int v;
    if (far == 0 || a[l] > 3)
        v = a[l + 64] & 63;
    int from = intel_sub_group_shuffle(v, a[l + 128] & 15);
    o[l] = a[from]; // (U)
}

// A variable that is set on one path only.
kernel void variable(global int *o, global const int *a, int far) {
    int l = get_local_id(0);
    int v;
    if (far == 0 || a[l] > 3)
        v = a[l + 64];
    for (int i = 0; i < a[192]; i++)
        v = v * 3 + a[i];
    if (v > a[193]) // (U)
        atomic_inc(o + l);
}

// Garbage in lanes and bits that nothing depends on: not reported.
kernel void garbage(global int *o, global const int *a, global int *b, int far) {
    local int part[64];
    int l = get_local_id(0);
    int v = part[l] ^ part[l];
    int mixed = (part[l] & 0xff) << 8 | l;
    if (a[l] > 3)
        part[l] = a[l] & 63;
    b[l] = part[l];
    o[l] = a[(mixed & 63) + v];
    if (a[l] > 3)
        o[l] += a[part[l]];
}

kernel void local_bytes(global int *o, global const int *a, int far) {
    local uchar part[64];
    int l = get_local_id(0);
    if (far == 0 || l != 9)
        part[l] = (uchar)(l ^ 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    o[l] = a[part[63 - l]]; // (U)
}

kernel void local_longs(global int *o, global const int *a, int far) {
    local long part[64];
    int l = get_local_id(0);
    if (far == 0 || (l & 3) != 1)
        part[l] = l ^ 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[l] = a[part[63 - l]]; // (U)
}

// One element of a vector.
kernel void local_vector(global int *o, global const int *a, int far) {
    local int4 part[64];
    int l = get_local_id(0);
    part[l].xyz = (int3)(l, 1, 2);
    if (far == 0)
        part[l].w = 5;
    barrier(CLK_LOCAL_MEM_FENCE);
    int4 v = part[l ^ 1];
    o[l] = a[v.x] + a[v.w & 63]; // (U)
}

kernel void loop_bound(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0 || l >= 32)
        part[l] = a[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    int n = part[l ^ 1], sum = 0;
    for (int i = 0; i < n; i++) // (U)
        sum += a[i + l];
    o[l] = sum;
}

// All work-items add the same elements, of which one is missing.
kernel void summed(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0 || l != 17)
        part[l] = a[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
    for (int i = 0; i < 64; i++)
        sum += part[i];
    if (sum > 100) // (U)
        atomic_inc(o + l);
}

// Where to store.
kernel void store_index(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0 || l < 60)
        part[l] = l ^ 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[part[63 - l] & 63] = a[l]; // (U)
}

kernel void atomic_index(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0 || l < 60)
        part[l] = l ^ 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(o + (part[63 - l] & 63), a[l]); // (U)
}

// Through a function that is not inlined.
__attribute__((noinline)) int taken(local const int *part, int l) {
    return part[l] * 3 + 1;
}

kernel void called(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0 || (l & 7) != 2)
        part[l] = l;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[l] = a[taken(part, 63 - l) & 63]; // (U)
}

// A float that was never written, compared.
kernel void compared(global int *o, global const int *a, int far) {
    local float part[64];
    int l = get_local_id(0);
    if (far == 0 || (l & 1) == 0)
        part[l] = (float)a[l] * 0.5f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part[63 - l] * 2.0f + 1.0f > 3.5f) // (U)
        atomic_inc(o + l);
}

// An exchange copies what was there.
kernel void exchanged(global int *o, global const int *a, int far) {
    local int part[64];
    int l = get_local_id(0);
    if (far == 0)
        part[l] = l;
    barrier(CLK_LOCAL_MEM_FENCE);
    int old = atomic_xchg((volatile local int *)&part[l ^ 1], 3);
    o[l] = a[old & 63]; // (U)
}

// A block of a sub-group.
kernel __attribute__((intel_reqd_sub_group_size(16)))
void block(global int *o, global const int *a, global int *b, int far) {
    int l = get_local_id(0);
    uint v = intel_sub_group_block_read((global const uint *)b + (l & ~15));
    o[l] = a[v & 63]; // (U)
}
