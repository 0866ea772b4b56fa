// Kernels whose accesses may be misaligned, each with `far` bytes (0 for the same kernel without the error).

#pragma OPENCL EXTENSION cl_intel_subgroups : enable

#define PAST(TYPE, p, bytes) ((global TYPE *)((global char *)(p) + (bytes)))

// Vectors: one message reads or writes several elements of a lane.
kernel void vector_store(global int *o, int far) {
    size_t i = get_global_id(0);
    *PAST(int4, o, i * 16 % 256 + far) = (int4)(1, 2, 3, 4);
}

kernel void vector_load(global int *o, global int *a, int far) {
    size_t i = get_global_id(0);
    int4 v = *PAST(int4, a, i * 16 % 256 + (i == 5 ? far : 0));
    o[i] = v.x + v.y + v.z + v.w;
}

kernel void long_vector(global long *o, global long *a, int far) {
    size_t i = get_global_id(0);
    long2 v = *PAST(long2, a, i % 8 * 32 + (i < 3 ? far : 0));
    o[i] = v.x ^ v.y;
}

kernel void local_vector(global int *o, int far) {
    local int part[512];
    int l = get_local_id(0);
    for (int k = 0; k < 8; k++)
        part[l * 8 + k] = l + k;
    barrier(CLK_LOCAL_MEM_FENCE);
    int4 v = *(local int4 *)((local char *)part + l * 32 + (l & 1 ? far : 0));
    o[get_global_id(0)] = v.x + v.y + v.z + v.w;
}

// One element of each lane.
kernel void element_store(global int *o, int far) {
    size_t i = get_global_id(0);
    *PAST(int, o, i * 4 + far) = (int)i;
}

// Blocks of sub-groups.
kernel void block_read(global int *o, global int *a, int far) {
    uint v = intel_sub_group_block_read((global uint *)PAST(int, a, get_sub_group_id() * 64 + far));
    o[get_global_id(0)] = (int)v;
}

kernel void block_write(global int *o, int far) {
    intel_sub_group_block_write((global uint *)PAST(int, o, get_sub_group_id() * 128 + far), 7);
}

// The same element for all lanes.
kernel void uniform_vector(global int *o, constant int *a, int far) {
    int8 v = *(constant int8 *)((constant char *)a + far);
    o[get_global_id(0)] = v.s0 + v.s7;
}

// The compiler knows that nothing is said of the alignment, and uses other messages.
kernel void bytes_together(global int *o, global int *a, int far) {
    size_t i = get_global_id(0);
    int4 v = vload4(0, PAST(int, a, i * 4));
    char8 w = vload8(0, (global char *)a + i + far);
    o[i] = v.x + v.w + w.s3;
}

// Addresses that run evenly over the lanes, from a base that is aligned or not, and with a step that is.
kernel void even_base(global int *o, int far) {
    size_t i = get_global_id(0);
    *PAST(int4, o, i * 16 + far) = (int4)(1, 2, 3, 4);
}

kernel void even_step(global int *o, int far) {
    size_t i = get_global_id(0);
    if (far)
        *PAST(int2, o, i * 2) = (int2)(5, 6);
    else
        *PAST(int2, o, i * 8) = (int2)(7, 8);
}
